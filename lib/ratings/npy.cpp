#include "ratings/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <type_traits>

#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 60;
constexpr std::size_t kMaxDimensions = 32;

/// Reads the little of Python's literals that a header may have.
class LiteralReader {
 public:
  LiteralReader(std::string_view text, const std::string& location) : text_(text), location_(location) {}
  [[noreturn]] void fail(const std::string& expected) const {
    throw Error(ErrorCode::bad_data, location_ + ": broken npy header: expected " + expected + " at byte " +
                                         std::to_string(at_) + " of \"" +
                                         printable_text(text_.substr(0, 200)) + '"');
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("\"") + c + '"');
  }
  std::string read_text() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"' && !take('"')) fail("a text (arrays of records have none and are no numbers)");
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("the end of a text");
    const std::string_view text = text_.substr(at_, end - at_);
    if (text.find('\\') != std::string_view::npos) fail("a text without \\");
    at_ = end + 1;
    return std::string(text);
  }
  bool read_truth() {
    skip_blanks();
    for (const bool truth : {true, false}) {
      const std::string_view word = truth ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return truth;
    }
    fail("True or False");
  }
  std::uint64_t read_count() {
    skip_blanks();
    std::uint64_t count = 0;
    const char* const begin = text_.data() + at_;
    const auto [stop, error] = std::from_chars(begin, text_.data() + text_.size(), count);
    if (error != std::errc()) fail("a length");
    at_ += static_cast<std::size_t>(stop - begin);
    static_cast<void>(take('L'));  // Python 2's long numbers
    return count;
  }
  void expect_end() {
    skip_blanks();
    if (at_ != text_.size()) fail("the end");
  }

 private:
  std::string_view text_;
  const std::string& location_;
  std::size_t at_ = 0;
};

std::vector<std::uint64_t> read_shape(LiteralReader& literal) {
  std::vector<std::uint64_t> shape;
  literal.expect('(');
  while (!literal.take(')')) {
    if (shape.size() == kMaxDimensions) literal.fail("fewer dimensions");
    shape.push_back(literal.read_count());
    if (!literal.take(',')) {
      literal.expect(')');
      break;
    }
  }
  return shape;
}

NpyType parse_type(const std::string& descr, const std::string& location) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::bad_data, location + ": has type \"" + printable_text(descr) + "\": " + why);
  };
  std::string_view text = descr;
  NpyType type;
  if (!text.empty() && std::string_view("<>|=").find(text[0]) != std::string_view::npos) {
    type.big_endian = text[0] == '>';
    text.remove_prefix(1);
  }
  if (text.starts_with('O')) refuse("Python objects, which are never loaded; save arrays of numbers");
  if (text.starts_with('c')) refuse("complex numbers are no ratings");
  if (text.empty() || std::string_view("biufSU").find(text[0]) == std::string_view::npos)
    refuse("expected numbers or text");
  type.kind = text[0];
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 1, end, type.bytes);
  if (error != std::errc() || stop != end || type.bytes > (1u << 20)) refuse("expected a size");
  if (type.kind == 'U') {
    type.bytes *= 4;
    return type;
  }
  if (type.kind == 'S') return type;
  const bool is_whole = type.bytes == 1 || type.bytes == 2 || type.bytes == 4 || type.bytes == 8;
  const bool is_known = type.kind == 'b'   ? type.bytes == 1
                        : type.kind == 'f' ? is_whole && type.bytes != 1
                                           : is_whole;
  if (!is_known) refuse("no numbers of this size are known here");
  return type;
}

void check_size(const NpyHeader& header, const std::string& location) {
  std::uint64_t bytes = header.type.bytes == 0 ? 1 : header.type.bytes;
  for (const std::uint64_t side : header.shape) {
    if (side == 0) return;
    if (bytes > kMaxBytes / side)
      throw Error(ErrorCode::bad_data, location + ": has impossibly many numbers");
    bytes *= side;
  }
}

}  // namespace

NpyHeader parse_npy_header(std::string_view dictionary, const std::string& location) {
  LiteralReader literal(dictionary, location);
  NpyHeader header;
  bool has_descr = false;
  bool has_order = false;
  bool has_shape = false;
  literal.expect('{');
  while (!literal.take('}')) {
    const std::string key = literal.read_text();
    literal.expect(':');
    bool& seen = key == "descr" ? has_descr : key == "fortran_order" ? has_order : has_shape;
    if (seen || (&seen == &has_shape && key != "shape"))
      literal.fail("each of descr, fortran_order, shape once");
    seen = true;
    if (&seen == &has_descr)
      header.descr = literal.read_text();
    else if (&seen == &has_order)
      header.fortran_order = literal.read_truth();
    else
      header.shape = read_shape(literal);
    if (!literal.take(',')) {
      literal.expect('}');
      break;
    }
  }
  literal.expect_end();
  if (!has_descr || !has_order || !has_shape) literal.fail("descr, fortran_order and shape");
  header.type = parse_type(header.descr, location);
  check_size(header, location);
  return header;
}

namespace {

constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 16;
constexpr std::uint64_t kMaxTextBytes = 256;
constexpr std::string_view kMagic = "\x93NUMPY";

/// IEEE half precision, kept as its bits.
struct Half {
  std::uint16_t bits = 0;
};

double number_of(Half half) {
  const int exponent = (half.bits >> 10) & 31;
  const double fraction = half.bits & 1023;
  double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) magnitude = fraction == 0 ? INFINITY : NAN;
  return (half.bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <class Number>
Number number_of(Number number) {
  return number;
}

template <class Item>
Item load(const std::uint8_t* from, bool big_endian) {
  std::array<std::uint8_t, sizeof(Item)> bytes;
  std::copy_n(from, sizeof(Item), bytes.begin());
  if (big_endian) std::ranges::reverse(bytes);
  return std::bit_cast<Item>(bytes);
}

/// Calls `use` with a value of the C++ type of the items.
template <class Use>
void with_item_type(const NpyType& type, Use use) {
  if (type.kind == 'f') {
    if (type.bytes == 2) return use(Half{});
    return type.bytes == 4 ? use(float{}) : use(double{});
  }
  const bool has_sign = type.kind == 'i';
  switch (type.bytes) {
    case 1:
      return has_sign ? use(std::int8_t{}) : use(std::uint8_t{});
    case 2:
      return has_sign ? use(std::int16_t{}) : use(std::uint16_t{});
    case 4:
      return has_sign ? use(std::int32_t{}) : use(std::uint32_t{});
    default:
      return has_sign ? use(std::int64_t{}) : use(std::uint64_t{});
  }
}

/// The nearest float.
template <class Number>
float nearest_float(Number number, RoundedValues& rounded) {
  using Wide = std::conditional_t<std::is_integral_v<Number>, long double, double>;
  return rounded.take(static_cast<Wide>(number));
}

}  // namespace

NpyArray::NpyArray(const std::string& path, const std::string& member) : member_(path, member) {
  std::array<std::uint8_t, kNpyPreludeBytes> prelude;
  fill(prelude);
  const std::uint8_t version = prelude[6];
  if (!as_text(prelude).starts_with(kMagic)) refuse("is no npy array");
  if (version < 1 || version > 3) refuse("has npy version " + std::to_string(version) + ", expected 1 to 3");
  std::array<std::uint8_t, 4> length{};
  fill(MutableBytes(length).first(version == 1 ? 2 : 4));
  const auto bytes = load_little<std::uint32_t>(length.data());
  if (bytes > kMaxHeaderBytes) refuse("has an npy header of " + std::to_string(bytes) + " bytes");
  ByteBuffer dictionary(bytes);
  fill(dictionary);
  header_ = parse_npy_header(as_text(dictionary), location());
  remaining_ = count();
}

void NpyArray::read(std::span<float> numbers) {
  if (header_.type.kind == 'S' || header_.type.kind == 'U') refuse("holds text, expected numbers");
  const std::uint8_t* from = read_raw(numbers.size()).data();
  with_item_type(header_.type, [&](auto item) {
    using Item = decltype(item);
    for (float& number : numbers) {
      number = nearest_float(number_of(load<Item>(from, header_.type.big_endian)), rounded_);
      from += sizeof(Item);
    }
  });
}

void NpyArray::read(std::span<std::int64_t> numbers) {
  if (header_.type.kind != 'i' && header_.type.kind != 'u')
    refuse("has type \"" + header_.descr + "\", expected whole numbers");
  const std::uint8_t* from = read_raw(numbers.size()).data();
  with_item_type(header_.type, [&](auto item) {
    using Item = decltype(item);
    if constexpr (std::is_integral_v<Item>) {
      for (std::int64_t& number : numbers) {
        const Item read = load<Item>(from, header_.type.big_endian);
        if (std::cmp_greater(read, INT64_MAX)) refuse("has the number " + std::to_string(read));
        number =
            static_cast<std::int64_t>(read);  // NOLINT(bugprone-signed-char-misuse): bytes are numbers here
        from += sizeof(Item);
      }
    }
  });
}

std::string NpyArray::read_text() {
  if ((header_.type.kind != 'S' && header_.type.kind != 'U') || count() != 1 ||
      header_.type.bytes > kMaxTextBytes)
    refuse("is no single text");
  const std::size_t step = header_.type.kind == 'U' ? 4 : 1;
  const Bytes raw = read_raw(1);
  std::string text;
  for (std::size_t at = 0; at < raw.size(); at += step) {
    const std::uint32_t c = step == 1                 ? raw[at]
                            : header_.type.big_endian ? load<std::uint32_t>(&raw[at], true)
                                                      : load<std::uint32_t>(&raw[at], false);
    if (c > 126) refuse("is no text of ASCII");
    if (c != 0) text += static_cast<char>(c);
  }
  return text;
}

/// Reads items as they are stored; behind the last there must be nothing, and only its end tells whether the
/// member's checksum is right.
Bytes NpyArray::read_raw(std::uint64_t item_count) {
  if (item_count > remaining_) refuse("has no more numbers");
  raw_.resize(item_count * header_.type.bytes);
  fill(raw_);
  remaining_ -= item_count;
  std::array<std::uint8_t, 1> more;
  if (remaining_ == 0 && item_count > 0 && member_.read(more) != 0)
    refuse("has more bytes than its shape says");
  return raw_;
}

void NpyArray::fill(MutableBytes out) {
  while (!out.empty()) {
    const std::size_t count = member_.read(out);
    if (count == 0) refuse("ends early: its shape says more");
    out = out.subspan(count);
  }
}

void NpyArray::refuse(const std::string& what) const {
  throw Error(ErrorCode::bad_data, location() + ": " + what);
}

}  // namespace chunkhit
