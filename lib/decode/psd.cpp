// Photoshop: the flattened image of RGB documents. Layout: Adobe Photoshop File Formats Specification, 2019.
#include <string>

#include "decode/big_endian.h"
#include "decode/formats.h"
#include "decode/stb.h"

namespace chunkhit {
namespace {

// After the header come three blocks with their sizes (color table, resources, layers), then the image.
std::size_t find_psd_data(Bytes file) {
  std::size_t at = 26;
  for (int block = 0; block < 3; ++block) {
    require_bytes(file, at + 4);
    at += std::size_t{4} + load_big32(file.data() + at);
  }
  require_bytes(file, at + 2);
  return at;
}

// stb_image would read 16-bit runs as 8-bit ones, fill missing colors with black, and take any fourth
// channel for transparency.
void check_psd(std::uint32_t channels, std::uint32_t bits, std::uint32_t mode, std::uint32_t compression) {
  if (mode != 3) throw ImageError("PSD that is not RGB is not supported");
  if (channels < 3) throw ImageError("damaged PSD: it has " + std::to_string(channels) + " channels");
  if (channels > 4) throw ImageError("PSD of " + std::to_string(channels) + " channels is not supported");
  if (bits != 8 && (bits != 16 || compression != 0))
    throw ImageError("PSD of " + std::to_string(bits) + " bits and compression " +
                     std::to_string(compression) + " is not supported");
  if (compression > 1)
    throw ImageError("PSD with compression " + std::to_string(compression) + " is not supported");
}

/// Bytes of the samples behind `at`: the rows of all channels, with the table of their sizes where packed.
std::uint64_t psd_data_bytes(Bytes file, std::size_t at, std::uint64_t row_count, std::uint64_t row_bytes,
                             bool packed) {
  if (!packed) return row_count * row_bytes;
  require_bytes(file, at + 2 * row_count, "table of rows");
  std::uint64_t bytes = 2 * row_count;
  for (std::uint64_t row = 0; row < row_count; ++row) bytes += load_big16(file.data() + at + 2 * row);
  return bytes;
}

}  // namespace

bool is_psd(Bytes file) { return as_text(file).starts_with(std::string_view("8BPS\0\1", 6)); }

std::unique_ptr<OpenedImage> open_psd(Bytes file, DecodeMonitor& monitor) {
  const std::size_t at = find_psd_data(file);
  const std::uint32_t channels = load_big16(file.data() + 12);
  const std::uint32_t height = load_big32(file.data() + 14);
  const std::uint32_t width = load_big32(file.data() + 18);
  const std::uint32_t bits = load_big16(file.data() + 22);
  const std::uint32_t compression = load_big16(file.data() + at);
  check_psd(channels, bits, load_big16(file.data() + 24), compression);
  constexpr std::uint32_t kMaxSide = 30000;
  if (width > kMaxSide || height > kMaxSide)
    throw ImageError("damaged PSD: a side is longer than 30000 pixels");
  auto image = std::make_unique<StbFile>("PSD", monitor);
  image->describe(width, height, channels, 4);
  image->pieces = {file};
  const std::uint64_t row_bytes = std::uint64_t{width} * bits / 8;
  image->read_bytes =
      at + 2 + psd_data_bytes(file, at + 2, std::uint64_t{channels} * height, row_bytes, compression == 1);
  if (file.size() < image->read_bytes) throw ImageError("truncated: the data ends before the last row");
  return image;
}

}  // namespace chunkhit
