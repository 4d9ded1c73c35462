#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "decode/formats.h"
#include "decode/stb.h"

namespace chunkhit {

// Windows and OS/2 bitmaps: 1, 4, 8, 16, 24 and 32 bits a pixel, without run lengths.

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
  if (compression == 1 || compression == 2)
    throw ImageError(RejectKind::unsupported, "run-length encoded BMP is not supported");
  if (compression != 0 && compression != 3)
    throw ImageError(RejectKind::unsupported,
                     "BMP with compression " + std::to_string(compression) + " is not supported");
  if (std::ranges::find(kBits, header.bits) == kBits.end() || (compression == 3 && header.bits < 16))
    throw ImageError(RejectKind::unsupported,
                     "BMP of " + std::to_string(header.bits) + " bits a pixel is not supported");
  if (header.pixels_offset < header.end())
    throw ImageError(RejectKind::damaged, "damaged BMP: its pixels begin inside its header");
  if (header.width <= 0 || header.height == 0)
    throw ImageError(RejectKind::damaged, "damaged BMP: its header gives no size");
  if (header.color_count > 65536)
    throw ImageError(RejectKind::damaged,
                     "damaged BMP: its palette has " + std::to_string(header.color_count) + " entries");
}

/// Reads the headers of Windows (40 to 124 bytes) and OS/2 (12 bytes); offsets count from the start of the
/// file.
BmpHeader read_bmp_header(Bytes file) {
  const auto at16 = [&](std::size_t offset) { return load_little<std::uint16_t>(file.data() + offset); };
  const auto at32 = [&](std::size_t offset) { return load_little<std::uint32_t>(file.data() + offset); };
  require_bytes(file, kFileHeaderBytes + kOs2HeaderBytes);
  BmpHeader header;
  header.pixels_offset = at32(10);
  header.header_bytes = at32(kFileHeaderBytes);
  const bool os2 = header.header_bytes == kOs2HeaderBytes;
  if (!os2 && (header.header_bytes < kInfoHeaderBytes || header.header_bytes > 124))
    throw ImageError(RejectKind::unsupported, "BMP with a header of " + std::to_string(header.header_bytes) +
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
  // Some writers do not count the palette in the offset of the pixels.
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

// GIF: the first frame. Layout: GIF89a specification (CompuServe, 1990).

namespace {

/// Walks a GIF up to its first frame.
class GifWalk {
 public:
  explicit GifWalk(Bytes file) : rest_(file) {
    const Bytes screen = take(13);
    width_ = load_little<std::uint16_t>(screen.data() + 6);
    height_ = load_little<std::uint16_t>(screen.data() + 8);
    take_palette(screen[10]);
    for (std::uint8_t tag = take(1)[0]; tag != ','; tag = take(1)[0]) {
      if (tag == ';') throw ImageError(RejectKind::damaged, "damaged GIF: it has no frame");
      if (tag == '!') take_extension();
    }
    take_descriptor();
  }
  [[nodiscard]] std::uint32_t width() const { return width_; }
  [[nodiscard]] std::uint32_t height() const { return height_; }
  [[nodiscard]] std::uint32_t channels() const {
    return (is_gray(palette_, 3) ? 1 : 3) + (transparent_ ? 1 : 0);
  }
  /// Where the blocks of codes begin, and the bits of a color's code.
  [[nodiscard]] std::size_t codes_offset(Bytes file) const { return file.size() - rest_.size(); }
  [[nodiscard]] unsigned code_bits() const { return code_bits_; }
  /// Returns what Pillow shows outside the frame: the transparent color, or color 0.
  [[nodiscard]] Pixel background() const {
    const std::size_t color = transparent_.value_or(0);
    const auto value = static_cast<std::uint8_t>(color);
    const std::uint8_t alpha = transparent_ ? 0 : 255;
    if (3 * color >= palette_.size()) return {value, value, value, alpha};
    return {palette_[3 * color], palette_[3 * color + 1], palette_[3 * color + 2], alpha};
  }

 private:
  Bytes take(std::size_t count) {
    if (rest_.size() < count)
      throw ImageError(RejectKind::damaged, "truncated: the data ends before the first frame");
    const Bytes bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }
  void take_palette(unsigned flags) {
    if ((flags & 0x80) != 0) palette_ = take(std::size_t{6} << (flags & 7));
  }
  // Skips a label and its blocks up to an empty one. In a graphic control extension (0xf9) the lowest bit
  // says that a color is transparent.
  void take_extension() {
    const unsigned label = take(1)[0];
    bool is_first = true;
    for (std::size_t size = take(1)[0]; size != 0; size = take(1)[0], is_first = false) {
      const Bytes block = take(size);
      if (!is_first || label != 0xf9 || size != 4) continue;
      transparent_ = (block[0] & 1) != 0 ? std::optional<std::size_t>(block[3]) : std::nullopt;
    }
  }
  /// The canvas grows to hold a frame that leaves it, as in Pillow.
  void take_descriptor() {
    const Bytes frame = take(9);
    const auto at = [&](std::size_t offset) { return load_little<std::uint16_t>(frame.data() + offset); };
    if (at(4) == 0 || at(6) == 0)
      throw ImageError(RejectKind::damaged, "damaged GIF: its first frame has no pixels");
    take_palette(frame[8]);
    code_bits_ = take(1)[0];
    if (code_bits_ < 1 || code_bits_ > 8)
      throw ImageError(RejectKind::damaged, "damaged GIF: its code size is " + std::to_string(code_bits_));
    width_ = std::max<std::uint32_t>(width_, at(0) + at(4));
    height_ = std::max<std::uint32_t>(height_, at(2) + at(6));
    if (width_ > 0xffff || height_ > 0xffff)
      throw ImageError(RejectKind::damaged, "damaged GIF: its first frame leaves its screen too far");
  }

  Bytes rest_;
  std::uint32_t width_ = 0;
  std::uint32_t height_ = 0;
  Bytes palette_;
  std::optional<std::size_t> transparent_;
  unsigned code_bits_ = 0;
};

/// The codes of a GIF's first frame, without the blocks that they are stored in.
struct GifCodes {
  ByteBuffer bytes;
  bool has_end = false;  ///< the empty block behind them
};

/// Takes blocks up to an empty one.
GifCodes join_blocks(Bytes& blocks) {
  GifCodes codes;
  while (!blocks.empty() && !codes.has_end) {
    const Bytes block = blocks.subspan(1, std::min<std::size_t>(blocks[0], blocks.size() - 1));
    codes.has_end = blocks[0] == 0;
    codes.bytes.insert(codes.bytes.end(), block.begin(), block.end());
    blocks = blocks.subspan(1 + block.size());
  }
  return codes;
}

/// Whether another frame follows, behind extensions.
bool has_frame(Bytes rest) {
  while (rest.size() > 2 && rest[0] == '!') {
    rest = rest.subspan(2);
    static_cast<void>(join_blocks(rest));
  }
  return !rest.empty() && rest[0] == ',';
}

/// Appends blocks of the codes with a clear code in front: stb_image wants one, where other decoders begin as
/// if they had read it.
void append_cleared(const GifCodes& codes, unsigned code_bits, ByteBuffer& blocks) {
  constexpr std::size_t kMaxBlock = 255;
  ByteBuffer cleared;
  std::uint32_t held = 1u << code_bits;
  unsigned bits = code_bits + 1;
  for (const std::uint8_t byte : codes.bytes) {
    held |= std::uint32_t{byte} << bits;
    for (bits += 8; bits >= 8; bits -= 8, held >>= 8)
      cleared.push_back(static_cast<std::uint8_t>(held & 255));
  }
  if (bits > 0) cleared.push_back(static_cast<std::uint8_t>(held));
  for (std::size_t at = 0; at < cleared.size(); at += kMaxBlock) {
    const Bytes block = Bytes(cleared).subspan(at, std::min(kMaxBlock, cleared.size() - at));
    blocks.push_back(static_cast<std::uint8_t>(block.size()));
    blocks.insert(blocks.end(), block.begin(), block.end());
  }
  if (codes.has_end) blocks.push_back(0);
}

bool begins_with_clear_code(Bytes codes, unsigned code_bits) {
  const std::uint32_t first = codes.size() < 2 ? 0 : load_little<std::uint16_t>(codes.data());
  return (first & ((2u << code_bits) - 1)) == 1u << code_bits;
}

}  // namespace

bool is_gif(Bytes file) { return as_text(file).starts_with("GIF87a") || as_text(file).starts_with("GIF89a"); }

std::unique_ptr<OpenedImage> open_gif(Bytes file, DecodeMonitor& monitor) {
  const GifWalk walk(file);
  constexpr std::uint32_t kTwoCanvasesAndAMask = 9;
  auto image = std::make_unique<StbFile>("GIF", monitor);
  // stb_image takes no frame that leaves its screen, and draws the background color where the frame leaves
  // the screen free: it reads a screen of our own.
  constexpr std::size_t kBegin = 6, kEnd = 12;
  const auto byte = [](std::uint32_t value) { return static_cast<std::uint8_t>(value & 255); };
  image->own_piece.assign({byte(walk.width()), byte(walk.width() >> 8), byte(walk.height()),
                           byte(walk.height() >> 8), file[10], 0});
  const std::size_t codes_offset = walk.codes_offset(file);
  Bytes rest = file.subspan(codes_offset);
  const GifCodes codes = join_blocks(rest);
  if (codes.bytes.size() < 2 || begins_with_clear_code(codes.bytes, walk.code_bits())) {
    image->pieces = {file.first(kBegin), Bytes(image->own_piece), file.subspan(kEnd)};
  } else {
    const Bytes head = file.subspan(kEnd, codes_offset - kEnd);
    image->own_piece.insert(image->own_piece.end(), head.begin(), head.end());
    append_cleared(codes, walk.code_bits(), image->own_piece);
    image->pieces = {file.first(kBegin), Bytes(image->own_piece), {}};
  }
  image->describe(walk.width(), walk.height(), walk.channels(), kTwoCanvasesAndAMask);
  image->header.has_more_frames = has_frame(rest);
  image->background = walk.background();
  return image;
}

// Truevision TGA: palette, RGB and gray, plain or by run lengths, top or bottom row first.

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

/// TGA has no signature: a file counts as TGA only if all fields of its header have valid values.
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
  // stb_image ignores the direction, and takes the first palette index for a number of bytes.
  if ((header.flags & 0x10) != 0)
    throw ImageError(RejectKind::unsupported, "TGA from right to left is not supported");
  if (header.palette_first != 0)
    throw ImageError(RejectKind::unsupported, "TGA whose palette begins late is not supported");
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
