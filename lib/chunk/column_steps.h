// Columns of matrix rows ↔ LEB128 of the steps between them, in groups of about equal length. Layout:
// schemas/row-block.md, "Columns".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "types/csr_rows.h"

namespace chunkhit {

/// The most bytes of a number of 32 bits.
inline constexpr std::size_t kMaxLeb128Bytes = 5;

/// Writes a number to room for `kMaxLeb128Bytes`; returns the end of what was written.
inline std::uint8_t* encode_leb128(std::uint32_t number, std::uint8_t* to) {
  for (; number >= 0x80; number >>= 7) *to++ = static_cast<std::uint8_t>(number | 0x80);
  *to++ = static_cast<std::uint8_t>(number);
  return to;
}

/// Reads a number below 2^32 from the front of `from`, which is moved behind it; throws bad_data when the
/// bytes end early or say more.
[[nodiscard]] std::uint32_t decode_leb128(Bytes& from);

/// Into how many groups a row's steps fall, by how long a step is to be expected where it begins.
inline constexpr std::size_t kStepGroups = 16;

/// Bytes of the steps of one group: those that steps begin with, and those that follow in longer steps.
struct StepGroup {
  std::uint64_t first_bytes = 0;  ///< as many as steps
  std::uint64_t more_bytes = 0;
};
using StepGroups = std::array<StepGroup, kStepGroups>;

/// What `encode_columns` will write of each group.
[[nodiscard]] StepGroups measure_columns(const CsrView& rows);

/// Writes the columns of rows to `to`, which has room for the sum of `groups`; returns the end.
std::uint8_t* encode_columns(const CsrView& rows, const StepGroups& groups, std::uint8_t* to);

/// Restores the columns of rows that end at `row_ends` (counted from `first_entry` on) from a plane, the sum
/// of `groups`, that they must fill; `columns` has room for all entries. Throws bad_data for a column that is
/// not below `column_count`, at most 65,536 for the first form.
void decode_columns(Bytes plane, const StepGroups& groups, std::span<const std::uint64_t> row_ends,
                    std::uint64_t first_entry, std::uint64_t column_count, std::span<std::uint16_t> columns);
void decode_columns(Bytes plane, const StepGroups& groups, std::span<const std::uint64_t> row_ends,
                    std::uint64_t first_entry, std::uint64_t column_count, std::span<std::uint32_t> columns);

}  // namespace chunkhit
