#include "transform/transpose.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/simd_targets.h"

namespace chunkhit {
namespace {

// Bytes that tell positions apart: no period divides a block.
std::vector<std::uint8_t> counted_bytes(std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(i * 37 % 251);
  return bytes;
}

TEST(Transpose, TurnsMatricesOfEveryShape) {
  const std::vector<std::uint8_t> in = counted_bytes(70 * 80);
  for_each_simd_target([&](const char* target) {
    for (const std::size_t rows : {1u, 3u, 15u, 16u, 17u, 32u, 50u, 70u}) {
      for (const std::size_t columns : {1u, 2u, 15u, 16u, 31u, 32u, 33u, 47u, 48u, 80u}) {
        std::vector<std::uint8_t> out(columns * (rows + 5), 9);
        transpose_bytes({in.data(), 80, rows, columns}, out.data(), rows + 5);
        for (std::size_t column = 0; column < columns; ++column)
          for (std::size_t row = 0; row < rows + 5; ++row)
            ASSERT_EQ(out[column * (rows + 5) + row], row < rows ? in[row * 80 + column] : 9)
                << target << ", " << rows << " x " << columns << " at " << row << ", " << column;
      }
    }
  });
}

TEST(SplitChannels, PutsEachChannelIntoItsPlane) {
  const std::vector<std::uint8_t> pixels = counted_bytes(4 * 150);
  for_each_simd_target([&](const char* target) {
    for (const std::uint32_t channels : {1u, 2u, 3u, 4u}) {
      for (const std::size_t count : {1u, 15u, 16u, 33u, 64u, 150u}) {
        std::vector<std::uint8_t> planes(channels * 160, 5);
        split_channels(pixels.data(), channels, count, planes.data(), 160);
        for (std::size_t i = 0; i < planes.size(); ++i)
          ASSERT_EQ(planes[i], i % 160 < count ? pixels[i % 160 * channels + i / 160] : 5)
              << target << ", " << channels << " channels, " << count << " pixels, byte " << i;
      }
    }
  });
}

}  // namespace
}  // namespace chunkhit
