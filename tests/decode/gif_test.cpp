#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "decoded.h"
#include "support/simulated_clock.h"

namespace chunkhit {
namespace {

using std::literals::string_literals::operator""s;
using std::literals::string_view_literals::operator""sv;

// Two by one pixels of colours 1 and 2 of four, on a screen of three by one. Codes of three bits: clear 4, 1,
// 2, end 5.
const std::string kGif =
    "GIF89a\3\0\1\0\x81\0\0"
    "\0\0\0abcdef\0\0\0"s
    "\x2c\0\0\0\0\2\0\1\0\0"
    "\2\2\x8c\x0a\0;"s;

std::vector<int> values(const Image& image) { return {image.pixels.begin(), image.pixels.end()}; }

TEST(Gif, GivesTheFirstFrameOnItsScreen) {
  const Decoded decoded = decode(as_bytes(kGif));
  ASSERT_EQ(decoded.error, "");
  EXPECT_EQ(decoded.header.channels, 3u);
  EXPECT_EQ(values(decoded.image), (std::vector<int>{'a', 'b', 'c', 'd', 'e', 'f', 0, 0, 0}));
}

TEST(Gif, MakesATransparentColourAnAlphaChannel) {
  std::string file = kGif;
  file.insert(25, "!\xf9\4\1\0\0\2\0"sv);
  const Decoded decoded = decode(as_bytes(file));
  ASSERT_EQ(decoded.error, "");
  EXPECT_EQ(values(decoded.image),
            (std::vector<int>{'a', 'b', 'c', 255, 'd', 'e', 'f', 0, 'd', 'e', 'f', 0}));
}

TEST(GifError, FindsTruncationInTheFirstFrame) {
  for (std::size_t size = 6; size < kGif.size() - 1; ++size)
    EXPECT_NE(decode(as_bytes(kGif.substr(0, size))).error, "") << size;
}

TEST(GifError, AFrameThatEndsEarlyWasTakenAsWhole) {
  std::string file = kGif;
  file[30] = 3;  // the frame is three pixels wide, and the data ends after two
  EXPECT_EQ(decode(as_bytes(file)).error, "truncated: the data ends before the last pixel");
}

TEST(GifWarning, OfATruncatedFrameLeavesItsPixelsAndBlack) {
  std::string file = kGif;
  file[8] = 2;   // the screen is two pixels high
  file[32] = 2;  // and so is the frame
  const std::string warning = "truncated: the data ends before the last pixel";
  EXPECT_EQ(decode(as_bytes(file)).error, warning);
  const Decoded decoded = decode(as_bytes(file), {}, {.accept_warnings = true});
  EXPECT_EQ(decoded.error, "");
  EXPECT_EQ(decoded.warnings, warning);
  EXPECT_EQ(values(decoded.image),
            (std::vector<int>{'a', 'b', 'c', 'd', 'e', 'f', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

// Two pixels, behind which codes go on: `tables` full tables, of which `uses` more codes are used each.
std::string endless_gif(int tables, int uses) {
  std::string codes;
  unsigned held = 0, bits = 0;
  const auto put = [&](unsigned code, unsigned count) {
    for (held |= code << bits, bits += count; bits >= 8; bits -= 8, held >>= 8)
      codes.push_back(static_cast<char>(held & 255));
  };
  for (int table = 0; table < tables; ++table) {
    put(256, table == 0 ? 9 : 12);
    put(0, 9);
    for (unsigned next = 258, width = 9; next < 4096; ++next) {  // each code is the one that it makes
      put(next, width);
      if (next + 1 == 1u << width && width < 12) ++width;
    }
    for (int i = 0; i < uses; ++i) put(4095, 12);
  }
  put(257, 12);
  put(0, 8);
  std::string file = "GIF89a\2\0\1\0\x80\0\0abcdef\x2c\0\0\0\0\2\0\1\0\0\x08"s;
  for (std::size_t at = 0; at < codes.size(); at += 255) {
    const std::string block = codes.substr(at, 255);
    file += static_cast<char>(block.size()) + block;
  }
  return file + "\0;"s;
}

TEST(GifError, CodesBehindAWholeFrameEndAtTheLimitOfTime) {
  EXPECT_EQ(decode(as_bytes(endless_gif(1, 4000))).error, "");
  // stb_image follows each code's chain of up to 4096 prefixes, also where no pixel is left to draw.
  SimulatedClock clock;
  clock.compute(std::chrono::seconds(2), 3);
  EXPECT_EQ(decode(as_bytes(endless_gif(4, 4000)), {}, {.max_seconds = 1}).error,
            "takes longer to decode than `max_seconds_per_image` allows: 1 second");
}

TEST(GifError, AFullTableThatStaysInUseIsNotCalledDamage) {
  EXPECT_EQ(decode(as_bytes(endless_gif(1, 5000))).error,
            "GIF that uses a full table for more than 4096 codes is not supported");
}

TEST(Gif, WithoutAFirstClearCodeWasRejected) {
  std::string file = kGif;
  file.replace(file.size() - 4, 2, "\x51\1"s);  // 1, 2, end 5, of three bits each
  const Decoded decoded = decode(as_bytes(file));
  ASSERT_EQ(decoded.error, "");
  EXPECT_EQ(values(decoded.image), (std::vector<int>{'a', 'b', 'c', 'd', 'e', 'f', 0, 0, 0}));
  for (std::size_t size = 6; size < file.size() - 1; ++size)
    EXPECT_NE(decode(as_bytes(file.substr(0, size))).error, "") << size;
}

TEST(GifError, RejectsAFrameWithoutPixelsAndAFileWithoutFrame) {
  std::string file = kGif;
  file[30] = 0;
  EXPECT_EQ(decode(as_bytes(file)).error, "damaged GIF: its first frame has no pixels");
  EXPECT_EQ(decode(as_bytes(kGif.substr(0, 25) + ";")).error, "damaged GIF: it has no frame");
}

TEST(GifError, KeepsToTheLimitOfPixelsWhereTheFrameLeavesTheScreen) {
  std::string file = kGif;
  file[27] = '\x7f';  // 0x7f00 pixels to the right
  EXPECT_EQ(decode(as_bytes(file), {}, {.max_pixels = 1000}).error,
            "is 32514 x 1 pixels, over the limit of 1000 pixels");
}

}  // namespace
}  // namespace chunkhit
