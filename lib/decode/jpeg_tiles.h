// JPEG in restart tiles: a baseline JPEG with a restart marker after every few MCUs, so that a part of an
// image is decoded without the codes of the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "decode/image_decoder.h"
#include "types/image.h"

namespace chunkhit {

/// Rewrites a JPEG without loss: the same coefficients, one scan, optimized Huffman codes, a restart marker
/// after every tile of about `tile_mcus` ≥ 1 MCUs (a divisor of a row's MCUs), and no metadata but what tells
/// the color space. Most files become smaller. Throws ImageError for a file that libjpeg warns of, and for
/// what has no such form with the same pixels: CMYK, and progressive files whose scans are not all there.
void write_tiled_jpeg(Bytes file, std::uint32_t tile_mcus, DecodeMonitor& monitor, ByteBuffer& out);

/// Encodes gray or RGB pixels as JPEG in such tiles: Pillow's save(quality=…), with optimized codes (4:2:0);
/// with `tile_mcus` 0, without tiles. Throws ImageError where it takes longer than `monitor` allows.
void encode_tiled_jpeg(ImageView pixels, std::uint32_t quality, std::uint32_t tile_mcus,
                       DecodeMonitor& monitor, ByteBuffer& out);

/// Where the tiles of a JPEG are.
class JpegTiles {
 public:
  /// Finds the tiles of what `write_tiled_jpeg` wrote, or of another JPEG that has such; every number in it
  /// is checked. False for any other file, which may be a JPEG that is decoded as a whole, or damaged.
  [[nodiscard]] bool find(Bytes file);
  [[nodiscard]] std::uint32_t width() const { return width_; }
  [[nodiscard]] std::uint32_t height() const { return height_; }
  /// Writes a JPEG of the tiles that decoding `region` needs; returns the region's position in it. The region
  /// is not empty and lies inside of the image; `file` is that of `find`.
  [[nodiscard]] Rect cut(Bytes file, const Rect& region, ByteBuffer& out) const;

 private:
  [[nodiscard]] bool read_segment(std::uint8_t marker, Bytes payload, std::size_t offset);
  [[nodiscard]] bool read_frame(Bytes payload);
  [[nodiscard]] bool find_ends(Bytes file, std::size_t begin);

  std::uint32_t width_ = 0;
  std::uint32_t height_ = 0;
  std::size_t components_ = 0;
  std::uint32_t mcu_width_ = 0;   // pixels
  std::uint32_t mcu_height_ = 0;  // pixels
  std::uint32_t tile_mcus_ = 0;
  std::uint32_t tiles_across_ = 0;
  std::size_t frame_at_ = 0;       // offset of the frame header's segment
  std::size_t scan_at_ = 0;        // offset of the first tile, where the headers end
  std::vector<std::size_t> ends_;  // of each tile, behind its marker
};

}  // namespace chunkhit
