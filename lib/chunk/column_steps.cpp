#include "chunk/column_steps.h"

#include <algorithm>
#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "chunk/column_steps.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace chunkhit {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
namespace hn = hwy::HWY_NAMESPACE;
using U32 = hn::Full128<std::uint32_t>;
using V32 = hn::VFromD<U32>;

constexpr std::size_t kWindow = 8;
constexpr std::uint64_t kHighBits = 0x8080808080808080u;

HWY_INLINE V32 running_sum(V32 lanes) {
  lanes = hn::Add(lanes, hn::ShiftLeftLanes<1>(U32(), lanes));
  return hn::Add(lanes, hn::ShiftLeftLanes<2>(U32(), lanes));
}

HWY_INLINE void store_columns(V32 low, V32 high, std::uint32_t* columns) {
  hn::StoreU(low, U32(), columns);
  hn::StoreU(high, U32(), columns + 4);
}

HWY_INLINE void store_columns(V32 low, V32 high, std::uint16_t* columns) {
  const hn::Full128<std::uint16_t> u16;
  // The even 16 bits of each: columns were checked to have no more.
  hn::StoreU(hn::ConcatEven(u16, hn::BitCast(u16, high), hn::BitCast(u16, low)), u16, columns);
}

/// Whether 8 bytes may be read of what a group has left, and 8 steps of two bytes added.
HWY_INLINE bool has_window(const StepReader& reader, const GroupReader& group) {
  constexpr std::uint64_t kMaxNext = UINT32_MAX - kWindow * 0x4000;
  return reader.end - group.first >= static_cast<std::ptrdiff_t>(kWindow) &&
         reader.end - group.more >= static_cast<std::ptrdiff_t>(kWindow) && reader.next <= kMaxNext;
}

/// Restores up to `most` columns of one group to room for 8, as far as it goes; returns how many, 0 where a
/// number of more than two bytes is among the next 8.
template <std::uint32_t kGap, class Id>
HWY_INLINE std::size_t read_window(StepReader& reader, GroupReader& group, std::uint64_t group_end,
                                   std::size_t most, Id* columns) {
  const hn::Full128<std::uint8_t> u8;
  const hn::Full128<std::uint16_t> u16;
  const hn::Full128<std::uint64_t> u64;
  const auto first = load_little<std::uint64_t>(group.first);
  auto steps = hn::PromoteTo(u16, hn::LowerHalf(hn::BitCast(u8, hn::Set(u64, first & ~kHighBits))));
  if ((first & kHighBits) != 0) {
    // Brings the highest bits of the 8 bytes together.
    const auto& positions = kMorePositions[((first & kHighBits) * 0x0002040810204081u) >> 56];
    const auto more =
        hn::TableLookupBytesOr0(hn::BitCast(u8, hn::Set(u64, load_little<std::uint64_t>(group.more))),
                                hn::BitCast(u8, hn::Set(u64, load_little<std::uint64_t>(positions.data()))));
    if ((hn::GetLane(hn::BitCast(u64, more)) & kHighBits) != 0) return 0;
    steps = hn::Or(steps, hn::ShiftLeft<7>(hn::PromoteTo(u16, hn::LowerHalf(more))));
  }
  const auto further = hn::Add(steps, hn::Set(u16, std::uint16_t{kGap}));
  auto low = running_sum(hn::PromoteTo(U32(), hn::LowerHalf(further)));
  auto high =
      running_sum(hn::PromoteTo(U32(), hn::UpperHalf(hn::Half<hn::Full128<std::uint16_t>>(), further)));
  const auto before = hn::Set(U32(), static_cast<std::uint32_t>(reader.next));
  low = hn::Add(low, before);
  high = hn::Add(high, hn::Broadcast<3>(low));
  // `low` and `high` are the least columns behind each: the step after the last one below the end is the
  // last.
  const auto end = hn::Set(U32(), static_cast<std::uint32_t>(std::min<std::uint64_t>(group_end, UINT32_MAX)));
  const std::size_t below = hn::CountTrue(U32(), hn::Lt(low, end)) + hn::CountTrue(U32(), hn::Lt(high, end));
  const std::size_t count = std::min(std::min(below + 1, kWindow), most);
  const auto gap = hn::Set(U32(), kGap);
  store_columns(hn::Sub(low, gap), hn::Sub(high, gap), columns);
  alignas(16) std::array<std::uint32_t, kWindow> nexts;
  store_columns(low, high, nexts.data());
  reader.next = nexts[count - 1];
  const std::uint64_t taken = first & kHighBits & (UINT64_MAX >> (64 - 8 * count));
  group.first += count;
  group.more += __builtin_popcountll(taken);
  if (group.first > group.first_end || group.more > group.more_end) throw_bad_step("a group ends early");
  return count;
}
#endif

/// Restores a row to `columns`; there is room for `room`.
template <std::uint32_t kGap, class Id>
void decode_row(StepReader& reader, std::size_t count, std::size_t room, Id* columns) {
  RowGroups groups(count);
  reader.next = 0;
  while (count > 0) {
    GroupReader& group = reader.groups[groups.of(reader.next)];
    std::size_t done = 0;
#if HWY_TARGET != HWY_SCALAR
    if (room >= kWindow && has_window(reader, group)) {
      done = read_window<kGap>(reader, group, groups.end(), count, columns);
      check_next<kGap>(reader);
    }
#endif
    if (done == 0)
      done = read_columns<kGap>(reader, group, groups.end(), std::min<std::size_t>(count, 8), columns);
    columns += done;
    count -= done;
    room -= done;
  }
}

template <std::uint32_t kGap, class Id>
void decode_rows(StepReader reader, std::span<const std::uint64_t> row_ends, std::uint64_t first_entry,
                 std::span<Id> columns) {
  std::uint64_t at = first_entry;
  for (const std::uint64_t end : row_ends) {
    const std::span<Id> left = columns.subspan(at - first_entry);
    decode_row<kGap>(reader, end - at, left.size(), left.data());
    at = end;
  }
  check_all_read(reader);
}

template <class Id>
void decode_any_rows(const StepReader& reader, std::span<const std::uint64_t> row_ends,
                     std::uint64_t first_entry, std::span<Id> columns) {
  reader.repeats ? decode_rows<kRepeats>(reader, row_ends, first_entry, columns)
                 : decode_rows<kOnce>(reader, row_ends, first_entry, columns);
}

void decode_u16(const StepReader& reader, std::span<const std::uint64_t> row_ends, std::uint64_t first_entry,
                std::span<std::uint16_t> columns) {
  decode_any_rows(reader, row_ends, first_entry, columns);
}

void decode_u32(const StepReader& reader, std::span<const std::uint64_t> row_ends, std::uint64_t first_entry,
                std::span<std::uint32_t> columns) {
  decode_any_rows(reader, row_ends, first_entry, columns);
}

}  // namespace HWY_NAMESPACE
}  // namespace chunkhit
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chunkhit {

HWY_EXPORT(decode_u16);
HWY_EXPORT(decode_u32);

namespace {

/// The steps of a row that are left, up to the last one of a group.
struct Steps {
  const std::uint32_t* column;
  const std::uint32_t* row_end;
  std::uint32_t gap;        ///< kOnce or kRepeats
  std::uint64_t next;       ///< least column that may follow
  std::uint64_t group_end;  ///< least one that belongs to a later group
  [[nodiscard]] bool has_more() const { return column != row_end && next < group_end; }
  std::uint32_t take() {
    const auto step = static_cast<std::uint32_t>(*column - next);
    next = std::uint64_t{*column++} + gap;
    return step;
  }
};

/// Calls `take(group, steps)` for those of each group of each row, which it takes all.
template <class Take>
void for_each_group(const CsrView& rows, bool repeats, Take take) {
  const std::uint32_t* column = rows.indices.data();
  for (std::size_t row = 0; row < rows.row_count(); ++row) {
    const std::uint64_t length = rows.indptr[row + 1] - rows.indptr[row];
    RowGroups groups(length);
    for (Steps steps{column, column + length, repeats ? kRepeats : kOnce, 0, 0};
         steps.column != steps.row_end;) {
      const std::size_t group = groups.of(steps.next);
      steps.group_end = groups.end();
      take(group, steps);
    }
    column += length;
  }
}

}  // namespace

std::uint32_t decode_leb128(Bytes& from) {
  if (from.empty()) throw_bad_step("end early");
  const std::uint8_t* at = from.data() + 1;
  const std::uint32_t number = read_number(from[0], at, from.data() + from.size());
  from = from.subspan(static_cast<std::size_t>(at - from.data()));
  return number;
}

StepGroups measure_columns(const CsrView& rows, bool repeats) {
  StepGroups groups{};
  for_each_group(rows, repeats, [&](std::size_t group, Steps& steps) {
    const std::uint32_t* const first = steps.column;
    std::uint64_t more_bytes = 0;
    while (steps.has_more()) {
      // Without a branch: whether a step has more bytes is as good as random.
      const std::uint32_t step = steps.take();
      more_bytes += (step >= 1u << 7 ? 1 : 0) + (step >= 1u << 14 ? 1 : 0) + (step >= 1u << 21 ? 1 : 0) +
                    (step >= 1u << 28 ? 1 : 0);
    }
    groups[group].first_bytes += static_cast<std::uint64_t>(steps.column - first);
    groups[group].more_bytes += more_bytes;
  });
  return groups;
}

std::uint8_t* encode_columns(const CsrView& rows, bool repeats, const StepGroups& groups, std::uint8_t* to) {
  struct Ends {
    std::uint8_t* first;
    std::uint8_t* more;
  };
  std::array<Ends, kStepGroups> ends{};
  for (std::size_t group = 0; group < kStepGroups; ++group) {
    ends[group] = {to, to + groups[group].first_bytes};
    to = ends[group].more + groups[group].more_bytes;
  }
  for_each_group(rows, repeats, [&](std::size_t group, Steps& steps) {
    Ends end = ends[group];
    while (steps.has_more()) {
      const std::uint32_t step = steps.take();
      const bool has_more = step >= 1u << 7;
      *end.first++ = static_cast<std::uint8_t>(step | (has_more ? 0x80 : 0));
      if (step >= 1u << 14) {
        end.more = encode_leb128(step >> 7, end.more);
        continue;
      }
      std::uint8_t unused = 0;
      *(has_more ? end.more : &unused) = static_cast<std::uint8_t>(step >> 7);
      end.more += has_more ? 1 : 0;
    }
    ends[group] = end;
  });
  return to;
}

void decode_columns(const ColumnPlane& plane, std::span<const std::uint64_t> row_ends,
                    std::uint64_t first_entry, std::span<std::uint16_t> columns) {
  HWY_DYNAMIC_DISPATCH(decode_u16)(make_step_reader(plane), row_ends, first_entry, columns);
}

void decode_columns(const ColumnPlane& plane, std::span<const std::uint64_t> row_ends,
                    std::uint64_t first_entry, std::span<std::uint32_t> columns) {
  HWY_DYNAMIC_DISPATCH(decode_u32)(make_step_reader(plane), row_ends, first_entry, columns);
}

}  // namespace chunkhit
#endif
