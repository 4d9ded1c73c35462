// How a PNG says that it is turned: eXIf, ImageMagick's raw profile, or XMP, in Pillow's order.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"

namespace chunkhit {

/// Gathers what the chunks of one PNG say.
class PngOrientation {
 public:
  /// Looks at a chunk; others than eXIf, tEXt, zTXt and iTXt say nothing. Text that is malformed or inflates
  /// to more than 1 MiB counts as absent.
  void add(std::string_view type, Bytes data);
  /// The orientation, 1..8, as Pillow's Image.getexif finds it: of eXIf, else of "Raw profile type exif";
  /// where these have none, of tiff:Orientation in "XML:com.adobe.xmp"; 1 where nothing says any.
  [[nodiscard]] int value() const;

 private:
  ByteBuffer exif_;  // with "Exif" and two zeros before it
  std::string raw_profile_;
  std::string xmp_;
};

}  // namespace chunkhit
