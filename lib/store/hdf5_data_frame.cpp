#include "store/hdf5_data_frame.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "store/hdf5_attributes.h"
#include "store/hdf5_texts.h"

namespace chunkhit {
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

bool has_group(const Hdf5Check& check, hid_t file, const std::string& path) {
  if (!has_object(check, file, path.c_str())) return false;
  return H5Iget_type(open_object(check, file, path.c_str()).get()) == H5I_GROUP;
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

DataFrameWriter::DataFrameWriter(const Hdf5Check& check, hid_t file, std::string path, const Names& row_names)
    : check_(check),
      file_(file),
      path_(std::move(path)),
      group_(create_group(check, file, path_, "dataframe", "0.2.0")) {
  const std::string index = path_ + "/" + kIndexName;
  write_text_attribute(check_, group_.get(), "_index", kIndexName);
  write_variable_texts(check_, file_, index, row_names);
  write_encoding(check_, open_dataset(check_, file_, index.c_str()).get(), "string-array", "0.2.0");
}

void DataFrameWriter::add(const std::string& name, hid_t type, std::uint64_t count, const void* numbers) {
  const std::string path = path_ + "/" + name;
  const hsize_t dimension = count;
  write_column(check_, file_, path.c_str(), type, {&dimension, 1}, numbers);
  write_encoding(check_, open_dataset(check_, file_, path.c_str()).get(), "array", "0.2.0");
  columns_.push_back(name);
}

void DataFrameWriter::finish() {
  write_text_attribute(check_, group_.get(), "column-order", columns_);
  check_(group_.close(), ("close /" + path_).c_str());
}

Names read_row_names(const Hdf5Check& check, hid_t file, const std::string& path) {
  if (!has_group(check, file, path)) return {};
  const Hdf5Handle group = open_object(check, file, path.c_str());
  const std::string index = path + "/" + read_text_attribute(check, group.get(), "_index");
  if (index.back() == '/' || !has_object(check, file, index.c_str()) || has_group(check, file, index))
    return {};
  return read_names(check, file, index);
}

}  // namespace chunkhit
