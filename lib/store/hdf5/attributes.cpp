#include "store/hdf5/attributes.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include "store/hdf5/numbers.h"

namespace chunkhit {
namespace {

// An attribute lies in an object's header, whose messages have at most 64 KiB.
constexpr hssize_t kMaxValues = 65536;
constexpr std::size_t kMaxAttributeBytes = 65536;

}  // namespace

void write_attribute(const Hdf5Check& check, hid_t object, const char* name, hid_t type, AttributeShape shape,
                     hsize_t count, const void* values) {
  const Hdf5Handle space(
      check(shape == AttributeShape::scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, nullptr),
            "create a dataspace"),
      H5Sclose);
  const Hdf5Handle attribute(
      check(H5Acreate2(object, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT), "create an attribute"),
      H5Aclose);
  if (count > 0) check(H5Awrite(attribute.get(), type, values), "write an attribute");
}

void write_text_attribute(const Hdf5Check& check, hid_t object, const char* name, const std::string& text) {
  const char* pointer = text.c_str();
  const Hdf5Handle type = variable_text_type(check, H5T_CSET_UTF8);
  write_attribute(check, object, name, type.get(), AttributeShape::scalar, 1, &pointer);
}

void write_text_attribute(const Hdf5Check& check, hid_t object, const char* name,
                          const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  pointers.reserve(texts.size());
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  const Hdf5Handle type = variable_text_type(check, H5T_CSET_UTF8);
  write_attribute(check, object, name, type.get(), AttributeShape::array, pointers.size(), pointers.data());
}

std::size_t attribute_count(const Hdf5Check& check, hid_t object, const char* name) {
  if (check(H5Aexists(object, name), "look for an attribute") == 0) return 0;
  const Hdf5Handle attribute(check(H5Aopen(object, name, H5P_DEFAULT), "open an attribute"), H5Aclose);
  const Hdf5Handle space(check(H5Aget_space(attribute.get()), "ask for an attribute's size"), H5Sclose);
  const hssize_t count = check(H5Sget_simple_extent_npoints(space.get()), "ask for an attribute's size");
  if (count > kMaxValues) check.refuse(std::string("attribute ") + name + " has too many values");
  return static_cast<std::size_t>(count);
}

void read_attribute(const Hdf5Check& check, hid_t object, const char* name, hid_t type, void* values) {
  const Hdf5Handle attribute(check(H5Aopen(object, name, H5P_DEFAULT), "open an attribute"), H5Aclose);
  check(H5Aread(attribute.get(), type, values), (std::string("read attribute ") + name).c_str());
}

std::string read_text_attribute(const Hdf5Check& check, hid_t object, const char* name) {
  const std::size_t count = attribute_count(check, object, name);
  if (count == 0) return "";
  if (count != 1) check.refuse(std::string("attribute ") + name + " is not one text");
  const Hdf5Handle attribute(check(H5Aopen(object, name, H5P_DEFAULT), "open an attribute"), H5Aclose);
  const Hdf5Handle stored(check(H5Aget_type(attribute.get()), "ask for an attribute's type"), H5Tclose);
  if (H5Tget_class(stored.get()) != H5T_STRING)
    check.refuse(std::string("attribute ") + name + " is no text");
  if (H5Tis_variable_str(stored.get()) <= 0) {
    if (H5Tget_size(stored.get()) > kMaxAttributeBytes)
      check.refuse(std::string("attribute ") + name + " is too long");
    std::string text(H5Tget_size(stored.get()), '\0');
    read_attribute(check, object, name, stored.get(), text.data());
    return text.substr(0, text.find('\0'));
  }
  const Hdf5Handle type = variable_text_type(check, H5Tget_cset(stored.get()));
  char* pointer = nullptr;
  read_attribute(check, object, name, type.get(), &pointer);
  std::string text = pointer == nullptr ? "" : pointer;
  H5free_memory(pointer);
  return text;
}

namespace {

constexpr const char* kIndexName = "_index";
constexpr std::array<std::string_view, 4> kTakenNames{".", kIndexName, "row", "label"};

bool is_free(const std::string& name, const std::vector<std::string>& taken) {
  return !name.empty() && name.find('/') == std::string::npos && name.find('\0') == std::string::npos &&
         std::ranges::find(kTakenNames, name) == kTakenNames.end() &&
         std::ranges::find(taken, name) == taken.end();
}

}  // namespace

void write_encoding(const Hdf5Check& check, hid_t object, const char* type, const char* version) {
  write_text_attribute(check, object, "encoding-type", type);
  write_text_attribute(check, object, "encoding-version", version);
}

Hdf5Handle create_group(const Hdf5Check& check, hid_t file, const std::string& path, const char* type,
                        const char* version) {
  Hdf5Handle group(check(H5Gcreate2(file, path.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                         ("create /" + path).c_str()),
                   H5Gclose);
  write_encoding(check, group.get(), type, version);
  return group;
}

std::vector<std::string> label_column_names(const std::vector<std::string>& labels) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    std::string name = labels[i];
    for (std::size_t number = i; !is_free(name, names); ++number) name = "label_" + std::to_string(number);
    names.push_back(std::move(name));
  }
  return names;
}

DataFrameWriter::DataFrameWriter(const Hdf5Check& check, hid_t file, std::string path,
                                 const TextList& row_names)
    : check_(check),
      file_(file),
      path_(std::move(path)),
      group_(create_group(check, file, path_, "dataframe", "0.2.0")) {
  const std::string index = path_ + "/" + kIndexName;
  write_text_attribute(check_, group_.get(), "_index", kIndexName);
  write_variable_texts(check_, file_, index, row_names);
  write_encoding(check_, open_dataset(check_, file_, index).get(), "string-array", "0.2.0");
}

void DataFrameWriter::add(const std::string& name, hid_t type, std::uint64_t count, const void* numbers) {
  const std::string path = path_ + "/" + name;
  const hsize_t dimension = count;
  write_column(check_, file_, path.c_str(), type, {&dimension, 1}, numbers);
  write_encoding(check_, open_dataset(check_, file_, path).get(), "array", "0.2.0");
  columns_.push_back(name);
}

void DataFrameWriter::add(const std::string& name, const TextList& texts) {
  const std::string path = path_ + "/" + name;
  write_variable_texts(check_, file_, path, texts);
  write_encoding(check_, open_dataset(check_, file_, path).get(), "string-array", "0.2.0");
  columns_.push_back(name);
}

std::vector<std::string> DataFrameWriter::add_kept(const std::vector<SampleColumn>& columns) {
  std::vector<std::string> names;
  for (std::size_t column = 0; column < columns.size(); ++column) {
    std::string name = columns[column].name;
    for (std::size_t number = column; !is_free(name, columns_); ++number)
      name = "column_" + std::to_string(number);
    std::visit([&](const auto& values) { add(name, values); }, columns[column].values);
    names.push_back(std::move(name));
  }
  return names;
}

void DataFrameWriter::finish() {
  write_text_attribute(check_, group_.get(), "column-order", columns_);
  check_(group_.close(), ("close /" + path_).c_str());
}

}  // namespace chunkhit
