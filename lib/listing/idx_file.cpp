#include "listing/idx_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/text.h"
#include "base/throw_error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMagicBytes = 4;
constexpr std::size_t kMaxIdxDimensions = 4;
constexpr std::uint64_t kMaxIdxBytes = std::uint64_t{1} << 63;

struct NumberType {
  std::uint8_t code;
  std::string_view name;
  std::size_t bytes;
};
constexpr auto kTypes = std::to_array<NumberType>({{0x08, "uint8", 1},
                                                   {0x09, "int8", 1},
                                                   {0x0b, "int16", 2},
                                                   {0x0c, "int32", 4},
                                                   {0x0d, "float32", 4},
                                                   {0x0e, "float64", 8}});

/// The type of a code; null for none.
const NumberType* type_of(std::uint8_t code) {
  const auto* const found = std::ranges::find(kTypes, code, &NumberType::code);
  return found == kTypes.end() ? nullptr : found;
}

/// A float as text that no reader of labels takes for a whole number.
std::string float_text(double number) { return std::isfinite(number) ? fraction_text(number) : "nan"; }

}  // namespace

bool is_idx(Bytes head) {
  return head.size() >= kMagicBytes && head[0] == 0 && head[1] == 0 && type_of(head[2]) != nullptr &&
         head[3] > 0;
}

IdxReader::IdxReader(const std::string& path, const std::atomic<bool>* stop) : stream_(path, stop) {
  if (!is_idx(stream_.head())) fail("is no IDX file (of MNIST's format), plain or compressed");
  std::array<std::uint8_t, kMagicBytes> magic;
  read(magic);
  type_ = magic[2];
  if (magic[3] > kMaxIdxDimensions)
    fail("has " + std::to_string(magic[3]) + " dimensions, expected up to " +
         std::to_string(kMaxIdxDimensions));
  std::uint64_t bytes = type_of(type_)->bytes;
  for (std::uint8_t dimension = 0; dimension < magic[3]; ++dimension) {
    std::array<std::uint8_t, 4> side;
    read(side);
    shape_.push_back(std::uint32_t{side[0]} << 24 | std::uint32_t{side[1]} << 16 |
                     std::uint32_t{side[2]} << 8 | side[3]);
    if (shape_.back() == 0) fail("has no items: dimension " + std::to_string(dimension) + " is 0");
    if (bytes > kMaxIdxBytes / shape_.back()) fail("has impossibly large dimensions");
    bytes *= shape_.back();
  }
}

std::string_view IdxReader::type() const { return type_of(type_)->name; }

std::string IdxReader::read_number() {
  std::array<std::uint8_t, 8> number{};
  const std::size_t count = type_of(type_)->bytes;
  read(MutableBytes(number).first(count));
  std::uint64_t bits = 0;  // the first byte is the highest
  for (std::size_t byte = 0; byte < count; ++byte) bits = bits << 8 | number[byte];
  switch (type_) {
    case 0x08:
      return std::to_string(bits);
    case 0x09:
      return std::to_string(static_cast<std::int8_t>(bits));
    case 0x0b:
      return std::to_string(static_cast<std::int16_t>(bits));
    case 0x0c:
      return std::to_string(static_cast<std::int32_t>(bits));
    case 0x0d:
      return float_text(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    default:
      return float_text(std::bit_cast<double>(bits));
  }
}

std::uint64_t IdxReader::item_bytes() const {
  std::uint64_t bytes = type_of(type_)->bytes;
  for (std::size_t dimension = 1; dimension < shape_.size(); ++dimension) bytes *= shape_[dimension];
  return bytes;
}

void IdxReader::read(MutableBytes out) {
  while (!out.empty()) {
    const std::size_t count = stream_.read(out);
    if (count == 0)
      fail("ends at byte " + std::to_string(taken_) + ", but its shape says more: is it truncated?");
    taken_ += count;
    out = out.subspan(count);
  }
}

void IdxReader::finish() {
  std::array<std::uint8_t, 1> more;
  if (stream_.read(more) != 0) fail("has more bytes than its shape says, " + std::to_string(taken_));
}

void IdxReader::fail(const std::string& what) const { throw_bad_data(stream_.name() + ": " + what); }

}  // namespace chunkhit
