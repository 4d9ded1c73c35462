#include "base/hash.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace chunkhit {
namespace {

/// i · 7 mod 251 for i = 0, 1, …
std::vector<std::uint8_t> sevens(std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 % 251);
  return bytes;
}

// Expected values: `xxhsum -H3` 0.8.1 over the same bytes; the sizes reach each of the algorithm's paths.
TEST(Xxh3, EqualsXxhsum) {
  EXPECT_EQ(hash_text(xxh3({})), "2d06800538d394c2");
  EXPECT_EQ(hash_text(xxh3(as_bytes("a"))), "e6c632b61e964e1f");
  EXPECT_EQ(hash_text(xxh3(as_bytes("chunkhit"))), "7ff430aa7b2eb1e3");
  EXPECT_EQ(hash_text(xxh3(sevens(3))), "c3489259e968ad9e");
  EXPECT_EQ(hash_text(xxh3(sevens(16))), "9da23836adf2be1e");
  EXPECT_EQ(hash_text(xxh3(sevens(128))), "4c659b745f435148");
  EXPECT_EQ(hash_text(xxh3(sevens(240))), "d6dfbf67b0675b54");
  EXPECT_EQ(hash_text(xxh3(sevens(1000))), "d1eb8367bf3294e7");
  EXPECT_EQ(hash_text(xxh3(sevens(3'000'000))), "8cf647b0a14f596a");
}

TEST(Xxh3Stream, EqualsTheHashOfThePiecesInARow) {
  const std::vector<std::uint8_t> bytes = sevens(1000);
  for (const std::size_t piece : {1, 3, 64, 255, 999, 1000}) {
    Xxh3Stream stream;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      stream.update(Bytes(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    EXPECT_EQ(stream.value(), xxh3(bytes)) << piece;
  }
  EXPECT_EQ(Xxh3Stream().value(), xxh3({}));
}

TEST(HashText, HasSixteenDigitsAndReadsBack) {
  for (const std::uint64_t hash :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xfedcba9876543210}, UINT64_MAX}) {
    std::uint64_t read = ~hash;
    EXPECT_EQ(hash_text(hash).size(), 16u);
    EXPECT_TRUE(parse_hash(hash_text(hash), read));
    EXPECT_EQ(read, hash);
  }
  EXPECT_EQ(hash_text(0xab), "00000000000000ab");
}

TEST(HashText, RefusesAllButSixteenLowerCaseDigits) {
  std::uint64_t hash = 0;
  for (const char* text : {"", "0", "00000000000000AB", "00000000000000ag", "000000000000000ab",
                           "00000000000000 b", "0x000000000000ab", "-000000000000001"})
    EXPECT_FALSE(parse_hash(text, hash)) << text;
}

}  // namespace
}  // namespace chunkhit
