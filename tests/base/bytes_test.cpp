#include "base/bytes.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chunkhit {
namespace {

TEST(Bytes, LieLittleEndian) {
  std::uint8_t bytes[9] = {};
  store_little(bytes + 1, std::uint64_t{0x0102030405060708});  // an address that no number likes
  EXPECT_EQ(bytes[1], 8);
  EXPECT_EQ(bytes[8], 1);
  EXPECT_EQ(load_little<std::uint64_t>(bytes + 1), 0x0102030405060708u);
  EXPECT_EQ(load_little<std::uint16_t>(bytes + 1), 0x0708u);
}

TEST(Bytes, AppendToAnyBuffer) {
  std::vector<std::uint8_t> bytes{9};
  append_little(bytes, std::uint32_t{0xaabbccdd});
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{9, 0xdd, 0xcc, 0xbb, 0xaa}));
  std::string text = "x";
  append_little(text, std::uint16_t{0x4142});
  EXPECT_EQ(text, "xBA");
}

TEST(Bytes, AreTextAndBack) {
  EXPECT_EQ(as_bytes("a\xff").size(), 2u);
  EXPECT_EQ(as_bytes("a\xff")[1], 0xff);
  EXPECT_EQ(as_text(as_bytes("chunk")), "chunk");
}

TEST(Bytes, RoundUpToTheNextMultiple) {
  EXPECT_EQ(round_up(0, 4096), 0u);
  EXPECT_EQ(round_up(1, 4096), 4096u);
  EXPECT_EQ(round_up(4096, 4096), 4096u);
  EXPECT_EQ(round_up(10, 3), 12u);
}

TEST(ByteBuffer, LiesOnCacheLines) {
  for (const std::size_t size : {1, 100, 5000}) {
    const ByteBuffer buffer(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u) << size;
  }
}

TEST(ByteBuffer, LeavesNewBytesUnwritten) {
  ByteBuffer buffer(1000);
  std::fill(buffer.begin(), buffer.end(), std::uint8_t{7});
  buffer.resize(10);
  buffer.resize(1000);  // within the capacity: what lay there is still there
  EXPECT_EQ(buffer[999], 7);
  buffer.resize(10);
  buffer.resize(11, std::uint8_t{5});  // with a value, it is written
  EXPECT_EQ(buffer[10], 5);
}

}  // namespace
}  // namespace chunkhit
