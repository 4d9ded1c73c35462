#include <gtest/gtest.h>
#include <malloc.h>

#include <ctime>
#include <string>

#include "decoded.h"
#include "png_writer.h"

namespace chunkhit {
namespace {

using std::literals::string_view_literals::operator""sv;
using File = std::vector<std::uint8_t>;

constexpr PngWriteSpec kSmall{.width = 2, .height = 2};
constexpr std::string_view kSmallLines = "\0abcdef\0ghijkl"sv;

std::vector<int> values(const Image& image) { return {image.pixels.begin(), image.pixels.end()}; }

TEST(Png, GivesItsPixels) {
  const Decoded decoded = decode(write_png(kSmall, as_bytes(kSmallLines)));
  ASSERT_EQ(decoded.error, "");
  EXPECT_EQ(as_text(decoded.image.pixels), "abcdefghijkl");
}

TEST(Png, KeepsTheHighByteOf16Bits) {
  const Decoded decoded = decode(
      write_png({.width = 2, .height = 1, .depth = 16, .color_type = 0}, as_bytes("\0\x12\xff\xab\0"sv)));
  ASSERT_EQ(decoded.error, "");
  EXPECT_EQ(values(decoded.image), (std::vector<int>{0x12, 0xab}));
}

TEST(Png, MakesATransparentGreyAnAlphaChannel) {
  File file = begin_png({.width = 3, .height = 1, .color_type = 0});
  append_png_chunk(file, "tRNS", as_bytes("\0\7"sv));
  append_png_chunk(file, "IDAT", zlib_stream(as_bytes("\0\5\7\6"sv)));
  append_png_chunk(file, "IEND", {});
  const Decoded decoded = decode(file);
  ASSERT_EQ(decoded.error, "");
  EXPECT_EQ(decoded.header.channels, 2u);
  EXPECT_EQ(values(decoded.image), (std::vector<int>{5, 255, 7, 0, 6, 255}));
}

TEST(Png, GivesIndicesWithoutAPaletteEntryTheGreyOfTheirNumber) {
  File file = begin_png({.width = 3, .height = 1, .color_type = 3});
  append_png_chunk(file, "PLTE", as_bytes("abc"));
  append_png_chunk(file, "IDAT", zlib_stream(as_bytes("\0\0\1\xc8"sv)));
  append_png_chunk(file, "IEND", {});
  const Decoded decoded = decode(file);
  ASSERT_EQ(decoded.error, "");
  EXPECT_EQ(values(decoded.image), (std::vector<int>{'a', 'b', 'c', 1, 1, 1, 200, 200, 200}));
}

TEST(Png, TakesNoDataBehindItsLastRow) {
  const Decoded decoded = decode(write_png(kSmall, as_bytes("\0abcdef\0ghijkl\0mnopqr"sv)));
  EXPECT_EQ(decoded.error, "");
  EXPECT_EQ(as_text(decoded.image.pixels), "abcdefghijkl");
}

TEST(PngError, FindsTruncationAtEveryLength) {
  const File file = write_png(kSmall, as_bytes(kSmallLines));
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_NE(decode(Bytes(file).first(size)).error, "") << size;
}

TEST(PngError, KeepsNoMemoryOfADamagedHeader) {
  const File file = write_png(kSmall, as_bytes(kSmallLines));
  const auto held_after = [&](int times) {
    for (int i = 0; i < times; ++i) EXPECT_NE(decode(Bytes(file).first(20)).error, "");
    return mallinfo2().uordblks;
  };
  const std::size_t before = held_after(10);
  EXPECT_LT(held_after(1000), before + 100'000);
}

TEST(PngError, FindsAnyFlippedBitOfAChunk) {
  const File file = write_png(kSmall, as_bytes(kSmallLines));
  for (std::size_t bit = 8 * 8; bit < file.size() * 8; ++bit) {
    File flipped = file;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    EXPECT_NE(decode(flipped).error, "") << bit;
  }
}

TEST(PngError, NamesTheChunkWhoseChecksumDiffers) {
  File file = write_png(kSmall, as_bytes(kSmallLines));
  file[file.size() - 14] ^= 1;
  EXPECT_EQ(decode(file).error, "damaged PNG: IDAT: CRC error");
}

TEST(PngError, RejectsDataThatDoesNotFillTheImage) {
  EXPECT_EQ(decode(write_png({.width = 2, .height = 3}, as_bytes(kSmallLines))).error,
            "damaged PNG: Not enough image data");
}

TEST(PngError, StopsABombBeforeItFillsTheMemory) {
  File file = begin_png(kSmall);
  append_png_chunk(file, "IDAT", zlib_bomb(1u << 29));
  append_png_chunk(file, "IEND", {});
  const long before = peak_kilobytes();
  EXPECT_EQ(decode(file).error, "damaged PNG: its data inflates to more than its size allows");
  EXPECT_LT(peak_kilobytes() - before, 100 << 10);
}

TEST(PngError, RejectsAHugeHeaderWithoutFillingTheMemory) {
  const long before = peak_kilobytes();
  const File file = write_png({.width = 16000, .height = 15999}, as_bytes(kSmallLines));
  EXPECT_NE(decode(file).error, "");
  EXPECT_NE(decode(write_png({.width = 1u << 31, .height = 1}, as_bytes(kSmallLines))).error, "");
  EXPECT_LT(peak_kilobytes() - before, 100 << 10);
}

TEST(PngError, RejectsChunksThatAreOutOfPlace) {
  File two_palettes = begin_png({.width = 3, .height = 1, .color_type = 3});
  append_png_chunk(two_palettes, "PLTE", as_bytes("abcdef"));
  append_png_chunk(two_palettes, "PLTE", as_bytes("abc"));
  EXPECT_EQ(decode(two_palettes).error, "damaged PNG: PLTE: duplicate");
  File no_palette = begin_png({.width = 3, .height = 1, .color_type = 3});
  append_png_chunk(no_palette, "IDAT", as_bytes("abc"));
  EXPECT_EQ(decode(no_palette).error, "damaged PNG: IDAT: Missing PLTE before IDAT");
  File late_transparency = begin_png({.width = 3, .height = 1, .color_type = 0});
  append_png_chunk(late_transparency, "IDAT", zlib_stream(as_bytes("\0\5\7\6"sv)));
  append_png_chunk(late_transparency, "tRNS", as_bytes("\0\7"sv));
  append_png_chunk(late_transparency, "IEND", {});
  EXPECT_EQ(decode(late_transparency).error, "damaged PNG: tRNS: out of place");
  File no_data = begin_png(kSmall);
  append_png_chunk(no_data, "IEND", {});
  EXPECT_EQ(decode(no_data).error, "damaged PNG: IEND: out of place");
}

TEST(Png, EachOfManyPackedTextsWasInflated) {
  const std::vector<std::uint8_t> megabyte = zlib_stream(as_bytes(std::string(std::size_t{1} << 20, ' ')));
  std::string text("XML:com.adobe.xmp\0\0"sv);
  text += as_text(megabyte);
  File file = begin_png(kSmall);
  for (int count = 0; count < 20'000; ++count) append_png_chunk(file, "zTXt", as_bytes(text));
  append_png_chunk(file, "IDAT", zlib_stream(as_bytes(kSmallLines)));
  append_png_chunk(file, "IEND", {});
  const std::clock_t begin = std::clock();
  EXPECT_EQ(decode(file).error, "");
  EXPECT_LT(std::clock() - begin, CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace chunkhit
