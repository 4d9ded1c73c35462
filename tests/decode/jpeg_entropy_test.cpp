#include "decode/jpeg_entropy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>
// jpeglib.h needs FILE and size_t before it.
#include <jpeglib.h>

#include "base/random.h"
#include "decode/jpeg_codes.h"
#include "decoded.h"
#include "support/depth.h"
#include "support/jpeg_writer.h"

// Of libjpeg, as in jpeg_entropy.cpp.
extern "C" void jpeg_gen_optimal_table(j_compress_ptr info, JHUFF_TBL* table, long counts[]);

namespace chunkhit {
namespace {

using File = std::vector<std::uint8_t>;

File photo(const JpegWriteSpec& spec = {}) { return write_jpeg(make_image(130, 98, 3, 1), spec); }

/// Whether codes of a file were decoded to their end by our decoder.
bool is_decoded_by_us(const File& file) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  JpegEntropy entropy;
  info.err = jpeg_std_error(&errors);
  errors.output_message = [](j_common_ptr) {};
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, file.data(), static_cast<unsigned long>(file.size()));
  jpeg_read_header(&info, TRUE);
  info.client_data = &entropy;
  jpeg_start_decompress(&info);
  entropy.take_over(info);
  std::vector<std::uint8_t> pixels(std::size_t{info.output_width} * 4);
  JSAMPROW row = pixels.data();
  while (info.output_scanline < info.output_height) jpeg_read_scanlines(&info, &row, 1);
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return entropy.is_decoding();
}

/// What differs from decoding by libjpeg alone; empty where nothing does.
std::string difference(const File& file, const DecodePlan& plan = {}, DecodeOptions options = {}) {
  const Decoded ours = decode(file, plan, options);
  options.stock_entropy = true;
  const Decoded stock = decode(file, plan, options);
  if (ours.error != stock.error) return ours.error + ", expected " + stock.error;
  if (ours.warnings != stock.warnings) return ours.warnings + ", expected " + stock.warnings;
  return !ours.error.empty() || ours.image.pixels == stock.image.pixels ? "" : "pixels";
}

/// The same for all that may be wanted of a file.
std::string any_difference(const File& file) {
  const Decoded whole = decode(file);
  for (const DecodeCheck check : {DecodeCheck::whole, DecodeCheck::region})
    for (const bool accept_warnings : {false, true})
      for (const std::uint32_t shrink : {1u, 2u, 8u}) {
        DecodePlan plan{.shrink = shrink};
        const DecodeOptions options{
            .max_pixels = 1'000'000, .accept_warnings = accept_warnings, .check = check};
        if (std::string found = difference(file, plan, options); !found.empty()) return found;
        const std::uint32_t width = (whole.header.width + shrink - 1) / shrink;
        const std::uint32_t height = (whole.header.height + shrink - 1) / shrink;
        if (width == 0 || height == 0) continue;
        plan.region = {width / 3, height / 3, (width + 2) / 3, (height + 2) / 3};
        if (std::string found = difference(file, plan, options); !found.empty()) return found;
      }
  return "";
}

void expect_ours_for_all_samplings(JpegWriteSpec spec, std::uint32_t channels) {
  for (const auto& [horizontal, vertical] : kJpegSamplings) {
    if (channels == 4 && horizontal * vertical > 4) continue;  // more than ten blocks an MCU
    for (const auto& [width, height] : kJpegSizes) {
      spec.h_samp = horizontal;
      spec.v_samp = vertical;
      const File file = write_jpeg(make_image(width, height, channels, width), spec);
      ASSERT_EQ(decode(file).error, "");
      EXPECT_EQ(is_decoded_by_us(file), JpegEntropy::is_built());
      EXPECT_EQ(any_difference(file), "")
          << horizontal << " x " << vertical << ", " << width << " x " << height;
    }
  }
}

TEST(JpegEntropy, GivesLibjpegsPixels) { expect_ours_for_all_samplings({}, 3); }
TEST(JpegEntropy, GivesLibjpegsPixelsOfGrayAndCmykImages) {
  expect_ours_for_all_samplings({}, 1);
  expect_ours_for_all_samplings({}, 4);
}
TEST(JpegEntropy, GivesLibjpegsPixelsAtAnyRestartInterval) {
  for (const unsigned mcus : {1u, 2u, 3u, 7u, 17u, 1000u, 65535u})
    expect_ours_for_all_samplings({.restart_mcus = mcus}, 3);
  expect_ours_for_all_samplings({.restart_rows = 1}, 1);
}
TEST(JpegEntropy, GivesLibjpegsPixelsAtAnyQuality) {
  for (const int quality : {1, 30, 95, 100}) expect_ours_for_all_samplings({.quality = quality}, 3);
}
TEST(JpegEntropy, GivesLibjpegsPixelsOfLongCodes) {
  for (const int quality : {30, 100})
    expect_ours_for_all_samplings({.quality = quality, .long_codes = true, .restart_mcus = 5}, 3);
}

TEST(JpegEntropy, LeavesOtherCodesToLibjpeg) {
  for (const JpegWriteSpec& spec :
       {JpegWriteSpec{.progressive = true}, JpegWriteSpec{.arithmetic = true},
        JpegWriteSpec{.progressive = true, .arithmetic = true}, JpegWriteSpec{.separate_scans = true}}) {
    EXPECT_FALSE(is_decoded_by_us(photo(spec)));
    EXPECT_EQ(any_difference(photo(spec)), "");
  }
}

// Also where the data ends within the bytes that libjpeg reads before it needs them.
TEST(JpegEntropy, GivesLibjpegsErrorsOfTruncatedFiles) {
  for (const unsigned mcus : {0u, 3u}) {
    const File file = write_jpeg(make_image(40, 40, 3, 1), {.restart_mcus = mcus});
    for (std::size_t bytes = find_marker(file, 0xda); bytes < file.size(); bytes += sweep_stride(5)) {
      const File start(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(bytes));
      ASSERT_EQ(any_difference(start), "") << bytes;
      File ended = start;
      ended.insert(ended.end(), {0xff, 0xd9});
      ASSERT_EQ(any_difference(ended), "") << bytes;
    }
  }
}

TEST(JpegEntropy, GivesLibjpegsErrorsOfOddMarkers) {
  const File file = photo({.restart_mcus = 4});
  const std::size_t second = find_marker(file, 0xd1);
  ASSERT_LT(second, file.size());
  EXPECT_EQ(is_decoded_by_us(file), JpegEntropy::is_built());
  for (std::size_t code = 0; code < 256; code += sweep_stride(5)) {
    File changed = file;
    changed[second + 1] = static_cast<std::uint8_t>(code);
    EXPECT_EQ(any_difference(changed), "") << code;
  }
  File renumbered = file;
  renumbered[second + 1] = 0xd2;
  EXPECT_FALSE(is_decoded_by_us(renumbered));
  for (const File& extra :
       {File{0xff}, File{0xff, 0xff}, File{0}, File{1, 2, 3, 4, 5, 6, 7, 8, 9}, File{0xff, 0}})
    for (const std::size_t at : {second, second + 1, second + 2, file.size() - 2, file.size() - 1}) {
      File changed = file;
      changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(at), extra.begin(), extra.end());
      EXPECT_EQ(any_difference(changed), "") << at;
    }
  File without = file;
  without.erase(without.begin() + static_cast<std::ptrdiff_t>(second),
                without.begin() + static_cast<std::ptrdiff_t>(second) + 2);
  EXPECT_EQ(any_difference(without), "");
}

// Under a sanitizer this also shows that nothing beyond the files is read.
TEST(JpegEntropy, GivesLibjpegsVerdictOfDamagedFiles) {
  std::size_t rejected = 0, taken = 0;
  const std::size_t stride = sweep_stride(5);
  for (std::uint64_t i = 0; i < 1500; i += stride) {
    const JpegWriteSpec spec{.h_samp = 1 + static_cast<int>(i % 2), .restart_mcus = i % 3 == 0 ? 4u : 0u};
    File file = write_jpeg(make_image(66, 50, 3, i % 7), spec);
    const std::size_t scan = find_marker(file, 0xda), begin = i % 4 == 0 ? find_marker(file, 0xc0) : scan;
    for (std::uint64_t k = 0; k <= i % 3; ++k)
      file[begin + random_below(file.size() - begin, i, Purpose::crop, k)] =
          static_cast<std::uint8_t>(random_bits(i, Purpose::flip, k));
    ASSERT_EQ(any_difference(file), "") << i;
    const bool is_rejected = !decode(file).error.empty();
    (is_rejected ? rejected : taken) += 1;
  }
  EXPECT_GT(rejected * stride, 400u);
  EXPECT_GT(taken * stride, 200u);
}

using Counts = std::array<std::uint32_t, kSymbols>;

/// Counts of some symbols: few and alike, many, or of few bits, whose codes are too long at first.
Counts some_counts(std::uint64_t seed) {
  constexpr std::array<std::uint32_t, 3> kMost{3, 100'000, 1};
  Counts counts{};
  const std::uint64_t used = 1 + random_bits(seed, Purpose::crop, 0) % kSymbols;
  for (std::uint64_t i = 0; i < used; ++i) {
    const std::uint64_t bits = random_bits(seed, Purpose::flip, i);
    const auto shift = seed % 3 == 2 ? bits >> 40 & 15 : 0;
    counts[bits % kSymbols] = static_cast<std::uint32_t>(1 + (bits >> 8) % kMost[seed % 3]) << shift;
  }
  return counts;
}

TEST(JpegCodes, HaveTheTablesThatLibjpegMakes) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Counts counts = some_counts(seed);
    std::array<long, kSymbols + 1> copy{};
    std::ranges::copy(counts, copy.begin());
    JHUFF_TBL ours{}, expected{};
    ASSERT_TRUE(make_optimal_table(counts, ours));
    jpeg_gen_optimal_table(&info, &expected, copy.data());
    ASSERT_EQ(std::memcmp(&ours, &expected, sizeof ours), 0) << seed;
  }
  jpeg_destroy_compress(&info);
}

// Counts that grow as Fibonacci's numbers need a bit more for each symbol.
TEST(JpegCodes, LeaveCodesToLibjpegThatItRefuses) {
  Counts counts{};
  const auto fits = [&](unsigned used) {
    for (unsigned i = 0; i < used; ++i) counts[i] = i < 2 ? i + 1 : counts[i - 1] + counts[i - 2];
    JHUFF_TBL table{};
    return make_optimal_table(counts, table);
  };
  EXPECT_TRUE(fits(30));
  EXPECT_FALSE(fits(40));
}

}  // namespace
}  // namespace chunkhit
