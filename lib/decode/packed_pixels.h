// Pictures that lie in their file as rows of packed pixels (BMP, TGA, PNM): any region is read straight from
// the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "decode/decode_monitor.h"
#include "decode/image_decoder.h"
#include "types/image.h"

namespace chunkhit {

/// Up to 256 colours; an entry that a file leaves out is the grey of its number, as in Pillow.
struct Palette {
  Palette();
  /// Reads `count` entries of `entry_bytes` (3 or 4) bytes, blue first; the fourth byte is alpha where
  /// `has_alpha`.
  void read_bgr(const std::uint8_t* entries, std::size_t count, std::size_t entry_bytes, bool has_alpha);
  /// Reads `count` entries of red, green, blue.
  void read_rgb(const std::uint8_t* entries, std::size_t count);
  /// Whether the first `count` entries are greys.
  [[nodiscard]] bool is_gray(std::size_t count) const;
  /// Turns `count` indices into pixels of 1 (of a grey palette), 2, 3 or 4 channels.
  void look_up(const std::uint8_t* indices, std::size_t count, std::uint32_t channels,
               std::uint8_t* out) const;

  std::array<std::uint8_t, std::size_t{4} * 256> rgba;
};

/// Rows of packed pixels and how to read them.
struct PackedPicture {
  Bytes pixels;                 ///< the rows as stored; the last ones may be missing
  std::uint64_t row_bytes = 0;  ///< of a row's pixels
  std::uint64_t row_step = 0;   ///< from a row to the next one stored: with its padding
  bool top_first = true;        ///< else the bottom row is stored first
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool mirrored = false;       ///< rows run from right to left
  std::uint32_t channels = 0;  ///< that `unpack` gives
  /// Unpacks `count` pixels of a row from pixel `first` on.
  void (*unpack)(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                 std::uint32_t count, std::uint8_t* out) = nullptr;
  std::size_t pixel_bytes = 0;                 ///< for unpack_bytes
  std::array<std::uint8_t, 4> channel_byte{};  ///< for unpack_bytes: where in a pixel each channel lies
  Palette palette;                             ///< for unpack_index
  ByteBuffer scaled;                           ///< for unpack_scaled: each stored value's 8-bit value
};

/// Channels of whole bytes.
void unpack_bytes(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                  std::uint32_t count, std::uint8_t* out);
/// Palette indices of 1, 4 or 8 bits, the leftmost pixel in the highest bits.
void unpack_index1(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                   std::uint32_t count, std::uint8_t* out);
void unpack_index4(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                   std::uint32_t count, std::uint8_t* out);
void unpack_index8(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                   std::uint32_t count, std::uint8_t* out);
/// Little-endian 16-bit pixels of 5, 5, 5 or 5, 6, 5 bits, blue lowest; v becomes floor(v · 255 / largest),
/// as in Pillow.
void unpack_555(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                std::uint32_t count, std::uint8_t* out);
void unpack_565(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                std::uint32_t count, std::uint8_t* out);
/// Values of 8 or big-endian 16 bits, looked up in `scaled`.
void unpack_scaled8(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                    std::uint32_t count, std::uint8_t* out);
void unpack_scaled16(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                     std::uint32_t count, std::uint8_t* out);

/// Counts the rows that are whole, from the first one stored.
[[nodiscard]] std::uint64_t count_whole_rows(const PackedPicture& picture);

/// Judges rows that are missing: gives the error; nothing where all are there, or some are and warnings are
/// accepted.
[[nodiscard]] std::string check_rows(const PackedPicture& picture, DecodeMonitor& monitor);

/// Decodes the wanted region; `wanted.channels` is not 0. Rows that are missing are black. Gives the error
/// where the time is over.
[[nodiscard]] std::string decode_packed(const PackedPicture& picture, const DecodePlan& wanted,
                                        const DecodeMonitor& monitor, Image& image);

}  // namespace chunkhit
