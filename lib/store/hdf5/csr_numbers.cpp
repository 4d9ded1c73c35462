#include "store/hdf5/csr_numbers.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/words.h"
#include "store/hdf5/columns.h"

namespace chunkhit {
namespace {

// More than any program makes a chunk, and what a reader must have room for.
constexpr std::uint64_t kMaxCacheBytes = std::uint64_t{1} << 30;
constexpr std::size_t kDefaultCacheBytes = std::size_t{1} << 20;
constexpr std::size_t kDefaultSlots = 521;

std::string filter_name(H5Z_filter_t filter) {
  constexpr std::array<std::pair<int, const char*>, 5> kNames{
      {{32001, "blosc"}, {32004, "lz4"}, {32008, "bitshuffle"}, {32015, "zstd"}, {32026, "blosc2"}}};
  for (const auto& [id, name] : kNames)
    if (id == filter) return std::string(name) + " (" + std::to_string(id) + ")";
  return std::to_string(filter);
}

/// Sets a cache that holds all chunks which rows of numbers go through, so that none is decoded twice.
Hdf5Handle cache_for(const Hdf5Check& check, hid_t dataset, std::span<const hsize_t> dimensions,
                     const std::string& place) {
  Hdf5Handle access(check(H5Pcreate(H5P_DATASET_ACCESS), "create a property list"), H5Pclose);
  const Hdf5Handle list(check(H5Dget_create_plist(dataset), "ask for a storage"), H5Pclose);
  if (H5Pget_layout(list.get()) != H5D_CHUNKED) return access;
  std::array<hsize_t, 2> chunk{1, 1};
  check(H5Pget_chunk(list.get(), static_cast<int>(dimensions.size()), chunk.data()), "ask for chunks");
  const Hdf5Handle type(check(H5Dget_type(dataset), "ask for a type"), H5Tclose);
  const hsize_t across = dimensions.size() < 2 ? 1 : (dimensions[1] + chunk[1] - 1) / chunk[1];
  const double bytes = static_cast<double>(chunk[0]) * static_cast<double>(chunk[1]) *
                       static_cast<double>(across) * static_cast<double>(H5Tget_size(type.get()));
  if (bytes > static_cast<double>(kMaxCacheBytes))
    check.refuse(place + " has chunks that take " + std::to_string(bytes / 1e9) +
                 " GB to read a row; write them smaller: h5repack -l CHUNK=1000000 (one dimension)");
  const std::size_t room = std::max(kDefaultCacheBytes, static_cast<std::size_t>(bytes));
  const std::size_t slots = std::max(kDefaultSlots, static_cast<std::size_t>(2 * across + 1));
  check(H5Pset_chunk_cache(access.get(), slots, room, 1.0), "set a cache");
  return access;
}

/// Compares the bytes of a chunk that LZF's parameters name with those that the array has. References to
/// texts have none.
void check_lzf(const Hdf5Check& check, hid_t dataset, hid_t list, const std::array<unsigned, 3>& parameters,
               std::size_t count, const std::string& place) {
  if (count < parameters.size() || parameters[2] == 0) return;
  const Hdf5Handle type(check(H5Dget_type(dataset), "ask for a type"), H5Tclose);
  std::array<hsize_t, H5S_MAX_RANK> chunk{};
  const int sides = check(H5Pget_chunk(list, H5S_MAX_RANK, chunk.data()), "ask for chunks");
  double bytes = static_cast<double>(H5Tget_size(type.get()));
  for (int side = 0; side < sides; ++side)
    bytes *= static_cast<double>(chunk[static_cast<std::size_t>(side)]);
  if (bytes != static_cast<double>(parameters[2]))
    check.refuse(place + " has LZF chunks of " + std::to_string(parameters[2]) + " bytes, expected " +
                 number_text(bytes));
}

/// Refuses chunks that do not lie where the dimensions ask for them: HDF5 makes up zeros for what is missing.
/// Of a table some may never have been written, of a list none.
void check_chunk_positions(const Hdf5Check& check, hid_t dataset, std::span<const hsize_t> dimensions,
                           const std::string& place) {
  const Hdf5Handle list(check(H5Dget_create_plist(dataset), "ask for a storage"), H5Pclose);
  if (H5Pget_layout(list.get()) != H5D_CHUNKED) return;
  std::array<hsize_t, 2> chunk{1, 1};
  check(H5Pget_chunk(list.get(), static_cast<int>(dimensions.size()), chunk.data()), "ask for chunks");
  const bool is_list = dimensions.size() == 1;
  std::uint64_t looked_up = 0;
  std::uint64_t found = 0;
  for (hsize_t row = 0; row < dimensions[0]; row += chunk[0])
    for (hsize_t column = 0; column < (is_list ? 1 : dimensions[1]); column += chunk[1]) {
      const std::array<hsize_t, 2> at{row, column};
      hsize_t bytes = 0;
      if (H5Dget_chunk_storage_size(dataset, at.data(), &bytes) >= 0 && bytes > 0) ++found;
      ++looked_up;
    }
  hsize_t written = 0;
  const Hdf5Handle space(check(H5Dget_space(dataset), "ask for a dataspace"), H5Sclose);
  check(H5Dget_num_chunks(dataset, space.get(), &written), "count the chunks");
  const std::uint64_t expected = is_list && found != looked_up ? looked_up : written;
  if (found != expected)
    check.refuse(place + " has " + std::to_string(found) + " chunks in their positions, expected " +
                 std::to_string(expected));
}

}  // namespace

void check_csr_storage(const Hdf5Check& check, hid_t dataset, const std::string& place) {
  const Hdf5Handle list(check(H5Dget_create_plist(dataset), "ask for a storage"), H5Pclose);
  if (H5Pget_layout(list.get()) == H5D_VIRTUAL || H5Pget_external_count(list.get()) != 0)
    check.refuse(place + " lies in another file");
  const int filters = check(H5Pget_nfilters(list.get()), "ask for filters");
  for (unsigned i = 0; i < static_cast<unsigned>(filters); ++i) {
    std::array<unsigned, 3> parameters{};
    std::size_t values = parameters.size();
    const H5Z_filter_t filter =
        H5Pget_filter2(list.get(), i, nullptr, &values, parameters.data(), 0, nullptr, nullptr);
    if (filter == H5Z_FILTER_DEFLATE || filter == H5Z_FILTER_SHUFFLE || filter == H5Z_FILTER_FLETCHER32)
      continue;
    if (filter != kLzfFilter || !undoes_lzf())
      check.refuse(place + " is compressed by " + filter_name(filter) +
                   ", which needs a plug-in of HDF5; write it with gzip, lzf or without compression");
    check_lzf(check, dataset, list.get(), parameters, values, place);
  }
}

Hdf5Numbers::Hdf5Numbers(const Hdf5Check& check, hid_t file, const std::string& place) : place_(place) {
  check_csr_storage(check, open_dataset(check, file, place.c_str() + 1).get(), place);
  {
    const Hdf5Column column = open_column(check, file, place.c_str() + 1);
    dimensions_ = column.dimensions;
    is_floating_ = column.is_floating;
  }
  if (dimensions_.empty() || dimensions_.size() > 2)
    check.refuse(place + " has " + std::to_string(dimensions_.size()) + " dimensions, expected 1 or 2");
  open_with_cache(check, file);
  check_chunk_positions(check, dataset_.get(), dimensions_, place);
}

/// A dataset has the cache of its first handle: no other may be open.
void Hdf5Numbers::open_with_cache(const Hdf5Check& check, hid_t file) {
  Hdf5Handle access;
  {
    const Hdf5Handle dataset = open_dataset(check, file, place_.c_str() + 1);
    access = cache_for(check, dataset.get(), dimensions_, place_);
  }
  std::size_t slots = 0;
  double preemption = 0;
  check(H5Pget_chunk_cache(access.get(), &slots, &chunk_bytes_, &preemption), "ask for a cache");
  if (chunk_bytes_ <= kDefaultCacheBytes) chunk_bytes_ = 0;  // also of what has no chunks
  dataset_ = Hdf5Handle(check(H5Dopen2(file, place_.c_str(), access.get()), "open a dataset"), H5Dclose);
}

std::uint64_t Hdf5Numbers::count() const {
  return dimensions_.size() == 1 ? dimensions_[0] : dimensions_[0] * dimensions_[1];
}

void Hdf5Numbers::read(const Hdf5Check& check, std::span<std::int64_t> numbers) {
  const QuietHdf5 quiet;
  if (is_floating_) check.refuse(place_ + " does not hold whole numbers");
  read_as(check, H5T_NATIVE_INT64, sizeof(std::int64_t), numbers.size(), numbers.data());
}

void Hdf5Numbers::read(const Hdf5Check& check, std::span<float> numbers) {
  const QuietHdf5 quiet;
  wide_.resize(numbers.size());
  read_as(check, H5T_NATIVE_DOUBLE, sizeof(double), numbers.size(), wide_.data());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = rounded_.take(wide_[i]);
  }
}

/// Reads up to the end of a row, whole rows, and the beginning of one.
void Hdf5Numbers::read_as(const Hdf5Check& check, hid_t type, std::size_t item_bytes, std::uint64_t count,
                          void* numbers) {
  const std::uint64_t width = dimensions_.size() == 1 ? 1 : dimensions_[1];
  auto* to = static_cast<std::uint8_t*>(numbers);
  while (count > 0) {
    const std::uint64_t rest_of_row = width - position_ % width;
    const bool whole_rows = rest_of_row == width && count >= width;
    const std::uint64_t rows = whole_rows ? count / width : 1;
    const std::uint64_t columns = whole_rows ? width : std::min(rest_of_row, count);
    read_box(check, type, rows, columns, to);
    position_ += rows * columns;
    count -= rows * columns;
    to += rows * columns * item_bytes;
  }
}

void Hdf5Numbers::read_box(const Hdf5Check& check, hid_t type, std::uint64_t rows, std::uint64_t columns,
                           void* numbers) {
  const std::uint64_t width = dimensions_.size() == 1 ? 1 : dimensions_[1];
  const std::array<hsize_t, 2> first{position_ / width, position_ % width};
  const std::array<hsize_t, 2> sides{rows, columns};
  const Hdf5Handle file_space(check(H5Dget_space(dataset_.get()), "ask for a space"), H5Sclose);
  check(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, first.data(), nullptr, sides.data(), nullptr),
        "select numbers");
  const hsize_t count = rows * columns;
  const Hdf5Handle memory_space(check(H5Screate_simple(1, &count, nullptr), "create a dataspace"), H5Sclose);
  check(H5Dread(dataset_.get(), type, memory_space.get(), file_space.get(), H5P_DEFAULT, numbers),
        ("read " + place_).c_str());
}

}  // namespace chunkhit
