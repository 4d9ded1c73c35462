// Rows of a sparse matrix side by side in a dense buffer, at the price of their entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "batch/entry_values.h"
#include "chunkhit/sparse.h"

namespace chunkhit {

/// The largest dense batch that is handed out.
inline constexpr std::uint64_t kMostDenseBatchBytes = 1ull << 30;

/// Bytes of one cell; 0 for CSR.
[[nodiscard]] std::size_t cell_bytes(SparseAs as);

/// Throws usage, naming what else to do, when a dense batch would take more than kMostDenseBatchBytes, or
/// SparseAs::dense_u8 is asked for what are no bytes.
void check_dense_batch(SparseAs as, std::uint64_t rows, std::uint64_t columns, const EntryFormat& format);

/// Fills one dense buffer with one batch after the other and clears only the cells that it set before.
class DenseBatch {
 public:
  /// `cells`: rows · columns · cell_bytes(as) bytes of any content.
  DenseBatch(SparseAs as, std::size_t rows, std::size_t columns, std::uint8_t* cells)
      : as_(as), columns_(columns), cells_(cells), set_(rows) {}
  /// Replaces row `at`. Rows of a batch may come in any order, each once.
  void write(std::size_t at, const StoredRow& row, const EntryValues& values);
  /// Makes row `at` zero.
  void clear(std::size_t at);
  /// Must be called when somebody else wrote to the buffer: all of it is cleared before the next row.
  void spoil() { is_spoiled_ = true; }
  [[nodiscard]] std::uint8_t* cells() const { return cells_; }
  /// Whether every cell but those that were set is zero.
  [[nodiscard]] bool is_clean() const;

 private:
  template <class Cell, class Convert>
  void scatter(std::size_t at, const StoredRow& row, std::span<const float> values, const Convert& convert);
  void restore_zeros();

  SparseAs as_;
  std::size_t columns_;
  std::uint8_t* cells_;
  bool is_spoiled_ = true;
  std::vector<std::vector<std::uint32_t>> set_;  // the columns that each row has
  std::vector<float> values_;                    // of a row
};

}  // namespace chunkhit
