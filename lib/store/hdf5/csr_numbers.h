// Numbers of a dataset of any size, read from front to back.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/hdf5/handle.h"
#include "types/rating_block.h"

namespace chunkhit {

/// Refuses a dataset that lies in other files, or that only a plug-in could decode, which is named with what
/// to do about it.
void check_csr_storage(const Hdf5Check& check, hid_t dataset, const std::string& place);

/// Reads a dataset of one or two dimensions, the last one fastest, such that each chunk is decoded once.
class Hdf5Numbers {
 public:
  Hdf5Numbers(const Hdf5Check& check, hid_t file, const std::string& place);
  [[nodiscard]] const std::vector<hsize_t>& dimensions() const { return dimensions_; }
  [[nodiscard]] std::uint64_t count() const;
  /// Bytes of the chunks that are held while numbers are read.
  [[nodiscard]] std::uint64_t chunk_bytes() const { return chunk_bytes_; }
  /// Fills with the next numbers; negative ones and those beyond 63 bits stay outside of any valid index.
  /// Throws bad_data where the dataset does not hold whole numbers.
  void read(const Hdf5Check& check, std::span<std::int64_t> numbers);
  void read(const Hdf5Check& check, std::span<float> numbers);
  [[nodiscard]] const RoundedValues& rounded() const { return rounded_; }

 private:
  void open_with_cache(const Hdf5Check& check, hid_t file);
  void read_as(const Hdf5Check& check, hid_t type, std::size_t item_bytes, std::uint64_t count,
               void* numbers);
  void read_box(const Hdf5Check& check, hid_t type, std::uint64_t rows, std::uint64_t columns, void* numbers);

  std::string place_;
  Hdf5Handle dataset_;
  std::vector<hsize_t> dimensions_;
  bool is_floating_ = false;
  std::uint64_t position_ = 0;  // of the next number
  std::uint64_t chunk_bytes_ = 0;
  std::vector<double> wide_;
  RoundedValues rounded_;
};

}  // namespace chunkhit
