// Windows and OS/2 bitmaps: 1, 4, 8, 16, 24 and 32 bits a pixel, without run lengths.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "decode/formats.h"
#include "decode/stb.h"

namespace chunkhit {
namespace {

constexpr std::size_t kFileHeaderBytes = 14;
constexpr std::size_t kOs2HeaderBytes = 12;
constexpr std::size_t kInfoHeaderBytes = 40;
constexpr std::size_t kV4HeaderBytes = 108;
constexpr std::size_t kMasksOffset = kFileHeaderBytes + kInfoHeaderBytes;
constexpr std::size_t kPaletteOffset = kFileHeaderBytes + kV4HeaderBytes;  // in bmp_front

/// A bitmap's headers, as stored.
struct BmpHeader {
  std::uint64_t pixels_offset = 0;
  std::uint64_t header_bytes = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;  ///< negative: the top row comes first
  std::uint32_t bits = 0;
  bool has_masks = false;
  std::uint64_t color_count = 0;  ///< of the palette, stored
  std::array<std::uint32_t, 4> masks{};
  [[nodiscard]] std::uint64_t end() const { return kFileHeaderBytes + header_bytes; }
  [[nodiscard]] std::size_t entry_bytes() const { return header_bytes == kOs2HeaderBytes ? 3 : 4; }
};

void check_bmp(const BmpHeader& header, std::uint32_t compression) {
  constexpr std::array<std::uint32_t, 6> kBits{1, 4, 8, 16, 24, 32};
  if (compression == 1 || compression == 2) throw ImageError("run-length encoded BMP is not supported");
  if (compression != 0 && compression != 3)
    throw ImageError("BMP with compression " + std::to_string(compression) + " is not supported");
  if (std::ranges::find(kBits, header.bits) == kBits.end() || (compression == 3 && header.bits < 16))
    throw ImageError("BMP of " + std::to_string(header.bits) + " bits a pixel is not supported");
  if (header.pixels_offset < header.end())
    throw ImageError("damaged BMP: its pixels begin inside its header");
  if (header.width <= 0 || header.height == 0) throw ImageError("damaged BMP: its header gives no size");
  if (header.color_count > 65536)
    throw ImageError("damaged BMP: its palette has " + std::to_string(header.color_count) + " entries");
}

BmpHeader read_bmp_header(Bytes file) {
  const auto at16 = [&](std::size_t offset) { return load_little<std::uint16_t>(file.data() + offset); };
  const auto at32 = [&](std::size_t offset) { return load_little<std::uint32_t>(file.data() + offset); };
  require_bytes(file, kFileHeaderBytes + kOs2HeaderBytes);
  BmpHeader header;
  header.pixels_offset = at32(10);
  header.header_bytes = at32(kFileHeaderBytes);
  const bool os2 = header.header_bytes == kOs2HeaderBytes;
  if (!os2 && (header.header_bytes < kInfoHeaderBytes || header.header_bytes > 124))
    throw ImageError("BMP with a header of " + std::to_string(header.header_bytes) +
                     " bytes is not supported");
  require_bytes(file, header.end());
  header.width = os2 ? at16(18) : static_cast<std::int32_t>(at32(18));
  header.height = os2 ? at16(20) : static_cast<std::int32_t>(at32(22));
  header.bits = at16(os2 ? 24 : 28);
  const std::uint32_t compression = os2 ? 0 : at32(30);
  header.has_masks = compression == 3 && header.bits != 24;
  if (header.bits <= 8) header.color_count = os2 || at32(46) == 0 ? 1u << header.bits : at32(46);
  check_bmp(header, compression);
  if (!header.has_masks) return header;
  const std::size_t mask_count = header.header_bytes >= kInfoHeaderBytes + 16 ? 4 : 3;
  require_bytes(file, kMasksOffset + 4 * mask_count);
  for (std::size_t c = 0; c < mask_count; ++c) header.masks[c] = at32(kMasksOffset + 4 * c);
  return header;
}

// stb_image leaves palette entries undefined that the file leaves out, and some of OS/2's; it takes no bytes
// between header and pixels, nor masks in a header of 56 bytes. So it reads a header and a palette of our
// own, always of one kind. An entry that is left out is the gray of its number, as in Pillow.
ByteBuffer bmp_front(const BmpHeader& header, Bytes palette) {
  const std::size_t colors = header.bits <= 8 ? std::size_t{1} << header.bits : 0;
  ByteBuffer front(kPaletteOffset + 4 * colors, std::uint8_t{0});
  front[0] = 'B';
  front[1] = 'M';
  const auto set = [&](std::size_t offset, auto value) { store_little(front.data() + offset, value); };
  set(10, static_cast<std::uint32_t>(front.size()));
  set(14, static_cast<std::uint32_t>(kV4HeaderBytes));
  set(18, static_cast<std::int32_t>(header.width));
  set(22, static_cast<std::int32_t>(header.height));
  set(26, std::uint16_t{1});
  set(28, static_cast<std::uint16_t>(header.bits));
  set(30, std::uint32_t{header.has_masks ? 3u : 0u});
  for (std::size_t c = 0; c < 4; ++c) set(kMasksOffset + 4 * c, header.masks[c]);
  for (std::size_t i = 0; i < colors; ++i) {
    std::uint8_t* entry = front.data() + kPaletteOffset + 4 * i;
    const std::size_t at = i * header.entry_bytes();
    if (at < palette.size())
      std::copy_n(palette.data() + at, 3, entry);
    else
      std::fill_n(entry, 3, static_cast<std::uint8_t>(i));
  }
  return front;
}

}  // namespace

bool is_bmp(Bytes file) {
  if (file.size() < kFileHeaderBytes + 4 || !as_text(file).starts_with("BM")) return false;
  const auto header_bytes = load_little<std::uint32_t>(file.data() + kFileHeaderBytes);
  return header_bytes >= kOs2HeaderBytes && header_bytes <= 255;
}

std::unique_ptr<OpenedImage> open_bmp(Bytes file, DecodeMonitor& monitor) {
  BmpHeader header = read_bmp_header(file);
  const std::uint64_t palette_bytes = header.entry_bytes() * header.color_count;
  require_bytes(file, header.end() + palette_bytes, "palette");
  // Some writers forget the palette when they say where the pixels begin.
  if (header.pixels_offset == header.end()) header.pixels_offset += palette_bytes;
  const Bytes palette = file.subspan(header.end(), palette_bytes);
  const Bytes rows = file.subspan(std::min<std::uint64_t>(file.size(), header.pixels_offset));
  const auto height = static_cast<std::uint64_t>(std::abs(header.height));
  const std::uint64_t row_bits = static_cast<std::uint64_t>(header.width) * header.bits;

  auto image = std::make_unique<StbFile>("BMP", monitor);
  image->own_piece = bmp_front(header, palette);
  const bool has_alpha = header.masks[3] != 0;
  const bool gray = header.bits <= 8 && is_gray(Bytes(image->own_piece).subspan(kPaletteOffset), 4);
  image->describe(static_cast<std::uint64_t>(header.width), height,
                  gray                             ? 1
                  : has_alpha && header.bits == 32 ? 4
                                                   : 3,
                  header.bits == 32 || has_alpha ? 4 : 3);
  image->pieces = {Bytes(image->own_piece), rows};
  image->rows = {rows, (row_bits + 7) / 8, round_up(row_bits, 32) / 8};
  image->top_first = header.height < 0;
  return image;
}

}  // namespace chunkhit
