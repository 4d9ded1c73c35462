// Writes PNG files in memory for tests, broken ones too.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace chunkhit {

/// Fields of a PNG's header.
struct PngWriteSpec {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint8_t depth = 8;
  std::uint8_t color_type = 2;  ///< 0 gray, 2 RGB, 3 palette, 4 gray + alpha, 6 RGBA
};

/// Appends a chunk with its length and checksum.
void append_png_chunk(std::vector<std::uint8_t>& png, std::string_view type, Bytes data);

/// Gives the signature and the header chunk.
[[nodiscard]] std::vector<std::uint8_t> begin_png(const PngWriteSpec& spec);

/// Compresses bytes into a zlib stream.
[[nodiscard]] std::vector<std::uint8_t> zlib_stream(Bytes data);

/// Gives a whole PNG from lines that begin with their filter byte.
[[nodiscard]] std::vector<std::uint8_t> write_png(const PngWriteSpec& spec, Bytes lines);

/// Gives a zlib stream that inflates to about `inflated_bytes` zeros, without needing that much memory.
[[nodiscard]] std::vector<std::uint8_t> zlib_bomb(std::uint64_t inflated_bytes);

}  // namespace chunkhit
