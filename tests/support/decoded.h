// Decoding in one call, for tests.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "decode/image_decoder.h"
#include "support/simulated_clock.h"

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

/// Gives the error of decoding a file whose time is up when its header has been read.
[[nodiscard]] inline std::string decode_late(Bytes file) {
  ImageFile opened(file, {.max_seconds = 1});
  SimulatedClock clock;
  clock.compute(std::chrono::seconds(2));
  Image image;
  try {
    opened.decode({.region = {0, 0, 1, 1}}, image);
  } catch (const ImageError& error) {
    return error.reason();
  }
  return {};
}

/// The most memory that this process has held.
[[nodiscard]] inline long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
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
