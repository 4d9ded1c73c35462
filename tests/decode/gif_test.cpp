#include <gtest/gtest.h>

#include <string>

#include "decoded.h"

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
  ASSERT_EQ(decoded.fault, "");
  EXPECT_EQ(decoded.header.channels, 3u);
  EXPECT_EQ(values(decoded.image), (std::vector<int>{'a', 'b', 'c', 'd', 'e', 'f', 0, 0, 0}));
}

TEST(Gif, MakesATransparentColourAnAlphaChannel) {
  std::string file = kGif;
  file.insert(25, "!\xf9\4\1\0\0\2\0"sv);
  const Decoded decoded = decode(as_bytes(file));
  ASSERT_EQ(decoded.fault, "");
  EXPECT_EQ(values(decoded.image),
            (std::vector<int>{'a', 'b', 'c', 255, 'd', 'e', 'f', 0, 'd', 'e', 'f', 0}));
}

TEST(GifFault, FindsTruncationInTheFirstFrame) {
  for (std::size_t size = 6; size < kGif.size() - 3; ++size)
    EXPECT_NE(decode(as_bytes(kGif.substr(0, size))).fault, "") << size;
}

TEST(GifFault, SaysWhereTheFrameEnds) {
  std::string file = kGif;
  file[30] = 9;  // the frame is nine pixels wide
  EXPECT_EQ(decode(as_bytes(file)).fault, "truncated: the first frame ends at pixel 2 of 9");
}

TEST(GifWarning, OfATruncatedFrameLeavesItsRowsAndBlack) {
  std::string file = kGif;
  file[8] = 2;   // the screen is two pixels high
  file[32] = 2;  // and so is the frame
  const std::string warning = "truncated: the first frame ends at pixel 2 of 4";
  EXPECT_EQ(decode(as_bytes(file)).fault, warning);
  Decoded decoded = decode(as_bytes(file), {}, {.accept_warnings = true});
  EXPECT_EQ(decoded.fault, "");
  EXPECT_EQ(decoded.warnings, warning);
  EXPECT_EQ(values(decoded.image),
            (std::vector<int>{'a', 'b', 'c', 'd', 'e', 'f', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  file[30] = 3;  // no row is whole
  EXPECT_EQ(decode(as_bytes(file), {}, {.accept_warnings = true}).fault,
            "truncated: the first frame ends at pixel 2 of 6");
}

TEST(GifFault, RejectsAFrameWithoutPixelsAndAFileWithoutFrame) {
  std::string file = kGif;
  file[30] = 0;
  EXPECT_EQ(decode(as_bytes(file)).fault, "damaged GIF: its first frame has no pixels");
  EXPECT_EQ(decode(as_bytes(kGif.substr(0, 25) + ";")).fault, "damaged GIF: it has no frame");
}

TEST(GifFault, KeepsToTheLimitOfPixelsWhereTheFrameLeavesTheScreen) {
  std::string file = kGif;
  file[27] = '\x7f';  // 0x7f00 pixels to the right
  EXPECT_EQ(decode(as_bytes(file), {}, {.max_pixels = 1000}).fault,
            "is 32514 x 1 pixels, over the limit of 1000 pixels");
}

}  // namespace
}  // namespace chunkhit
