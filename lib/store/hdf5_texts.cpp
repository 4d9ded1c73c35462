#include "store/hdf5_texts.h"

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "base/child_limits.h"
#include "store/hdf5_columns.h"

namespace chunkhit {
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
    allow_more_time();
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
