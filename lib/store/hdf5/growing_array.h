// An array in an HDF5 file that grows at its end, in chunks that are compressed as HDF5's own filters do it.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "store/hdf5/handle.h"

namespace chunkhit {

/// How a growing array lies in its file.
struct GrowingArraySpec {
  std::string path;              ///< from the file's root; its group is there
  hid_t type = -1;               ///< of a value, fixed width, little-endian
  std::uint64_t row_values = 0;  ///< values of a row; 0: of one dimension, a row is a value
  std::uint64_t chunk_rows = 0;  ///< in every chunk; the last is filled with zeros
  int deflate_level = 4;         ///< 1..12; 0: stored raw
};

/// Writes chunks with shuffle (where a value has more than a byte) and deflate.
class Hdf5GrowingArray {
 public:
  /// Creates the array without rows in `file`, for which `output` reserves space; throws cannot_write.
  Hdf5GrowingArray(const Hdf5Check& check, hid_t file, const PendingFile& output, GrowingArraySpec spec);
  /// Appends whole rows.
  void append(Bytes rows);
  template <class Number>
  void append(const std::vector<Number>& numbers) {
    append(Bytes(reinterpret_cast<const std::uint8_t*>(numbers.data()), numbers.size() * sizeof(Number)));
  }
  /// Writes what is left and closes the array.
  void finish();
  /// Reads every chunk again from a file that was opened anew; throws cannot_write where it is another.
  void check_written(hid_t file) const;
  [[nodiscard]] std::uint64_t row_count() const { return row_count_; }
  [[nodiscard]] std::uint64_t chunk_count() const { return hashes_.size(); }
  [[nodiscard]] std::uint64_t stored_bytes() const { return stored_bytes_; }

 private:
  void encode_chunk();
  void write_chunk();
  [[nodiscard]] std::vector<hsize_t> sides(std::uint64_t rows) const;

  Hdf5Check check_;
  hid_t file_;
  const PendingFile& output_;
  GrowingArraySpec spec_;
  std::size_t value_bytes_;
  std::uint64_t row_bytes_;
  Hdf5Handle dataset_;
  ByteBuffer chunk_;  // as large as a chunk
  std::size_t filled_ = 0;
  ByteBuffer shuffled_;
  ByteBuffer stored_;
  std::uint64_t row_count_ = 0;
  std::uint64_t stored_bytes_ = 0;
  std::vector<std::uint64_t> hashes_;  // of the stored chunks
};

}  // namespace chunkhit
