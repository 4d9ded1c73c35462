#include <gtest/gtest.h>

#include <string>
#include <utility>

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
  return decoded.fault.empty() ? std::string(as_text(decoded.image.pixels)) : decoded.fault;
}

TEST(Psd, JoinsItsPlanes) {
  EXPECT_EQ(pixels(kPlain), "abcdefghijkl");
  EXPECT_EQ(pixels(kPlain, {.region = {1, 1, 1, 1}}), "jkl");
}

TEST(Psd, UnpacksItsRows) { EXPECT_EQ(pixels(kPacked), "zyczydaxwbxw"); }

TEST(PsdFault, FindsTruncationAtEveryLength) {
  for (std::size_t size = 0; size < kPlain.size(); ++size)
    EXPECT_NE(decode(as_bytes(kPlain.substr(0, size))).fault, "") << size;
  for (std::size_t size = 0; size < kPacked.size(); ++size)
    EXPECT_NE(decode(as_bytes(kPacked.substr(0, size))).fault, "") << size;
}

TEST(PsdFault, NamesARowThatDoesNotUnpackToItsWidth) {
  std::string file = kPacked;
  file[kHeader.size() + 2 + 12] = '\xfe';  // three pixels instead of two
  EXPECT_EQ(pixels(file), "damaged PSD: row 0 does not unpack to its width");
}

TEST(PsdWarning, OfATruncatedFileLeavesTheRowsOfAllChannelsAndBlack) {
  const std::string truncated = "truncated: the data ends before the last row";
  const std::string black(6, '\0');
  for (const auto& [file, rows] : {std::pair(kPlain, "abcdef"), std::pair(kPacked, "zyczyd")}) {
    const std::string cut = file.substr(0, file.size() - 2);
    EXPECT_EQ(pixels(cut), truncated);
    const Decoded decoded = decode(as_bytes(cut), {}, {.accept_warnings = true});
    EXPECT_EQ(std::string(as_text(decoded.image.pixels)), rows + black);
    EXPECT_EQ(decoded.warnings, truncated);
    const Decoded none = decode(as_bytes(file.substr(0, file.size() - 5)), {}, {.accept_warnings = true});
    EXPECT_EQ(none.fault, truncated);
  }
}

TEST(PsdWarning, OfARowThatDoesNotUnpackLeavesItsChannelBlack) {
  std::string file = kPacked;
  file[kHeader.size() + 2 + 12] = '\xfe';
  const Decoded decoded = decode(as_bytes(file), {}, {.accept_warnings = true});
  EXPECT_EQ(std::string(as_text(decoded.image.pixels)), "\0yc\0ydaxwbxw"s);
  EXPECT_EQ(decoded.warnings, "damaged PSD: row 0 does not unpack to its width");
}

TEST(PsdFault, RejectsOtherModes) {
  std::string file = kPlain;
  file[25] = 4;
  EXPECT_EQ(pixels(file), "PSD that is neither grey nor RGB is not supported");
}

}  // namespace
}  // namespace chunkhit
