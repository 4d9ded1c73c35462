// Writes JPEG files in memory for tests.
#pragma once

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

/// Makes an image with edges, gradients and noise, the same for the same arguments.
[[nodiscard]] Image make_image(std::uint32_t width, std::uint32_t height, std::uint32_t channels,
                               std::uint64_t seed);

}  // namespace chunkhit
