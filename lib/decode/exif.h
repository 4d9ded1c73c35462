// EXIF: how a camera says that a picture is turned.
#pragma once

#include <optional>

#include "base/bytes.h"

namespace chunkhit {

/// Reads the orientation (1..8) from EXIF data that begins with "Exif\0\0"; 1 where it has none or is
/// malformed.
[[nodiscard]] int exif_orientation(Bytes exif);

/// The same; nothing where it has none.
[[nodiscard]] std::optional<int> find_exif_orientation(Bytes exif);

}  // namespace chunkhit
