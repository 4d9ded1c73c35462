#include "store/hdf5/texts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "store/hdf5/dataset.h"
#include "store/hdf5/numbers.h"

namespace chunkhit {
namespace {

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
  const Hdf5Handle list(check(H5Pcreate(H5P_DATASET_CREATE), "create a property list"), H5Pclose);
  check(H5Pset_obj_track_times(list.get(), false), "leave out times");
  const Hdf5Handle dataset(
      check(H5Dcreate2(file, path.c_str(), type.get(), space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT),
            ("create /" + path).c_str()),
      H5Dclose);
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
