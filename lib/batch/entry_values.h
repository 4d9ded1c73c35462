// The values of a stored row's entries, as they go into a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "chunkhit/sparse.h"
#include "types/stored_row.h"
#include "types/value_type.h"

namespace chunkhit {

/// How entries are stored, and what they become.
struct EntryFormat {
  std::size_t id_bytes = 4;  ///< 2 or 4
  ValueType value_type = ValueType::f32;
  double stored_scale = 1;  ///< a rating is the stored number times this
  bool binarize = false;    ///< every rating is 1
  float scale = 1;          ///< ratings are multiplied with it, after binarize
  RowNorm normalize = RowNorm::none;
};

/// Asks for the memory of a row.
void prefetch_row(const StoredRow& row, const EntryFormat& format);

/// Calculates a row's values: (float) (stored · stored_scale), or 1; times `scale`; divided by the row's
/// norm, which is summed up in double and rounded to float. Any thread may ask.
class EntryValues {
 public:
  explicit EntryValues(const EntryFormat& format);
  /// Fills `values`, row.nnz of them.
  void calculate(const StoredRow& row, std::span<float> values) const;
  [[nodiscard]] const EntryFormat& format() const { return format_; }

 private:
  void look_up(const StoredRow& row, std::span<float> values) const;

  EntryFormat format_;
  std::vector<float> table_;          // of each stored number, for u8 and none
  std::optional<float> factor_ = {};  // u8: gives what the table does
};

/// Rounds to the nearest half float, ties to even; too large numbers become infinite.
[[nodiscard]] std::uint16_t half_float(float value);

}  // namespace chunkhit
