// Decoding in one call, for tests.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "decode/image_decoder.h"

namespace chunkhit {

/// What came of decoding a file.
struct Decoded {
  std::string fault;
  std::string warnings;
  ImageHeader header;
  Image image;
};

/// Decodes what the plan wants; a plan without a region wants the whole picture.
[[nodiscard]] inline Decoded decode(Bytes file, DecodePlan plan = {}, const DecodeOptions& options = {}) {
  Decoded decoded;
  const PlanDecode want = [&](const ImageHeader& header, std::string&) {
    decoded.header = header;
    if (plan.region.width == 0)
      plan.region = {0, 0, (header.width + plan.shrink - 1) / plan.shrink,
                     (header.height + plan.shrink - 1) / plan.shrink};
    return std::optional(plan);
  };
  decoded.fault = decode_image(file, want, options, decoded.image, &decoded.warnings);
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
