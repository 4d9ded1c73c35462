// What is left of the steps of a row block while its rows are read, and which group a step belongs to.
// Layout: schemas/row-block.md, "Columns".
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/throw_error.h"
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

/// What `encode_columns` will write of each group; with `repeats` a row may have a column several times.
[[nodiscard]] StepGroups measure_columns(const CsrView& rows, bool repeats);

/// Writes the columns of rows to `to`, which has room for the sum of `groups`; returns the end.
std::uint8_t* encode_columns(const CsrView& rows, bool repeats, const StepGroups& groups, std::uint8_t* to);

/// The stored columns of some rows.
struct ColumnPlane {
  Bytes bytes;  ///< the sum of `groups`
  const StepGroups& groups;
  std::uint64_t column_count = 0;
  bool repeats = false;  ///< a row may have a column several times
};

/// Restores the columns of rows that end at `row_ends` (counted from `first_entry` on) from a plane that they
/// must fill; `columns` has room for all entries. Throws bad_data for a column that is not below the plane's
/// column_count, at most 65,536 for the first form.
void decode_columns(const ColumnPlane& plane, std::span<const std::uint64_t> row_ends,
                    std::uint64_t first_entry, std::span<std::uint16_t> columns);
void decode_columns(const ColumnPlane& plane, std::span<const std::uint64_t> row_ends,
                    std::uint64_t first_entry, std::span<std::uint32_t> columns);

/// The group of each step of a row, from first to last: it only grows.
class RowGroups {
 public:
  explicit RowGroups(std::uint64_t length) : length_(length) { find_end(); }
  /// The group of a step behind which the least column is `next`.
  std::size_t of(std::uint64_t next) {
    while (next >= end_) {
      ++group_;
      find_end();
    }
    return group_;
  }
  /// The least column that belongs to a later group.
  [[nodiscard]] std::uint64_t end() const { return end_; }

 private:
  // The page's rule, solved for the column.
  void find_end() {
    constexpr std::uint64_t kHead = 8;
    constexpr std::uint64_t kUnits = 4;
    const std::uint64_t end = ((length_ << group_) + kUnits - 1) / kUnits;
    end_ = group_ == kStepGroups - 1 ? UINT64_MAX : end - std::min(end, kHead);
  }

  std::uint64_t length_;
  std::size_t group_ = 0;
  std::uint64_t end_ = 0;
};

/// Which of the following bytes belongs to each of 8 steps, by which of them have one: 0x80 for none.
constexpr std::array<std::array<std::uint8_t, 8>, 256> make_more_positions() {
  std::array<std::array<std::uint8_t, 8>, 256> positions{};
  for (unsigned has_more = 0; has_more < positions.size(); ++has_more) {
    std::uint8_t at = 0;
    for (unsigned step = 0; step < 8; ++step)
      positions[has_more][step] = (has_more >> step & 1) != 0 ? at++ : std::uint8_t{0x80};
  }
  return positions;
}

alignas(64) inline constexpr std::array<std::array<std::uint8_t, 8>, 256> kMorePositions =
    make_more_positions();

/// What is left of a group's bytes.
struct GroupReader {
  const std::uint8_t* first;
  const std::uint8_t* first_end;
  const std::uint8_t* more;
  const std::uint8_t* more_end;
};

/// What is left of a plane, and the least column that may follow in the row.
struct StepReader {
  std::array<GroupReader, kStepGroups> groups;
  const std::uint8_t* end;
  std::uint64_t column_count;
  std::uint64_t next;
  bool repeats;
};

[[noreturn]] inline void throw_bad_step(const std::string& what) {
  throw_bad_data("columns of a row block: " + what);
}

/// Reads the rest of a number whose first byte is known.
inline std::uint32_t read_number(std::uint8_t byte, const std::uint8_t*& from, const std::uint8_t* end) {
  std::uint64_t number = byte & 0x7fu;
  for (unsigned shift = 7; byte >= 0x80; shift += 7) {
    if (from == end) throw_bad_step("end early");
    byte = *from++;
    number |= std::uint64_t{byte & 0x7fu} << shift;
    if (shift == 7 * (kMaxLeb128Bytes - 1) && (byte >= 0x80 || number > UINT32_MAX))
      throw_bad_step("a number above 32 bits");
  }
  return static_cast<std::uint32_t>(number);
}

/// How far the least column that may follow lies behind a column: kRepeats where it may come again.
inline constexpr std::uint32_t kOnce = 1;
inline constexpr std::uint32_t kRepeats = 0;

// Always inlined: as a call it took 3 % of reading dense rows.
template <std::uint32_t kGap>
[[gnu::always_inline]] inline void check_next(const StepReader& reader) {
  if (reader.next + (kOnce - kGap) > reader.column_count)
    throw_bad_step("column " + std::to_string(reader.next - kGap) + " of " +
                   std::to_string(reader.column_count));
}

/// Reads up to `count` columns of one group, as far as it goes; returns how many.
template <std::uint32_t kGap, class Id>
std::size_t read_columns(StepReader& reader, GroupReader& group, std::uint64_t group_end, std::size_t count,
                         Id* columns) {
  std::size_t done = 0;
  while (done < count && reader.next < group_end) {
    if (group.first == group.first_end) throw_bad_step("a group ends early");
    const std::uint8_t first = *group.first++;
    reader.next += first < 0x80 ? first : read_number(first, group.more, group.more_end);
    columns[done++] = static_cast<Id>(reader.next);
    reader.next += kGap;
    check_next<kGap>(reader);
  }
  return done;
}

inline StepReader make_step_reader(const ColumnPlane& plane) {
  StepReader reader{{}, plane.bytes.data() + plane.bytes.size(), plane.column_count, 0, plane.repeats};
  const std::uint8_t* at = plane.bytes.data();
  for (std::size_t group = 0; group < kStepGroups; ++group) {
    const std::uint8_t* const more = at + plane.groups[group].first_bytes;
    reader.groups[group] = {at, more, more, more + plane.groups[group].more_bytes};
    at = more + plane.groups[group].more_bytes;
  }
  return reader;
}

inline void check_all_read(const StepReader& reader) {
  for (const GroupReader& group : reader.groups)
    if (group.first != group.first_end || group.more != group.more_end)
      throw_bad_step("a group has bytes too many");
}

}  // namespace chunkhit
