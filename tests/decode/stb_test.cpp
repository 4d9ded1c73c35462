// BMP, TGA and PNM: files whose rows lie in them as they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "decoded.h"
#include "support/simulated_clock.h"

namespace chunkhit {
namespace {

using std::literals::string_literals::operator""s;
using std::literals::string_view_literals::operator""sv;

// Two by two pixels of 24 bits, the bottom row first, two bytes of padding a row.
const std::string kBmp =
    "BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0\2\0\0\0\1\0\x18\0"s
    "\0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "ihglkj\0\0cbafed\0\0"s;
const std::string kTga =
    "\0\0\2\0\0\0\0\0\0\0\0\0\2\0\2\0\x18\x20"s
    "cbafedihglkj"s;
const std::string kTgaByRuns =
    "\0\0\x0a\0\0\0\0\0\0\0\0\0\2\0\2\0\x18\x20"s
    "\x82"
    "cba"
    "\0"
    "lkj"s;
const std::string kPnm = "P6\n# two by two\n2 2\n255\nabcdefghijkl"s;

std::string pixels(const std::string& file, const DecodePlan& plan = {}) {
  const Decoded decoded = decode(as_bytes(file), plan);
  return decoded.error.empty() ? std::string(as_text(decoded.image.pixels)) : decoded.error;
}

std::string changed(std::string file, std::size_t at, std::string_view bytes) {
  return file.replace(at, bytes.size(), bytes);
}

TEST(Bmp, GivesItsPixels) {
  EXPECT_EQ(pixels(kBmp), "abcdefghijkl");
  EXPECT_EQ(pixels(kBmp, {.region = {1, 1, 1, 1}}), "jkl");
  EXPECT_EQ(pixels(changed(kBmp, 22, "\xfe\xff\xff\xff"sv)), "ghijklabcdef");
}

TEST(BmpError, FindsTruncationAtEveryLength) {
  for (std::size_t size = 0; size < kBmp.size() - 2; ++size)  // the last padding may be missing
    EXPECT_NE(decode(as_bytes(kBmp.substr(0, size))).error, "") << size;
}

TEST(BmpError, RejectsHeadersThatLie) {
  EXPECT_EQ(pixels(changed(kBmp, 22, "\0\0\0\x80"sv)),
            "is 2 x 2147483648 pixels, over the limit of 256000000 pixels");
  EXPECT_EQ(pixels(changed(kBmp, 18, "\xff\xff\xff\x7f"sv)),
            "is 2147483647 x 2 pixels, over the limit of 256000000 pixels");
  EXPECT_EQ(pixels(changed(kBmp, 18, "\xff\xff"sv)), "truncated: the data ends near row 0 of 2");
  EXPECT_EQ(pixels(changed(kBmp, 18, "\0\0\0\x80"sv)), "damaged BMP: its header gives no size");
  EXPECT_EQ(pixels(changed(kBmp, 10, "\x0a"sv)), "damaged BMP: its pixels begin inside its header");
  EXPECT_EQ(pixels(changed(kBmp, 10, "\xff\xff\xff\xff"sv)), "truncated: the data ends near row 0 of 2");
  EXPECT_EQ(pixels(changed(kBmp, 30, "\1"sv)), "run-length encoded BMP is not supported");
  EXPECT_EQ(pixels(changed(kBmp, 28, "\7"sv)), "BMP of 7 bits a pixel is not supported");
}

TEST(Tga, GivesItsPixels) {
  EXPECT_EQ(pixels(kTga), "abcdefghijkl");
  EXPECT_EQ(pixels(kTga, {.region = {1, 0, 1, 2}}), "defjkl");
  EXPECT_EQ(pixels(changed(kTga, 17, "\x00"sv)), "ghijklabcdef");
  EXPECT_EQ(pixels(changed(kTga, 17, "\x30"sv)), "TGA from right to left is not supported");
}

TEST(Tga, UndoesRunsThatGoOnInTheNextRow) { EXPECT_EQ(pixels(kTgaByRuns), "abcabcabcjkl"); }

TEST(TgaError, FindsTruncationAtEveryLength) {
  for (std::size_t size = 0; size < kTga.size(); ++size)
    EXPECT_NE(decode(as_bytes(kTga.substr(0, size))).error, "") << size;
  for (std::size_t size = 0; size < kTgaByRuns.size(); ++size)
    EXPECT_NE(decode(as_bytes(kTgaByRuns.substr(0, size))).error, "") << size;
}

TEST(TgaError, TakesOnlyPlausibleHeaders) {
  const std::string unknown = "not an image of a known type";
  for (const auto& [at, bytes] : {std::pair{1, "\2"sv},
                                  {1, "\1"sv},
                                  {2, "\4"sv},
                                  {3, "\1"sv},
                                  {12, "\0\0"sv},
                                  {16, "\x17"sv},
                                  {17, "\x40"sv}})
    EXPECT_EQ(pixels(changed(kTga, static_cast<std::size_t>(at), bytes)), unknown) << at;
}

TEST(Pnm, GivesItsPixels) {
  EXPECT_EQ(pixels(kPnm), "abcdefghijkl");
  EXPECT_EQ(pixels("P5 2 1 255 az"), "az");
}

TEST(Pnm, ScalesWhereTheLargestValueIsAnother) {
  EXPECT_EQ(pixels("P5 4 1 3 \0\1\2\3"s), "\0\x55\xaa\xff"s);
  EXPECT_EQ(pixels("P5 2 1 1023 \2\0\3\xff"s), "\x80\xff"s);
}

const std::string kPam =
    "P7\nWIDTH 2\nHEIGHT 1\n# two pixels\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\nabcdefgh"s;

TEST(Pam, GivesItsPixelsWithOneToFourChannels) {
  EXPECT_EQ(pixels(kPam), "abcdefgh");
  EXPECT_EQ(pixels(kPam, {.region = {1, 0, 1, 1}, .channels = 3}), "efg");
  EXPECT_EQ(pixels("P7\nHEIGHT 2\nWIDTH 1\nDEPTH 2\nMAXVAL 255\nENDHDR\nabcd"), "abcd");
  EXPECT_EQ(pixels("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 3\nMAXVAL 255\nTUPLTYPE RGB\nENDHDR\nabc"), "abc");
  EXPECT_EQ(pixels("P7\nWIDTH 2\nHEIGHT 1\nDEPTH 1\nMAXVAL 3\nENDHDR\n\1\3"), "\x55\xff");
}

TEST(PamError, FindsTruncationAtEveryLength) {
  for (std::size_t size = 0; size < kPam.size(); ++size)
    EXPECT_NE(decode(as_bytes(kPam.substr(0, size))).error, "") << size;
}

TEST(PamError, RejectsHeadersThatLie) {
  const auto error_of = [](std::string_view lines) {
    return pixels("P7\n" + std::string(lines) + "ENDHDR\nabcd");
  };
  for (const std::string_view lines :
       {"WIDTH 2\nHEIGHT 1\nDEPTH 2\n", "WIDTH 2\nHEIGHT 1\nDEPTH 5\nMAXVAL 255\n",
        "WIDTH 2\nHEIGHT 1\nDEPTH 0\nMAXVAL 255\n", "WIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE CMYK\n",
        "WIDTH\n", "WIDTH x\n"})
    EXPECT_TRUE(error_of(lines).starts_with("damaged PAM")) << lines;
  EXPECT_EQ(error_of("WIDTH 999999999\nHEIGHT 999999999\nDEPTH 4\nMAXVAL 255\n"),
            "is 999999999 x 999999999 pixels, over the limit of 256000000 pixels");
  EXPECT_EQ(error_of("HEIGHT 5\nDEPTH 4\nMAXVAL 255\n"), "has no pixels: 0 x 5");
}

TEST(PnmError, FindsTruncationAtEveryLength) {
  for (std::size_t size = 0; size < kPnm.size(); ++size)
    EXPECT_NE(decode(as_bytes(kPnm.substr(0, size))).error, "") << size;
  EXPECT_EQ(pixels(kPnm.substr(0, kPnm.size() - 1)), "truncated: the data ends near row 1 of 2");
}

TEST(PnmError, RejectsHeadersThatLie) {
  const std::string damaged = "damaged PNM: its header is not width, height and largest value";
  EXPECT_EQ(pixels("P5 2 1 0 ab"), damaged);
  EXPECT_EQ(pixels("P5 2 1 65536 abcd"), damaged);
  EXPECT_EQ(pixels("P5 99999999999 1 255 ab"), damaged);
  EXPECT_EQ(pixels("P5 -2 1 255 ab"), damaged);
  EXPECT_EQ(pixels("P5 999999999 999999999 255 ab"),
            "is 999999999 x 999999999 pixels, over the limit of 256000000 pixels");
  EXPECT_EQ(pixels("P5 0 5 255 ab"), "has no pixels: 0 x 5");
}

// Decodes with warnings accepted.
std::string accepted(const std::string& file, std::string& warnings) {
  const Decoded decoded = decode(as_bytes(file), {}, {.accept_warnings = true});
  warnings = decoded.warnings;
  return decoded.error.empty() ? std::string(as_text(decoded.image.pixels)) : decoded.error;
}

TEST(PackedPixelsWarning, OfATruncatedFileLeavesItsRowsAndBlack) {
  const std::string black(6, '\0');
  std::string warnings;
  for (const auto& [file, whole, rows] :
       {std::tuple(kBmp, kBmp.size() - 8, black + "ghijkl"),
        std::tuple(changed(kBmp, 22, "\xfe\xff\xff\xff"sv), kBmp.size() - 8, "ghijkl" + black),
        std::tuple(kTga, kTga.size() - 6, "abcdef" + black),
        std::tuple(changed(kTga, 17, "\x00"sv), kTga.size() - 6, black + "abcdef"),
        std::tuple(kPnm, kPnm.size() - 6, "abcdef" + black)}) {
    for (const std::size_t size : {whole, whole + 3}) {
      EXPECT_EQ(accepted(file.substr(0, size), warnings), rows);
      EXPECT_EQ(warnings, "truncated: the data ends near row 1 of 2");
    }
    EXPECT_NE(accepted(file.substr(0, whole - 4), warnings).find("truncated"), std::string::npos);
    EXPECT_EQ(warnings, "");
  }
  static_cast<void>(accepted(kPnm, warnings));
  EXPECT_EQ(warnings, "");
}

TEST(TgaWarning, OfTruncatedRunsLeavesItsPixelsAndBlack) {
  std::string warnings;
  EXPECT_EQ(accepted(kTgaByRuns.substr(0, kTgaByRuns.size() - 4), warnings), "abcabcabc\0\0\0"s);
  EXPECT_EQ(warnings, "truncated: the data ends before the last pixel");
}

TEST(Bmp, APaletteWithoutAllColorsGavePixelsOfUnwrittenMemory) {
  // Four pixels of four bits: colors 0, 1, 2 (which the palette lacks) and 15.
  const std::string file =
      "BM\0\0\0\0\0\0\0\0\x3e\0\0\0\x28\0\0\0\4\0\0\0\1\0\0\0\1\0\4\0"s
      "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
      "cba\0fed\0"
      "\x01\x2f\0\0"s;
  EXPECT_EQ(pixels(file), "abcdef\2\2\2\x0f\x0f\x0f");
}

TEST(DecodeTime, EndsBetweenTheRowsOfAnyFormat) {
  SimulatedClock clock;
  clock.compute(std::chrono::seconds(2), 1000);
  const Decoded decoded =
      decode(as_bytes("P5 1 2000 255 a"sv), {}, {.accept_warnings = true, .max_seconds = 1});
  EXPECT_EQ(decoded.error, "takes longer to decode than `max_seconds_per_image` allows: 1 second");
}

TEST(TgaError, OfATruncatedFileSaysSo) {
  std::vector<std::uint8_t> file(18 + 40 * 30 * 3, 7);
  const std::array<std::uint8_t, 18> header{0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 40, 0, 30, 0, 24, 0};
  std::copy(header.begin(), header.end(), file.begin());
  EXPECT_EQ(decode(file).error, "");
  file.resize(18 + 40 * 3 * 20 + 5);
  EXPECT_EQ(decode(file).error, "truncated: the data ends near row 20 of 30");
  file.resize(18);
  EXPECT_EQ(decode(file).error, "truncated: the data ends in the header");
}

}  // namespace
}  // namespace chunkhit
