#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "decoded.h"

namespace chunkhit {
namespace {

using std::literals::string_literals::operator""s;
using std::literals::string_view_literals::operator""sv;

constexpr std::uint16_t kWidth = 256, kHeight = 257, kBits = 258, kCompression = 259, kPhotometric = 262,
                        kOffsets = 273, kOrientation = 274, kSamples = 277, kStripRows = 278, kSizes = 279,
                        kTileWidth = 322, kTileHeight = 323, kTileOffsets = 324, kTileSizes = 325;
using Tags = std::map<std::uint16_t, std::vector<std::uint32_t>>;

/// A little-endian TIFF: the body from byte 8 on, then the tags' numbers, then the tags.
std::string tiff(const Tags& tags, const std::string& body) {
  std::string numbers, directory;
  append_little(directory, static_cast<std::uint16_t>(tags.size()));
  for (const auto& [tag, values] : tags) {
    append_little(directory, tag);
    append_little(directory, std::uint16_t{4});
    append_little(directory, static_cast<std::uint32_t>(values.size()));
    if (values.size() == 1) {
      append_little(directory, values[0]);
      continue;
    }
    append_little(directory, static_cast<std::uint32_t>(8 + body.size() + numbers.size()));
    for (const std::uint32_t value : values) append_little(numbers, value);
  }
  std::string file = "II*\0"s;
  append_little(file, static_cast<std::uint32_t>(8 + body.size() + numbers.size()));
  return file + body + numbers + directory + std::string(4, '\0');
}

/// Two by two pixels of RGB in two strips.
Tags small_tags() {
  return {{kWidth, {2}},       {kHeight, {2}},  {kBits, {8}},      {kCompression, {1}}, {kPhotometric, {2}},
          {kOffsets, {8, 14}}, {kSamples, {3}}, {kStripRows, {1}}, {kSizes, {6, 6}}};
}

Tags with(Tags tags, const Tags& others) {
  for (const auto& [tag, values] : others) tags[tag] = values;
  return tags;
}

Tags tiled(std::uint32_t width, std::uint32_t height, std::uint32_t tile_width, std::uint32_t tile_height) {
  return {{kWidth, {width}},          {kHeight, {height}},          {kBits, {8}},
          {kCompression, {1}},        {kPhotometric, {1}},          {kSamples, {1}},
          {kTileWidth, {tile_width}}, {kTileHeight, {tile_height}}, {kTileOffsets, {8}},
          {kTileSizes, {256}}};
}

const std::string kBody = "abcdefghijkl"s;

std::string pixels(const std::string& file, const DecodePlan& plan = {}) {
  const Decoded decoded = decode(as_bytes(file), plan);
  return decoded.error.empty() ? std::string(as_text(decoded.image.pixels)) : decoded.error;
}

TEST(Tiff, GivesItsPixels) {
  const std::string file = tiff(small_tags(), kBody);
  EXPECT_EQ(pixels(file), "abcdefghijkl");
  EXPECT_EQ(pixels(file, {.region = {1, 1, 1, 1}}), "jkl");
  EXPECT_EQ(pixels(file, {.region = {1, 0, 1, 2}, .channels = 4}), "def\xffjkl\xff");
  EXPECT_EQ(pixels(tiff(with(small_tags(), {{kPhotometric, {1}}, {kSamples, {1}}, {kSizes, {2, 2}}}), kBody)),
            "abgh");
}

TEST(Tiff, KeepsTheHighByteOf16BitsInEitherByteOrder) {
  const std::string big =
      "MM\0*\0\0\0\x0c\x12\x34\xff\xab"s
      "\0\x07"
      "\1\0\0\3\0\0\0\1\0\2\0\0\1\1\0\3\0\0\0\1\0\1\0\0\1\2\0\3\0\0\0\1\0\x10\0\0"
      "\1\3\0\3\0\0\0\1\0\1\0\0\1\6\0\3\0\0\0\1\0\1\0\0\1\x11\0\4\0\0\0\1\0\0\0\x08"
      "\1\x17\0\4\0\0\0\1\0\0\0\4\0\0\0\0"s;
  EXPECT_EQ(pixels(big), "\x12\xff");
  const Tags tags = with(
      small_tags(),
      {{kHeight, {1}}, {kBits, {16}}, {kSamples, {1}}, {kPhotometric, {1}}, {kOffsets, {8}}, {kSizes, {4}}});
  EXPECT_EQ(pixels(tiff(tags, "\x34\x12\xab\xff")), "\x12\xff");
}

TEST(Tiff, TakesTheOrientationOfItsTag) {
  const auto orientation = [](std::uint32_t value) {
    return decode(as_bytes(tiff(with(small_tags(), {{kOrientation, {value}}}), kBody))).header.orientation;
  };
  EXPECT_EQ(orientation(6), 6);
  EXPECT_EQ(orientation(9), 1);
}

TEST(TiffError, FindsTruncationAtEveryLength) {
  const std::string file = tiff(small_tags(), kBody);
  for (std::size_t size = 0; size < file.size() - 4; ++size)  // the last four bytes say that no page follows
    EXPECT_NE(decode(as_bytes(file.substr(0, size))).error, "") << size;
  EXPECT_EQ(pixels(file.substr(0, 15)), "truncated: the data ends before the list of tags");
}

TEST(TiffError, NamesTheRowWhereTheDataEnds) {
  const Tags tags = with(small_tags(), {{kOffsets, {8, 4000}}});
  EXPECT_EQ(pixels(tiff(tags, kBody)), "truncated: the data ends near row 1 of 2");
}

TEST(TiffWarning, OfAMissingStripLeavesItBlack) {
  const std::string file = tiff(with(small_tags(), {{kOffsets, {8, 4000}}}), kBody);
  const Decoded decoded = decode(as_bytes(file), {}, {.accept_warnings = true});
  EXPECT_EQ(decoded.error, "");
  EXPECT_EQ(as_text(decoded.image.pixels), "abcdef\0\0\0\0\0\0"sv);
  EXPECT_EQ(decoded.warnings, "truncated: the data ends near row 1 of 2");
  const std::string none = tiff(with(small_tags(), {{kOffsets, {4000, 4000}}}), kBody);
  EXPECT_EQ(decode(as_bytes(none), {}, {.accept_warnings = true}).error,
            "truncated: the data ends near row 0 of 2 (and 1 more warning)");
}

TEST(TiffWarning, CheckingTheRegionAloneReadsNoOtherStrip) {
  const std::string file = tiff(with(small_tags(), {{kOffsets, {8, 4000}}}), kBody);
  const DecodePlan first_row{.region = {0, 0, 2, 1}};
  EXPECT_EQ(decode(as_bytes(file), first_row, {.check = DecodeCheck::region}).error, "");
  EXPECT_NE(decode(as_bytes(file), first_row).error, "");
}

TEST(TiffError, RejectsTagsThatLieWithoutFillingTheMemory) {
  const long before = peak_kilobytes();
  constexpr std::uint32_t kHuge = 0xffffffff;
  const auto error = [](const Tags& others) {
    return decode(as_bytes(tiff(with(small_tags(), others), kBody))).error;
  };
  EXPECT_EQ(error({{kWidth, {30'000}}, {kHeight, {30'000}}, {kStripRows, {30'000}}}),
            "is 30000 x 30000 pixels, over the limit of 256000000 pixels");
  for (const Tags& others : std::vector<Tags>{{{kWidth, {kHuge}}, {kHeight, {kHuge}}},
                                              {{kHeight, {kHuge}}},
                                              {{kWidth, {0}}},
                                              {{kHeight, {0}}},
                                              {{kStripRows, {0}}},
                                              {{kSamples, {0}}},
                                              {{kSamples, {60'000}}},
                                              {{kBits, {0}}},
                                              {{kWidth, {16'000}}, {kHeight, {15'999}}},
                                              {{kOffsets, {kHuge, kHuge}}},
                                              {{kSizes, {kHuge, kHuge}}, {kCompression, {8}}}})
    EXPECT_NE(error(others), "");
  EXPECT_EQ(pixels(tiff(tiled(10, 10, 1u << 30, 1u << 30), kBody)),
            "has tiles of 1073741824 x 1073741824 pixels, over the limit of 256000000 pixels");
  EXPECT_NE(pixels(tiff(tiled(10, 10, kHuge, kHuge), kBody)), "");
  EXPECT_NE(pixels(tiff(tiled(10, 10, 0, 16), kBody)), "");
  std::string counts = tiff(small_tags(), kBody);  // 2^30 offsets, so it says
  counts.replace(counts.find("\x11\1\4\0\2\0\0\0"s), 8, "\x11\1\4\0\0\0\0\x40"s);
  EXPECT_NE(pixels(counts), "");
  EXPECT_LT(peak_kilobytes() - before, 40 << 10);
}

TEST(TiffError, NamesWhatIsDamaged) {
  const std::string deflated = tiff(with(small_tags(), {{kCompression, {8}}}), kBody);
  EXPECT_TRUE(pixels(deflated).starts_with("damaged TIFF near row 0 of 2: ")) << pixels(deflated);
  const std::string short_strip = tiff(with(small_tags(), {{kSizes, {6, 4}}}), kBody);
  EXPECT_TRUE(pixels(short_strip).starts_with("damaged TIFF near row 1 of 2: ")) << pixels(short_strip);
  EXPECT_EQ(pixels(tiff(with(small_tags(), {{kPhotometric, {3}}, {kSamples, {1}}, {kBits, {4}}}), kBody)),
            "damaged TIFF: TIFF directory is missing required \"Colormap\" field");
}

TEST(TiffError, EndsAtTheLimitOfTime) {
  EXPECT_EQ(decode_late(as_bytes(tiff(small_tags(), kBody))),
            "takes longer to decode than `max_seconds_per_image` allows: 1 second");
}

}  // namespace
}  // namespace chunkhit
