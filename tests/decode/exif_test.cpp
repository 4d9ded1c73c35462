#include "decode/exif.h"

#include <gtest/gtest.h>

#include <string>

namespace chunkhit {
namespace {

using std::literals::string_view_literals::operator""sv;

constexpr std::string_view kLittle = "Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0"sv;
constexpr std::string_view kBig = "Exif\0\0MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"sv;

TEST(Exif, TellsTheOrientationInBothByteOrders) {
  EXPECT_EQ(exif_orientation(as_bytes(kLittle)), 6);
  EXPECT_EQ(exif_orientation(as_bytes(kBig)), 6);
}

TEST(Exif, TakesAnOrientationThatIsWrittenAsLong) {
  std::string little(kLittle);
  little[18] = 4;
  EXPECT_EQ(exif_orientation(as_bytes(little)), 6);
  std::string big(kBig);
  big[19] = 4;
  big[25] = 0;
  big[27] = 6;
  EXPECT_EQ(exif_orientation(as_bytes(big)), 6);
  little[18] = 1;  // BYTE, which Pillow does not take either
  EXPECT_EQ(exif_orientation(as_bytes(little)), 1);
}

TEST(Exif, IsUprightWhereTheOrientationIsNone) {
  std::string other(kLittle);
  other[24] = 9;
  EXPECT_EQ(exif_orientation(as_bytes(other)), 1);
  other[24] = 0;
  EXPECT_EQ(exif_orientation(as_bytes(other)), 1);
}

TEST(Exif, IsUprightWhereItIsMalformed) {
  for (std::size_t size = 0; size < 26; ++size)
    EXPECT_EQ(exif_orientation(as_bytes(kLittle.substr(0, size))), 1);
  std::string loop(kLittle);
  loop[10] = 0x7f;  // the directory lies beyond the end
  EXPECT_EQ(exif_orientation(as_bytes(loop)), 1);
}

}  // namespace
}  // namespace chunkhit
