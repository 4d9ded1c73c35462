// Truevision TGA: palette, RGB and grey, plain or by run lengths, any corner first.
#include <algorithm>
#include <initializer_list>

#include "decode/formats.h"
#include "decode/packed_pixels.h"

namespace chunkhit {
namespace {

constexpr std::size_t kHeaderBytes = 18;

enum Kind : unsigned { palette_kind = 1, color_kind = 2, gray_kind = 3 };

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
  bool mirrored = false;
  bool top_first = false;
  std::uint64_t palette_offset = 0;
  std::uint64_t pixels_offset = 0;
  [[nodiscard]] std::uint64_t pixel_bytes() const { return (bits + 7) / 8; }
  [[nodiscard]] std::uint64_t packed_bytes() const { return std::uint64_t{width} * height * pixel_bytes(); }
};

TgaHeader read_tga_header(const std::uint8_t* bytes) {
  constexpr unsigned kByRuns = 8, kRightFirst = 0x10, kTopFirst = 0x20;
  TgaHeader header;
  header.has_palette = bytes[1] == 1;
  header.kind = bytes[2] & ~kByRuns;
  header.by_runs = (bytes[2] & kByRuns) != 0;
  header.palette_first = load_little<std::uint16_t>(bytes + 3);
  header.palette_count = load_little<std::uint16_t>(bytes + 5);
  header.palette_bits = bytes[7];
  header.width = load_little<std::uint16_t>(bytes + 12);
  header.height = load_little<std::uint16_t>(bytes + 14);
  header.bits = bytes[16];
  header.mirrored = (bytes[17] & kRightFirst) != 0;
  header.top_first = (bytes[17] & kTopFirst) != 0;
  header.palette_offset = kHeaderBytes + bytes[0];
  header.pixels_offset =
      header.palette_offset + std::uint64_t{header.palette_count} * ((header.palette_bits + 7) / 8);
  return header;
}

bool one_of(std::uint32_t value, std::initializer_list<std::uint32_t> known) {
  return std::ranges::find(known, value) != known.end();
}

bool is_plausible(const TgaHeader& header, const std::uint8_t* bytes) {
  constexpr unsigned kUnusedFlags = 0xc0;
  if (bytes[1] > 1 || (bytes[17] & kUnusedFlags) != 0 || header.width == 0 || header.height == 0)
    return false;
  if (header.has_palette != (header.kind == palette_kind)) return false;
  const bool no_palette = header.palette_first == 0 && header.palette_count == 0 && header.palette_bits == 0;
  switch (header.kind) {
    case palette_kind:
      return header.bits == 8 && header.palette_count > 0 &&
             header.palette_first + header.palette_count <= 256 &&
             one_of(header.palette_bits, {15, 16, 24, 32});
    case color_kind:
      return no_palette && one_of(header.bits, {15, 16, 24, 32});
    case gray_kind:
      return no_palette && one_of(header.bits, {8, 16});
    default:
      return false;
  }
}

// A run is a byte (top bit: one pixel repeated; else pixels as they are) that counts 1 to 128 pixels, and the
// pixels. Fills `out`, and gives how much of it: not all where the data ends before that.
std::size_t undo_runs(Bytes data, std::size_t pixel_bytes, MutableBytes out) {
  std::size_t at = 0;
  std::size_t filled = 0;
  while (filled < out.size()) {
    if (at >= data.size()) return filled;
    const bool repeats = (data[at] & 0x80) != 0;
    const std::size_t run_bytes =
        std::min((std::size_t{data[at] & 0x7fu} + 1) * pixel_bytes, out.size() - filled);
    const std::size_t stored_bytes = repeats ? pixel_bytes : run_bytes;
    if (++at + stored_bytes > data.size()) return filled;
    for (std::size_t i = 0; i < run_bytes; i += stored_bytes)
      std::copy_n(data.data() + at, stored_bytes, out.data() + filled + i);
    at += stored_bytes;
    filled += run_bytes;
  }
  return filled;
}

void read_tga_palette(Bytes file, const TgaHeader& header, PackedPicture& picture) {
  const std::uint8_t* entries = file.data() + header.palette_offset;
  Palette stored;
  if (header.palette_bits <= 16) {
    ByteBuffer rgb(std::size_t{3} * header.palette_count);
    unpack_555(picture, entries, 0, header.palette_count, rgb.data());
    stored.read_rgb(rgb.data(), header.palette_count);
  } else {
    stored.read_bgr(entries, header.palette_count, header.palette_bits / 8, header.palette_bits == 32);
  }
  // Entries before the first stored one are black, as in Pillow.
  std::uint8_t* colors = picture.palette.rgba.data();
  for (std::size_t i = 0; i < header.palette_first; ++i) std::fill_n(colors + 4 * i, 3, std::uint8_t{0});
  std::copy_n(stored.rgba.data(), std::size_t{4} * header.palette_count,
              colors + std::size_t{4} * header.palette_first);
  const bool gray = picture.palette.is_gray(header.palette_first + header.palette_count);
  picture.channels = (gray ? 1 : 3) + (header.palette_bits == 32 ? 1 : 0);
  picture.unpack = unpack_index8;
}

void describe_pixels(Bytes file, const TgaHeader& header, PackedPicture& picture) {
  picture.width = header.width;
  picture.mirrored = header.mirrored;
  picture.unpack = unpack_bytes;
  picture.pixel_bytes = header.pixel_bytes();
  picture.height = header.height;
  picture.row_bytes = picture.row_step = header.width * header.pixel_bytes();
  picture.top_first = header.top_first;
  picture.channels = static_cast<std::uint32_t>(picture.pixel_bytes);
  if (header.kind == palette_kind) return read_tga_palette(file, header, picture);
  if (header.kind == gray_kind) {
    picture.channel_byte = {0, 1, 0, 0};
    return;
  }
  picture.channel_byte = {2, 1, 0, 3};
  if (header.bits > 16) return;
  picture.unpack = unpack_555;
  picture.channels = 3;
}

}  // namespace

bool is_tga(Bytes file) {
  if (file.size() < kHeaderBytes) return false;
  const TgaHeader header = read_tga_header(file.data());
  if (!is_plausible(header, file.data())) return false;
  const std::uint64_t needed = header.pixels_offset + (header.by_runs ? 1 : header.packed_bytes());
  return file.size() >= needed || undecoded_type(file).empty();
}

std::string decode_tga(Bytes file, const PlanDecode& plan, DecodeMonitor& monitor, Image& image) {
  const TgaHeader stored = read_tga_header(file.data());
  if (file.size() <= stored.pixels_offset) return "truncated: the data ends in the header";
  PackedPicture picture;
  describe_pixels(file, stored, picture);
  ImageHeader header;
  header.format = "tga";
  header.width = stored.width;
  header.height = stored.height;
  header.channels = picture.channels;
  header.whole_picture = stored.by_runs;
  header.extra_bytes = std::uint64_t{header.width} * 4 + (stored.by_runs ? stored.packed_bytes() : 0);
  std::optional<DecodePlan> wanted;
  std::string fault = ask_plan(header, plan, monitor, wanted);
  if (!wanted) return fault;

  picture.pixels = file.subspan(stored.pixels_offset);
  ByteBuffer packed(stored.by_runs ? stored.packed_bytes() : 0);
  if (stored.by_runs)
    picture.pixels = Bytes(packed).first(undo_runs(picture.pixels, picture.pixel_bytes, packed));
  fault = check_rows(picture, monitor);
  return fault.empty() ? decode_packed(picture, *wanted, monitor, image) : fault;
}

}  // namespace chunkhit
