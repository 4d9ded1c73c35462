#include "chunk/column_steps.h"

#include <array>
#include <string>

#include "chunkhit/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "chunk/column_steps.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Once, and not for every instruction set.
#ifndef CHUNKHIT_CHUNK_COLUMN_STEPS_ONCE
#define CHUNKHIT_CHUNK_COLUMN_STEPS_ONCE
namespace chunkhit {

/// How the next 8 bytes of a plane become up to 8 numbers of one or two bytes, by which of them go on: after
/// Plaisance, Kurz and Lemire, "Vectorized VByte Decoding" (2015).
struct StepWindow {
  alignas(16) std::array<std::uint8_t, 16> bytes_of_numbers{};  ///< two for each, 0x80 for none
  std::uint8_t number_count = 0;                                ///< 0: the first is longer than two bytes
  std::uint8_t byte_count = 0;
};

constexpr std::array<StepWindow, 256> make_step_windows() {
  std::array<StepWindow, 256> windows{};
  for (unsigned going_on = 0; going_on < windows.size(); ++going_on) {
    StepWindow& window = windows[going_on];
    window.bytes_of_numbers.fill(0x80);
    unsigned at = 0;
    while (at < 8) {
      const unsigned length = (going_on >> at & 1) + 1;
      if (at + length > 8 || (length == 2 && (going_on >> (at + 1) & 1) != 0)) break;
      for (unsigned i = 0; i < length; ++i)
        window.bytes_of_numbers[2 * std::size_t{window.number_count} + i] = static_cast<std::uint8_t>(at + i);
      at += length;
      ++window.number_count;
    }
    window.byte_count = static_cast<std::uint8_t>(at);
  }
  return windows;
}

inline constexpr std::array<StepWindow, 256> kStepWindows = make_step_windows();

/// What is left of a plane, and the least column that may follow in its row.
struct StepReader {
  const std::uint8_t* from;
  const std::uint8_t* end;
  std::uint64_t next;
  std::uint64_t column_count;
};

[[noreturn]] inline void throw_bad_step(const std::string& what) {
  throw Error(ErrorCode::bad_data, "columns of a row block: " + what);
}

/// Reads one number of any length.
inline std::uint32_t read_number(StepReader& reader) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 7 * kMostLeb128Bytes; shift += 7) {
    if (reader.from == reader.end) throw_bad_step("end early");
    const std::uint8_t byte = *reader.from++;
    number |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) {
      if (number > UINT32_MAX) break;
      return static_cast<std::uint32_t>(number);
    }
  }
  throw_bad_step("a number above 32 bits");
}

inline void check_next(const StepReader& reader) {
  if (reader.next > reader.column_count)
    throw_bad_step("column " + std::to_string(reader.next - 1) + " of " +
                   std::to_string(reader.column_count));
}

/// Reads `count` columns; numbers of one and two bytes without a branch that depends on them.
template <class Id>
void read_columns(StepReader& reader, std::size_t count, Id* columns) {
  for (std::size_t i = 0; i < count; ++i) {
    if (reader.end - reader.from >= 2 && (reader.from[0] & reader.from[1]) < 0x80) {
      const std::uint32_t two = reader.from[0] >> 7;
      reader.next += (reader.from[0] & 0x7fu) + ((reader.from[1] * two) << 7);
      reader.from += 1 + two;
    } else {
      reader.next += read_number(reader);
    }
    columns[i] = static_cast<Id>(reader.next++);
    check_next(reader);
  }
}

}  // namespace chunkhit
#endif

HWY_BEFORE_NAMESPACE();
namespace chunkhit {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
namespace hn = hwy::HWY_NAMESPACE;
using U32 = hn::Full128<std::uint32_t>;

HWY_INLINE hn::VFromD<U32> running_sum(hn::VFromD<U32> lanes) {
  lanes = hn::Add(lanes, hn::ShiftLeftLanes<1>(U32(), lanes));
  return hn::Add(lanes, hn::ShiftLeftLanes<2>(U32(), lanes));
}

HWY_INLINE void store_columns(hn::VFromD<U32> low, hn::VFromD<U32> high, std::uint32_t* columns) {
  hn::StoreU(low, U32(), columns);
  hn::StoreU(high, U32(), columns + 4);
}

HWY_INLINE void store_columns(hn::VFromD<U32> low, hn::VFromD<U32> high, std::uint16_t* columns) {
  const hn::Full128<std::uint16_t> u16;
  // The even 16 bits of each: columns were checked to have no more.
  hn::StoreU(hn::ConcatEven(u16, hn::BitCast(u16, high), hn::BitCast(u16, low)), u16, columns);
}

/// Restores the numbers of the next 8 bytes to room for 8 columns; returns how many they were, 0 for a number
/// that needs another way.
template <class Id>
HWY_INLINE std::size_t read_window(StepReader& reader, Id* columns) {
  const auto word = load_little<std::uint64_t>(reader.from);
  // Brings the highest bits of the 8 bytes together.
  const StepWindow& window = kStepWindows[((word & 0x8080808080808080u) * 0x0002040810204081u) >> 56];
  const hn::Full128<std::uint8_t> u8;
  const hn::Full128<std::uint16_t> u16;
  const auto bytes = hn::BitCast(u8, hn::Set(hn::Full128<std::uint64_t>(), word));
  const auto pairs =
      hn::BitCast(u16, hn::TableLookupBytesOr0(bytes, hn::Load(u8, window.bytes_of_numbers.data())));
  const auto steps = hn::Or(hn::And(pairs, hn::Set(u16, std::uint16_t{0x7f})),
                            hn::ShiftRight<1>(hn::And(pairs, hn::Set(u16, std::uint16_t{0x7f00}))));
  const auto more = hn::Add(steps, hn::Set(u16, std::uint16_t{1}));
  auto low = running_sum(hn::PromoteTo(U32(), hn::LowerHalf(more)));
  auto high = running_sum(hn::PromoteTo(U32(), hn::UpperHalf(hn::Half<hn::Full128<std::uint16_t>>(), more)));
  high = hn::Add(high, hn::Broadcast<3>(low));
  const auto before =
      hn::Set(U32(), static_cast<std::uint32_t>(reader.next) - 1);  // may wrap around, and back
  store_columns(hn::Add(low, before), hn::Add(high, before), columns);
  const std::uint32_t all = hn::GetLane(hn::Broadcast<3>(high));
  reader.next += all - (8 - window.number_count);  // lanes without a number count 1 each
  reader.from += window.byte_count;
  return window.number_count;
}
#endif

template <class Id>
void decode_row(StepReader& reader, std::size_t count, Id* columns) {
  reader.next = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr std::uint64_t kMostNext = UINT32_MAX - 8 * 0x4000;
  while (count >= 8 && reader.end - reader.from >= 8 && reader.next <= kMostNext) {
    std::size_t done = read_window(reader, columns);
    check_next(reader);
    if (done == 0) {
      read_columns(reader, 1, columns);
      done = 1;
    }
    columns += done;
    count -= done;
  }
#endif
  read_columns(reader, count, columns);
}

template <class Id>
void decode_rows(Bytes plane, std::span<const std::uint64_t> row_ends, std::uint64_t first_entry,
                 std::uint64_t column_count, Id* columns) {
  StepReader reader{plane.data(), plane.data() + plane.size(), 0, column_count};
  std::uint64_t at = first_entry;
  for (const std::uint64_t end : row_ends) {
    decode_row(reader, end - at, columns + (at - first_entry));
    at = end;
  }
  if (reader.from != reader.end) throw_bad_step(std::to_string(reader.end - reader.from) + " bytes too many");
}

void decode_u16(Bytes plane, std::span<const std::uint64_t> row_ends, std::uint64_t first_entry,
                std::uint64_t column_count, std::uint16_t* columns) {
  decode_rows(plane, row_ends, first_entry, column_count, columns);
}

void decode_u32(Bytes plane, std::span<const std::uint64_t> row_ends, std::uint64_t first_entry,
                std::uint64_t column_count, std::uint32_t* columns) {
  decode_rows(plane, row_ends, first_entry, column_count, columns);
}

}  // namespace HWY_NAMESPACE
}  // namespace chunkhit
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chunkhit {

HWY_EXPORT(decode_u16);
HWY_EXPORT(decode_u32);

std::uint32_t decode_leb128(Bytes& from) {
  StepReader reader{from.data(), from.data() + from.size(), 0, 0};
  const std::uint32_t number = read_number(reader);
  from = from.last(static_cast<std::size_t>(reader.end - reader.from));
  return number;
}

std::uint8_t* encode_columns(std::span<const std::uint32_t> columns, std::uint8_t* to) {
  std::uint32_t next = 0;
  for (const std::uint32_t column : columns) {
    const std::uint32_t step = column - next;
    next = column + 1;
    if (step >= 0x4000) {
      to = encode_leb128(step, to);
      continue;
    }
    const std::uint32_t two = step >= 0x80 ? 1 : 0;
    to[0] = static_cast<std::uint8_t>((step & 0x7f) | two << 7);
    to[1] = static_cast<std::uint8_t>(step >> 7);  // overwritten where one byte is enough
    to += 1 + two;
  }
  return to;
}

void decode_columns(Bytes plane, std::span<const std::uint64_t> row_ends, std::uint64_t first_entry,
                    std::uint64_t column_count, std::span<std::uint16_t> columns) {
  HWY_DYNAMIC_DISPATCH(decode_u16)(plane, row_ends, first_entry, column_count, columns.data());
}

void decode_columns(Bytes plane, std::span<const std::uint64_t> row_ends, std::uint64_t first_entry,
                    std::uint64_t column_count, std::span<std::uint32_t> columns) {
  HWY_DYNAMIC_DISPATCH(decode_u32)(plane, row_ends, first_entry, column_count, columns.data());
}

}  // namespace chunkhit
#endif
