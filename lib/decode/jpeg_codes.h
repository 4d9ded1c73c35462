// Huffman codes of baseline JPEG: their tables, and the bits of a scan. Included where libjpeg-turbo's
// internal header is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
// jpeglib.h needs FILE and size_t before it.
#include <jpeglib.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>

#include "base/bytes.h"

namespace chunkhit {

inline constexpr unsigned kPeekBits = 11;
inline constexpr unsigned kMaxCodeBits = 16;
inline constexpr unsigned kMaxDcSize = 15;
inline constexpr unsigned kBlockValues = DCTSIZE2;
inline constexpr unsigned kRunOf16 = 0xf0;
// How far a code moves in a block: an end of the block goes beyond what any run reaches.
inline constexpr unsigned kEndOfBlock = 128;
// Codes of kPeekBits that one refill serves.
inline constexpr unsigned kCodesARefill = 5;
inline constexpr int kRefilledBits = 56;
static_assert(kCodesARefill * kPeekBits <= kRefilledBits);

// The position in a block of its values in the order of the file (ITU-T T.81, figure A.6), by the number of
// values up to and with it. What is beyond the block goes to the last one, as in libjpeg.
constexpr std::array<std::uint8_t, kBlockValues + kEndOfBlock> make_positions() {
  std::array<std::uint8_t, kBlockValues + kEndOfBlock> positions{};
  positions.fill(kBlockValues - 1);
  unsigned next = 1;
  for (int diagonal = 0; diagonal < 2 * DCTSIZE - 1; ++diagonal)
    for (int step = 0; step <= diagonal; ++step) {
      const int row = diagonal % 2 == 0 ? diagonal - step : step, column = diagonal - row;
      if (row < DCTSIZE && column < DCTSIZE)
        positions[next++] = static_cast<std::uint8_t>(row * DCTSIZE + column);
    }
  return positions;
}
alignas(64) inline constexpr auto kPositions = make_positions();
static_assert(kPositions[1] == 0 && kPositions[2] == 1 && kPositions[3] == 8 && kPositions[64] == 63);

/// The number of `size` bits, as JPEG writes numbers: those that begin with 0 are negative.
constexpr int signed_value(unsigned bits, unsigned size) {
  return size == 0 || bits >> (size - 1) != 0 ? static_cast<int>(bits)
                                              : static_cast<int>(bits) - (1 << size) + 1;
}

/// How many values of a block a code stands for, behind the first one.
constexpr unsigned values_passed(unsigned symbol) {
  const bool ends = (symbol & 15) == 0 && symbol != kRunOf16;
  return ends ? kEndOfBlock : (symbol >> 4) + 1;
}

inline constexpr std::uint32_t kPassedMask = 0xff00;

/// Codes of one table. An entry stands for the next kPeekBits: their code and its value where both are in
/// them, as bits used | values passed << 8 | value << 16; the code alone, as bits used | symbol << 16; or 0.
class HuffmanTable {
 public:
  /// False where the table is none.
  bool build(const JHUFF_TBL& table, bool is_dc);
  [[nodiscard]] std::uint32_t find(std::uint64_t bits) const { return entries_[bits >> (64 - kPeekBits)]; }
  /// The length of a code of more than kPeekBits, and its symbol; 0 where there is no such code.
  [[nodiscard]] unsigned find_long(std::uint64_t bits, unsigned& symbol) const {
    for (unsigned length = kPeekBits + 1; length <= kMaxCodeBits; ++length) {
      const auto code = static_cast<std::int32_t>(bits >> (64 - length));
      if (code > last_codes_[length]) continue;
      symbol = symbols_[static_cast<std::uint8_t>(code + symbol_offsets_[length])];
      return length;
    }
    return 0;
  }

 private:
  void add(std::uint32_t code, unsigned length, unsigned symbol, bool is_dc);

  std::array<std::uint32_t, 1 << kPeekBits> entries_;
  std::array<std::int32_t, kMaxCodeBits + 1> last_codes_;  // of a length; -1: there is none
  std::array<std::int32_t, kMaxCodeBits + 1> symbol_offsets_;
  std::array<std::uint8_t, 256> symbols_;
};

inline bool HuffmanTable::build(const JHUFF_TBL& table, bool is_dc) {
  entries_.fill(0);
  std::memcpy(symbols_.data(), table.huffval, symbols_.size());
  std::uint32_t code = 0, used = 0;
  for (unsigned length = 1; length <= kMaxCodeBits; ++length, code <<= 1) {
    const std::uint32_t count = table.bits[length];
    // No code is all ones.
    if (used + count > symbols_.size() || code + count >= 1u << length) return false;
    symbol_offsets_[length] = static_cast<std::int32_t>(used) - static_cast<std::int32_t>(code);
    for (std::uint32_t i = 0; i < count; ++i, ++code, ++used) {
      if (is_dc && symbols_[used] > kMaxDcSize) return false;
      if (length <= kPeekBits) add(code, length, symbols_[used], is_dc);
    }
    last_codes_[length] = count == 0 ? -1 : static_cast<std::int32_t>(code) - 1;
  }
  return true;
}

inline void HuffmanTable::add(std::uint32_t code, unsigned length, unsigned symbol, bool is_dc) {
  const unsigned spare = kPeekBits - length, size = symbol & 15;
  std::uint32_t* const entries = entries_.data() + (std::size_t{code} << spare);
  const std::uint32_t passed = is_dc ? 1 : values_passed(symbol);
  for (std::uint32_t rest = 0; rest < 1u << spare; ++rest)
    entries[rest] = size > spare
                        ? length | symbol << 16
                        : (length + size) | passed << 8 |
                              static_cast<std::uint32_t>(signed_value(rest >> (spare - size), size)) << 16;
}

// Symbols of a table, and behind them one that takes the code of all ones.
inline constexpr unsigned kSymbols = 256;
using CodeSizes = std::array<std::uint16_t, kSymbols + 1>;

/// Returns the bits of the shortest codes of symbols by their counts; 0: it does not occur.
inline CodeSizes shortest_codes(std::span<const std::uint32_t, kSymbols> counts) {
  constexpr unsigned kIndexBits = 9;
  constexpr std::uint64_t kIndexMask = (1u << kIndexBits) - 1;
  // The rarest tree first, of equal ones that of the highest symbol, as in libjpeg.
  std::array<std::uint64_t, kSymbols + 1> trees{std::uint64_t{1} << kIndexBits};
  std::size_t tree_count = 1;
  for (unsigned symbol = 0; symbol < kSymbols; ++symbol)
    if (counts[symbol] != 0)
      trees[tree_count++] = std::uint64_t{counts[symbol]} << kIndexBits | (kSymbols - symbol);
  const auto take_rarest = [&] {
    std::ranges::pop_heap(trees.begin(), trees.begin() + tree_count, std::greater<>());
    return trees[--tree_count];
  };
  std::ranges::make_heap(trees.begin(), trees.begin() + tree_count, std::greater<>());
  CodeSizes sizes{}, next{};  // of a tree; next: 0 at its end, else symbol + 1
  while (tree_count > 1) {
    const std::uint64_t first = take_rarest(), second = take_rarest();
    auto at = static_cast<unsigned>(kSymbols - (first & kIndexMask));
    for (++sizes[at]; next[at] != 0; ++sizes[at]) at = next[at] - 1u;
    next[at] = static_cast<std::uint16_t>(kSymbols - (second & kIndexMask) + 1);
    for (; next[at] != 0; ++sizes[at]) at = next[at] - 1u;
    trees[tree_count++] = first + (second & ~kIndexMask);
    std::ranges::push_heap(trees.begin(), trees.begin() + tree_count, std::greater<>());
  }
  return sizes;
}

/// Makes the table of the shortest codes of symbols by their counts: that of libjpeg's
/// jpeg_gen_optimal_table, which looks at all symbols for each of them. False where a code has more than 32
/// bits, as libjpeg refuses it.
inline bool make_optimal_table(std::span<const std::uint32_t, kSymbols> counts, JHUFF_TBL& table) {
  constexpr unsigned kMaxSize = 32;
  const CodeSizes sizes = shortest_codes(counts);
  std::array<std::uint8_t, kMaxSize + 1> bits{};
  for (const unsigned size : sizes) {
    if (size > kMaxSize) return false;
    if (size > 0) ++bits[size];
  }
  // Symbols by their codes' bits, before these are limited. The one behind them has the longest code.
  std::array<unsigned, kMaxSize + 2> begins{};
  for (unsigned size = 1; size <= kMaxSize; ++size) begins[size + 1] = begins[size] + bits[size];
  for (unsigned symbol = 0; symbol < kSymbols; ++symbol)
    if (const unsigned size = sizes[symbol]; size > 0)
      table.huffval[begins[size]++] = static_cast<UINT8>(symbol);
  // Two codes that are too long become one, and one that is shorter becomes two (ITU-T T.81, figure K.3).
  for (unsigned size = kMaxSize; size > kMaxCodeBits; --size)
    while (bits[size] > 0) {
      unsigned shorter = size - 2;
      while (bits[shorter] == 0) --shorter;
      bits[size] = static_cast<std::uint8_t>(bits[size] - 2);
      ++bits[size - 1];
      bits[shorter + 1] = static_cast<std::uint8_t>(bits[shorter + 1] + 2);
      --bits[shorter];
    }
  unsigned longest = kMaxCodeBits;
  while (bits[longest] == 0) --longest;
  --bits[longest];
  std::copy_n(bits.begin(), kMaxCodeBits + 1, table.bits);
  table.sent_table = FALSE;
  return true;
}

/// Writes bits, the highest first, as scans have them: 0xff is followed by 0.
class BitWriter {
 public:
  /// Writes on from here.
  void move_to(std::uint8_t* next) { next_ = next; }
  /// Up to 32 bits.
  [[gnu::always_inline]] void put(std::uint32_t bits, unsigned count) {
    bits_ = bits_ << count | bits;
    count_ += count;
    if (count_ < 32) return;
    count_ -= 32;
    const auto four = static_cast<std::uint32_t>(bits_ >> count_);
    if (((~four - 0x01010101) & four & 0x80808080) == 0) [[likely]] {  // no byte is 0xff
      const std::uint32_t stored = __builtin_bswap32(four);
      std::memcpy(next_, &stored, sizeof stored);
      next_ += sizeof stored;
      return;
    }
    for (int shift = 24; shift >= 0; shift -= 8) put_byte(static_cast<std::uint8_t>(four >> shift));
  }
  /// Fills the last byte with ones, and writes a marker.
  void put_marker(std::uint8_t marker) {
    put(0x7f, 7);
    for (; count_ >= 8; count_ -= 8) put_byte(static_cast<std::uint8_t>(bits_ >> (count_ - 8)));
    bits_ = count_ = 0;
    *next_++ = 0xff;
    *next_++ = marker;
  }
  [[nodiscard]] std::uint8_t* next() const { return next_; }

 private:
  void put_byte(std::uint8_t byte) {
    *next_++ = byte;
    if (byte == 0xff) *next_++ = 0;
  }
  std::uint64_t bits_ = 0;
  unsigned count_ = 0;
  std::uint8_t* next_ = nullptr;
};

/// The bits of a scan, the next one highest. Those behind `count` are of the next byte, or 0.
struct BitReader {
  std::uint64_t bits = 0;
  int count = 0;  // negative where more were used than there were
  const std::uint8_t* next = nullptr;

  [[gnu::always_inline]] void use(unsigned used) {
    bits <<= used;
    count -= static_cast<int>(used);
  }
  /// Afterwards there are kRefilledBits, or all up to a marker or the end of the file.
  [[gnu::always_inline]] void refill(const std::uint8_t* end) {
    constexpr std::uint64_t kOnes = 0x0101010101010101, kHighest = kOnes << 7;
    if (end - next >= 8) [[likely]] {
      const std::uint64_t eight = __builtin_bswap64(load_little<std::uint64_t>(next));
      if (((~eight - kOnes) & eight & kHighest) == 0) [[likely]] {  // no byte is 0xff
        bits |= eight >> count;
        next += (63 - count) >> 3;
        count |= kRefilledBits;
        return;
      }
    }
    BitReader slow = *this;  // so that `this` stays in registers
    refill_bytes(slow, end);
    *this = slow;
  }
  /// The same byte by byte: 0xff is followed by 0, but for markers.
  [[gnu::noinline]] static void refill_bytes(BitReader& to, const std::uint8_t* end) {
    while (to.count < kRefilledBits && to.next != end) {
      const std::uint64_t byte = *to.next;
      if (byte == 0xff && (end - to.next < 2 || to.next[1] != 0)) break;
      to.next += byte == 0xff ? 2 : 1;
      to.bits |= byte << (kRefilledBits - to.count);
      to.count += 8;
    }
  }
};

inline constexpr unsigned kNoSymbol = 0x100;

/// A code that a table's entries do not hold with its value.
struct LongCode {
  unsigned symbol;
  int value;
};

[[gnu::noinline]] inline LongCode read_long_code(BitReader& bits, const std::uint8_t* end,
                                                 const HuffmanTable& table, std::uint32_t entry) {
  bits.refill(end);
  LongCode code{entry >> 16, 0};
  unsigned length = entry & 0xff;
  if (length == 0) length = table.find_long(bits.bits, code.symbol);
  bits.use(length);
  const unsigned size = code.symbol & 15;
  if (size != 0) code.value = signed_value(static_cast<unsigned>(bits.bits >> (64 - size)), size);
  bits.use(size);
  return length == 0 ? LongCode{kNoSymbol, 0} : code;
}

[[gnu::always_inline]] inline LongCode read_long(BitReader& bits, const std::uint8_t* end,
                                                 const HuffmanTable& table, std::uint32_t entry) {
  BitReader slow = bits;
  const LongCode code = read_long_code(slow, end, table, entry);
  bits = slow;
  return code;
}

/// False where there is no such code.
[[gnu::always_inline]] inline bool read_dc(BitReader& bits, const std::uint8_t* end,
                                           const HuffmanTable& table, int& difference) {
  const std::uint32_t entry = table.find(bits.bits);
  if ((entry & kPassedMask) != 0) [[likely]] {
    bits.use(entry & 0xff);
    difference = static_cast<std::int32_t>(entry) >> 16;
    return true;
  }
  const LongCode code = read_long(bits, end, table, entry);
  difference = code.value;
  bits.refill(end);
  return code.symbol != kNoSymbol;
}

/// Writes what is not zero of a block behind its first value. False where codes are not in order.
[[gnu::always_inline]] inline bool read_ac(BitReader& bits, const std::uint8_t* end,
                                           const HuffmanTable& table, JCOEF* block) {
  unsigned at = 1;  // values so far
  do {
    for (unsigned step = 1; step < kCodesARefill && at < kBlockValues; ++step) {
      const std::uint32_t entry = table.find(bits.bits);
      if ((entry & kPassedMask) != 0) [[likely]] {
        bits.use(entry & 0xff);
        at += entry >> 8 & 0xff;
        block[kPositions[at]] = static_cast<JCOEF>(entry >> 16);
        continue;
      }
      const LongCode code = read_long(bits, end, table, entry);
      if (code.symbol == kNoSymbol) return false;
      at += values_passed(code.symbol);
      block[kPositions[at]] = static_cast<JCOEF>(code.value);
      break;  // its bits are more than those of a step
    }
    bits.refill(end);
  } while (at < kBlockValues);
  return bits.count >= 0 && (at == kBlockValues || at >= kEndOfBlock);
}

}  // namespace chunkhit
