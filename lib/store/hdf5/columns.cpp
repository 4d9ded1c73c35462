#include "store/hdf5/columns.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "chunkhit/error.h"
#include "codec/deflate.h"

namespace chunkhit {
namespace {

constexpr std::size_t kBlockBytes = 1 << 20;
// Of a file name; longer ones take their memory as they come.
constexpr std::size_t kUsualNameBytes = 64;
constexpr std::size_t kMaxReserved = std::size_t{64} << 20;
// Deflate, the best of HDF5's own filters, makes at most 1,032 bytes of one.
constexpr std::uint64_t kMaxInflation = 1100;

Hdf5Handle make_space(const Hdf5Check& check, std::span<const hsize_t> dimensions) {
  return {check(H5Screate_simple(static_cast<int>(dimensions.size()), dimensions.data(), nullptr),
                "create a dataspace"),
          H5Sclose};
}

Hdf5Handle create_column(const Hdf5Check& check, hid_t file, const char* name, hid_t type,
                         std::span<const hsize_t> dimensions) {
  const Hdf5Handle space = make_space(check, dimensions);
  const Hdf5Handle list(check(H5Pcreate(H5P_DATASET_CREATE), "create a property list"), H5Pclose);
  check(H5Pset_obj_track_times(list.get(), false), "leave out times");
  check(H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER), "leave out filling");
  return {check(H5Dcreate2(file, name, type, space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT),
                "create a column"),
          H5Dclose};
}

Hdf5Handle fixed_text_type(const Hdf5Check& check, std::size_t bytes) {
  Hdf5Handle type(check(H5Tcopy(H5T_C_S1), "create a text type"), H5Tclose);
  check(H5Tset_size(type.get(), bytes), "set a text's length");
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "set a text's encoding");
  check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "set a text's padding");
  return type;
}

/// Calls `step(first, count, bytes)` for as many texts at a time as fit a block, so that one long name costs
/// no memory.
template <class Step>
void for_each_block(std::size_t text_count, std::size_t text_bytes, Step step) {
  const std::size_t at_once = std::clamp<std::size_t>(kBlockBytes / text_bytes, 1, text_count);
  ByteBuffer block(at_once * text_bytes);
  for (std::size_t first = 0; first < text_count; first += at_once) {
    const std::size_t count = std::min(at_once, text_count - first);
    step(first, count, MutableBytes(block).first(count * text_bytes));
  }
}

Hdf5Handle select_rows(const Hdf5Check& check, hid_t dataset, hsize_t first, hsize_t count) {
  Hdf5Handle space(check(H5Dget_space(dataset), "ask for a column's space"), H5Sclose);
  check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr), "select rows");
  return space;
}

std::size_t longest_of(const Names& names) {
  std::size_t longest = 1;
  for (std::size_t i = 0; i < names.count(); ++i) longest = std::max(longest, names[i].size());
  return longest;
}

/// Refuses data of other files, and filters that would load a plug-in.
void check_storage(const Hdf5Check& check, hid_t dataset) {
  const Hdf5Handle list(check(H5Dget_create_plist(dataset), "ask for a column's storage"), H5Pclose);
  if (H5Pget_layout(list.get()) == H5D_VIRTUAL || H5Pget_external_count(list.get()) != 0)
    check.refuse("a column lies in another file");
  const int filters = check(H5Pget_nfilters(list.get()), "ask for filters");
  for (unsigned i = 0; i < static_cast<unsigned>(filters); ++i) {
    std::size_t values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(list.get(), i, nullptr, &values, nullptr, 0, nullptr, nullptr);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32 &&
        !(filter == kLzfFilter && undoes_lzf()))
      check.refuse("a column has filter " + std::to_string(filter) + ", expected none or deflate");
  }
}

/// Refuses links to elsewhere on a path.
void check_links(const Hdf5Check& check, hid_t file, const std::string& path) {
  for (std::size_t end = 0; end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    const std::string step = path.substr(0, end);
    H5L_info_t link;
    check(H5Lget_info(file, step.c_str(), &link, H5P_DEFAULT), ("find /" + step).c_str());
    if (link.type != H5L_TYPE_HARD) check.refuse("/" + step + " is a link to elsewhere");
  }
}

/// Refuses dimensions whose numbers could not come from what is stored.
void check_size(const Hdf5Check& check, hid_t dataset, std::span<const hsize_t> dimensions,
                std::uint64_t item_bytes) {
  std::uint64_t most = H5Dget_storage_size(dataset) / item_bytes;
  most = most > UINT64_MAX / 8 / kMaxInflation ? 0 : most * kMaxInflation;
  for (const hsize_t dimension : dimensions) {
    if (dimension == 0) return;
    most /= dimension;
  }
  if (most == 0) check.refuse("a column's storage is smaller than its dimensions");
}

/// Refuses a list of which chunks are missing and have no fill value, as all lists of ours: HDF5 would make
/// up zeros.
void check_chunks(const Hdf5Check& check, hid_t dataset, hsize_t length) {
  const Hdf5Handle list(check(H5Dget_create_plist(dataset), "ask for a column's storage"), H5Pclose);
  if (H5Pget_layout(list.get()) != H5D_CHUNKED) return;
  H5D_fill_time_t fill_time = H5D_FILL_TIME_NEVER;
  check(H5Pget_fill_time(list.get(), &fill_time), "ask for a column's filling");
  if (fill_time != H5D_FILL_TIME_NEVER) return;
  hsize_t chunk = 0, found = 0;
  check(H5Pget_chunk(list.get(), 1, &chunk), "ask for the chunk's shape");
  if (chunk == 0) check.refuse("a column has chunks without items");
  const Hdf5Handle space(check(H5Dget_space(dataset), "ask for a dataspace"), H5Sclose);
  check(H5Dget_num_chunks(dataset, space.get(), &found), "count the chunks");
  const hsize_t expected = length / chunk + (length % chunk != 0 ? 1 : 0);
  if (found < expected)
    check.refuse("a column has " + std::to_string(found) + " chunks, expected " + std::to_string(expected));
}

}  // namespace

void write_column(const Hdf5Check& check, hid_t file, const char* name, hid_t type,
                  std::span<const hsize_t> dimensions, const void* numbers) {
  const Hdf5Handle dataset = create_column(check, file, name, type, dimensions);
  if (std::ranges::find(dimensions, hsize_t{0}) != dimensions.end()) return;
  check(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers), "write a column");
}

void write_text_column(const Hdf5Check& check, hid_t file, const char* name, const Names& names) {
  const std::size_t text_bytes = longest_of(names);
  const hsize_t dimension = names.count();
  const Hdf5Handle type = fixed_text_type(check, text_bytes);
  const Hdf5Handle dataset = create_column(check, file, name, type.get(), {&dimension, 1});
  if (names.count() == 0) return;
  for_each_block(names.count(), text_bytes, [&](std::size_t first, std::size_t count, MutableBytes block) {
    std::ranges::fill(block, std::uint8_t{0});
    for (std::size_t i = 0; i < count; ++i)
      std::ranges::copy(as_bytes(names[first + i]), block.data() + i * text_bytes);
    const hsize_t rows = count;
    const Hdf5Handle memory = make_space(check, {&rows, 1});
    const Hdf5Handle selected = select_rows(check, dataset.get(), first, count);
    check(H5Dwrite(dataset.get(), type.get(), memory.get(), selected.get(), H5P_DEFAULT, block.data()),
          "write names");
  });
}

std::uint64_t Hdf5Column::count() const {
  std::uint64_t count = 1;
  for (const hsize_t dimension : dimensions) count *= dimension;
  return count;
}

bool has_object(const Hdf5Check& check, hid_t file, const char* name) {
  const std::string path = name;
  for (std::size_t end = 0; end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    const std::string step = path.substr(0, end);
    if (check(H5Lexists(file, step.c_str(), H5P_DEFAULT), "look for an object") == 0) return false;
    H5L_info_t link;
    check(H5Lget_info(file, step.c_str(), &link, H5P_DEFAULT), "look for an object");
    if (link.type != H5L_TYPE_HARD) return true;  // what lies behind it is not looked at: it will be refused
  }
  return !path.empty();
}

Hdf5Handle open_object(const Hdf5Check& check, hid_t file, const char* name) {
  check_links(check, file, name);
  return {check(H5Oopen(file, name, H5P_DEFAULT), (std::string("open /") + name).c_str()), H5Oclose};
}

Hdf5Handle open_dataset(const Hdf5Check& check, hid_t file, const char* name) {
  check_links(check, file, name);
  return {check(H5Dopen2(file, name, H5P_DEFAULT), (std::string("open /") + name).c_str()), H5Dclose};
}

std::vector<hsize_t> dataset_dimensions(const Hdf5Check& check, hid_t dataset) {
  const Hdf5Handle space(check(H5Dget_space(dataset), "ask for dimensions"), H5Sclose);
  const int rank = check(H5Sget_simple_extent_ndims(space.get()), "ask for dimensions");
  std::vector<hsize_t> dimensions(static_cast<std::size_t>(rank));
  check(H5Sget_simple_extent_dims(space.get(), dimensions.data(), nullptr), "ask for dimensions");
  return dimensions;
}

void check_column_storage(const Hdf5Check& check, hid_t dataset, std::span<const hsize_t> dimensions,
                          std::uint64_t item_bytes) {
  check_storage(check, dataset);
  check_size(check, dataset, dimensions, item_bytes);
  if (dimensions.size() == 1) check_chunks(check, dataset, dimensions[0]);
}

Hdf5Column open_column(const Hdf5Check& check, hid_t file, const char* name) {
  Hdf5Column column{open_dataset(check, file, name), {}, false};
  column.dimensions = dataset_dimensions(check, column.dataset.get());
  const Hdf5Handle type(check(H5Dget_type(column.dataset.get()), "ask for a type"), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type.get());
  if (kind != H5T_INTEGER && kind != H5T_FLOAT && kind != H5T_ENUM)  // h5py's bool is an enumeration
    check.refuse(std::string("/") + name + " does not hold numbers");
  column.is_floating = kind == H5T_FLOAT;
  check_column_storage(check, column.dataset.get(), column.dimensions, H5Tget_size(type.get()));
  return column;
}

void read_numbers(const Hdf5Check& check, const Hdf5Column& column, hid_t type, void* numbers) {
  check(H5Dread(column.dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers), "read a column");
}

Names read_text_column(const Hdf5Check& check, hid_t file, const char* name) {
  const Hdf5Handle dataset = open_dataset(check, file, name);
  const std::vector<hsize_t> dimensions = dataset_dimensions(check, dataset.get());
  const Hdf5Handle type(check(H5Dget_type(dataset.get()), "ask for a type"), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0 || dimensions.size() != 1)
    check.refuse(std::string("/") + name + " does not hold fixed-length text");
  const std::size_t text_bytes = H5Tget_size(type.get());
  check_column_storage(check, dataset.get(), dimensions, text_bytes);
  Names names;
  if (dimensions[0] == 0) return names;
  names.ends.reserve(std::min<std::size_t>(dimensions[0], kMaxReserved));
  names.text.reserve(
      std::min<std::size_t>(dimensions[0] * std::min(text_bytes, kUsualNameBytes), kMaxReserved));
  for_each_block(dimensions[0], text_bytes, [&](std::size_t first, std::size_t count, MutableBytes block) {
    const hsize_t rows = count;
    const Hdf5Handle memory = make_space(check, {&rows, 1});
    const Hdf5Handle selected = select_rows(check, dataset.get(), first, count);
    check(H5Dread(dataset.get(), type.get(), memory.get(), selected.get(), H5P_DEFAULT, block.data()),
          "read names");
    for (std::size_t i = 0; i < count; ++i) {
      const std::string_view text = as_text(block.subspan(i * text_bytes, text_bytes));
      names.add(text.substr(0, text.find_last_not_of('\0') + 1));
    }
  });
  return names;
}

namespace {

// More than any program makes a chunk (hdf5_csr_numbers.cpp has the same limit for a row's chunks).
constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{1} << 30;
// h5py's parameters: revision of the filter, version of LZF, bytes of a chunk before it was compressed.
constexpr std::size_t kChunkBytesIndex = 2;

void push_reason(const char* reason) {
  H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_PLINE, H5E_READERROR, "%s", reason);
}

/// Undoes a chunk; 0 where that fails, as HDF5 wants it. Shorter chunks than HDF5 expects would be read
/// beyond their end.
std::size_t undo_lzf(unsigned flags, std::size_t count, const unsigned* parameters, std::size_t bytes,
                     std::size_t* buffer_bytes, void** buffer) {
  if ((flags & H5Z_FLAG_REVERSE) == 0) return 0;
  void* raw = nullptr;
  try {
    const Bytes stored(static_cast<const std::uint8_t*>(*buffer), bytes);
    const std::uint64_t expected = count > kChunkBytesIndex ? parameters[kChunkBytesIndex] : 0;
    const std::uint64_t raw_bytes = expected > 0 ? expected : lzf_content_bytes(stored);
    if (raw_bytes == 0 || raw_bytes > kMaxChunkBytes)
      throw Error(ErrorCode::bad_data, "LZF stream: bad chunk size");
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

std::atomic<bool> is_registered = false;

}  // namespace

bool undoes_lzf() { return is_registered; }

void register_lzf(const Hdf5Check& check) {
  is_registered = is_registered || H5Zfilter_avail(kLzfFilter) > 0;
  if (is_registered) return;
  const H5Z_class2_t filter{H5Z_CLASS_T_VERS, kLzfFilter, 0, 1, "lzf", nullptr, nullptr, undo_lzf};
  check(H5Zregister(&filter), "register LZF");
  is_registered = true;
}

namespace {

constexpr std::uint64_t kTextsAtOnce = 1 << 16;
// Where a text lies, in the file.
constexpr std::uint64_t kReferenceBytes = 16;

/// HDF5 does not turn ASCII into UTF-8, though one is the other.
Hdf5Handle variable_text_type(const Hdf5Check& check, H5T_cset_t encoding) {
  Hdf5Handle type(check(H5Tcopy(H5T_C_S1), "create a text type"), H5Tclose);
  check(H5Tset_size(type.get(), H5T_VARIABLE), "set a text's length");
  check(H5Tset_cset(type.get(), encoding), "set a text's encoding");
  return type;
}

Hdf5Handle line_space(const Hdf5Check& check, hsize_t count) {
  return {check(H5Screate_simple(1, &count, nullptr), "create a dataspace"), H5Sclose};
}

/// Selects `count` texts of a column from `first` on.
Hdf5Handle select(const Hdf5Check& check, hid_t dataset, hsize_t first, hsize_t count) {
  Hdf5Handle space(check(H5Dget_space(dataset), "ask for a column's space"), H5Sclose);
  check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr), "select rows");
  return space;
}

/// Memory for texts that HDF5 reads, up to a limit: all places may lead to the same long text.
class TextMemory {
 public:
  explicit TextMemory(std::uint64_t max_bytes) : left_(max_bytes) {}
  [[nodiscard]] bool is_spent() const { return is_spent_; }
  void clear() { texts_.clear(); }
  static void* allocate(std::size_t bytes, void* memory) noexcept {
    return static_cast<TextMemory*>(memory)->take(bytes);
  }
  /// All are freed at once.
  static void leave(void*, void*) noexcept {}

 private:
  void* take(std::size_t bytes) noexcept {
    is_spent_ = is_spent_ || bytes > left_;
    if (is_spent_) return nullptr;
    left_ -= bytes;
    try {
      return texts_.emplace_back(std::make_unique<char[]>(bytes)).get();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  std::uint64_t left_;
  bool is_spent_ = false;
  std::vector<std::unique_ptr<char[]>> texts_;
};

Names read_variable_texts(const Hdf5Check& check, hid_t file, hid_t dataset, H5T_cset_t encoding,
                          std::uint64_t all) {
  hsize_t file_bytes = 0;
  check(H5Fget_filesize(file, &file_bytes), "ask for the file's size");
  const Hdf5Handle type = variable_text_type(check, encoding);
  const Hdf5Handle list(check(H5Pcreate(H5P_DATASET_XFER), "create a property list"), H5Pclose);
  TextMemory memory(file_bytes + all);  // each ends with a zero byte
  check(H5Pset_vlen_mem_manager(list.get(), TextMemory::allocate, &memory, TextMemory::leave, nullptr),
        "set the memory of names");
  Names names;
  std::vector<char*> pointers;
  for (std::uint64_t first = 0; first < all; first += kTextsAtOnce) {
    const std::uint64_t count = std::min(kTextsAtOnce, all - first);
    pointers.assign(count, nullptr);
    const Hdf5Handle here = line_space(check, count);
    const Hdf5Handle there = select(check, dataset, first, count);
    const herr_t status = H5Dread(dataset, type.get(), here.get(), there.get(), list.get(), pointers.data());
    if (memory.is_spent()) check.refuse("names are larger than their file");
    check(status, "read names");
    for (const char* text : pointers) names.add(text == nullptr ? "" : text);
    memory.clear();
  }
  return names;
}

Names read_whole_numbers(const Hdf5Check& check, hid_t file, const std::string& path) {
  Names names;
  for (const std::int64_t number : read_column<std::int64_t>(check, open_column(check, file, path.c_str())))
    names.add(std::to_string(number));
  return names;
}

}  // namespace

void write_variable_texts(const Hdf5Check& check, hid_t file, const std::string& path, const Names& names) {
  const Hdf5Handle type = variable_text_type(check, H5T_CSET_UTF8);
  const Hdf5Handle space = line_space(check, names.count());
  const Hdf5Handle list(check(H5Pcreate(H5P_DATASET_CREATE), "create a property list"), H5Pclose);
  check(H5Pset_obj_track_times(list.get(), false), "leave out times");
  const Hdf5Handle dataset(
      check(H5Dcreate2(file, path.c_str(), type.get(), space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT),
            ("create /" + path).c_str()),
      H5Dclose);
  std::vector<std::string> texts;
  std::vector<const char*> pointers;
  for (std::uint64_t first = 0; first < names.count(); first += kTextsAtOnce) {
    const std::uint64_t count = std::min<std::uint64_t>(kTextsAtOnce, names.count() - first);
    texts.clear();
    pointers.clear();
    for (std::uint64_t i = first; i < first + count; ++i) texts.emplace_back(names[i]);
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    const Hdf5Handle memory = line_space(check, count);
    const Hdf5Handle selected = select(check, dataset.get(), first, count);
    check(H5Dwrite(dataset.get(), type.get(), memory.get(), selected.get(), H5P_DEFAULT, pointers.data()),
          "write names");
  }
}

Names read_names(const Hdf5Check& check, hid_t file, const std::string& path) {
  const Hdf5Handle dataset = open_dataset(check, file, path.c_str());
  const Hdf5Handle type(check(H5Dget_type(dataset.get()), "ask for a type"), H5Tclose);
  const std::vector<hsize_t> dimensions = dataset_dimensions(check, dataset.get());
  const H5T_class_t kind = H5Tget_class(type.get());
  if (dimensions.size() != 1 || (kind != H5T_INTEGER && kind != H5T_STRING))
    check.refuse("/" + path + " holds neither texts nor whole numbers");
  if (kind == H5T_INTEGER) return read_whole_numbers(check, file, path);
  if (H5Tis_variable_str(type.get()) <= 0) return read_text_column(check, file, path.c_str());
  check_column_storage(check, dataset.get(), dimensions, kReferenceBytes);
  return read_variable_texts(check, file, dataset.get(), H5Tget_cset(type.get()), dimensions[0]);
}

}  // namespace chunkhit
