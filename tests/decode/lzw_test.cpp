#include "decode/lzw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace chunkhit {
namespace {

/// Packs codes, lowest bit first.
class CodeWriter {
 public:
  void put(unsigned code, unsigned bits) {
    for (unsigned i = 0; i < bits; ++i, ++used_) {
      if (used_ % 8 == 0) bytes.push_back(0);
      bytes.back() = static_cast<std::uint8_t>(bytes.back() | (code >> i & 1) << used_ % 8);
    }
  }
  std::vector<std::uint8_t> bytes;

 private:
  unsigned used_ = 0;
};

TEST(Lzw, GivesLiteralsAndStrings) {
  CodeWriter codes;  // two bits: literals 0 to 3, 4 clears, 5 ends; 6 is the first string
  for (const unsigned code : {4, 1, 2}) codes.put(code, 3);
  codes.put(6, 3);  // "1 2", then codes grow to four bits
  codes.put(7, 4);  // "2 1"
  codes.put(5, 4);
  std::vector<std::uint8_t> out(9);
  EXPECT_EQ(undo_lzw(codes.bytes, 2, out), 6u);
  out.resize(6);
  EXPECT_EQ(out, (std::vector<std::uint8_t>{1, 2, 1, 2, 2, 1}));
}

TEST(Lzw, GivesAStringThatIsUsedBeforeItIsComplete) {
  CodeWriter codes;
  for (const unsigned code : {4, 3, 6}) codes.put(code, 3);
  std::vector<std::uint8_t> out(3);
  EXPECT_EQ(undo_lzw(codes.bytes, 2, out), 3u);
  EXPECT_EQ(out, (std::vector<std::uint8_t>{3, 3, 3}));
}

TEST(Lzw, GoesOnWithAFullTableWithoutAClearCode) {
  constexpr unsigned kClear = 256, kCount = 20000;
  CodeWriter codes;
  codes.put(kClear, 9);
  std::vector<std::uint8_t> expected;
  for (unsigned i = 0, bits = 9; i < kCount; ++i) {
    const auto byte = static_cast<std::uint8_t>(i * 7);
    codes.put(byte, bits);
    expected.push_back(byte);
    const unsigned free_code = kClear + 2 + i;  // once the decoder has taken this code
    if (free_code == 1u << bits && bits < 12) ++bits;
  }
  std::vector<std::uint8_t> out(kCount);
  EXPECT_EQ(undo_lzw(codes.bytes, 8, out), kCount);
  EXPECT_EQ(out, expected);
}

TEST(Lzw, StopsAtAnImpossibleCode) {
  CodeWriter codes;
  for (const unsigned code : {4, 1, 7}) codes.put(code, 3);
  std::vector<std::uint8_t> out(8);
  EXPECT_EQ(undo_lzw(codes.bytes, 2, out), 1u);
}

TEST(Lzw, StopsWhereTheOutputIsFull) {
  CodeWriter codes;
  for (const unsigned code : {4, 3, 6, 6}) codes.put(code, 3);
  std::vector<std::uint8_t> out(2, 9);
  EXPECT_EQ(undo_lzw(codes.bytes, 2, out), 2u);
  EXPECT_EQ(out, (std::vector<std::uint8_t>{3, 3}));
}

TEST(Lzw, StopsWhereTheDataEnds) {
  std::vector<std::uint8_t> out(2);
  EXPECT_EQ(undo_lzw({}, 8, out), 0u);
}

}  // namespace
}  // namespace chunkhit
