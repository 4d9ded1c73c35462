#include "decode/vp8l.h"

#include <algorithm>
#include <array>
#include <vector>

#include "decode/image_decoder.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMaxLength = 15;  // of a code
constexpr std::uint32_t kLiterals = 256, kLengthCodes = 24, kDistanceCodes = 40;
enum Transform : unsigned { predictor, cross_color, subtract_green, color_indexing };

void require_valid(bool holds) {
  if (!holds) throw ImageError("damaged WebP: its Huffman codes are malformed");
}

/// Reads bits, the lowest one of a byte first.
class BitReader {
 public:
  explicit BitReader(Bytes data) : data_(data) {}
  std::uint32_t bit() {
    if (at_ == 8 * data_.size()) throw ImageError("truncated: the data ends in the Huffman codes");
    const std::uint32_t value = data_[at_ / 8] >> at_ % 8 & 1u;
    ++at_;
    return value;
  }
  std::uint32_t bits(unsigned count) {
    std::uint32_t value = 0;
    for (unsigned i = 0; i < count; ++i) value |= bit() << i;
    return value;
  }
  [[nodiscard]] std::uint64_t left() const { return 8 * data_.size() - at_; }

 private:
  Bytes data_;
  std::uint64_t at_ = 0;
};

/// A canonical Huffman code; one of a single symbol takes no bits.
class HuffmanCode {
 public:
  explicit HuffmanCode(const std::vector<std::uint8_t>& lengths) {
    for (const std::uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    for (std::uint8_t length = 1; length <= kMaxLength; ++length)
      for (std::uint32_t symbol = 0; counts_[length] > 0 && symbol < lengths.size(); ++symbol)
        if (lengths[symbol] == length) symbols_.push_back(symbol);
    std::uint32_t unused = 1;  // of the codes of a length
    for (std::size_t length = 1; length <= kMaxLength; ++length) {
      unused *= 2;
      require_valid(symbols_.size() == 1 || counts_[length] <= unused);
      unused -= std::min(counts_[length], unused);
    }
    require_valid(!symbols_.empty() && (symbols_.size() == 1 || unused == 0));
  }

  std::uint32_t next(BitReader& reader) const {
    if (symbols_.size() == 1) return symbols_[0];
    std::uint32_t code = 0, first = 0, index = 0;
    for (std::size_t length = 1; length <= kMaxLength; ++length) {
      code |= reader.bit();
      if (code - first < counts_[length]) return symbols_[index + code - first];
      index += counts_[length];
      first = (first + counts_[length]) * 2;
      code *= 2;
    }
    require_valid(false);
    return 0;
  }

 private:
  std::array<std::uint32_t, kMaxLength + 1> counts_{};
  std::vector<std::uint32_t> symbols_;  // by code
};

HuffmanCode read_simple_code(BitReader& reader, std::uint32_t alphabet) {
  std::vector<std::uint8_t> lengths(std::max(alphabet, kLiterals));
  const bool has_two = reader.bit() != 0;
  lengths[reader.bits(reader.bit() != 0 ? 8 : 1)] = 1;
  if (has_two) lengths[reader.bits(8)] = 1;
  lengths.resize(alphabet);  // a symbol beyond it is none
  return HuffmanCode(lengths);
}

HuffmanCode read_code(BitReader& reader, std::uint32_t alphabet) {
  constexpr std::array<std::uint8_t, 19> kOrder{17, 18, 0, 1,  2,  3,  4,  5,  16, 6,
                                                7,  8,  9, 10, 11, 12, 13, 14, 15};
  constexpr std::array<unsigned, 3> kRepeatBits{2, 3, 7}, kFewestRepeats{3, 3, 11};
  if (reader.bit() != 0) return read_simple_code(reader, alphabet);
  std::vector<std::uint8_t> length_lengths(kOrder.size());
  const std::uint32_t count = reader.bits(4) + 4;
  for (std::uint32_t i = 0; i < count; ++i)
    length_lengths[kOrder[i]] = static_cast<std::uint8_t>(reader.bits(3));
  const HuffmanCode length_code(length_lengths);
  std::uint32_t left = alphabet;
  if (reader.bit() != 0) left = 2 + reader.bits(2 + 2 * reader.bits(3));
  require_valid(left <= alphabet);
  std::vector<std::uint8_t> lengths;
  for (std::uint8_t previous = 8; lengths.size() < alphabet && left > 0; --left) {
    const auto length = static_cast<std::uint8_t>(length_code.next(reader));
    if (length <= kMaxLength) {
      lengths.push_back(length);
      if (length != 0) previous = length;
      continue;
    }
    const std::size_t kind = length - kMaxLength - 1;
    const std::uint32_t repeats = reader.bits(kRepeatBits[kind]) + kFewestRepeats[kind];
    require_valid(lengths.size() + repeats <= alphabet);
    lengths.insert(lengths.end(), repeats, kind == 0 ? previous : std::uint8_t{0});
  }
  return HuffmanCode(lengths);
}

// A length or distance: a prefix code, then further bits.
std::uint64_t read_prefixed(BitReader& reader, std::uint32_t symbol) {
  if (symbol < 4) return symbol + 1;
  const std::uint32_t extra = (symbol - 2) / 2;
  return (std::uint64_t{2 + symbol % 2} << extra) + reader.bits(extra) + 1;
}

std::uint32_t read_cache_bits(BitReader& reader) {
  if (reader.bit() == 0) return 0;
  const std::uint32_t bits = reader.bits(4);
  require_valid(bits >= 1 && bits <= 11);
  return bits;
}

/// Passes over an image that describes the one of the pixels: it has one group of codes.
void skip_image(BitReader& reader, std::uint64_t pixel_count) {
  const std::uint32_t cache_bits = read_cache_bits(reader);
  const std::uint32_t cache = cache_bits > 0 ? 1u << cache_bits : 0;
  const HuffmanCode green = read_code(reader, kLiterals + kLengthCodes + cache);
  const HuffmanCode red = read_code(reader, kLiterals), blue = read_code(reader, kLiterals),
                    alpha = read_code(reader, kLiterals), distance = read_code(reader, kDistanceCodes);
  std::uint64_t pixels = 0;
  while (pixels < pixel_count) {
    const std::uint32_t symbol = green.next(reader);
    if (symbol >= kLiterals && symbol < kLiterals + kLengthCodes) {
      pixels += read_prefixed(reader, symbol - kLiterals);
      read_prefixed(reader, distance.next(reader));
      continue;
    }
    ++pixels;
    if (symbol >= kLiterals) continue;
    red.next(reader);
    blue.next(reader);
    alpha.next(reader);
  }
  require_valid(pixels == pixel_count);
}

std::uint32_t divide_up(std::uint32_t value, std::uint32_t bits) {
  return static_cast<std::uint32_t>((std::uint64_t{value} + (1u << bits) - 1) >> bits);
}

/// Passes over the transforms; gives the width of what is coded, which packs pixels of few colors.
std::uint32_t skip_transforms(BitReader& reader, std::uint32_t width, std::uint32_t height) {
  unsigned seen = 0;
  while (reader.bit() != 0) {
    const std::uint32_t transform = reader.bits(2);
    require_valid((seen >> transform & 1u) == 0);
    seen |= 1u << transform;
    if (transform == predictor || transform == cross_color) {
      const std::uint32_t bits = reader.bits(3) + 2;
      skip_image(reader, std::uint64_t{divide_up(width, bits)} * divide_up(height, bits));
    } else if (transform == color_indexing) {
      const std::uint32_t colors = reader.bits(8) + 1;
      skip_image(reader, colors);
      width = divide_up(width, colors > 16 ? 0 : colors > 4 ? 1 : colors > 2 ? 2 : 3);
    }
  }
  return width;
}

}  // namespace

std::uint64_t max_huffman_bytes(Bytes stream, std::uint32_t width, std::uint32_t height) {
  // libwebp: tables of four bytes an entry (kTableSize), and what points into them.
  constexpr std::uint64_t kFewestEntries = 3020, kEntryBytes = 4, kGroupBytes = 640;
  constexpr std::uint64_t kMaxGroups = 65536, kUnmappedGroups = 1000, kFewestGroupBits = 20;
  BitReader reader(stream);
  width = skip_transforms(reader, width, height);
  const std::uint32_t cache_bits = read_cache_bits(reader);
  const std::uint64_t group_bytes =
      (kFewestEntries + (std::uint64_t{1} << cache_bits)) * kEntryBytes + kGroupBytes;
  if (reader.bit() == 0) return group_bytes;
  const std::uint32_t bits = reader.bits(3) + 2;
  const std::uint64_t places = std::uint64_t{divide_up(width, bits)} * divide_up(height, bits);
  return std::min({std::max(places, kUnmappedGroups), kMaxGroups, reader.left() / kFewestGroupBits + 1}) *
         group_bytes;
}

}  // namespace chunkhit
