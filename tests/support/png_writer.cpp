#include "png_writer.h"

#include <libdeflate.h>

#include <string>

namespace chunkhit {
namespace {

void append_big32(std::vector<std::uint8_t>& bytes, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

void append(std::vector<std::uint8_t>& bytes, Bytes more) {
  for (const std::uint8_t byte : more) bytes.push_back(byte);
}

}  // namespace

void append_png_chunk(std::vector<std::uint8_t>& png, std::string_view type, Bytes data) {
  append_big32(png, static_cast<std::uint32_t>(data.size()));
  const std::size_t begin = png.size();
  append(png, as_bytes(type));
  append(png, data);
  append_big32(png, libdeflate_crc32(0, png.data() + begin, png.size() - begin));
}

std::vector<std::uint8_t> begin_png(const PngWriteSpec& spec) {
  std::vector<std::uint8_t> header;
  append_big32(header, spec.width);
  append_big32(header, spec.height);
  header.insert(header.end(), {spec.depth, spec.color_type, 0, 0, 0});
  std::vector<std::uint8_t> png;
  append(png, as_bytes("\x89PNG\r\n\x1a\n"));
  append_png_chunk(png, "IHDR", header);
  return png;
}

std::vector<std::uint8_t> zlib_stream(Bytes data) {
  libdeflate_compressor* compressor = libdeflate_alloc_compressor(6);
  std::vector<std::uint8_t> stream(libdeflate_zlib_compress_bound(compressor, data.size()));
  stream.resize(libdeflate_zlib_compress(compressor, data.data(), data.size(), stream.data(), stream.size()));
  libdeflate_free_compressor(compressor);
  return stream;
}

std::vector<std::uint8_t> write_png(const PngWriteSpec& spec, Bytes lines) {
  std::vector<std::uint8_t> png = begin_png(spec);
  append_png_chunk(png, "IDAT", zlib_stream(lines));
  append_png_chunk(png, "IEND", {});
  return png;
}

// One block of the fixed Huffman codes (RFC 1951, 3.2.6): a zero, then runs of 258 bytes at distance 1, 13
// bits each.
std::vector<std::uint8_t> zlib_bomb(std::uint64_t inflated_bytes) {
  std::vector<std::uint8_t> stream{0x78, 0x01};
  unsigned window = 0, held = 0;
  const auto put = [&](std::string_view bits) {
    for (const char bit : bits) {
      window |= static_cast<unsigned>(bit - '0') << held;
      if (++held < 8) continue;
      stream.push_back(static_cast<std::uint8_t>(window));
      window = held = 0;
    }
  };
  put("1"
      "10"
      "00110000");
  for (std::uint64_t inflated = 1; inflated < inflated_bytes; inflated += 258)
    put("11000101"
        "00000");
  put("0000000"
      "0000000");
  return stream;
}

}  // namespace chunkhit
