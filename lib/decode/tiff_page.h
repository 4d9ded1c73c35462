// TIFF and BigTIFF, the first page: libtiff reads tags and unpacks strips and tiles.
#pragma once

#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "decode/image_decoder.h"
#include "types/image.h"

namespace chunkhit {

/// What libtiff says of a file; the first message of a kind counts.
struct TiffMessages {
  std::array<char, 160> error{};
  std::array<char, 160> warning{};
};

/// A file in memory, read by libtiff's callbacks.
struct TiffSource {
  Bytes file;
  std::uint64_t offset = 0;
  TiffMessages messages;
};

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using TiffHandle = std::unique_ptr<TIFF, CloseTiff>;

/// What a TIFF's samples are.
enum class TiffColor { gray, palette, rgb, cmyk };
enum class TiffAlpha { none, associated, unassociated };

/// What the tags say of the pixels.
struct TiffLayout {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint16_t bits = 1;     ///< of a sample
  std::uint16_t samples = 1;  ///< of a pixel
  std::uint16_t compression = COMPRESSION_NONE;
  TiffColor color = TiffColor::gray;
  TiffAlpha alpha = TiffAlpha::none;  ///< the sample behind the color's
  bool is_inverted = false;           ///< gray: 0 is white
  bool is_planar = false;             ///< a strip or tile has one sample of each pixel
  bool is_tiled = false;
  std::uint32_t part_width = 0;  ///< of a strip or tile, in pixels
  std::uint32_t part_height = 0;

  [[nodiscard]] std::uint32_t color_samples() const {
    return color == TiffColor::rgb ? 3 : color == TiffColor::cmyk ? 4 : 1;
  }
  [[nodiscard]] std::uint32_t planes() const { return is_planar ? samples : 1; }
  [[nodiscard]] std::uint64_t row_bytes() const {  ///< of a strip or tile
    return (std::uint64_t{part_width} * (is_planar ? 1 : samples) * bits + 7) / 8;
  }
  [[nodiscard]] std::uint64_t part_bytes() const { return row_bytes() * part_height; }
};

/// The first page of a file in memory, one strip or tile at a time.
class TiffPage {
 public:
  /// Reads the tags. Throws ImageError for what is damaged or not supported.
  TiffPage(Bytes file, DecodeMonitor& monitor);
  TiffPage(const TiffPage&) = delete;
  TiffPage& operator=(const TiffPage&) = delete;
  [[nodiscard]] const TiffLayout& layout() const { return layout_; }
  [[nodiscard]] bool has_more_pages() const { return has_more_pages_; }
  [[nodiscard]] int orientation() const { return orientation_; }  ///< EXIF's, 1 to 8
  /// Red, green and blue of each index.
  [[nodiscard]] const ByteBuffer& palette() const { return palette_; }
  /// Memory that reading holds; 0 for more pixels than the monitor allows. Throws ImageError for such tiles.
  [[nodiscard]] std::uint64_t held_bytes() const;

  /// The strip or tile that begins at a pixel, cut to the image.
  [[nodiscard]] Rect part_at(std::uint32_t x, std::uint32_t y) const {
    return {x, y, std::min(layout_.part_width, layout_.width - x),
            std::min(layout_.part_height, layout_.height - y)};
  }
  /// Unpacks a strip or tile; false where it is damaged and that is accepted.
  [[nodiscard]] bool read(const Rect& part);
  /// A row of what was unpacked: whole pixels, or the samples of one plane.
  [[nodiscard]] const std::uint8_t* row(std::uint32_t row, std::uint32_t plane = 0) const {
    return buffer_.data() + plane * layout_.part_bytes() + row * layout_.row_bytes();
  }

 private:
  void find_more_pages();
  void read_palette();
  [[nodiscard]] bool read_plane(const Rect& part, std::uint32_t plane);
  [[nodiscard]] bool read_long_strip(const Rect& part, std::uint32_t index, std::uint8_t* into);
  [[nodiscard]] std::string damage_text(const Rect& part, std::uint32_t index) const;

  DecodeMonitor& monitor_;
  TiffSource source_;
  TiffHandle tiff_;
  TiffLayout layout_;
  ByteBuffer palette_;
  ByteBuffer buffer_;  // one strip or tile as stored, plane behind plane
  bool has_more_pages_ = false;
  int orientation_ = 1;
};

}  // namespace chunkhit
