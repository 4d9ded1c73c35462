// The arrays of a matrix in an HDF5 file of another program, in the process that has the file open.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/file.h"
#include "store/hdf5/csr.h"
#include "store/hdf5/csr_layout.h"
#include "store/hdf5/csr_numbers.h"
#include "store/hdf5/handle.h"
#include "types/rating_block.h"

namespace chunkhit {

/// Reads one matrix; a damaged file may crash the process. Members as those of Hdf5Csr.
class Hdf5CsrArrays {
 public:
  Hdf5CsrArrays(const std::string& path, const std::string& place, std::uint64_t memory_bytes);
  [[nodiscard]] const CsrFacts& facts() const { return facts_; }
  void read_indptr(std::span<std::int64_t> numbers) { indptr_->read(check_, numbers); }
  void read_indices(std::span<std::int64_t> numbers) { indices_->read(check_, numbers); }
  void read_values(std::span<float> numbers) { values_->read(check_, numbers); }
  [[nodiscard]] const RoundedValues& rounded() const { return values_->rounded(); }

 private:
  void check_chunk_memory() const;
  void check_name_memory(std::uint64_t count, std::uint64_t text_bytes) const;
  void open_dense();
  void open_compressed(const CsrLayout& layout);
  void set_sides(const CsrLayout& layout, std::uint64_t outer_count);

  QuietHdf5 quiet_;
  InputFile input_;
  Hdf5Check check_;
  Hdf5Source source_;
  std::uint64_t memory_bytes_;
  CsrFacts facts_;
  std::optional<Hdf5Numbers> indptr_;
  std::optional<Hdf5Numbers> indices_;
  std::optional<Hdf5Numbers> values_;
};

}  // namespace chunkhit
