// Decoding in one call, for tests.
#pragma once

#include <algorithm>
#include <string>

#include "decode/image_decoder.h"

namespace chunkhit {

/// What came of decoding a file.
struct Decoded {
  std::string error;
  std::string warnings;
  ImageHeader header;
  Image image;
};

/// Decodes what the plan wants; a plan without a region wants the whole image.
[[nodiscard]] inline Decoded decode(Bytes file, DecodePlan plan = {}, const DecodeOptions& options = {}) {
  Decoded decoded;
  try {
    ImageFile opened(file, options);
    decoded.header = opened.header();
    if (plan.region.width == 0)
      plan.region = {0, 0, (decoded.header.width + plan.shrink - 1) / plan.shrink,
                     (decoded.header.height + plan.shrink - 1) / plan.shrink};
    opened.decode(plan, decoded.image);
    decoded.warnings = opened.warnings();
  } catch (const ImageError& error) {
    decoded.error = error.reason();
  }
  return decoded;
}

/// Whether `part` is `region` of `whole`.
[[nodiscard]] inline bool is_region(const Image& part, const Image& whole, const Rect& region) {
  if (part.width != region.width || part.height != region.height || part.channels != whole.channels)
    return false;
  for (std::uint32_t y = 0; y < region.height; ++y) {
    const std::uint8_t* expected = whole.row(region.y + y) + region.x * whole.channels;
    if (!std::equal(part.row(y), part.row(y) + part.row_bytes(), expected)) return false;
  }
  return true;
}

}  // namespace chunkhit
