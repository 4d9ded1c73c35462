// Masks: pixels of class ids, which are the numbers that a file stores. What does not fit 8 bits without loss
// is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "decode/formats.h"

namespace chunkhit {

/// Opens a mask: PNG, TIFF, npy, BMP, GIF or PNM. A pixel is one value from 0 to 255, as it is stored: a gray
/// level, an index of a palette (of BMP and GIF its gray), or equal colors. Alpha is opaque. Throws
/// ImageError for any other file. It is decoded as a whole, to one channel; a value that does not fit is an
/// ImageError.
[[nodiscard]] std::unique_ptr<OpenedImage> open_class_ids(Bytes file, DecodeMonitor& monitor);

/// Why a file of another type is no mask.
[[nodiscard]] std::string no_mask_type(bool is_jpeg);

/// Makes class ids of stored pixels, and keeps the first one that is none.
class ClassIds {
 public:
  /// `channels`: 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA; `opaque`: the alpha of opaque pixels.
  explicit ClassIds(std::uint32_t channels, std::uint32_t opaque = 255)
      : channels_(channels), opaque_(opaque) {}
  /// Writes the ids of `count` pixels to `out`: of row `y`, from column `x` on. Any order of rows and
  /// columns.
  template <class Value>
  void take(const Value* pixels, std::uint32_t x, std::uint32_t y, std::size_t count, std::uint8_t* out);
  /// Throws ImageError, with position and values, for the first pixel in row order that is no class id.
  void finish() const;

 private:
  template <class Value>
  void note(const Value* pixel, std::uint64_t x, std::uint64_t y);

  std::uint32_t channels_;
  std::uint32_t opaque_;
  std::uint64_t first_ = std::numeric_limits<std::uint64_t>::max();  // y · 2^32 + x
  std::string reason_;
};

}  // namespace chunkhit
