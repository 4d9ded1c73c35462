// Photoshop: the flattened image of gray and RGB documents. Layout: Adobe Photoshop File Formats
// Specification, 2019.
#include <string>

#include "base/bytes.h"
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

enum Mode : std::uint32_t { gray = 1, rgb = 3, duotone = 8 };

void check_psd(std::uint32_t channels, std::uint32_t bits, std::uint32_t mode, std::uint32_t compression) {
  if (mode != gray && mode != rgb && mode != duotone)
    throw ImageError("PSD that is neither gray nor RGB is not supported");
  constexpr std::uint32_t kMaxChannels = 56;
  if (channels < (mode == rgb ? 3u : 1u) || channels > kMaxChannels)
    throw ImageError("damaged PSD: it has " + std::to_string(channels) + " channels");
  if (compression > 1)
    throw ImageError("PSD with compression " + std::to_string(compression) + " is not supported");
  if (bits != 8 && (bits != 16 || compression == 1))
    throw ImageError("PSD of " + std::to_string(bits) + " bits" + (compression == 1 ? " and PackBits" : "") +
                     " is not supported");
}

/// Bytes of the first `row_count` rows; packed, a table at the begin of `data` has their sizes.
std::uint64_t row_bytes(Bytes data, std::uint64_t row_count, std::uint64_t unpacked_bytes, bool is_packed) {
  if (!is_packed) return row_count * unpacked_bytes;
  std::uint64_t bytes = 0;
  for (std::uint64_t row = 0; row < row_count; ++row) bytes += load_big16(data.data() + 2 * row);
  return bytes;
}

}  // namespace

bool is_psd(Bytes file) { return as_text(file).starts_with(std::string_view("8BPS\0\1", 6)); }

std::unique_ptr<OpenedImage> open_psd(Bytes file, DecodeMonitor& monitor) {
  const std::size_t at = find_psd_data(file);
  const std::uint64_t stored_channels = load_big16(file.data() + 12);
  const std::uint32_t height = load_big32(file.data() + 14);
  const std::uint32_t width = load_big32(file.data() + 18);
  const std::uint32_t bits = load_big16(file.data() + 22);
  const std::uint32_t mode = load_big16(file.data() + 24);
  const std::uint32_t compression = load_big16(file.data() + at);
  check_psd(static_cast<std::uint32_t>(stored_channels), bits, mode, compression);
  constexpr std::uint32_t kMaxSide = 30000;
  if (width > kMaxSide || height > kMaxSide)
    throw ImageError("damaged PSD: a side is longer than 30000 pixels");

  const bool is_packed = compression == 1;
  const std::uint64_t table_bytes = is_packed ? 2 * stored_channels * height : 0;
  const Bytes data = file.subspan(at + 2);
  require_bytes(data, table_bytes, "table of rows");
  const std::uint64_t unpacked_bytes = std::uint64_t{width} * bits / 8;
  const Bytes rows = data.subspan(table_bytes);
  if (rows.size() < row_bytes(data, stored_channels * height, unpacked_bytes, is_packed))
    throw ImageError("truncated: the data ends before the last row");

  auto image = std::make_unique<StbFile>("PSD", monitor);
  // A fourth channel is the document's transparency; where there are more, none is known to be, so none is
  // taken.
  const std::uint32_t channels = mode != rgb ? 1 : stored_channels == 4 ? 4 : 3;
  image->describe(width, height, channels, 4);
  image->pieces = {rows};
  image->planes = Planes{channels, bits / 8, is_packed};
  image->read_bytes = row_bytes(data, std::uint64_t{channels} * height, unpacked_bytes, is_packed);
  return image;
}

}  // namespace chunkhit
