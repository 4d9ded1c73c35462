// PNG pixels by stb_image, within a budget of memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "types/image.h"

namespace chunkhit {

/// Owns the pixels that stb_image gave.
struct StbPicture {
  struct Release {
    void operator()(std::uint8_t* block) const;
  };
  std::unique_ptr<std::uint8_t, Release> pixels;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 0;
  [[nodiscard]] ImageView view() const {
    return {pixels.get(), width, height, channels, std::size_t{width} * channels};
  }
};

/// Decodes a PNG whose chunks the caller has checked (stb_image ignores checksums and what lies beyond the
/// end), with 8 bits a channel (of 16 the high byte), and returns what is wrong with it. stb_image never
/// holds more than `most_bytes`; a file that wants more is a fault.
[[nodiscard]] std::string decode_by_stb(Bytes png, std::uint64_t most_bytes, StbPicture& picture);

}  // namespace chunkhit
