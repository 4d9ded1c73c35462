#include "decode/lzw.h"

#include <algorithm>
#include <array>

namespace chunkhit {
namespace {

constexpr unsigned kMostBits = 12;
constexpr unsigned kTableSize = 1u << kMostBits;
constexpr unsigned kNoCode = kTableSize;

/// Takes codes from a stream of bits, lowest bit first.
class CodeReader {
 public:
  explicit CodeReader(Bytes data) : data_(data) {}
  /// Gives the next code of `bits` bits, or kNoCode at the end.
  unsigned next(unsigned bits) {
    while (held_ < bits) {
      if (at_ == data_.size()) return kNoCode;
      window_ |= std::uint32_t{data_[at_++]} << held_;
      held_ += 8;
    }
    const unsigned code = window_ & ((1u << bits) - 1);
    window_ >>= bits;
    held_ -= bits;
    return code;
  }

 private:
  Bytes data_;
  std::size_t at_ = 0;
  std::uint32_t window_ = 0;
  unsigned held_ = 0;
};

/// What each code stands for: the string of another code and one more byte.
struct CodeTable {
  std::array<std::uint16_t, kTableSize> prefix;
  std::array<std::uint16_t, kTableSize> length;
  std::array<std::uint8_t, kTableSize> last;
  std::array<std::uint8_t, kTableSize> first;

  explicit CodeTable(unsigned literals) {
    for (unsigned code = 0; code < literals; ++code) {
      length[code] = 1;
      first[code] = last[code] = static_cast<std::uint8_t>(code);
    }
  }
  void add(unsigned code, unsigned before, std::uint8_t byte) {
    prefix[code] = static_cast<std::uint16_t>(before);
    length[code] = static_cast<std::uint16_t>(length[before] + 1);
    first[code] = first[before];
    last[code] = byte;
  }
  // Writes a code's string from its end; what lies beyond `out` is left away.
  std::size_t write(unsigned code, MutableBytes out) const {
    const std::size_t count = std::min<std::size_t>(length[code], out.size());
    for (std::size_t i = length[code]; i-- > 0; code = prefix[code])
      if (i < count) out[i] = last[code];
    return count;
  }
};

}  // namespace

std::size_t undo_lzw(Bytes data, unsigned code_bits, MutableBytes out) {
  const unsigned clear = 1u << code_bits, end = clear + 1;
  CodeTable table(clear);
  CodeReader codes(data);
  unsigned bits = code_bits + 1, free_code = clear + 2, before = kNoCode;
  std::size_t filled = 0;
  while (filled < out.size()) {
    const unsigned code = codes.next(bits);
    if (code == kNoCode || code == end) break;
    if (code == clear) {
      bits = code_bits + 1;
      free_code = clear + 2;
      before = kNoCode;
      continue;
    }
    // The one code that may be used before it is complete ends in its own first byte.
    const bool adds = before != kNoCode && free_code < kTableSize;
    if (code > free_code || (code == free_code && !adds)) break;
    if (adds) table.add(free_code, before, code == free_code ? table.first[before] : table.first[code]);
    if (adds && ++free_code == 1u << bits && bits < kMostBits) ++bits;
    filled += table.write(code, out.subspan(filled));
    before = code;
  }
  return filled;
}

}  // namespace chunkhit
