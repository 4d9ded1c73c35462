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
void find_ends(const NumberColumns&, FieldEnds&) {}

std::size_t read_lines(const NumberColumns&, const std::uint32_t*, std::size_t, bool, FieldWords&,
                       NumberRatings&) {
  return 0;
}
#else

namespace hn = hwy::HWY_NAMESPACE;
using U64 = hn::ScalableTag<std::uint64_t>;
using I64 = hn::RebindToSigned<U64>;
using U32 = hn::Repartition<std::uint32_t, U64>;
using U16 = hn::Repartition<std::uint16_t, U64>;
using U8 = hn::Repartition<std::uint8_t, U64>;
using V64 = hn::VFromD<U64>;

constexpr std::size_t kWindow = 64;

/// One bit for each of 64 characters: whether it is the wanted one.
HWY_INLINE std::uint64_t find_in_window(const char* from, char wanted) {
  const auto all_wanted = hn::Set(U8(), static_cast<std::uint8_t>(wanted));
  std::uint64_t found = 0;
  for (std::size_t at = 0; at < kWindow; at += hn::Lanes(U8())) {
    const auto characters = hn::LoadU(U8(), reinterpret_cast<const std::uint8_t*>(from) + at);
    std::uint64_t bits = 0;  // at least as many bytes as are stored
    hn::StoreMaskBits(U8(), hn::Eq(characters, all_wanted), reinterpret_cast<std::uint8_t*>(&bits));
    found |= bits << at;
  }
  return found;
}

/// Lists the ends behind those that are there: to the end of the text, but for its last window, or until
/// there may be no room for those of a window.
void find_ends(const NumberColumns& columns, FieldEnds& found) {
  // More than most windows have, so that no branch depends on how many there are.
  constexpr std::size_t kAtOnce = 12;
  constexpr std::size_t kLinesAtOnce = 4;
  constexpr std::size_t kMaxWritten = 72;
  const std::string_view text = columns.text;
  std::size_t at = found.found_until;
  for (; at + kWindow <= text.size() && found.size + kMaxWritten <= found.ends.size(); at += kWindow) {
    std::uint64_t line_ends = find_in_window(text.data() + at, '\n');
    std::uint64_t ends = line_ends | find_in_window(text.data() + at, columns.delimiter);
    const auto lines = static_cast<std::size_t>(std::popcount(line_ends));
    for (std::size_t done = 0; done < lines; done += kLinesAtOnce)
      for (std::size_t index = 0; index < kLinesAtOnce; ++index) {
        const std::uint64_t before = (line_ends & (0 - line_ends)) - 1;
        found.line_ends[found.line_count + done + index] =
            static_cast<std::uint16_t>(found.size + static_cast<std::size_t>(std::popcount(ends & before)));
        line_ends &= line_ends - 1;
      }
    found.line_count += lines;
    const std::size_t size = found.size + static_cast<std::size_t>(std::popcount(ends));
    for (; found.size < size; found.size += kAtOnce)
      for (std::size_t index = 0; index < kAtOnce; ++index) {
        found.ends[found.size + index] = static_cast<std::uint32_t>(at) + std::countr_zero(ends);
        ends &= ends - 1;
      }
    found.size = size;
  }
  found.found_until = at;
}

/// How many characters the fields have.
HWY_INLINE V64 count_characters(V64 ends, V64 cr_bytes) {
  const auto low_half = hn::Set(U64(), std::uint64_t{0xffffffff});
  const auto from = hn::And(hn::Add(ends, hn::Set(U64(), std::uint64_t{1})), low_half);
  return hn::Sub(hn::Sub(hn::ShiftRight<32>(ends), cr_bytes), from);
}

/// Loads the column's fields. Where any has 9 to 16 characters, which is returned, loads the last ones of
/// all.
HWY_INLINE bool load_column(const NumberColumns& columns, const std::uint32_t* ends, std::size_t lines,
                            std::size_t column, std::uint32_t cr_bytes, FieldWords& words) {
  const char* const text = columns.text.data();
  const auto* from_ends = reinterpret_cast<const std::uint8_t*>(ends - 1 + column);
  for (std::size_t line = 0; line < lines; ++line, from_ends += columns.count * sizeof *ends) {
    words.ends[line] = load_little<std::uint64_t>(from_ends);
    // The sum wraps for the text's first field.
    words.first[line] = load_eight(text + static_cast<std::uint32_t>(words.ends[line] + 1));
  }
  auto long_bits = hn::Zero(U64());
  for (std::size_t line = 0; line < lines; line += hn::Lanes(U64())) {
    const auto count =
        count_characters(hn::Load(U64(), words.ends.data() + line), hn::Set(U64(), std::uint64_t{cr_bytes}));
    long_bits = hn::Or(long_bits, hn::ShiftRight<3>(hn::Sub(count, hn::Set(U64(), std::uint64_t{1}))));
  }
  if (hn::AllTrue(U64(), hn::Eq(long_bits, hn::Zero(U64())))) return false;
  for (std::size_t line = 0; line < lines; ++line) {
    const auto from = static_cast<std::uint32_t>(words.ends[line] + 1);
    const std::uint32_t count = static_cast<std::uint32_t>(words.ends[line] >> 32) - cr_bytes - from;
    words.last[line] = load_eight(text + from + (count - 9 < 8 ? count - 8 : 0));
  }
  return true;
}

/// Takes '0' from `count` characters, 1 to 8, and moves them to the highest bytes; 0 stands before them.
HWY_INLINE V64 align_digits(V64 characters, V64 count) {
  const auto digits = hn::Xor(characters, hn::Set(U64(), kEveryByte * '0'));
  return hn::Shl(digits, hn::ShiftLeft<3>(hn::Sub(hn::Set(U64(), std::uint64_t{8}), count)));
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

/// Adds what is not 0 where a line is none of numbers.
HWY_INLINE void add_invalid(V64 invalid, std::size_t line, FieldWords& words) {
  std::uint64_t* const to = words.invalid.data() + line;
  hn::Store(hn::Or(hn::Load(U64(), to), invalid), U64(), to);
}

/// Reads integers of up to 16 digits without leading zeros.
template <bool kLong>
HWY_INLINE void read_integers(std::size_t lines, std::uint32_t cr_bytes, FieldWords& words,
                              std::int64_t* numbers) {
  const auto one = hn::Set(U64(), std::uint64_t{1});
  const auto eight = hn::Set(U64(), std::uint64_t{8});
  const auto all_cr_bytes = hn::Set(U64(), std::uint64_t{cr_bytes});
  const auto zero_character = hn::Set(U64(), std::uint64_t{'0'});
  for (std::size_t line = 0; line < lines; line += hn::Lanes(U64())) {
    const auto first = hn::Load(U64(), words.first.data() + line);
    const auto count = count_characters(hn::Load(U64(), words.ends.data() + line), all_cr_bytes);
    const auto before_last = hn::Sub(count, one);
    const auto has_zero = hn::Eq(hn::And(first, hn::Set(U64(), std::uint64_t{0xff})), zero_character);
    auto invalid = hn::IfThenElseZero(has_zero, before_last);
    invalid = hn::Or(invalid, hn::ShiftRight<4>(before_last));  // none, or more than 16
    auto low = hn::Zero(U64());
    auto number = hn::Zero(U64());
    if constexpr (kLong) {
      const auto is_long = hn::Eq(hn::ShiftRight<3>(before_last), one);
      low = align_digits(hn::Load(U64(), words.last.data() + line), hn::IfThenElse(is_long, eight, count));
      const auto high = hn::IfThenElseZero(is_long, align_digits(first, hn::Sub(count, eight)));
      invalid = hn::Or(invalid, find_invalid(high));
      number = hn::MulEven(hn::BitCast(U32(), number_of_digits(high)), hn::Set(U32(), 100'000'000u));
    } else {
      low = align_digits(first, count);
    }
    add_invalid(hn::Or(invalid, find_invalid(low)), line, words);
    hn::Store(hn::BitCast(I64(), hn::Add(number, number_of_digits(low))), I64(), numbers + line);
  }
}

/// Reads digits with at most one point as floats. Those with 2^24 or more without it are invalid here, as
/// their quotient would be rounded twice.
HWY_INLINE void read_decimals(std::size_t lines, std::uint32_t cr_bytes, FieldWords& words, float* values) {
  const auto one = hn::Set(U64(), std::uint64_t{1});
  const auto zero = hn::Zero(U64());
  for (std::size_t line = 0; line < lines; line += hn::Lanes(U64())) {
    const auto count =
        count_characters(hn::Load(U64(), words.ends.data() + line), hn::Set(U64(), std::uint64_t{cr_bytes}));
    const auto before_last = hn::Sub(count, one);
    const auto all = align_digits(hn::Load(U64(), words.first.data() + line), count);
    const auto is_point = hn::Eq(hn::BitCast(U8(), all), hn::Set(U8(), std::uint8_t{'.' ^ '0'}));
    const auto points = hn::BitCast(U64(), hn::VecFromMask(U8(), is_point));
    const auto point = hn::And(points, hn::Sub(zero, points));  // the lowest bit of the first one
    const auto has_none = hn::Eq(point, zero);
    const auto before = hn::Sub(point, one);
    const auto before_and_point = hn::Sub(hn::ShiftLeft<8>(point), one);
    const auto joined = hn::Or(hn::AndNot(before_and_point, all), hn::ShiftLeft<8>(hn::And(all, before)));
    const auto digits = hn::IfThenElse(has_none, all, joined);
    const auto number = number_of_digits(digits);
    const auto is_alone =
        hn::AndNot(hn::VecFromMask(U64(), has_none), hn::VecFromMask(U64(), hn::Eq(before_last, zero)));
    const auto invalid = hn::Or(hn::Or(find_invalid(digits), hn::ShiftRight<24>(number)),
                                hn::Or(hn::ShiftRight<3>(before_last), is_alone));
    add_invalid(invalid, line, words);
    hn::Store(number, U64(), words.first.data() + line);
    hn::Store(hn::IfThenElse(has_none, hn::Set(U64(), std::uint64_t{1} << 63), point), U64(),
              words.last.data() + line);
  }
  for (std::size_t line = 0; line < lines; ++line)
    values[line] = static_cast<float>(static_cast<std::int32_t>(words.first[line])) /
                   kFloatPowers[static_cast<std::size_t>(std::countl_zero(words.last[line])) / 8];
}

/// Reads so many lines, whole vectors of them, whose fields end at `ends`; all have a CR before their LF, or
/// none that may be left out. Returns how many were read, up to the first other one.
std::size_t read_lines(const NumberColumns& columns, const std::uint32_t* ends, std::size_t lines,
                       bool has_cr, FieldWords& words, NumberRatings& ratings) {
  const auto cr_bytes = [&](std::size_t column) { return has_cr && column + 1 == columns.count ? 1u : 0u; };
  const auto read = [&](std::size_t column, std::int64_t* to) {
    if (load_column(columns, ends, lines, column, cr_bytes(column), words))
      read_integers<true>(lines, cr_bytes(column), words, to);
    else
      read_integers<false>(lines, cr_bytes(column), words, to);
  };
  std::fill_n(words.invalid.begin(), lines, 0);
  read(columns.user, ratings.users.data());
  read(columns.item, ratings.items.data());
  if (columns.time < columns.count) read(columns.time, ratings.times.data());
  if (columns.value < columns.count) {
    load_column(columns, ends, lines, columns.value, cr_bytes(columns.value), words);
    read_decimals(lines, cr_bytes(columns.value), words, ratings.values.data());
  }
  const auto end = words.invalid.begin() + static_cast<std::ptrdiff_t>(lines);
  const auto other = std::find_if(words.invalid.begin(), end, [](std::uint64_t bits) { return bits != 0; });
  return static_cast<std::size_t>(other - words.invalid.begin());
}
#endif

}  // namespace chunkhit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace chunkhit {

HWY_EXPORT(find_ends);
HWY_EXPORT(read_lines);

namespace {

constexpr std::size_t kMaxLanes = 8;  // numbers of 64 bits in the largest vector

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

/// Goes to the line that begins at `begin`.
void NumberLines::go_to(std::size_t begin) {
  while (next_ < ends_.size && ends_.ends[next_] < begin) ++next_;
  if (ends_.size - next_ < kMaxLanes * columns_.count) {
    if (next_ == ends_.size) ends_.found_until = std::max(ends_.found_until, begin);
    find_more();
  }
  while (next_line_ < ends_.line_count && ends_.line_ends[next_line_] < next_) ++next_line_;
  ends_.ends[next_ - 1] = static_cast<std::uint32_t>(begin) - 1;
}

/// Keeps the ends that are left, and lists as many more as there is room for.
void NumberLines::find_more() {
  std::copy(ends_.ends.begin() + static_cast<std::ptrdiff_t>(next_),
            ends_.ends.begin() + static_cast<std::ptrdiff_t>(ends_.size), ends_.ends.begin() + 1);
  std::size_t kept = 0;
  for (std::size_t line = 0; line < ends_.line_count; ++line)
    if (ends_.line_ends[line] >= next_)
      ends_.line_ends[kept++] = static_cast<std::uint16_t>(ends_.line_ends[line] - next_ + 1);
  ends_.line_count = kept;
  ends_.size -= next_ - 1;
  next_ = 1;
  next_line_ = 0;
  HWY_DYNAMIC_DISPATCH(find_ends)(columns_, ends_);
}

/// Counts the next lines up to the first that has not as many fields as the table, or another line end than
/// those before. 8 characters may be read where a field of them begins or ends.
std::size_t NumberLines::count_lines(std::size_t begin, bool has_cr) const {
  const std::size_t most =
      std::min({(ends_.size - next_) / columns_.count, line_limit_, ends_.line_count - next_line_});
  std::size_t count = 0;
  for (std::size_t end = next_ + columns_.count - 1; count < most; ++count, end += columns_.count)
    if (ends_.line_ends[next_line_ + count] != end || (columns_.text[ends_.ends[end] - 1] == '\r') != has_cr)
      break;
  const auto end_of = [&](std::size_t lines) {
    return std::size_t{ends_.ends[next_ + lines * columns_.count - 1]};
  };
  while (count > 0 && columns_.text.size() - end_of(count) < sizeof(std::uint64_t)) --count;
  // All lines together, so that none of them is longer.
  while (count > 0 && end_of(count) - begin > kMaxLineBytes) count /= 2;
  return count / kMaxLanes * kMaxLanes;
}

std::size_t NumberLines::read(std::size_t begin, NumberRatings& ratings) {
  go_to(begin);
  ratings.count = 0;
  ratings.is_other_next = true;
  if (ends_.size - next_ < columns_.count) return begin;
  const bool has_cr = columns_.text[ends_.ends[next_ + columns_.count - 1] - 1] == '\r';
  const std::size_t lines = count_lines(begin, has_cr);
  ratings.count =
      HWY_DYNAMIC_DISPATCH(read_lines)(columns_, &ends_.ends[next_], lines, has_cr, words_, ratings);
  ratings.is_other_next = ratings.count < lines || lines == 0;
  line_limit_ = std::min(2 * ratings.count + kMaxLanes, NumberRatings::kMaxCount);
  next_ += ratings.count * columns_.count;
  return ratings.count > 0 ? std::size_t{ends_.ends[next_ - 1]} + 1 : begin;
}

}  // namespace chunkhit
#endif  // HWY_ONCE
