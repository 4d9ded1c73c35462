// How a file says that its image is turned: EXIF, and where a PNG has it.
#pragma once

#include <optional>
#include <string_view>

#include "base/bytes.h"

namespace chunkhit {

/// What EXIF data begins with.
inline constexpr std::string_view kExifMark("Exif\0\0", 6);

/// Reads the orientation (1..8) from EXIF data that begins with "Exif\0\0"; 1 where it has none or is
/// malformed.
[[nodiscard]] int exif_orientation(Bytes exif);

/// The same; nothing where it has none.
[[nodiscard]] std::optional<int> find_exif_orientation(Bytes exif);

/// The same of EXIF data in a chunk, which need not begin with "Exif\0\0"; more than 1 MiB counts as none.
[[nodiscard]] int chunk_orientation(Bytes exif);

/// A text of a PNG as its file has it.
struct PngText {
  std::string_view stored;
  bool is_packed = false;
};

/// Gathers what the chunks of one PNG say: eXIf, ImageMagick's raw profile, or XMP, in Pillow's order. Only
/// points to them, so that many or large ones cost nothing: the file outlives it.
class PngOrientation {
 public:
  /// Looks at a chunk; others than eXIf, tEXt, zTXt and iTXt say nothing, and the last of a kind counts. EXIF
  /// of more than 1 MiB, and text that is malformed or inflates to more, count as absent.
  void add(std::string_view type, Bytes data);
  /// The orientation, 1..8, as Pillow's Image.getexif finds it: of eXIf, else of "Raw profile type exif";
  /// where these have none, of tiff:Orientation in "XML:com.adobe.xmp"; 1 where nothing says any.
  [[nodiscard]] int value() const;

 private:
  Bytes exif_;
  PngText raw_profile_;
  PngText xmp_;
};

}  // namespace chunkhit
