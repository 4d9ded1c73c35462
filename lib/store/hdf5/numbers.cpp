#include "store/hdf5/numbers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <string_view>

#include "base/bytes.h"

namespace chunkhit {
namespace {

// Largest memory for the chunks of one row of numbers.
constexpr std::uint64_t kMaxCacheBytes = std::uint64_t{1} << 30;
constexpr std::size_t kDefaultCacheBytes = std::size_t{1} << 20;
constexpr std::size_t kDefaultSlots = 521;

/// Sets a chunk cache for all chunks that a row of numbers crosses, so that none is decoded twice. Returns
/// its bytes, or 0 if HDF5's default is enough.
std::uint64_t set_cache(const Hdf5Check& check, hid_t access, const Hdf5Column& column,
                        const std::string& path) {
  const std::vector<hsize_t> chunk = chunk_sides(check, column.dataset.get());
  if (chunk.empty()) return 0;
  const bool is_list = chunk.size() == 1;
  const hsize_t across = is_list ? 1 : (column.dimensions[1] + chunk[1] - 1) / chunk[1];
  const double bytes = static_cast<double>(chunk[0]) * static_cast<double>(is_list ? 1 : chunk[1]) *
                       static_cast<double>(across) * static_cast<double>(column.item_bytes);
  if (bytes > static_cast<double>(kMaxCacheBytes))
    check.refuse(path + " has chunks that take " + std::to_string(bytes / 1e9) +
                 " GB to read a row; write them smaller: h5repack -l CHUNK=1000000 (one dimension)");
  const std::size_t room = std::max(kDefaultCacheBytes, static_cast<std::size_t>(bytes));
  const std::size_t slots = std::max(kDefaultSlots, static_cast<std::size_t>(2 * across + 1));
  check(H5Pset_chunk_cache(access, slots, room, 1.0), "set a cache");
  return room > kDefaultCacheBytes ? room : 0;
}

/// Rejects chunks that are not at the positions of the dimensions: HDF5 would return zeros for them. A table
/// may have chunks that were never written, a list may not.
void check_chunk_positions(const Hdf5Check& check, const Hdf5Column& column, const std::string& path) {
  const hid_t dataset = column.dataset.get();
  const std::vector<hsize_t> chunk = chunk_sides(check, dataset);
  if (chunk.empty()) return;
  const bool is_list = chunk.size() == 1;
  std::uint64_t looked_up = 0;
  std::uint64_t found = 0;
  for (hsize_t row = 0; row < column.dimensions[0]; row += chunk[0])
    for (hsize_t at = 0; at < (is_list ? 1 : column.dimensions[1]); at += is_list ? 1 : chunk[1]) {
      const std::array<hsize_t, 2> first{row, at};
      hsize_t bytes = 0;
      if (H5Dget_chunk_storage_size(dataset, first.data(), &bytes) >= 0 && bytes > 0) ++found;
      ++looked_up;
    }
  const std::uint64_t expected = is_list && found != looked_up ? looked_up : written_chunks(check, dataset);
  if (found != expected)
    check.refuse(path + " has " + std::to_string(found) + " chunks at their positions, expected " +
                 std::to_string(expected));
}

constexpr std::size_t kBlockBytes = 1 << 20;
// Of a file name; longer ones take their memory as they come.
constexpr std::size_t kUsualNameBytes = 64;
constexpr std::size_t kMaxReserved = std::size_t{64} << 20;
constexpr hsize_t kTextsAtOnce = 1 << 16;
// Where a text lies, in the file.
constexpr std::uint64_t kReferenceBytes = 16;

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
    step(hsize_t{first}, hsize_t{count}, MutableBytes(block).first(count * text_bytes));
  }
}

std::size_t longest_of(const TextList& names) {
  std::size_t longest = 1;
  for (std::size_t i = 0; i < names.size(); ++i) longest = std::max(longest, names[i].size());
  return longest;
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

TextList read_variable_texts(const Hdf5Check& check, hid_t file, hid_t dataset, H5T_cset_t encoding,
                             hsize_t all) {
  hsize_t file_bytes = 0;
  check(H5Fget_filesize(file, &file_bytes), "ask for the file's size");
  const Hdf5Handle type = variable_text_type(check, encoding);
  const Hdf5Handle list(check(H5Pcreate(H5P_DATASET_XFER), "create a property list"), H5Pclose);
  TextMemory memory(file_bytes + all);  // each ends with a zero byte
  check(H5Pset_vlen_mem_manager(list.get(), TextMemory::allocate, &memory, TextMemory::leave, nullptr),
        "set the memory of names");
  TextList names;
  std::vector<char*> pointers;
  for (hsize_t first = 0; first < all; first += kTextsAtOnce) {
    const hsize_t count = std::min(kTextsAtOnce, all - first);
    pointers.assign(count, nullptr);
    const Hdf5Handle here = make_space(check, {&count, 1});
    const Hdf5Handle there = select_box(check, dataset, {&first, 1}, {&count, 1});
    const herr_t status = H5Dread(dataset, type.get(), here.get(), there.get(), list.get(), pointers.data());
    if (memory.is_spent()) check.refuse("names are larger than their file");
    check(status, "read names");
    for (const char* text : pointers) names.add(text == nullptr ? "" : text);
    memory.clear();
  }
  return names;
}

}  // namespace

Hdf5Handle create_column(const Hdf5Check& check, hid_t file, const char* name, hid_t type,
                         std::span<const hsize_t> dimensions) {
  const Hdf5Handle space = make_space(check, dimensions);
  const Hdf5Handle list = make_creation_list(check);
  check(H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER), "leave out filling");
  return create_dataset(check, file, name, type, space, list);
}

void write_column(const Hdf5Check& check, hid_t file, const char* name, hid_t type,
                  std::span<const hsize_t> dimensions, const void* numbers) {
  const Hdf5Handle dataset = create_column(check, file, name, type, dimensions);
  if (std::ranges::find(dimensions, hsize_t{0}) != dimensions.end()) return;
  check(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers), "write a column");
}

std::uint64_t Hdf5Column::count() const {
  std::uint64_t count = 1;
  for (const hsize_t dimension : dimensions) count *= dimension;
  return count;
}

Hdf5Column open_column(const Hdf5Check& check, hid_t file, const std::string& path, hid_t access) {
  Hdf5Column column;
  column.dataset = open_dataset(check, file, path, access);
  column.dimensions = dataset_dimensions(check, column.dataset.get());
  const Hdf5Handle type(check(H5Dget_type(column.dataset.get()), "ask for a type"), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type.get());
  if (kind != H5T_INTEGER && kind != H5T_FLOAT && kind != H5T_ENUM)  // h5py's bool is an enumeration
    check.refuse(hdf5_path(path) + " does not hold numbers");
  column.is_floating = kind == H5T_FLOAT;
  column.item_bytes = H5Tget_size(type.get());
  check_storage(check, column.dataset.get(), column.dimensions, column.item_bytes, hdf5_path(path));
  return column;
}

void read_numbers(const Hdf5Check& check, const Hdf5Column& column, hid_t type, void* numbers) {
  check(H5Dread(column.dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers), "read a column");
}

Hdf5Numbers::Hdf5Numbers(const Hdf5Check& check, hid_t file, const std::string& path)
    : check_(check), path_(hdf5_path(path)), column_(open_column(check, file, path)) {
  if (dimensions().empty() || dimensions().size() > 2)
    check.refuse(path_ + " has " + std::to_string(dimensions().size()) + " dimensions, expected 1 or 2");
  const Hdf5Handle access(check(H5Pcreate(H5P_DATASET_ACCESS), "create a property list"), H5Pclose);
  chunk_bytes_ = set_cache(check, access.get(), column_, path_);
  // The cache is that of the dataset's first open handle, so this one is closed and opened again.
  check(column_.dataset.close(), "close a dataset");
  column_.dataset = open_dataset(check, file, path, access.get());
  check_chunk_positions(check, column_, path_);
}

void Hdf5Numbers::read(std::span<std::int64_t> numbers) {
  if (is_floating()) check_.refuse(path_ + " does not hold whole numbers");
  read_as(H5T_NATIVE_INT64, sizeof(std::int64_t), numbers.size(), numbers.data());
}

void Hdf5Numbers::read(std::span<float> numbers) {
  // Numbers of so few bytes are all exact as floats.
  if (column_.item_bytes <= (is_floating() ? sizeof(float) : sizeof(std::uint16_t)))
    return read_as(H5T_NATIVE_FLOAT, sizeof(float), numbers.size(), numbers.data());
  wide_.resize(numbers.size());
  read_as(H5T_NATIVE_DOUBLE, sizeof(double), numbers.size(), wide_.data());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = rounded_.take(wide_[i]);
}

/// Reads numbers in the order of rows: the rest of a row, whole rows, and the beginning of one.
void Hdf5Numbers::read_as(hid_t type, std::size_t item_bytes, std::uint64_t count, void* numbers) {
  const Hdf5Session session;
  forget_machine_error();  // of another file that this thread read
  auto* to = static_cast<std::uint8_t*>(numbers);
  while (count > 0) {
    const std::uint64_t rest_of_row = width() - position_ % width();
    const bool whole_rows = rest_of_row == width() && count >= width();
    const std::uint64_t rows = whole_rows ? count / width() : 1;
    const std::uint64_t columns = whole_rows ? width() : std::min(rest_of_row, count);
    read_box(type, rows, columns, to);
    position_ += rows * columns;
    count -= rows * columns;
    to += rows * columns * item_bytes;
  }
}

void Hdf5Numbers::read_box(hid_t type, std::uint64_t rows, std::uint64_t columns, void* numbers) {
  const std::array<hsize_t, 2> first{position_ / width(), position_ % width()};
  const std::array<hsize_t, 2> sides{rows, columns};
  const hsize_t count = rows * columns;
  const Hdf5Handle stored = select_box(check_, column_.dataset.get(), first, sides);
  const Hdf5Handle memory = make_space(check_, {&count, 1});
  check_(H5Dread(column_.dataset.get(), type, memory.get(), stored.get(), H5P_DEFAULT, numbers),
         ("read " + path_).c_str());
}

Hdf5Handle variable_text_type(const Hdf5Check& check, H5T_cset_t encoding) {
  Hdf5Handle type(check(H5Tcopy(H5T_C_S1), "create a text type"), H5Tclose);
  check(H5Tset_size(type.get(), H5T_VARIABLE), "set a text's length");
  check(H5Tset_cset(type.get(), encoding), "set a text's encoding");
  return type;
}

void write_text_column(const Hdf5Check& check, hid_t file, const char* name, const TextList& names) {
  const std::size_t text_bytes = longest_of(names);
  const hsize_t dimension = names.size();
  const Hdf5Handle type = fixed_text_type(check, text_bytes);
  const Hdf5Handle dataset = create_column(check, file, name, type.get(), {&dimension, 1});
  if (names.size() == 0) return;
  for_each_block(names.size(), text_bytes, [&](hsize_t first, hsize_t count, MutableBytes block) {
    std::ranges::fill(block, std::uint8_t{0});
    for (std::size_t i = 0; i < count; ++i)
      std::ranges::copy(as_bytes(names[first + i]), block.data() + i * text_bytes);
    const Hdf5Handle memory = make_space(check, {&count, 1});
    const Hdf5Handle selected = select_box(check, dataset.get(), {&first, 1}, {&count, 1});
    check(H5Dwrite(dataset.get(), type.get(), memory.get(), selected.get(), H5P_DEFAULT, block.data()),
          "write names");
  });
}

TextList read_text_column(const Hdf5Check& check, hid_t file, const std::string& path) {
  const Hdf5Handle dataset = open_dataset(check, file, path);
  const std::vector<hsize_t> dimensions = dataset_dimensions(check, dataset.get());
  const Hdf5Handle type(check(H5Dget_type(dataset.get()), "ask for a type"), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0 || dimensions.size() != 1)
    check.refuse(hdf5_path(path) + " does not hold fixed-length text");
  const std::size_t text_bytes = H5Tget_size(type.get());
  check_storage(check, dataset.get(), dimensions, text_bytes, hdf5_path(path));
  TextList names;
  if (dimensions[0] == 0) return names;
  names.ends.reserve(std::min<std::size_t>(dimensions[0], kMaxReserved));
  names.text.reserve(
      std::min<std::size_t>(dimensions[0] * std::min(text_bytes, kUsualNameBytes), kMaxReserved));
  for_each_block(dimensions[0], text_bytes, [&](hsize_t first, hsize_t count, MutableBytes block) {
    const Hdf5Handle memory = make_space(check, {&count, 1});
    const Hdf5Handle selected = select_box(check, dataset.get(), {&first, 1}, {&count, 1});
    check(H5Dread(dataset.get(), type.get(), memory.get(), selected.get(), H5P_DEFAULT, block.data()),
          "read names");
    for (std::size_t i = 0; i < count; ++i) {
      const std::string_view text = as_text(block.subspan(i * text_bytes, text_bytes));
      names.add(text.substr(0, text.find_last_not_of('\0') + 1));
    }
  });
  return names;
}

void write_variable_texts(const Hdf5Check& check, hid_t file, const std::string& path,
                          const TextList& names) {
  const hsize_t dimension = names.size();
  const Hdf5Handle type = variable_text_type(check, H5T_CSET_UTF8);
  const Hdf5Handle space = make_space(check, {&dimension, 1});
  const Hdf5Handle dataset = create_dataset(check, file, path, type.get(), space, make_creation_list(check));
  std::vector<std::string> texts;
  std::vector<const char*> pointers;
  for (hsize_t first = 0; first < names.size(); first += kTextsAtOnce) {
    const hsize_t count = std::min<hsize_t>(kTextsAtOnce, names.size() - first);
    texts.clear();
    pointers.clear();
    for (hsize_t i = first; i < first + count; ++i) texts.emplace_back(names[i]);
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    const Hdf5Handle memory = make_space(check, {&count, 1});
    const Hdf5Handle selected = select_box(check, dataset.get(), {&first, 1}, {&count, 1});
    check(H5Dwrite(dataset.get(), type.get(), memory.get(), selected.get(), H5P_DEFAULT, pointers.data()),
          "write names");
  }
}

TextList read_names(const Hdf5Check& check, hid_t file, const std::string& path) {
  const Hdf5Handle dataset = open_dataset(check, file, path);
  const Hdf5Handle type(check(H5Dget_type(dataset.get()), "ask for a type"), H5Tclose);
  const std::vector<hsize_t> dimensions = dataset_dimensions(check, dataset.get());
  const H5T_class_t kind = H5Tget_class(type.get());
  if (dimensions.size() != 1 || (kind != H5T_INTEGER && kind != H5T_STRING))
    check.refuse(hdf5_path(path) + " holds neither texts nor whole numbers");
  if (kind == H5T_INTEGER) {
    TextList names;
    for (const std::int64_t number : read_column<std::int64_t>(check, open_column(check, file, path)))
      names.add(std::to_string(number));
    return names;
  }
  if (H5Tis_variable_str(type.get()) <= 0) return read_text_column(check, file, path);
  check_storage(check, dataset.get(), dimensions, kReferenceBytes, hdf5_path(path));
  return read_variable_texts(check, file, dataset.get(), H5Tget_cset(type.get()), dimensions[0]);
}

}  // namespace chunkhit
