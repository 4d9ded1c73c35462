#include "store/hdf5/dataset.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/bytes.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "chunkhit/error.h"
#include "codec/deflate.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMaxListedNames = 20;
// Deflate, the strongest of HDF5's own filters, expands one byte to at most 1,032.
constexpr std::uint64_t kMaxFilterInflation = 1100;
// h5py's parameters: revision of the filter, version of LZF, bytes of a chunk before it was compressed.
constexpr std::size_t kChunkBytesIndex = 2;
// Registered with The HDF Group:
// https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md
constexpr std::array<std::pair<H5Z_filter_t, std::string_view>, 14> kFilterNames{
    {{H5Z_FILTER_DEFLATE, "deflate"},
     {H5Z_FILTER_SHUFFLE, "shuffle"},
     {H5Z_FILTER_FLETCHER32, "fletcher32"},
     {kZstdFilter, "zstd"},
     {H5Z_FILTER_SZIP, "szip"},
     {H5Z_FILTER_NBIT, "nbit"},
     {H5Z_FILTER_SCALEOFFSET, "scaleoffset"},
     {307, "bzip2"},
     {kLzfFilter, "lzf"},
     {32001, "blosc"},
     {32004, "lz4"},
     {32008, "bitshuffle"},
     {32013, "zfp"},
     {32026, "blosc2"}}};

herr_t list_name(hid_t, const char* name, const H5L_info_t*, void* listed) {
  static_cast<std::vector<std::string>*>(listed)->emplace_back(name);
  return 0;
}

std::atomic<bool> is_lzf_registered = false;

/// Compares the chunk size in LZF's parameters with that of the array. It is 0 for references to texts.
void check_lzf(const Hdf5Check& check, hid_t dataset, unsigned chunk_bytes, const std::string& path) {
  const Hdf5Handle type(check(H5Dget_type(dataset), "ask for a type"), H5Tclose);
  auto bytes = static_cast<double>(H5Tget_size(type.get()));
  for (const hsize_t side : chunk_sides(check, dataset)) bytes *= static_cast<double>(side);
  if (chunk_bytes != 0 && bytes != static_cast<double>(chunk_bytes))
    check.refuse(path + " has LZF chunks of " + std::to_string(chunk_bytes) + " bytes, expected " +
                 number_text(bytes));
}

/// Rejects data in other files and filters that need a plug-in; the message says what to do.
void check_filters(const Hdf5Check& check, hid_t dataset, const std::string& path) {
  const Hdf5Handle list(check(H5Dget_create_plist(dataset), "ask for a storage"), H5Pclose);
  if (H5Pget_layout(list.get()) == H5D_VIRTUAL || H5Pget_external_count(list.get()) != 0)
    check.refuse(path + " lies in another file");
  const int filters = check(H5Pget_nfilters(list.get()), "ask for filters");
  for (unsigned i = 0; i < static_cast<unsigned>(filters); ++i) {
    std::array<unsigned, kChunkBytesIndex + 1> parameters{};
    std::size_t values = parameters.size();
    const H5Z_filter_t filter =
        H5Pget_filter2(list.get(), i, nullptr, &values, parameters.data(), 0, nullptr, nullptr);
    if (filter == H5Z_FILTER_DEFLATE || filter == H5Z_FILTER_SHUFFLE || filter == H5Z_FILTER_FLETCHER32)
      continue;
    if (filter != kLzfFilter || !is_lzf_registered)
      check.refuse(path + " is compressed by " + filter_text(filter) +
                   ", which needs a plug-in of HDF5; write it with gzip, lzf or without compression");
    if (values > kChunkBytesIndex) check_lzf(check, dataset, parameters[kChunkBytesIndex], path);
  }
}

/// Rejects soft and external links on a path: they could lead to other files.
void check_links(const Hdf5Check& check, hid_t file, const std::string& path) {
  for (std::size_t end = 0; end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    const std::string step = path.substr(0, end);
    H5L_info_t link;
    check(H5Lget_info(file, step.c_str(), &link, H5P_DEFAULT), ("find " + step).c_str());
    if (link.type != H5L_TYPE_HARD) check.refuse(step + " is a link to elsewhere");
  }
}

/// Rejects dimensions that the stored bytes cannot fill, even at the best compression.
void check_size(const Hdf5Check& check, hid_t dataset, std::span<const hsize_t> dimensions,
                std::uint64_t item_bytes, const std::string& path) {
  std::uint64_t most = H5Dget_storage_size(dataset) / item_bytes;
  most = most > UINT64_MAX / 8 / kMaxFilterInflation ? 0 : most * kMaxFilterInflation;
  for (const hsize_t dimension : dimensions) {
    if (dimension == 0) return;
    most /= dimension;
  }
  if (most == 0) check.refuse(path + ": its storage is smaller than its dimensions");
}

/// Rejects a list with missing chunks and without fill value, as our lists are: HDF5 would return zeros.
void check_chunks(const Hdf5Check& check, hid_t dataset, hsize_t length, const std::string& path) {
  const std::vector<hsize_t> chunk = chunk_sides(check, dataset);
  if (chunk.empty()) return;
  const Hdf5Handle list(check(H5Dget_create_plist(dataset), "ask for a storage"), H5Pclose);
  H5D_fill_time_t fill_time = H5D_FILL_TIME_NEVER;
  check(H5Pget_fill_time(list.get(), &fill_time), "ask for a column's filling");
  if (fill_time != H5D_FILL_TIME_NEVER) return;
  const std::uint64_t found = written_chunks(check, dataset);
  const hsize_t expected = length / chunk[0] + (length % chunk[0] != 0 ? 1 : 0);
  if (found < expected)
    check.refuse(path + " has " + std::to_string(found) + " chunks, expected " + std::to_string(expected));
}

}  // namespace

std::string_view filter_name(H5Z_filter_t filter) {
  const auto* const found =
      std::ranges::find(kFilterNames, filter, [](const auto& row) { return row.first; });
  return found == kFilterNames.end() ? "" : found->second;
}

std::string filter_text(H5Z_filter_t filter) {
  const std::string name(filter_name(filter));
  return name.empty() ? std::to_string(filter) : name + " (" + std::to_string(filter) + ")";
}

std::string hdf5_path(const std::string& path) { return (path.starts_with('/') ? "" : "/") + path; }

bool has_object(const Hdf5Check& check, hid_t file, const std::string& name) {
  const std::string path = hdf5_path(name);
  for (std::size_t end = 0; end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    const std::string step = path.substr(0, end);
    if (check(H5Lexists(file, step.c_str(), H5P_DEFAULT), "look for an object") == 0) return false;
    H5L_info_t link;
    check(H5Lget_info(file, step.c_str(), &link, H5P_DEFAULT), "look for an object");
    if (link.type != H5L_TYPE_HARD) return true;  // not followed: opening it will be an error
  }
  return true;
}

bool has_group(const Hdf5Check& check, hid_t file, const std::string& path) {
  return has_object(check, file, path) && H5Iget_type(open_object(check, file, path).get()) == H5I_GROUP;
}

std::vector<std::string> child_names(const Hdf5Check& check, hid_t file, const std::string& group) {
  std::vector<std::string> names;
  check(H5Literate_by_name(file, group.c_str(), H5_INDEX_NAME, H5_ITER_INC, nullptr, list_name, &names,
                           H5P_DEFAULT),
        "list its objects");
  return names;
}

/// Lists what the nearest existing group has, so that the message shows the right name.
void refuse_missing(const Hdf5Check& check, hid_t file, const std::string& what, const std::string& path,
                    const std::string& advice) {
  std::string group = hdf5_path(path);
  do group.erase(group.rfind('/'));
  while (!group.empty() && !has_group(check, file, group));
  std::vector<std::string> names;
  check(H5Lvisit_by_name(file, group.empty() ? "/" : group.c_str(), H5_INDEX_NAME, H5_ITER_INC, list_name,
                         &names, H5P_DEFAULT),
        "list its objects");
  std::string listed;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxListedNames); ++i)
    listed += (i == 0 ? "" : ", ") + group + "/" + (is_utf8(names[i]) ? names[i] : "(no UTF-8)");
  if (names.size() > kMaxListedNames) listed += ", ...";
  check.refuse(what + "; it has " + (listed.empty() ? "nothing" : listed) + advice);
}

Hdf5Handle open_object(const Hdf5Check& check, hid_t file, const std::string& name) {
  const std::string path = hdf5_path(name);
  check_links(check, file, path);
  return {check(H5Oopen(file, path.c_str(), H5P_DEFAULT), ("open " + path).c_str()), H5Oclose};
}

Hdf5Handle open_dataset(const Hdf5Check& check, hid_t file, const std::string& name, hid_t access) {
  const std::string path = hdf5_path(name);
  check_links(check, file, path);
  return {check(H5Dopen2(file, path.c_str(), access), ("open " + path).c_str()), H5Dclose};
}

std::vector<hsize_t> dataset_dimensions(const Hdf5Check& check, hid_t dataset) {
  const Hdf5Handle space(check(H5Dget_space(dataset), "ask for dimensions"), H5Sclose);
  const int rank = check(H5Sget_simple_extent_ndims(space.get()), "ask for dimensions");
  std::vector<hsize_t> dimensions(static_cast<std::size_t>(rank));
  check(H5Sget_simple_extent_dims(space.get(), dimensions.data(), nullptr), "ask for dimensions");
  return dimensions;
}

std::vector<hsize_t> chunk_sides(const Hdf5Check& check, hid_t dataset) {
  const Hdf5Handle list(check(H5Dget_create_plist(dataset), "ask for a storage"), H5Pclose);
  if (H5Pget_layout(list.get()) != H5D_CHUNKED) return {};
  std::vector<hsize_t> sides(dataset_dimensions(check, dataset).size());
  const int rank =
      check(H5Pget_chunk(list.get(), static_cast<int>(sides.size()), sides.data()), "ask for chunks");
  if (static_cast<std::size_t>(rank) != sides.size() || std::ranges::find(sides, hsize_t{0}) != sides.end())
    check.refuse("a dataset has chunks of other dimensions than its own");
  return sides;
}

std::uint64_t written_chunks(const Hdf5Check& check, hid_t dataset) {
  hsize_t written = 0;
  const Hdf5Handle space(check(H5Dget_space(dataset), "ask for a dataspace"), H5Sclose);
  check(H5Dget_num_chunks(dataset, space.get(), &written), "count the chunks");
  return written;
}

Hdf5Handle make_space(const Hdf5Check& check, std::span<const hsize_t> dimensions) {
  return {check(H5Screate_simple(static_cast<int>(dimensions.size()), dimensions.data(), nullptr),
                "create a dataspace"),
          H5Sclose};
}

Hdf5Handle make_creation_list(const Hdf5Check& check) {
  Hdf5Handle list(check(H5Pcreate(H5P_DATASET_CREATE), "create a property list"), H5Pclose);
  check(H5Pset_obj_track_times(list.get(), false), "leave out times");
  return list;
}

Hdf5Handle create_dataset(const Hdf5Check& check, hid_t file, const std::string& path, hid_t type,
                          const Hdf5Handle& space, const Hdf5Handle& list) {
  return {check(H5Dcreate2(file, path.c_str(), type, space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT),
                ("create /" + path).c_str()),
          H5Dclose};
}

Hdf5Handle select_box(const Hdf5Check& check, hid_t dataset, std::span<const hsize_t> first,
                      std::span<const hsize_t> sides) {
  Hdf5Handle space(check(H5Dget_space(dataset), "ask for a dataspace"), H5Sclose);
  check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, first.data(), nullptr, sides.data(), nullptr),
        "select a part of a dataset");
  return space;
}

void check_storage(const Hdf5Check& check, hid_t dataset, std::span<const hsize_t> dimensions,
                   std::uint64_t item_bytes, const std::string& path) {
  check_filters(check, dataset, path);
  check_size(check, dataset, dimensions, item_bytes, path);
  if (dimensions.size() == 1) check_chunks(check, dataset, dimensions[0], path);
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

namespace {

// Larger than the chunks of any known program (numbers.cpp has the same limit for the chunks of a row).
constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{1} << 30;

void push_reason(const char* reason) {
  H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_PLINE, H5E_READERROR, "%s", reason);
}

/// Decodes a chunk; returns 0 on failure, as HDF5 requires. The result has exactly the expected size, because
/// HDF5 would read past the end of a shorter one.
std::size_t undo_lzf(unsigned flags, std::size_t count, const unsigned* parameters, std::size_t bytes,
                     std::size_t* buffer_bytes, void** buffer) {
  if ((flags & H5Z_FLAG_REVERSE) == 0) return 0;
  void* raw = nullptr;
  try {
    const Bytes stored(static_cast<const std::uint8_t*>(*buffer), bytes);
    const std::uint64_t expected = count > kChunkBytesIndex ? parameters[kChunkBytesIndex] : 0;
    const std::uint64_t raw_bytes = expected > 0 ? expected : lzf_content_bytes(stored);
    if (raw_bytes == 0 || raw_bytes > kMaxChunkBytes) throw_bad_data("LZF stream: bad chunk size");
    raw = H5allocate_memory(raw_bytes, false);
    if (raw == nullptr) throw Error(ErrorCode::try_again, "LZF stream: no memory for a chunk");
    decode_lzf(stored, {static_cast<std::uint8_t*>(raw), raw_bytes});
    H5free_memory(*buffer);
    *buffer = raw;
    *buffer_bytes = raw_bytes;
    return raw_bytes;
  } catch (const Error& error) {
    push_reason(error.what());
    H5free_memory(raw);
    return 0;
  }
}

}  // namespace

void register_lzf(const Hdf5Check& check) {
  is_lzf_registered = is_lzf_registered || H5Zfilter_avail(kLzfFilter) > 0;
  if (is_lzf_registered) return;
  const H5Z_class2_t filter{H5Z_CLASS_T_VERS, kLzfFilter, 0, 1, "lzf", nullptr, nullptr, undo_lzf};
  check(H5Zregister(&filter), "register LZF");
  is_lzf_registered = true;
}

}  // namespace chunkhit
