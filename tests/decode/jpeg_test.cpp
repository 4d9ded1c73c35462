#include <gtest/gtest.h>

#include "decode/image_decoder.h"
#include "decoded.h"
#include "jpeg_writer.h"
#include "support/depth.h"

namespace chunkhit {
namespace {

using File = std::vector<std::uint8_t>;

File photo(const JpegWriteSpec& spec = {}) { return write_jpeg(make_image(200, 150, 3, 1), spec); }

bool starts_with(const std::string& text, std::string_view start) { return text.starts_with(start); }

// Decodes random regions at every shrink and counts those that differ from the same region of the whole
// image.
int count_differing_regions(const File& file, int regions_each) {
  int differing = 0;
  std::uint64_t position = 0;
  for (const std::uint32_t shrink : {1u, 2u, 4u, 8u}) {
    const Decoded whole = decode(file, {.shrink = shrink});
    EXPECT_EQ(whole.error, "");
    for (int i = 0; i < regions_each; ++i) {
      const Rect region = draw_region(position, whole.image);
      const Decoded part = decode(file, {.shrink = shrink, .region = region});
      EXPECT_EQ(part.error, "");
      if (!part.error.empty() || !is_region(part.image, whole.image, region)) ++differing;
    }
  }
  return differing;
}

int differing_for_all_samplings(JpegWriteSpec spec, std::uint32_t channels) {
  int differing = 0;
  for (const auto& [horizontal, vertical] : kJpegSamplings) {
    if (channels == 4 && horizontal * vertical > 4) continue;  // more than ten blocks an MCU
    spec.h_samp = horizontal;
    spec.v_samp = vertical;
    for (const auto& [width, height] : kJpegSizes)
      differing += count_differing_regions(write_jpeg(make_image(width, height, channels, width), spec),
                                           40 / static_cast<int>(sweep_stride(5)));
  }
  return differing;
}

TEST(JpegRegion, EqualsThatOfTheWholeImage) { EXPECT_EQ(differing_for_all_samplings({}, 3), 0); }

TEST(JpegRegion, EqualsThatOfAWholeProgressiveImage) {
  EXPECT_EQ(differing_for_all_samplings({.progressive = true}, 3), 0);
}

TEST(JpegRegion, EqualsThatOfAImageThatIsSmoothedForLackOfScans) {
  EXPECT_EQ(differing_for_all_samplings({.progressive = true, .first_scan_only = true}, 3), 0);
}

TEST(JpegRegion, EqualsThatOfAnArithmeticCodedImage) {
  EXPECT_EQ(differing_for_all_samplings({.arithmetic = true}, 3), 0);
}

TEST(JpegRegion, EqualsThatOfAImageWithRestartMarkers) {
  EXPECT_EQ(differing_for_all_samplings({.restart_rows = 1}, 3), 0);
}

TEST(JpegRegion, EqualsThatOfAImageInRgb) {
  EXPECT_EQ(differing_for_all_samplings({.adobe_rgb = true}, 3), 0);
}

TEST(JpegRegion, EqualsThatOfAGreyOrCmykImage) {
  EXPECT_EQ(differing_for_all_samplings({}, 1), 0);
  EXPECT_EQ(differing_for_all_samplings({}, 4), 0);
}

TEST(JpegRegion, OfTwoColumnsInTheLastMcuIsUpsampledLikeTheRest) {
  const File file = write_jpeg(make_image(130, 98, 3, 4), {});
  const Decoded whole = decode(file);
  const Rect region{129, 88, 1, 4};
  EXPECT_TRUE(is_region(decode(file, {.region = region}).image, whole.image, region));
}

TEST(JpegHeader, TellsSizeChannelsAndScaling) {
  const ImageHeader header = decode(photo()).header;
  EXPECT_EQ(header.format, "jpeg");
  EXPECT_EQ(header.width, 200u);
  EXPECT_EQ(header.height, 150u);
  EXPECT_EQ(header.channels, 3u);
  EXPECT_EQ(header.orientation, 1);
  EXPECT_TRUE(header.scales);
  EXPECT_EQ(decode(write_jpeg(make_image(8, 8, 1, 1), {})).header.channels, 1u);
  EXPECT_EQ(decode(write_jpeg(make_image(8, 8, 4, 1), {})).header.channels, 3u);
}

TEST(JpegHeader, CountsTheCoefficientsOfAProgressiveImage) {
  const ImageHeader header = decode(photo({.progressive = true})).header;
  // 4:2:0: 208 × 160 samples of luma, padded to MCUs, and half as many of chroma; two bytes each.
  EXPECT_GE(header.extra_bytes, 208u * 160 * 3 / 2 * 2);
  EXPECT_LE(header.extra_bytes, 208u * 160 * 3 / 2 * 2 + (1u << 20));
}

TEST(JpegHeader, TellsTheOrientation) {
  for (int orientation = 1; orientation <= 8; ++orientation)
    EXPECT_EQ(decode(photo({.exif_orientation = orientation})).header.orientation, orientation);
  EXPECT_EQ(decode(photo({.exif_orientation = 9})).header.orientation, 1);
}

TEST(JpegShrink, RoundsSizesUp) {
  const File file = write_jpeg(make_image(33, 17, 3, 1), {});
  for (const std::uint32_t shrink : {2u, 4u, 8u}) {
    const Decoded decoded = decode(file, {.shrink = shrink});
    ASSERT_EQ(decoded.error, "");
    EXPECT_EQ(decoded.image.width, (33 + shrink - 1) / shrink);
    EXPECT_EQ(decoded.image.height, (17 + shrink - 1) / shrink);
  }
}

TEST(JpegError, NamesTheRowWhereTheDataEnds) {
  File file = photo();
  file.resize(file.size() / 2);
  const std::string error = decode(file).error;
  ASSERT_TRUE(starts_with(error, "truncated: the data ends near row ")) << error;
  const int row = std::stoi(error.substr(34));
  EXPECT_GE(row, 40);
  EXPECT_LE(row, 110);
  EXPECT_NE(error.find(" of 150"), std::string::npos) << error;
}

TEST(JpegError, FindsTruncationBelowTheRegion) {
  File file = photo();
  file.resize(file.size() - 40);
  const Rect top{0, 0, 200, 16};
  const std::string error = decode(file, {.region = top}).error;
  EXPECT_TRUE(starts_with(error, "truncated: the data ends near row ")) << error;
  EXPECT_EQ(decode(file, {.region = top}, {.check = DecodeCheck::region}).error,
            "truncated: there is no end-of-image marker after the last row");
}

// A hole of zeros from `begin` on; its end marker stays.
File with_hole(File file, std::size_t begin) {
  std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(begin), 300, std::uint8_t{0});
  return file;
}

TEST(JpegError, FindsDamageThatTheRegionHides) {
  const File file = with_hole(photo(), photo().size() - 1000);
  for (const std::uint32_t shrink : {1u, 4u}) {
    const DecodePlan top{.shrink = shrink, .region = {0, 0, 40, 16}};
    EXPECT_TRUE(starts_with(decode(file, top).error, "Corrupt JPEG data")) << decode(file, top).error;
    EXPECT_EQ(decode(file, top, {.check = DecodeCheck::region}).error, "");
  }
}

TEST(JpegError, FindsDamageAboveAndBesideTheRegion) {
  const File file = with_hole(photo(), photo().size() - 1000);
  EXPECT_NE(decode(file, {.region = {0, 140, 8, 8}}).error, "");
  EXPECT_NE(decode(file, {.region = {190, 100, 8, 8}}).error, "");
}

TEST(JpegError, FindsTruncationAtEveryLength) {
  for (const JpegWriteSpec& spec :
       {JpegWriteSpec{}, JpegWriteSpec{.restart_mcus = 3}, JpegWriteSpec{.arithmetic = true},
        JpegWriteSpec{.progressive = true}, JpegWriteSpec{.separate_scans = true}}) {
    const File file = write_jpeg(make_image(40, 40, 3, 1), spec);
    for (std::size_t size = 0; size + 2 < file.size(); ++size) {
      const File start(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_NE(decode(start).error, "") << size;
      EXPECT_NE(decode(start, {.region = {3, 3, 10, 10}}).error, "") << size;
    }
  }
}

TEST(JpegError, FindsTruncationOfAProgressiveImage) {
  File file = photo({.progressive = true});
  file.resize(file.size() / 2);
  const std::string error = decode(file, {.region = {0, 0, 8, 8}}).error;
  EXPECT_TRUE(starts_with(error, "truncated: the data ends near row ")) << error;
  EXPECT_NE(error.find(" in scan "), std::string::npos) << error;
}

TEST(JpegError, SaysThatTheDataEndsInTheHeader) {
  File file = photo();
  file.resize(100);
  EXPECT_EQ(decode(file).error, "truncated: the data ends in the header");
}

TEST(JpegWarning, IsAcceptedOnRequest) {
  File file = photo();
  const Decoded whole = decode(file);
  file.resize(file.size() / 2);
  const Decoded decoded = decode(file, {}, {.accept_warnings = true});
  ASSERT_EQ(decoded.error, "");
  EXPECT_TRUE(starts_with(decoded.warnings, "truncated: the data ends near row ")) << decoded.warnings;
  const Rect intact{0, 0, 200, 16};
  EXPECT_TRUE(std::equal(decoded.image.row(0), decoded.image.row(intact.height), whole.image.row(0)));
}

TEST(JpegWarning, IsAFaultWithLibjpegsWords) {
  File file = photo({.restart_rows = 1});
  const std::size_t restart = find_marker(file, 0xd1);
  ASSERT_LT(restart, file.size());
  file[restart + 1] = 0xd5;
  EXPECT_NE(decode(file).error.find("marker"), std::string::npos) << decode(file).error;
}

TEST(JpegError, SaysThatAProcessIsNotSupportedWhereItIsNoDamage) {
  File file = photo();
  const std::size_t frame = find_marker(file, 0xc0);
  for (const auto& [sof, reason] : {std::pair(0xc3, "lossless JPEG (SOF 0xc3) is not supported"),
                                    std::pair(0xc5, "hierarchical JPEG (SOF 0xc5) is not supported"),
                                    std::pair(0xcf, "hierarchical lossless JPEG (SOF 0xcf) is not supported"),
                                    std::pair(0xf7, "JPEG-LS is not supported")}) {
    file[frame + 1] = static_cast<std::uint8_t>(sof);
    EXPECT_EQ(decode(file).error, reason);
  }
  file = photo();
  file[frame + 4] = 12;
  EXPECT_EQ(decode(file).error, "JPEG of 12 bits a sample is not supported");
}

TEST(JpegOddity, OfAFileThatLacksOnlyItsEndMarkerCostsNoPixel) {
  for (const JpegWriteSpec& spec :
       {JpegWriteSpec{}, JpegWriteSpec{.progressive = true}, JpegWriteSpec{.restart_rows = 1},
        JpegWriteSpec{.h_samp = 1}, JpegWriteSpec{.separate_scans = true}})
    for (const std::size_t lacking : {1, 2}) {
      const File whole = photo(spec);
      const File file(whole.begin(), whole.end() - static_cast<std::ptrdiff_t>(lacking));
      for (const DecodeCheck check : {DecodeCheck::whole, DecodeCheck::region}) {
        const Decoded decoded = decode(file, {}, {.check = check});
        EXPECT_EQ(decoded.error, "");
        EXPECT_EQ(decoded.image.pixels, decode(whole).image.pixels);
      }
      EXPECT_EQ(decode(file).warnings, "there is no end-of-image marker after the last row");
    }
}

TEST(JpegOddity, OfAProgressionInABaselineScanCostsNoPixel) {
  const File whole = photo();
  File file = whole;
  const std::size_t scan = find_marker(file, 0xda);
  file[scan + 12] = 0;  // the last coefficient
  EXPECT_EQ(decode(file).error, "");
  EXPECT_EQ(decode(file).warnings, "Invalid SOS parameters for sequential JPEG");
  EXPECT_EQ(decode(file).image.pixels, decode(whole).image.pixels);
}

TEST(JpegOddity, InTheHeaderIsPackedWithAWarning) {
  File later = photo();
  later[find_marker(later, 0xe0) + 9] = 9;  // the major version of JFIF
  File junk = photo();
  junk.insert(junk.begin() + static_cast<std::ptrdiff_t>(find_marker(junk, 0xdb)), {1, 2, 3});
  for (const File& file : {later, junk}) {
    const Decoded decoded = decode(file);
    EXPECT_EQ(decoded.error, "");
    EXPECT_NE(decoded.warnings, "");
    EXPECT_EQ(decoded.image.pixels, decode(photo()).image.pixels);
  }
  EXPECT_EQ(decode(photo()).warnings, "");
}

TEST(JpegOddity, BehindAScanIsDamage) {
  File file = photo();
  file.insert(file.end() - 2, 40, 7);
  EXPECT_NE(decode(file).error.find("extraneous bytes before marker 0xd9"), std::string::npos);
}

TEST(JpegError, RejectsManyPixelsFromTheHeader) {
  File file = photo();
  const std::size_t frame = find_marker(file, 0xc0);
  ASSERT_LT(frame, file.size());
  for (const std::size_t at : {frame + 5, frame + 7}) {
    file[at] = 65500 >> 8;
    file[at + 1] = 65500 & 255;
  }
  EXPECT_EQ(decode(file).error, "is 65500 x 65500 pixels, over the limit of 256000000 pixels");
}

TEST(JpegError, RejectsMoreThanAHundredScans) {
  const File file = photo({.progressive = true});
  const std::size_t last = file.size() - 2;
  std::size_t scan = last;
  while (file[scan] != 0xff || file[scan + 1] != 0xda) --scan;
  File bomb(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(last));
  for (int i = 0; i < 120; ++i)
    bomb.insert(bomb.end(), file.begin() + static_cast<std::ptrdiff_t>(scan),
                file.begin() + static_cast<std::ptrdiff_t>(last));
  bomb.insert(bomb.end(), {0xff, 0xd9});
  EXPECT_EQ(decode(bomb, {}, {.accept_warnings = true}).error, "has more than 100 scans");
}

TEST(JpegError, IsRepeatable) {
  const File good = photo();
  File bad = good;
  bad.resize(bad.size() / 2);
  const Decoded before = decode(good);
  EXPECT_NE(decode(bad).error, "");
  EXPECT_EQ(decode(good).image.pixels, before.image.pixels);
}

}  // namespace
}  // namespace chunkhit
