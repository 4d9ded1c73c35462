#include "store/hdf5/csr_names.h"

#include <array>
#include <cstring>
#include <vector>

#include "store/hdf5/columns.h"
#include "store/hdf5/csr_numbers.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 16;

void require_count(const Hdf5Check& check, std::uint64_t count, std::uint64_t expected,
                   const std::string& place) {
  if (count != expected)
    check.refuse(place + " has " + std::to_string(count) + " names, expected " + std::to_string(expected));
}

Names read_name_list(const Hdf5Check& check, hid_t file, const std::string& place, std::uint64_t expected) {
  {
    const Hdf5Handle dataset = open_dataset(check, file, place.c_str() + 1);
    check_csr_storage(check, dataset.get(), place);
    const std::vector<hsize_t> dimensions = dataset_dimensions(check, dataset.get());
    require_count(check, dimensions.size() == 1 ? dimensions[0] : 0, expected, place);
  }
  return read_names(check, file, place.substr(1));
}

/// AnnData's categories: a name for each code.
Names read_categories(const Hdf5Check& check, hid_t file, const std::string& place, std::uint64_t expected) {
  Hdf5Numbers codes(check, file, place + "/codes");
  require_count(check, codes.dimensions().size() == 1 ? codes.count() : 0, expected, place + "/codes");
  const Names categories = read_names(check, file, place.substr(1) + "/categories");
  std::vector<std::int64_t> numbers(expected);
  if (expected > 0) codes.read(check, numbers);
  Names names;
  for (const std::int64_t code : numbers) {
    if (code < 0 || static_cast<std::uint64_t>(code) >= categories.count())
      check.refuse(place + " has code " + std::to_string(code) + " of " + std::to_string(categories.count()) +
                   " categories");
    names.add(categories[static_cast<std::size_t>(code)]);
  }
  return names;
}

/// Reads the member "index" of records: text of fixed length, as h5py wrote it for AnnData.
Names read_record_index(const Hdf5Check& check, hid_t dataset, const std::string& place,
                        std::uint64_t expected) {
  const Hdf5Handle type(check(H5Dget_type(dataset), "ask for a type"), H5Tclose);
  const int member = H5Tget_class(type.get()) == H5T_COMPOUND ? H5Tget_member_index(type.get(), "index") : -1;
  if (member < 0) return {};
  const Hdf5Handle text(
      check(H5Tget_member_type(type.get(), static_cast<unsigned>(member)), "ask for a type"), H5Tclose);
  const std::size_t bytes = H5Tget_size(text.get());
  if (H5Tget_class(text.get()) != H5T_STRING || H5Tis_variable_str(text.get()) > 0 || bytes > kMaxTextBytes)
    return {};
  const std::vector<hsize_t> dimensions = dataset_dimensions(check, dataset);
  require_count(check, dimensions.size() == 1 ? dimensions[0] : 0, expected, place);
  check_csr_storage(check, dataset, place);
  check_column_storage(check, dataset, dimensions, H5Tget_size(type.get()));
  const Hdf5Handle record(check(H5Tcreate(H5T_COMPOUND, bytes), "create a record type"), H5Tclose);
  check(H5Tinsert(record.get(), "index", 0, text.get()), "create a record type");
  std::vector<char> items(expected * bytes);
  if (expected > 0)
    check(H5Dread(dataset, record.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, items.data()), "read names");
  Names names;
  for (std::size_t i = 0; i < expected; ++i) {
    const char* const item = items.data() + i * bytes;
    names.add({item, ::strnlen(item, bytes)});
  }
  return names;
}

}  // namespace

std::string read_any_text_attribute(const Hdf5Check& check, hid_t object, const char* name) {
  if (check(H5Aexists(object, name), "look for an attribute") == 0) return "";
  const Hdf5Handle attribute(check(H5Aopen(object, name, H5P_DEFAULT), "open an attribute"), H5Aclose);
  const Hdf5Handle type(check(H5Aget_type(attribute.get()), "ask for an attribute's type"), H5Tclose);
  const Hdf5Handle space(check(H5Aget_space(attribute.get()), "ask for an attribute's size"), H5Sclose);
  const std::size_t bytes = H5Tget_size(type.get());
  if (H5Tget_class(type.get()) != H5T_STRING || H5Sget_simple_extent_npoints(space.get()) != 1 ||
      bytes > kMaxTextBytes)
    return "";
  if (H5Tis_variable_str(type.get()) > 0) {
    char* pointer = nullptr;
    check(H5Aread(attribute.get(), type.get(), &pointer), "read an attribute");
    std::string text = pointer == nullptr ? "" : pointer;
    H5free_memory(pointer);
    return text;
  }
  std::vector<char> item(bytes);
  check(H5Aread(attribute.get(), type.get(), item.data()), "read an attribute");
  return {item.data(), ::strnlen(item.data(), item.size())};
}

bool is_group(const Hdf5Check& check, hid_t file, const std::string& place) {
  if (!has_object(check, file, place.c_str() + 1)) return false;
  return H5Iget_type(open_object(check, file, place.c_str() + 1).get()) == H5I_GROUP;
}

Names read_csr_names(const Hdf5Check& check, hid_t file, const std::string& place, std::uint64_t expected) {
  if (!is_group(check, file, place)) return read_name_list(check, file, place, expected);
  if (has_object(check, file, (place + "/categories").c_str() + 1))
    return read_categories(check, file, place, expected);
  return read_name_list(check, file, place + "/values", expected);  // AnnData's texts that may be missing
}

Names read_table_index(const Hdf5Check& check, hid_t file, const std::string& place, std::uint64_t expected) {
  const Hdf5Handle table = open_object(check, file, place.c_str() + 1);
  if (H5Iget_type(table.get()) != H5I_GROUP) return read_record_index(check, table.get(), place, expected);
  const std::string said = read_any_text_attribute(check, table.get(), "_index");
  for (const std::string& name : {said, std::string("_index"), std::string("index")})
    if (!name.empty() && has_object(check, file, (place + "/" + name).c_str() + 1))
      return read_csr_names(check, file, place + "/" + name, expected);
  if (check(H5Aexists(table.get(), "_index"), "look for an attribute") > 0)
    check.refuse(place + " says that its index is \"" + said + "\", which is not there");
  return {};
}

}  // namespace chunkhit
