// Writes JPEG files in memory for tests, and draws regions of them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "types/image.h"

namespace chunkhit {

/// How a test's JPEG is to be written.
struct JpegWriteSpec {
  int quality = 85;
  int h_samp = 2;  ///< of luma; 2 × 2 is 4:2:0, 1 × 1 is 4:4:4
  int v_samp = 2;
  bool progressive = false;
  bool arithmetic = false;
  bool adobe_rgb = false;        ///< stored as RGB, not YCbCr
  bool first_scan_only = false;  ///< progressive, and without the refining scans
  bool separate_scans = false;   ///< one for each component
  bool long_codes = false;       ///< most codes have 16 bits
  unsigned restart_rows = 0;     ///< rows of MCUs between restart markers
  unsigned restart_mcus = 0;     ///< MCUs between restart markers
  int exif_orientation = 0;      ///< 0 writes no EXIF
};

/// Compresses an image of 1 (gray), 3 (RGB) or 4 (CMYK, Adobe's inverted way) channels.
[[nodiscard]] std::vector<std::uint8_t> write_jpeg(const Image& image, const JpegWriteSpec& spec);

/// Writes the coefficients of a JPEG with optimized codes and other restart markers, as libjpeg does.
[[nodiscard]] std::vector<std::uint8_t> transcode_jpeg(const std::vector<std::uint8_t>& file,
                                                       unsigned restart_mcus);

/// Makes an image with edges, gradients and noise, the same for the same arguments.
[[nodiscard]] Image make_image(std::uint32_t width, std::uint32_t height, std::uint32_t channels,
                               std::uint64_t seed);

/// Horizontal and vertical samples of luma.
inline constexpr std::array<std::array<int, 2>, 8> kJpegSamplings{
    {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}}};
/// Widths and heights that end inside of a block, at its end, or after several MCUs.
inline constexpr std::array<std::array<std::uint32_t, 2>, 6> kJpegSizes{
    {{1, 1}, {7, 5}, {18, 18}, {33, 31}, {130, 66}, {66, 130}}};

/// Finds where a marker begins; the file's size where it has none.
[[nodiscard]] std::size_t find_marker(const std::vector<std::uint8_t>& file, std::uint8_t marker);

/// Draws the next region of an image; one in three is narrow.
[[nodiscard]] Rect draw_region(std::uint64_t& position, const Image& whole);

}  // namespace chunkhit
