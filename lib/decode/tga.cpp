// Truevision TGA: palette, RGB and gray, plain or by run lengths, top or bottom row first.
#include <algorithm>
#include <initializer_list>

#include "decode/formats.h"
#include "decode/stb.h"

namespace chunkhit {
namespace {

constexpr std::size_t kTgaHeaderBytes = 18;

enum TgaKind : unsigned { palette_kind = 1, color_kind = 2, gray_kind = 3 };

/// A TGA header, as stored.
struct TgaHeader {
  bool has_palette = false;
  unsigned kind = 0;
  bool by_runs = false;
  std::uint32_t palette_first = 0;
  std::uint32_t palette_count = 0;
  std::uint32_t palette_bits = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t bits = 0;
  unsigned flags = 0;  ///< 0x10: from right to left, 0x20: the top row comes first, 0xc0: unused
  std::uint64_t palette_offset = 0;
  [[nodiscard]] std::uint64_t palette_bytes() const {
    return std::uint64_t{palette_count} * ((palette_bits + 7) / 8);
  }
  [[nodiscard]] std::uint64_t pixels_offset() const { return palette_offset + palette_bytes(); }
  [[nodiscard]] std::uint64_t row_bytes() const { return std::uint64_t{width} * ((bits + 7) / 8); }
};

TgaHeader read_tga_header(Bytes file) {
  const auto at16 = [&](std::size_t offset) { return load_little<std::uint16_t>(file.data() + offset); };
  TgaHeader header;
  header.has_palette = file[1] == 1;
  header.kind = file[2] & ~8u;
  header.by_runs = (file[2] & 8) != 0;
  header.palette_first = at16(3);
  header.palette_count = at16(5);
  header.palette_bits = file[7];
  header.width = at16(12);
  header.height = at16(14);
  header.bits = file[16];
  header.flags = file[17];
  header.palette_offset = kTgaHeaderBytes + file[0];
  return header;
}

bool is_one_of(std::uint32_t value, std::initializer_list<std::uint32_t> known) {
  return std::ranges::find(known, value) != known.end();
}

bool is_plausible(const TgaHeader& header) {
  if ((header.flags & 0xc0) != 0 || header.width == 0 || header.height == 0) return false;
  if (header.has_palette != (header.kind == palette_kind)) return false;
  if (header.kind == palette_kind)
    return header.bits == 8 && header.palette_count > 0 &&
           header.palette_first + header.palette_count <= 256 &&
           is_one_of(header.palette_bits, {15, 16, 24, 32});
  if (header.palette_first != 0 || header.palette_count != 0 || header.palette_bits != 0) return false;
  return (header.kind == color_kind && is_one_of(header.bits, {15, 16, 24, 32})) ||
         (header.kind == gray_kind && is_one_of(header.bits, {8, 16}));
}

}  // namespace

bool is_tga(Bytes file) {
  if (file.size() < kTgaHeaderBytes || file[1] > 1) return false;
  const TgaHeader header = read_tga_header(file);
  if (!is_plausible(header)) return false;
  const std::uint64_t needed =
      header.pixels_offset() + (header.by_runs ? 1 : header.row_bytes() * header.height);
  return file.size() >= needed || undecoded_type(file).empty();
}

std::unique_ptr<OpenedImage> open_tga(Bytes file, DecodeMonitor& monitor) {
  const TgaHeader header = read_tga_header(file);
  require_bytes(file, header.pixels_offset() + 1);
  // stb_image ignores the one and takes the other for a number of bytes.
  if ((header.flags & 0x10) != 0) throw ImageError("TGA from right to left is not supported");
  if (header.palette_first != 0) throw ImageError("TGA whose palette begins late is not supported");
  const std::uint32_t bits = header.has_palette ? header.palette_bits : header.bits;
  const std::uint32_t channels = bits <= 16 && header.kind != gray_kind ? 3 : bits / 8;
  const bool gray = header.palette_bits >= 24 &&
                    is_gray(file.subspan(header.palette_offset, header.palette_bytes()), channels);
  auto image = std::make_unique<StbFile>("TGA", monitor);
  image->describe(header.width, header.height, gray ? channels - 2 : channels, channels);
  image->pieces = {file};
  if (!header.by_runs)
    image->rows = {file.subspan(header.pixels_offset()), header.row_bytes(), header.row_bytes()};
  image->top_first = (header.flags & 0x20) != 0;
  return image;
}

}  // namespace chunkhit
