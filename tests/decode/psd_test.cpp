#include <gtest/gtest.h>

#include <string>

#include "decoded.h"

namespace chunkhit {
namespace {

using std::literals::string_literals::operator""s;
using std::literals::string_view_literals::operator""sv;

// Two by two pixels of RGB: signature, version, channels, height, width, depth, mode, three empty blocks.
const std::string kHeader =
    "8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\2\0\0\0\2\0\x08\0\3"s
    "\0\0\0\0\0\0\0\0\0\0\0\0"s;
const std::string kPlain = kHeader +
                           "\0\0"s
                           "adgjbehkcfil"s;
const std::string kPacked = kHeader +
                            "\0\1"s
                            "\0\2\0\3\0\2\0\2\0\3\0\2"s
                            "\xffz"
                            "\1ab"
                            "\xffy"
                            "\xffx"
                            "\1cd"
                            "\xffw"s;

std::string pixels(const std::string& file, const DecodePlan& plan = {}) {
  const Decoded decoded = decode(as_bytes(file), plan);
  return decoded.error.empty() ? std::string(as_text(decoded.image.pixels)) : decoded.error;
}

TEST(Psd, JoinsItsPlanes) {
  EXPECT_EQ(pixels(kPlain), "abcdefghijkl");
  EXPECT_EQ(pixels(kPlain, {.region = {1, 1, 1, 1}}), "jkl");
}

TEST(Psd, UnpacksItsRows) { EXPECT_EQ(pixels(kPacked), "zyczydaxwbxw"); }

TEST(PsdError, FindsTruncationAtEveryLength) {
  for (std::size_t size = 0; size < kPlain.size(); ++size)
    EXPECT_NE(decode(as_bytes(kPlain.substr(0, size))).error, "") << size;
  for (std::size_t size = 0; size < kPacked.size(); ++size)
    EXPECT_NE(decode(as_bytes(kPacked.substr(0, size))).error, "") << size;
}

TEST(PsdError, FindsRowsThatDoNotUnpackToTheirWidth) {
  const std::string reason = "damaged PSD: its rows do not unpack to their width";
  std::string file = kPacked;
  file[kHeader.size() + 2 + 12] = '\xfe';  // three pixels instead of two
  EXPECT_NE(pixels(file).find("damaged PSD"), std::string::npos) << pixels(file);
  file = kPacked;
  file[kHeader.size() + 2 + 12] = '\x80';  // no run: all pixels move up by one byte
  EXPECT_NE(pixels(file).find("damaged PSD"), std::string::npos) << pixels(file);
  file = kPacked + "\0"s;
  file[kHeader.size() + 3] = 3;  // the table counts one byte more
  EXPECT_EQ(pixels(file), reason);
}

TEST(PsdError, ATruncatedFileStaysAnErrorBecauseItLacksColors) {
  const Decoded decoded =
      decode(as_bytes(kPlain.substr(0, kPlain.size() - 2)), {}, {.accept_warnings = true});
  EXPECT_EQ(decoded.error, "truncated: the data ends before the last row");
}

TEST(PsdError, RejectsSixteenBitsInPackBits) {
  std::string file = kPacked;
  file[23] = 16;
  EXPECT_EQ(pixels(file), "PSD of 16 bits and PackBits is not supported");
}

TEST(Psd, ColorsOfHalfTransparentPixelsStay) {
  // stb_image takes a white background out of them, by a cast that is undefined for dark ones.
  std::string file = kPlain + "\1\x80\xfe\xff"s;
  file[13] = 4;
  EXPECT_EQ(pixels(file), "abc\1def\x80ghi\xfejkl\xff"s);
  EXPECT_EQ(pixels(file, {.region = {0, 0, 2, 2}, .channels = 3}), "abcdefghijkl");
}

TEST(Psd, TakesNoExtraChannelForTransparency) {
  std::string file = kPlain +
                     "\1\x80\xfe\xff"
                     "zzzz"s;
  file[13] = 5;
  EXPECT_EQ(pixels(file), "abcdefghijkl");
}

TEST(PsdError, RejectsOtherModes) {
  std::string file = kPlain;
  file[25] = 4;
  EXPECT_EQ(pixels(file), "PSD that is neither gray nor RGB is not supported");
}

}  // namespace
}  // namespace chunkhit
