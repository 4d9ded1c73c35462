// Batches of rows of a sparse matrix, dense or CSR: their values, sizes and memory, at the price of their
// entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "chunkhit/sparse_loader.h"
#include "types/csr_rows.h"

namespace chunkhit {

/// How entries are stored, and what they become.
struct EntryFormat {
  std::size_t id_bytes = 4;  ///< 2 or 4
  ValueType value_type = ValueType::f32;
  double stored_scale = 1;  ///< a rating is the stored number times this
  bool binarize = false;    ///< every rating is 1
  float scale = 1;          ///< ratings are multiplied with it, after binarize
  RowNorm normalize = RowNorm::none;
  bool has_times = false;    ///< entries have times
  bool has_repeats = false;  ///< dense: a row may have a column several times; the ratings are added up
};

/// Calculates a row's values: (float) (stored · stored_scale), or 1; times `scale`; divided by the row's
/// norm, which is summed up in double and rounded to float. Any thread may ask.
class EntryValues {
 public:
  explicit EntryValues(const EntryFormat& format);
  /// Fills `values`, row.nnz of them.
  void calculate(const StoredRow& row, std::span<float> values) const;
  /// Fills `values` without dividing them by the row's norm.
  void scale(const StoredRow& row, std::span<float> values) const;
  /// Divides a row's values by its norm, where one is asked for.
  void normalize(std::span<float> values) const;
  [[nodiscard]] const EntryFormat& format() const { return format_; }

 private:
  EntryFormat format_;
  std::vector<float> table_;          // of each stored number, for u8 and none
  std::optional<float> factor_ = {};  // u8: gives what the table does
};

/// Bytes of a block for so many rows and entries, with their times or without. Throws usage above 2^31 - 1
/// entries, which int32 cannot count.
[[nodiscard]] std::size_t csr_block_bytes(std::size_t rows, std::uint64_t nnz, bool with_times);

/// Writes rows one after the other into a block of csr_block_bytes(rows.size(), their entries, whether
/// values' format has times) bytes, aligned to 64.
[[nodiscard]] CsrBatch write_csr_batch(std::span<const StoredRow> rows, const EntryValues& values,
                                       std::uint8_t* block);

/// The largest dense batch that is handed out.
inline constexpr std::uint64_t kMaxDenseBatchBytes = 1ull << 30;

/// Bytes of one cell; 0 for CSR, sequences and pairs.
[[nodiscard]] std::size_t cell_bytes(SparseFormat form);

/// Throws usage, naming what else to do, when a dense batch would take more than kMaxDenseBatchBytes, or
/// SparseFormat::dense_u8 is asked for what are no bytes.
void check_dense_batch(SparseFormat form, std::uint64_t rows, std::uint64_t columns,
                       const EntryFormat& format);

/// Numbers from here on become infinite as halves.
inline constexpr float kHalfOverflow = 65'520;

/// Throws usage when ratings of this magnitude, as `format` serves them, are too large for dense_f16. Norms
/// are not foreseen.
void check_half_values(float magnitude, const EntryFormat& format);

/// Fills one dense buffer with one batch after the other and clears only the cells that it set before.
class DenseBatch {
 public:
  /// `cells`: rows · columns · cell_bytes(form) bytes of any content. A batch has at most `max_entries`.
  DenseBatch(SparseFormat form, std::size_t rows, std::size_t columns, std::uint64_t max_entries,
             std::uint8_t* cells);
  /// Replaces the batch by at most `rows` rows; the others become zero. Where columns may repeat, a cell is
  /// the sum of its ratings, 1 where they are binarized, and norms are of cells. Throws usage for a number
  /// that dense_f16 or dense_u8 cannot hold. Debug builds abort where the buffer was written to without
  /// `spoil`.
  void replace(std::span<const StoredRow> rows, const EntryValues& values);
  /// Must be called when the caller wrote to the buffer: all of it is cleared before the next batch.
  void spoil() { is_spoiled_ = true; }
  [[nodiscard]] std::uint8_t* cells() const { return cells_; }
  /// Whether every cell but those that were set is zero.
  [[nodiscard]] bool is_clean() const;

 private:
  /// The columns that a batch has set, row by row.
  struct Set {
    std::vector<std::uint32_t> columns;
    std::vector<std::size_t> row_ends;
    [[nodiscard]] std::span<const std::uint32_t> row(std::size_t at) const {
      const std::size_t begin = at == 0 ? 0 : row_ends[at - 1];
      return std::span(columns).subspan(begin, row_ends[at] - begin);
    }
  };
  void clear(std::size_t at);
  void write(std::size_t at, const StoredRow& row, const EntryValues& values);
  void write_sums(std::size_t at, const StoredRow& row, const EntryValues& values);
  void write_halves(std::size_t at, std::span<const float> numbers);
  template <class Cell, class Convert>
  void scatter(std::size_t at, const Convert& convert);
  void restore_zeros();

  SparseFormat form_;
  std::size_t rows_;
  std::size_t columns_;
  std::uint8_t* cells_;
  bool is_spoiled_ = true;
  Set before_;
  Set now_;
  std::vector<float> values_;  // of a row
};

}  // namespace chunkhit
