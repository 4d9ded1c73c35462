#include "cache/chunk_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace chunkhit {
namespace {

constexpr std::size_t kBytes = 1000;

TEST(ChunkBuffers, HaveTheirBytesToThemselvesAlsoBeyondTheExpectedCount) {
  ChunkBuffers buffers(kBytes, 3);
  std::vector<std::uint8_t*> taken;
  for (std::uint8_t i = 0; i < 8; ++i) {
    taken.push_back(buffers.take());
    std::memset(taken.back(), i, kBytes);
  }
  for (std::uint8_t i = 0; i < 8; ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(taken[i]) % 64, 0u);
    EXPECT_EQ(std::count(taken[i], taken[i] + kBytes, i), kBytes);
  }
}

TEST(ChunkBuffers, ThatWereGivenBackComeBeforeNewOnes) {
  ChunkBuffers buffers(kBytes, 100);
  std::uint8_t* const first = buffers.take();
  std::uint8_t* const second = buffers.take();
  EXPECT_FALSE(buffers.has_free());
  buffers.give_back(first);
  EXPECT_TRUE(buffers.has_free());
  EXPECT_EQ(buffers.take(), first);
  EXPECT_NE(buffers.take(), second);
}

TEST(ChunkBuffers, LargerThanASlabHavePagesOfTheirOwn) {
  constexpr std::size_t kLarge = (std::size_t{64} << 20) + 1;
  ChunkBuffers buffers(kLarge, 2);
  for (int i = 0; i < 2; ++i) {
    std::uint8_t* const buffer = buffers.take();
    buffer[0] = buffer[kLarge - 1] = 7;
    EXPECT_EQ(buffer[kLarge - 1], 7);
  }
}

}  // namespace
}  // namespace chunkhit
