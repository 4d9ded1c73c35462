#include "store/hdf5/array.h"

#include <algorithm>
#include <array>

#include "store/hdf5/dataset.h"

namespace chunkhit {
namespace {

std::string type_name(hid_t type) {
  const std::string bits = std::to_string(H5Tget_size(type) * 8) + " bits";
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return (H5Tget_sign(type) == H5T_SGN_NONE ? "unsigned numbers of " : "signed numbers of ") + bits;
    case H5T_FLOAT:
      return "floating numbers of " + bits;
    case H5T_STRING:
      return "text";
    case H5T_COMPOUND:
      return "compounds";
    case H5T_ENUM:
      return "an enumeration or truth values";
    default:
      return "values of class " + std::to_string(H5Tget_class(type));
  }
}

void check_type(const Hdf5Check& check, hid_t dataset, const std::string& name) {
  const Hdf5Handle type(check(H5Dget_type(dataset), "ask for a type"), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_INTEGER || H5Tget_size(type.get()) != 1 ||
      H5Tget_sign(type.get()) != H5T_SGN_NONE)
    check.refuse(name + " holds " + type_name(type.get()) + ", expected unsigned numbers of 8 bits");
}

std::string_view known_filter(const Hdf5Check& check, hid_t list, unsigned index, const std::string& name) {
  std::array<unsigned, 1> element_bytes{1};
  std::size_t values = element_bytes.size();
  const H5Z_filter_t id =
      H5Pget_filter2(list, index, nullptr, &values, element_bytes.data(), 0, nullptr, nullptr);
  if (id == H5Z_FILTER_SHUFFLE && values > 0 && element_bytes[0] != 1)
    check.refuse(name + " has its bytes shuffled as elements of " + std::to_string(element_bytes[0]) +
                 " bytes");
  if (id != H5Z_FILTER_DEFLATE && id != H5Z_FILTER_SHUFFLE && id != H5Z_FILTER_FLETCHER32 &&
      id != kZstdFilter)
    check.refuse(name + " has filter " + filter_text(id) +
                 ", expected none, deflate, shuffle, fletcher32 or zstd");
  return filter_name(id);
}

void read_filters(const Hdf5Check& check, hid_t list, Hdf5Array& array) {
  const int count = check(H5Pget_nfilters(list), "ask for filters");
  unsigned codecs = 0;
  for (unsigned i = 0; i < static_cast<unsigned>(count); ++i) {
    array.filters.push_back(known_filter(check, list, i, array.name));
    codecs += array.filters.back() == "deflate" || array.filters.back() == "zstd" ? 1 : 0;
  }
  if (codecs > 1) check.refuse(array.name + " is compressed more than once");
}

void read_fill_value(const Hdf5Check& check, hid_t list, Hdf5Array& array) {
  H5D_fill_value_t kind = H5D_FILL_VALUE_UNDEFINED;
  check(H5Pfill_value_defined(list, &kind), "ask for the fill value");
  if (kind != H5D_FILL_VALUE_UNDEFINED)
    check(H5Pget_fill_value(list, H5T_NATIVE_UINT8, &array.fill_value), "ask for the fill value");
}

void read_chunks(const Hdf5Check& check, hid_t list, Hdf5Array& array) {
  std::vector<hsize_t> chunk(array.dimensions.size());
  check(H5Pget_chunk(list, static_cast<int>(chunk.size()), chunk.data()), "ask for the chunk's shape");
  array.chunk.assign(chunk.begin(), chunk.end());
  unsigned options = 0;
  check(H5Pget_chunk_opts(list, &options), "ask for the chunks' options");
  array.filters_partial_chunks = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) == 0;
}

}  // namespace

Hdf5Array describe_array(const Hdf5Check& check, hid_t dataset, const std::string& name) {
  Hdf5Array array;
  array.name = name;
  check_type(check, dataset, name);
  const std::vector<hsize_t> dimensions = dataset_dimensions(check, dataset);
  if (dimensions.empty()) check.refuse(name + " is a single value or empty, expected an array");
  array.dimensions.assign(dimensions.begin(), dimensions.end());
  const Hdf5Handle list(check(H5Dget_create_plist(dataset), "ask for an array's storage"), H5Pclose);
  const H5D_layout_t layout = H5Pget_layout(list.get());
  if (layout == H5D_VIRTUAL || H5Pget_external_count(list.get()) > 0)
    check.refuse(name + " lies in another file");
  if (layout == H5D_COMPACT) check.refuse(name + " lies in its object's header (compact storage)");
  read_filters(check, list.get(), array);
  read_fill_value(check, list.get(), array);
  if (layout == H5D_CHUNKED) {
    read_chunks(check, list.get(), array);
    array.is_written = H5Dget_storage_size(dataset) > 0;
    return array;
  }
  const haddr_t offset = H5Dget_offset(dataset);
  array.is_written = offset != HADDR_UNDEF;
  array.offset = array.is_written ? offset : 0;
  return array;
}

std::string codec_name(const Hdf5Check& check, hid_t dataset) {
  const Hdf5Handle list(check(H5Dget_create_plist(dataset), "ask for an array's storage"), H5Pclose);
  const int count = check(H5Pget_nfilters(list.get()), "ask for filters");
  std::string codec = "none";
  for (unsigned i = 0; i < static_cast<unsigned>(count); ++i) {
    std::size_t values = 0;
    const H5Z_filter_t id = H5Pget_filter2(list.get(), i, nullptr, &values, nullptr, 0, nullptr, nullptr);
    if (id == H5Z_FILTER_SHUFFLE || id == H5Z_FILTER_FLETCHER32) continue;
    codec = filter_name(id);
    if (codec.empty()) codec = std::to_string(id);
  }
  return codec;
}

}  // namespace chunkhit
