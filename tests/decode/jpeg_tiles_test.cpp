#include "decode/jpeg_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "base/random.h"
#include "decode/jpeg_entropy.h"
#include "decoded.h"
#include "support/jpeg_writer.h"
#include "support/simulated_clock.h"

namespace chunkhit {
namespace {

constexpr DecodeOptions kNoLimits{.check = DecodeCheck::region};

ByteBuffer tiled(Bytes file, std::uint32_t tile_mcus = 4) {
  DecodeMonitor monitor({});
  ByteBuffer out;
  write_tiled_jpeg(file, tile_mcus, monitor, out);
  return out;
}

std::string error_of_tiling(Bytes file) {
  try {
    static_cast<void>(tiled(file));
  } catch (const ImageError& error) {
    return error.reason();
  }
  return "tiled";
}

bool has_tiles(Bytes file) { return JpegTiles().find(file); }

// Counts regions that differ from those of the original, decoded whole; the whole image first.
int count_differing(const std::vector<std::uint8_t>& file, std::uint32_t tile_mcus) {
  const Image whole = decode(file).image;
  const ByteBuffer with_tiles = tiled(file, tile_mcus);
  int differing = is_region(decode(with_tiles).image, whole, {0, 0, whole.width, whole.height}) ? 0 : 1;
  JpegTiles tiles;
  EXPECT_TRUE(tiles.find(with_tiles));
  EXPECT_EQ(tiles.width(), whole.width);
  EXPECT_EQ(tiles.height(), whole.height);
  std::uint64_t position = 0;
  ByteBuffer cut;
  for (int i = 0; i < 40; ++i) {
    const Rect region = draw_region(position, whole);
    const Rect in_cut = tiles.cut(with_tiles, region, cut);
    const Decoded part = decode(cut, {.region = in_cut}, kNoLimits);
    EXPECT_EQ(part.error, "");
    if (!is_region(part.image, whole, region)) ++differing;
  }
  return differing;
}

constexpr std::array<std::array<std::uint32_t, 2>, 7> kSizes{
    {{1, 1}, {7, 5}, {18, 18}, {33, 31}, {130, 66}, {66, 130}, {368, 90}}};

int differing_for_all_samplings(JpegWriteSpec spec, std::uint32_t channels) {
  int differing = 0;
  for (const auto& [horizontal, vertical] : kJpegSamplings)
    for (const auto& [width, height] : kSizes)
      for (const std::uint32_t tile_mcus : {1u, 4u, 100u}) {
        spec.h_samp = horizontal;
        spec.v_samp = vertical;
        differing += count_differing(write_jpeg(make_image(width, height, channels, width), spec), tile_mcus);
      }
  return differing;
}

TEST(JpegTiles, GiveThePixelsOfTheWholeImage) { EXPECT_EQ(differing_for_all_samplings({}, 3), 0); }
TEST(JpegTiles, GiveThePixelsOfGrayImages) { EXPECT_EQ(differing_for_all_samplings({}, 1), 0); }
TEST(JpegTiles, GiveThePixelsOfProgressiveImages) {
  EXPECT_EQ(differing_for_all_samplings({.progressive = true}, 3), 0);
}
TEST(JpegTiles, GiveThePixelsOfArithmeticCodes) {
  EXPECT_EQ(differing_for_all_samplings({.arithmetic = true}, 3), 0);
}
TEST(JpegTiles, GiveThePixelsOfRgbColors) {
  EXPECT_EQ(differing_for_all_samplings({.adobe_rgb = true}, 3), 0);
}

/// The restart interval of a file, MCUs.
unsigned restart_mcus(const std::vector<std::uint8_t>& file) {
  const std::size_t at = find_marker(file, 0xdd);
  return file[at + 4] * 256u + file[at + 5];
}

void expect_the_bytes_of_libjpeg(const JpegWriteSpec& spec, std::uint32_t channels) {
  for (const auto& [width, height] : kSizes)
    for (const std::uint32_t tile_mcus : {1u, 4u, 100u}) {
      const std::vector<std::uint8_t> file = write_jpeg(make_image(width, height, channels, width), spec);
      const ByteBuffer written = tiled(file, tile_mcus);
      const std::vector<std::uint8_t> found(written.begin(), written.end());
      ASSERT_EQ(found, transcode_jpeg(file, restart_mcus(found)))
          << width << " x " << height << ", tiles of " << tile_mcus << ", samples " << spec.h_samp << " x "
          << spec.v_samp << ", quality " << spec.quality;
    }
}

TEST(JpegTiles, HaveTheBytesThatLibjpegWrites) {
  for (const auto& [horizontal, vertical] : kJpegSamplings)
    for (const int quality : {1, 50, 100})
      expect_the_bytes_of_libjpeg({.quality = quality, .h_samp = horizontal, .v_samp = vertical}, 3);
  expect_the_bytes_of_libjpeg({.quality = 95}, 1);
  expect_the_bytes_of_libjpeg({.adobe_rgb = true}, 3);
  expect_the_bytes_of_libjpeg({.long_codes = true}, 3);
  expect_the_bytes_of_libjpeg({.restart_rows = 1}, 3);
  expect_the_bytes_of_libjpeg({.restart_mcus = 3}, 3);
  expect_the_bytes_of_libjpeg({.separate_scans = true}, 3);
}

// What is behind the image in its last blocks is the file's, and is not written.
TEST(JpegTiles, HaveTheBytesThatLibjpegWritesOfTilesOfTiles) {
  const ByteBuffer first = tiled(write_jpeg(make_image(130, 66, 3, 5), {.quality = 90}), 2);
  const std::vector<std::uint8_t> file(first.begin(), first.end());
  const ByteBuffer again = tiled(file, 5);
  const std::vector<std::uint8_t> found(again.begin(), again.end());
  EXPECT_EQ(found, transcode_jpeg(file, restart_mcus(found)));
}

// libjpeg interpolates the chroma of no row of up to four pixels, which such a tile alone would have.
TEST(JpegTiles, GiveThePixelsOfALastTileOfThreeOrFourColumns) {
  for (const std::uint32_t width : {19u, 20u, 21u})
    for (const int v_samp : {1, 2}) {
      const std::vector<std::uint8_t> file =
          write_jpeg(make_image(width, 20, 3, width), {.h_samp = 2, .v_samp = v_samp});
      const Image whole = decode(file).image;
      const ByteBuffer with_tiles = tiled(file, 1);
      JpegTiles tiles;
      ASSERT_TRUE(tiles.find(with_tiles));
      ByteBuffer cut;
      for (std::uint32_t x = 16; x < width; ++x) {
        const Rect region{x, 3, width - x, 9};
        const Rect in_cut = tiles.cut(with_tiles, region, cut);
        EXPECT_TRUE(is_region(decode(cut, {.region = in_cut}, kNoLimits).image, whole, region))
            << width << " columns, from " << x;
      }
    }
}

TEST(JpegTiles, KeepTheColorSpaceOfComponentsThatAreNumberedOtherwise) {
  std::vector<std::uint8_t> file = write_jpeg(make_image(64, 48, 3, 5), {});
  // 'R', 'G', 'B' with a JFIF header are YCbCr.
  for (std::size_t i = 0; i + 1 < file.size(); ++i) {
    const bool is_frame = file[i] == 0xff && file[i + 1] == 0xc0,
               is_scan = file[i] == 0xff && file[i + 1] == 0xda;
    for (std::size_t component = 0; component < 3 && (is_frame || is_scan); ++component)
      file[i + (is_frame ? 10 + 3 * component : 5 + 2 * component)] = "RGB"[component];
    if (is_scan) break;
  }
  EXPECT_EQ(count_differing(file, 4), 0);
}

TEST(JpegTiles, HaveNoMetadataAndFewMoreBytes) {
  const std::vector<std::uint8_t> file = write_jpeg(make_image(500, 375, 3, 1), {.exif_orientation = 6});
  const ByteBuffer with_tiles = tiled(file);
  EXPECT_LT(static_cast<double>(with_tiles.size()), 1.03 * static_cast<double>(file.size()));
  EXPECT_EQ(decode(with_tiles).header.orientation, 1);
  JpegTiles tiles;
  ASSERT_TRUE(tiles.find(with_tiles));
  ByteBuffer cut;
  const Rect in_cut = tiles.cut(with_tiles, {200, 100, 100, 60}, cut);
  EXPECT_LT(cut.size(), with_tiles.size() / 8);
  EXPECT_EQ(in_cut.width, 100u);
}

TEST(JpegTiles, AreNotWrittenWherePixelsWouldDiffer) {
  const Image image = make_image(64, 48, 3, 5);
  EXPECT_EQ(error_of_tiling(write_jpeg(image, {.first_scan_only = true})),
            "progressive JPEG whose scans are not all there");
  EXPECT_EQ(error_of_tiling(write_jpeg(make_image(64, 48, 4, 5), {})), "CMYK has no tiles");
  std::vector<std::uint8_t> file = write_jpeg(image, {});
  file.resize(file.size() / 2);
  EXPECT_NE(error_of_tiling(file), "tiled");
  EXPECT_NE(error_of_tiling({}), "tiled");
}

// Ends while coefficients are written, when the room for them has grown: it was freed twice.
std::uint64_t times_given_up(const JpegWriteSpec& spec) {
  const std::vector<std::uint8_t> file = write_jpeg(make_image(400, 400, 3, 1), spec);
  std::uint64_t given_up = 0;
  for (bool is_written = false; !is_written;) {
    SimulatedClock clock;
    DecodeMonitor monitor({.max_seconds = 1});
    clock.compute(std::chrono::seconds(2), given_up + 1);
    ByteBuffer out;
    try {
      write_tiled_jpeg(file, 4, monitor, out);
      is_written = true;
    } catch (const ImageError& error) {
      ++given_up;
      EXPECT_EQ(error.reason(), "takes longer to decode than `max_seconds_per_image` allows: 1 second");
    }
  }
  return given_up;
}

TEST(JpegTiles, AreGivenUpWhereTheTimeIsUp) {
  // Before each row of MCUs; libjpeg alone needs more passes.
  EXPECT_EQ(std::min<std::uint64_t>(times_given_up({.quality = 95}), JpegEntropy::is_built() ? 50 : 25), 25u);
  EXPECT_GT(times_given_up({.quality = 95, .progressive = true}), 50u);  // between rows of both images
}

TEST(JpegTiles, AreNotFoundInOtherFiles) {
  const Image image = make_image(64, 48, 3, 5);
  const ByteBuffer good = tiled(write_jpeg(image, {}));
  EXPECT_TRUE(has_tiles(good));
  EXPECT_FALSE(has_tiles({}));
  EXPECT_FALSE(has_tiles(write_jpeg(image, {})));
  EXPECT_FALSE(has_tiles(write_jpeg(image, {.progressive = true})));
  EXPECT_FALSE(has_tiles(write_jpeg(image, {.arithmetic = true})));
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes)
    ASSERT_FALSE(has_tiles(Bytes(good).first(bytes))) << bytes;
}

// Under a sanitizer this also shows that nothing beyond the files is read.
TEST(JpegTiles, StayInsideOfDamagedFiles) {
  const ByteBuffer good = tiled(write_jpeg(make_image(130, 66, 3, 5), {}));
  int found = 0;
  ByteBuffer cut;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    ByteBuffer file = good;
    for (std::uint64_t k = 0; k <= i % 5; ++k) {
      // Half of the damage is in the headers.
      const std::uint64_t room = k % 2 == 0 ? 700 : file.size();
      file[random_below(std::min<std::uint64_t>(room, file.size()), i, Purpose::crop, k)] =
          static_cast<std::uint8_t>(random_bits(i, Purpose::flip, k));
    }
    JpegTiles tiles;
    if (!tiles.find(file)) continue;
    ++found;
    Image whole;
    whole.width = std::min(tiles.width(), 1000u);
    whole.height = std::min(tiles.height(), 1000u);
    std::uint64_t position = i;
    const Rect in_cut = tiles.cut(file, draw_region(position, whole), cut);
    static_cast<void>(
        decode(cut, {.region = in_cut}, {.max_pixels = 4'000'000, .check = DecodeCheck::region}));
  }
  EXPECT_GT(found, 300);
}

}  // namespace
}  // namespace chunkhit
