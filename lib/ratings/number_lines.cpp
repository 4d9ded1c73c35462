#include "ratings/number_lines.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "ratings/rating_fields.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ratings/number_lines.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace chunkhit::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
// Without vectors TextParser is as fast: it reads all lines.
std::size_t find_ends(const NumberColumns&, std::size_t*, std::uint32_t*, std::size_t) { return 0; }

std::size_t read_lines(const NumberColumns&, const std::uint32_t*, std::size_t, NumberRatings&) { return 0; }
#else

namespace hn = hwy::HWY_NAMESPACE;
using U64 = hn::ScalableTag<std::uint64_t>;
using I64 = hn::RebindToSigned<U64>;
using U32 = hn::Repartition<std::uint32_t, U64>;
using U16 = hn::Repartition<std::uint16_t, U64>;
using U8 = hn::Repartition<std::uint8_t, U64>;
using V64 = hn::VFromD<U64>;

constexpr std::size_t kWindow = 64;
constexpr std::uint64_t kZeros = kEveryByte * '0';

/// One bit for each of 64 characters: whether it is `delimiter` or LF.
HWY_INLINE std::uint64_t find_in_window(const char* from, char delimiter) {
  const auto delimiters = hn::Set(U8(), static_cast<std::uint8_t>(delimiter));
  const auto line_ends = hn::Set(U8(), std::uint8_t{'\n'});
  std::uint64_t found = 0;
  for (std::size_t at = 0; at < kWindow; at += hn::Lanes(U8())) {
    const auto characters = hn::LoadU(U8(), reinterpret_cast<const std::uint8_t*>(from) + at);
    std::uint64_t bits = 0;  // at least as many bytes as are stored
    hn::StoreMaskBits(U8(), hn::Or(hn::Eq(characters, delimiters), hn::Eq(characters, line_ends)),
                      reinterpret_cast<std::uint8_t*>(&bits));
    found |= bits << at;
  }
  return found;
}

/// Lists the offsets of delimiters and LF from `from` on, which is moved behind what was looked at: to the
/// end of the text, or until there may be no room for those of another window. Returns how many.
std::size_t find_ends(const NumberColumns& columns, std::size_t* from, std::uint32_t* ends,
                      std::size_t room) {
  constexpr std::size_t kAtOnce = 12;  // more than most windows have, so that no branch depends on how many
  constexpr std::size_t kMaxWritten = 72;
  const std::string_view text = columns.text;
  std::size_t count = 0;
  std::size_t at = *from;
  for (; at + kWindow <= text.size() && count + kMaxWritten <= room; at += kWindow) {
    std::uint64_t found = find_in_window(text.data() + at, columns.delimiter);
    const auto found_count = static_cast<std::size_t>(std::popcount(found));
    for (std::size_t done = 0; done < found_count; done += kAtOnce)
      for (std::size_t index = 0; index < kAtOnce; ++index) {
        ends[count + done + index] = static_cast<std::uint32_t>(at) + std::countr_zero(found);
        found &= found - 1;
      }
    count += found_count;
  }
  if (at + kWindow > text.size())
    for (; at < text.size() && count < room; ++at)
      if (text[at] == columns.delimiter || text[at] == '\n') ends[count++] = static_cast<std::uint32_t>(at);
  *from = at;
  return count;
}

/// Counts the lines, of `most`, up to the first whose fields do not end as they should: with delimiters, and
/// the last one with LF, or with CR and LF where the first line does. 8 characters may be read where one
/// ends.
HWY_INLINE std::size_t count_lines(const NumberColumns& columns, const std::uint32_t* ends, std::size_t most,
                                   bool has_cr) {
  const char* const text = columns.text.data();
  const std::size_t last = columns.count - 1;
  for (std::size_t line = 0; line < most; ++line, ends += columns.count) {
    int other = (text[ends[last]] ^ '\n') | int{(text[ends[last] - 1] == '\r') != has_cr};
    for (std::size_t column = 0; column < last; ++column) other |= text[ends[column]] ^ columns.delimiter;
    const std::uint32_t line_bytes = ends[last] - (*(ends - 1) + 1);  // wraps for the text's first line
    if (other != 0 || line_bytes > kMaxLineBytes || columns.text.size() - ends[last] < 8) return line;
  }
  return most;
}

/// The fields of one column in as many lines as there are lanes.
struct Fields {
  V64 from;   ///< offset in the text
  V64 count;  ///< characters
};

/// Loads 8 characters, less '0', of each field.
HWY_INLINE V64 load_characters(const NumberColumns& columns, V64 from) {
  const auto* const text = reinterpret_cast<const std::uint64_t*>(columns.text.data());
  return hn::Xor(hn::GatherOffset(U64(), text, hn::BitCast(I64(), from)), hn::Set(U64(), kZeros));
}

/// `ends` is where the column ends in the first of the lines.
HWY_INLINE Fields load_fields(const NumberColumns& columns, const std::uint32_t* ends,
                              std::uint64_t cr_bytes) {
  const auto low_half = hn::Set(U64(), std::uint64_t{0xffffffff});
  const auto line = hn::Iota(I64(), 0);
  const auto line_bytes = hn::Set(U64(), columns.count * sizeof *ends);
  const auto offsets =
      hn::BitCast(I64(), hn::MulEven(hn::BitCast(U32(), line), hn::BitCast(U32(), line_bytes)));
  // Where the column before ends, and where this one does.
  const auto pairs = hn::GatherOffset(U64(), reinterpret_cast<const std::uint64_t*>(ends - 1), offsets);
  const auto from = hn::And(hn::Add(pairs, hn::Set(U64(), std::uint64_t{1})), low_half);
  const auto end = hn::Sub(hn::ShiftRight<32>(pairs), hn::Set(U64(), cr_bytes));
  return {from, hn::Sub(end, from)};
}

/// Moves `count` characters, 1 to 8, to the highest bytes; 0 stands before them.
HWY_INLINE V64 align_characters(V64 characters, V64 count) {
  return hn::Shl(characters, hn::ShiftLeft<3>(hn::Sub(hn::Set(U64(), std::uint64_t{8}), count)));
}

/// Not 0 where a byte is no digit.
HWY_INLINE V64 find_invalid(V64 digits) {
  const auto bytes = hn::BitCast(U8(), digits);
  return hn::BitCast(U64(), hn::Xor(bytes, hn::Min(bytes, hn::Set(U8(), std::uint8_t{9}))));
}

/// The number that 8 digits are, the first one in the lowest byte.
HWY_INLINE V64 number_of_digits(V64 digits) {
  const auto ones = hn::BitCast(U16(), digits);
  const auto pairs =
      hn::Add(hn::Mul(hn::And(ones, hn::Set(U16(), std::uint16_t{0xff})), hn::Set(U16(), std::uint16_t{10})),
              hn::ShiftRight<8>(ones));
  // 100 times the even pairs, and the odd ones.
  const auto factors = hn::BitCast(U16(), hn::Set(U32(), 100 + (1u << 16)));
  const auto scaled = hn::BitCast(U32(), hn::Mul(pairs, factors));
  const auto fours = hn::And(hn::Add(scaled, hn::ShiftRight<16>(scaled)), hn::Set(U32(), 0xffffu));
  return hn::Add(hn::MulEven(fours, hn::Set(U32(), 10'000u)), hn::ShiftRight<32>(hn::BitCast(U64(), fours)));
}

/// Reads integers of up to 16 digits without leading zeros; adds to `invalid` what is not 0 where one is
/// none.
HWY_INLINE V64 read_integers(const NumberColumns& columns, const Fields& fields, V64& invalid) {
  const auto one = hn::Set(U64(), std::uint64_t{1});
  const auto eight = hn::Set(U64(), std::uint64_t{8});
  const auto characters = load_characters(columns, fields.from);
  const auto before_last = hn::Sub(fields.count, one);
  const auto has_zero = hn::Eq(hn::And(characters, hn::Set(U64(), std::uint64_t{0xff})), hn::Zero(U64()));
  invalid = hn::Or(invalid, hn::ShiftRight<4>(before_last));  // none, or more than 16
  invalid = hn::Or(invalid, hn::IfThenElseZero(has_zero, before_last));
  const auto is_long = hn::Eq(hn::ShiftRight<3>(before_last), one);  // 9 to 16
  if (HWY_LIKELY(hn::AllFalse(U64(), is_long))) {
    const auto digits = align_characters(characters, fields.count);
    invalid = hn::Or(invalid, find_invalid(digits));
    return number_of_digits(digits);
  }
  const auto high_count = hn::IfThenElseZero(is_long, hn::Sub(fields.count, eight));
  const auto low_characters = load_characters(columns, hn::Add(fields.from, high_count));
  const auto low = align_characters(low_characters, hn::IfThenElse(is_long, eight, fields.count));
  const auto high = hn::IfThenElseZero(is_long, align_characters(characters, high_count));
  invalid = hn::Or(invalid, hn::Or(find_invalid(low), find_invalid(high)));
  const auto upper = hn::BitCast(U32(), number_of_digits(high));
  return hn::Add(number_of_digits(low), hn::MulEven(upper, hn::Set(U32(), 100'000'000u)));
}

/// Reads digits with at most one point as floats. Those with 2^24 or more without it are invalid here, as
/// their quotient would be rounded twice.
HWY_INLINE void read_decimals(const NumberColumns& columns, const Fields& fields, V64& invalid,
                              float* values) {
  const auto one = hn::Set(U64(), std::uint64_t{1});
  const auto zero = hn::Zero(U64());
  const auto before_last = hn::Sub(fields.count, one);
  const auto characters = align_characters(load_characters(columns, fields.from), fields.count);
  const auto is_point = hn::Eq(hn::BitCast(U8(), characters), hn::Set(U8(), std::uint8_t{'.' ^ '0'}));
  const auto points = hn::BitCast(U64(), hn::VecFromMask(U8(), is_point));
  const auto point = hn::And(points, hn::Sub(zero, points));  // the lowest bit of the first one
  const auto before = hn::Sub(point, one);
  const auto before_and_point = hn::Sub(hn::ShiftLeft<8>(point), one);
  const auto joined =
      hn::Or(hn::AndNot(before_and_point, characters), hn::ShiftLeft<8>(hn::And(characters, before)));
  const auto has_none = hn::Eq(point, zero);
  const auto digits = hn::IfThenElse(has_none, characters, joined);
  const auto number = number_of_digits(digits);
  invalid = hn::Or(invalid, hn::Or(find_invalid(digits), hn::ShiftRight<24>(number)));
  invalid = hn::Or(invalid, hn::ShiftRight<3>(before_last));  // none, or more than 8
  const auto is_alone = hn::And(hn::Eq(before_last, zero), hn::Not(has_none));
  invalid = hn::Or(invalid, hn::VecFromMask(U64(), is_alone));
  alignas(64) std::array<std::uint64_t, hn::MaxLanes(U64())> numbers;
  alignas(64) std::array<std::uint64_t, hn::MaxLanes(U64())> point_bits;
  hn::Store(number, U64(), numbers.data());
  hn::Store(hn::IfThenElse(has_none, hn::Set(U64(), std::uint64_t{1} << 63), point), U64(),
            point_bits.data());
  for (std::size_t line = 0; line < numbers.size(); ++line)
    values[line] = static_cast<float>(static_cast<std::int32_t>(numbers[line])) /
                   kFloatPowers[static_cast<std::size_t>(std::countl_zero(point_bits[line])) / 8];
}

/// Reads as many lines as there are lanes to the ratings from `at` on; returns what is not 0 where a line is
/// none of numbers.
HWY_INLINE V64 read_some_lines(const NumberColumns& columns, const std::uint32_t* ends,
                               std::uint64_t cr_bytes, std::size_t at, NumberRatings& ratings) {
  auto invalid = hn::Zero(U64());
  const auto fields = [&](std::size_t column) {
    return load_fields(columns, ends + column, column + 1 == columns.count ? cr_bytes : 0);
  };
  const auto read = [&](std::size_t column, std::int64_t* to) {
    hn::Store(hn::BitCast(I64(), read_integers(columns, fields(column), invalid)), I64(), to + at);
  };
  read(columns.user, ratings.users.data());
  read(columns.item, ratings.items.data());
  if (columns.time < columns.count) read(columns.time, ratings.times.data());
  if (columns.value < columns.count)
    read_decimals(columns, fields(columns.value), invalid, ratings.values.data() + at);
  return invalid;
}

/// Reads `most` lines, whose fields end at `ends`, behind the end of the line before; returns how many were
/// read, up to the first other one or the last for which all lanes are filled.
std::size_t read_lines(const NumberColumns& columns, const std::uint32_t* ends, std::size_t most,
                       NumberRatings& ratings) {
  const std::size_t lanes = hn::Lanes(U64());
  const bool has_cr = columns.text[ends[columns.count - 1] - 1] == '\r';
  const std::size_t lines = count_lines(columns, ends, most, has_cr) / lanes * lanes;
  for (std::size_t line = 0; line < lines; line += lanes) {
    const auto invalid = read_some_lines(columns, ends + line * columns.count, has_cr ? 1 : 0, line, ratings);
    const auto is_number = hn::Eq(invalid, hn::Zero(U64()));
    if (HWY_UNLIKELY(!hn::AllTrue(U64(), is_number))) {
      const auto first = hn::FindFirstTrue(U64(), hn::Not(is_number));
      return line + static_cast<std::size_t>(first);
    }
  }
  return lines;
}
#endif

}  // namespace chunkhit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chunkhit {

HWY_EXPORT(find_ends);
HWY_EXPORT(read_lines);

namespace {

constexpr std::size_t kMostLanes = 8;  // numbers of 64 bits in the largest vector

}  // namespace

bool NumberLines::can_read(std::string_view text, const RatingTextSpec& spec) {
  constexpr std::size_t kMaxColumns = 256;
  const auto has_digit = [](std::string_view begin) {
    return !begin.empty() && begin[0] >= '0' && begin[0] <= '9';
  };
  return spec.delimiter.size() == 1 && spec.column_count > 1 && spec.column_count <= kMaxColumns &&
         text.size() < std::numeric_limits<std::uint32_t>::max() && !has_digit(spec.comment) &&
         !has_digit(spec.header) && (!spec.columns.time || spec.time_scale == 1);
}

NumberLines::NumberLines(std::string_view text, const RatingTextSpec& spec)
    : columns_{text,
               spec.delimiter[0],
               spec.column_count,
               spec.columns.user,
               spec.columns.item,
               spec.columns.value.value_or(spec.column_count),
               spec.columns.time.value_or(spec.column_count)} {}

/// Keeps the ends of the line that begins at `begin`, and lists as many more as there is room for.
void NumberLines::find_more(std::size_t begin) {
  std::copy(ends_.begin() + static_cast<std::ptrdiff_t>(next_),
            ends_.begin() + static_cast<std::ptrdiff_t>(end_count_), ends_.begin() + 1);
  end_count_ -= next_ - 1;
  next_ = 1;
  if (end_count_ == 1) found_until_ = std::max(found_until_, begin);
  end_count_ += HWY_DYNAMIC_DISPATCH(find_ends)(columns_, &found_until_, ends_.data() + end_count_,
                                                kMaxEnds - end_count_);
}

std::size_t NumberLines::read(std::size_t begin, NumberRatings& ratings) {
  while (next_ < end_count_ && ends_[next_] < begin) ++next_;
  if (end_count_ - next_ < kMostLanes * columns_.count) find_more(begin);
  ends_[next_ - 1] = static_cast<std::uint32_t>(begin) - 1;
  const std::size_t most = std::min((end_count_ - next_) / columns_.count, line_limit_);
  const std::size_t lines = most / kMostLanes * kMostLanes;
  ratings.count = lines > 0 ? HWY_DYNAMIC_DISPATCH(read_lines)(columns_, &ends_[next_], lines, ratings) : 0;
  ratings.is_other_next = ratings.count < lines || lines == 0;
  line_limit_ = std::min(2 * ratings.count + kMostLanes, NumberRatings::kMaxCount);
  next_ += ratings.count * columns_.count;
  return ratings.count > 0 ? std::size_t{ends_[next_ - 1]} + 1 : begin;
}

}  // namespace chunkhit
#endif  // HWY_ONCE
