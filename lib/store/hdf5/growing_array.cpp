#include "store/hdf5/growing_array.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/hash.h"
#include "codec/deflate.h"
#include "store/hdf5/columns.h"
#include "store/hdf5/handle.h"

namespace chunkhit {
namespace {

/// HDF5's shuffle: the first bytes of all values, then their second bytes, and so on.
void shuffle(Bytes raw, std::size_t value_bytes, ByteBuffer& shuffled) {
  shuffled.resize(raw.size());
  const std::size_t count = raw.size() / value_bytes;
  for (std::size_t byte = 0; byte < value_bytes; ++byte)
    for (std::size_t i = 0; i < count; ++i) shuffled[byte * count + i] = raw[i * value_bytes + byte];
}

Hdf5Handle create_array(const Hdf5Check& check, hid_t file, const GrowingArraySpec& spec,
                        const std::vector<hsize_t>& none, const std::vector<hsize_t>& chunk) {
  std::vector<hsize_t> most = none;
  most[0] = H5S_UNLIMITED;
  const auto rank = static_cast<int>(none.size());
  const Hdf5Handle space(check(H5Screate_simple(rank, none.data(), most.data()), "create a dataspace"),
                         H5Sclose);
  const Hdf5Handle list(check(H5Pcreate(H5P_DATASET_CREATE), "create a property list"), H5Pclose);
  check(H5Pset_chunk(list.get(), rank, chunk.data()), "set the chunk's shape");
  check(H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER), "leave out filling");
  check(H5Pset_obj_track_times(list.get(), false), "leave out times");
  if (spec.deflate_level > 0) {
    if (H5Tget_size(spec.type) > 1) check(H5Pset_shuffle(list.get()), "set the shuffle filter");
    check(H5Pset_deflate(list.get(), static_cast<unsigned>(std::min(spec.deflate_level, 9))),
          "set the deflate filter");
  }
  return {
      check(H5Dcreate2(file, spec.path.c_str(), spec.type, space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT),
            ("create /" + spec.path).c_str()),
      H5Dclose};
}

}  // namespace

Hdf5GrowingArray::Hdf5GrowingArray(const Hdf5Check& check, hid_t file, const PendingFile& output,
                                   GrowingArraySpec spec)
    : check_(check),
      file_(file),
      output_(output),
      spec_(std::move(spec)),
      value_bytes_(H5Tget_size(spec_.type)),
      row_bytes_(value_bytes_ * std::max<std::uint64_t>(spec_.row_values, 1)),
      dataset_(create_array(check_, file, spec_, sides(0), sides(spec_.chunk_rows))),
      chunk_(spec_.chunk_rows * row_bytes_) {}

std::vector<hsize_t> Hdf5GrowingArray::sides(std::uint64_t rows) const {
  if (spec_.row_values == 0) return {rows};
  return {rows, spec_.row_values};
}

void Hdf5GrowingArray::append(Bytes rows) {
  row_count_ += rows.size() / row_bytes_;
  while (!rows.empty()) {
    const std::size_t count = std::min(rows.size(), chunk_.size() - filled_);
    std::ranges::copy(rows.first(count), chunk_.begin() + static_cast<std::ptrdiff_t>(filled_));
    filled_ += count;
    rows = rows.subspan(count);
    if (filled_ == chunk_.size()) write_chunk();
  }
}

void Hdf5GrowingArray::encode_chunk() {
  if (spec_.deflate_level == 0) {
    stored_ = chunk_;
    return;
  }
  if (value_bytes_ > 1) shuffle(chunk_, value_bytes_, shuffled_);
  encode_deflate(value_bytes_ > 1 ? shuffled_ : chunk_, spec_.deflate_level, stored_);
}

void Hdf5GrowingArray::write_chunk() {
  const std::uint64_t first = hashes_.size() * spec_.chunk_rows;
  const std::array<hsize_t, 2> at{first, 0};
  encode_chunk();
  reserve(output_, end_of_hdf5_file(check_, file_), stored_.size());
  const std::vector<hsize_t> extent = sides(first + filled_ / row_bytes_);
  check_(H5Dset_extent(dataset_.get(), extent.data()), "make room in an array");
  check_(H5Dwrite_chunk(dataset_.get(), H5P_DEFAULT, 0, at.data(), stored_.size(), stored_.data()), "write");
  hashes_.push_back(xxh3(stored_));
  stored_bytes_ += stored_.size();
  filled_ = 0;
}

void Hdf5GrowingArray::finish() {
  if (filled_ > 0) {
    const std::size_t filled = filled_;
    std::fill(chunk_.begin() + static_cast<std::ptrdiff_t>(filled), chunk_.end(), std::uint8_t{0});
    write_chunk();
  }
  check_(dataset_.close(), ("close /" + spec_.path).c_str());
  chunk_ = {};
  shuffled_ = {};
  stored_ = {};
}

void Hdf5GrowingArray::check_written(hid_t file) const {
  const Hdf5Handle dataset = open_dataset(check_, file, spec_.path.c_str());
  if (dataset_dimensions(check_, dataset.get()) != sides(row_count_))
    check_.refuse("/" + spec_.path + " was not written whole");
  ByteBuffer stored;
  for (std::size_t i = 0; i < hashes_.size(); ++i) {
    const std::array<hsize_t, 2> at{i * spec_.chunk_rows, 0};
    hsize_t bytes = 0;
    std::uint32_t mask = 0;
    check_(H5Dget_chunk_storage_size(dataset.get(), at.data(), &bytes), "look up a chunk");
    stored.resize(std::min<hsize_t>(bytes, stored_bytes_));
    check_(H5Dread_chunk(dataset.get(), H5P_DEFAULT, at.data(), &mask, stored.data()), "read a chunk");
    if (mask != 0 || xxh3(stored) != hashes_[i])
      check_.refuse("/" + spec_.path + ": chunk " + std::to_string(i) + " does not read back");
  }
}

}  // namespace chunkhit
