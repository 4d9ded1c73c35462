// EXIF orientation: how a stored image is turned upright.
#pragma once

#include <cstdint>

#include "types/image.h"

namespace chunkhit {

/// Whether an orientation (1..8) swaps width and height.
[[nodiscard]] constexpr bool swaps_sides(int orientation) { return orientation >= 5 && orientation <= 8; }

/// Upright axes that run against the stored ones: x where the upright left is the stored right or bottom.
struct FlippedAxes {
  bool x = false;
  bool y = false;
};
[[nodiscard]] FlippedAxes flipped_axes(int orientation);

/// The stored rectangle that becomes `upright` of a stored image of `width` × `height`.
[[nodiscard]] Rect stored_region(Rect upright, int orientation, std::uint32_t width, std::uint32_t height);

/// Turns stored pixels upright, as Pillow's ImageOps.exif_transpose does; an orientation outside 1..8 counts
/// as 1.
void turn_upright(ImageView stored, int orientation, Image& upright);

}  // namespace chunkhit
