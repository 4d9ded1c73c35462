#include "ratings/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kMaxTextBytes = 256;

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
  std::array<std::uint8_t, 4> length{};
  fill(MutableBytes(length).first(npy_length_bytes(prelude, location())));
  const auto bytes = load_little<std::uint32_t>(length.data());
  if (bytes > kMaxNpyHeaderBytes) refuse("has an npy header of " + std::to_string(bytes) + " bytes");
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
