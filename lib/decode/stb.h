// BMP, GIF and TGA by stb_image, within a budget of memory and of time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "decode/formats.h"
#include "decode/image_decoder.h"
#include "types/image.h"

namespace chunkhit {

/// Red, green, blue and alpha.
using Pixel = std::array<std::uint8_t, 4>;

/// A file whose header has been read, for stb_image to decode. What stb_image would take wrongly without a
/// word has been put right before it reads it, or been an error.
class StbFile : public OpenedImage {
 public:
  StbFile(std::string_view type, DecodeMonitor& monitor) : type_(type), monitor_(monitor) {}
  std::array<Bytes, 3> pieces;      ///< what stb_image reads, one behind the other, as if they were the file
  ByteBuffer own_piece;             ///< holds the one of them that is not in the file
  std::uint64_t max_bytes = 0;      ///< memory that stb_image may hold
  StoredRows rows;                  ///< where the file has such; what is missing of them is black
  bool top_first = true;            ///< else the bottom row is stored first
  std::optional<Pixel> background;  ///< for pixels that stb_image leaves transparent

  /// Sets the header and the memory for an image whose pixels take `stb_channels` bytes in stb_image.
  void describe(std::uint64_t width, std::uint64_t height, std::uint32_t channels,
                std::uint32_t stb_channels);
  void decode(const DecodePlan& plan, Image& image) override;

 private:
  std::string_view type_;  // "BMP", for messages
  DecodeMonitor& monitor_;
};

}  // namespace chunkhit
