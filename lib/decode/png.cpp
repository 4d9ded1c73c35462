// PNG: the chunks are checked here, the pixels decoded by stb_image. Layout: PNG specification, 2nd edition
// (ISO 15948).
#include <libdeflate.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "decode/exif.h"
#include "decode/formats.h"
#include "decode/stb.h"

namespace chunkhit {
namespace {

constexpr std::string_view kSignature("\x89PNG\r\n\x1a\n", 8);
constexpr std::size_t kChunkFrameBytes = 12;  // length, type, checksum
constexpr std::size_t kHeaderBytes = 13;
constexpr std::size_t kPaletteEntries = 256;

enum ColorType : unsigned { gray = 0, rgb = 2, indexed = 3, gray_alpha = 4, rgb_alpha = 6 };

/// One chunk, its checksum checked.
struct Chunk {
  std::string_view type;
  Bytes data;
  std::size_t offset = 0;  ///< in the file
};

/// What the chunks say.
struct PngImage {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t depth = 0;
  unsigned color_type = 0;
  bool interlaced = false;
  bool has_transparency = false;
  bool has_data = false;
  bool ended = false;
  bool is_animated = false;
  Chunk palette;
  PngOrientation orientation;
};

Chunk next_chunk(Bytes file, std::size_t& at) {
  if (file.size() - at < kChunkFrameBytes)
    throw ImageError(RejectKind::damaged, "truncated: there is no end chunk");
  const std::size_t length = load_big32(file.data() + at);
  Chunk chunk;
  chunk.type = as_text(file.subspan(at + 4, 4));
  chunk.offset = at;
  if (length > file.size() - at - kChunkFrameBytes)
    throw ImageError(RejectKind::damaged, "truncated: the data ends in chunk " + std::string(chunk.type));
  chunk.data = file.subspan(at + 8, length);
  const std::uint32_t stored = load_big32(chunk.data.data() + length);
  if (libdeflate_crc32(0, file.data() + at + 4, length + 4) != stored)
    throw ImageError(RejectKind::damaged,
                     "damaged PNG: the checksum of chunk " + std::string(chunk.type) + " does not match");
  at += length + kChunkFrameBytes;
  return chunk;
}

void require(bool holds, const std::string& what) {
  if (!holds) throw ImageError(RejectKind::damaged, "damaged PNG: " + what);
}

void read_ihdr(const Chunk& chunk, PngImage& png) {
  if (chunk.type == "CgBI")
    throw ImageError(RejectKind::unsupported, "Apple's PNG variant (CgBI) is not supported");
  require(chunk.type == "IHDR" && chunk.data.size() == kHeaderBytes, "its header is not the first chunk");
  png.width = load_big32(chunk.data.data());
  png.height = load_big32(chunk.data.data() + 4);
  png.depth = chunk.data[8];
  png.color_type = chunk.data[9];
  png.interlaced = chunk.data[12] != 0;
  constexpr std::array<std::uint32_t, 5> kDepths{1, 2, 4, 8, 16};
  constexpr std::array<unsigned, 3> kDeepTypes{rgb, gray_alpha, rgb_alpha};
  const bool is_deep = std::ranges::find(kDeepTypes, png.color_type) != kDeepTypes.end();
  require(std::ranges::find(kDepths, png.depth) != kDepths.end() &&
              (png.color_type == gray || (png.color_type == indexed && png.depth <= 8) ||
               (is_deep && png.depth >= 8)),
          "color type " + std::to_string(png.color_type) + " with " + std::to_string(png.depth) + " bits");
}

// Order and number of chunks are checked because stb_image relies on them.
void note_chunk(const Chunk& chunk, PngImage& png) {
  const bool has_palette = png.palette.data.data() != nullptr;
  const std::string misplaced = "chunk " + std::string(chunk.type) + " is out of place";
  constexpr unsigned kAncillary = 0x20;  // the case of the first letter
  if (chunk.type == "PLTE") {
    require(!has_palette && !png.has_data && !png.has_transparency, misplaced);
    png.palette = chunk;
    require(chunk.data.size() % 3 == 0 && !chunk.data.empty() && chunk.data.size() <= 3 * kPaletteEntries,
            "its palette has a wrong size");
  } else if (chunk.type == "tRNS") {
    const bool allowed =
        png.color_type == indexed ? has_palette : png.color_type == gray || png.color_type == rgb;
    require(allowed && !png.has_transparency && !png.has_data, misplaced);
    png.has_transparency = true;
  } else if (chunk.type == "IDAT") {
    png.has_data = true;
    require(png.color_type != indexed || has_palette, "it has no palette");
  } else if (chunk.type == "IEND") {
    png.ended = true;
    require(png.has_data, "it has no pixel data");
  } else {
    png.orientation.add(chunk.type, chunk.data);
    png.is_animated |= chunk.type == "acTL" && chunk.data.size() == 8 && load_big32(chunk.data.data()) > 1;
    const bool is_critical = (static_cast<unsigned char>(chunk.type[0]) & kAncillary) == 0;
    require(!is_critical, "unknown chunk " + std::string(chunk.type));
  }
}

PngImage read_chunks(Bytes file) {
  PngImage png;
  std::size_t at = kSignature.size();
  read_ihdr(next_chunk(file, at), png);
  while (!png.ended) note_chunk(next_chunk(file, at), png);
  return png;
}

std::uint32_t natural_channels(const PngImage& png) {
  const bool colored =
      png.color_type == indexed ? !is_gray(png.palette.data, 3) : (png.color_type & rgb) != 0;
  const bool has_alpha = png.has_transparency || (png.color_type & gray_alpha) != 0;
  return (colored ? 3 : 1) + (has_alpha ? 1 : 0);
}

// stb_image leaves palette entries that the file leaves out undefined, though pixels may use them: here such
// an entry is the gray of its number, as in Pillow.
void fill_palette(Bytes file, const Chunk& palette, StbFile& image) {
  constexpr std::size_t kFullBytes = 3 * kPaletteEntries;
  image.own_piece.assign({0, 0, kFullBytes >> 8, kFullBytes & 255, 'P', 'L', 'T', 'E'});
  ByteBuffer& chunk = image.own_piece;
  chunk.insert(chunk.end(), palette.data.begin(), palette.data.end());
  for (std::size_t value = palette.data.size(); value < kFullBytes; ++value)
    chunk.push_back(static_cast<std::uint8_t>(value / 3));
  chunk.insert(chunk.end(), 4, std::uint8_t{0});  // the checksum, which stb_image does not read
  image.pieces = {file.first(palette.offset), Bytes(chunk),
                  file.subspan(palette.offset + kChunkFrameBytes + palette.data.size())};
}

// What stb_image holds at most, one step after the other: the joined data, grown by doubling, and what it
// inflates to; that and the pixels, and half of them again while it joins interlaced passes; pixels of 16
// bits and of 8; what it inflated to, indices and the pixels of the expanded palette. Data beyond the last
// row would take more. stb_image inflates into a buffer for rows that are not interlaced. Passes have more
// rows, up to 15 for 8, and less than twice as many bytes: for them it doubles the buffer.
std::uint64_t max_stb_bytes(Bytes file, const PngImage& png) {
  constexpr std::uint64_t kSmall = 64 << 10;
  const std::uint64_t channels = png.color_type == indexed ? 1 : natural_channels(png);
  const std::uint64_t row_bytes = (std::uint64_t{png.width} * png.depth + 7) / 8 * channels + 1;
  const std::uint64_t inflated = row_bytes * png.height * (png.interlaced ? 2 : 1);
  const std::uint64_t pixel_count = std::uint64_t{png.width} * png.height;
  const std::uint64_t pixel_bytes = pixel_count * channels * (png.depth == 16 ? 2 : 1);
  const std::uint64_t joining = 2 * file.size() + inflated;
  const std::uint64_t unfiltering =
      inflated + pixel_bytes + (png.interlaced ? pixel_bytes / 2 + pixel_bytes / 8 : 0);
  const std::uint64_t narrowing = png.depth == 16 ? pixel_bytes + pixel_bytes / 2 : 0;
  const std::uint64_t expanding = png.color_type == indexed ? inflated + pixel_count * 5 : 0;
  return std::max({joining, unfiltering, narrowing, expanding}) + kSmall;
}

// Bytes of all passes of an interlaced image, as they are inflated (ISO 15948, 8.2).
std::uint64_t pass_bytes(const PngImage& png, std::uint64_t bits_per_pixel) {
  struct Pass {
    unsigned x, y, step_x, step_y;
  };
  constexpr std::array<Pass, 7> kPasses{
      {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}};
  std::uint64_t bytes = 0;
  for (const Pass& pass : kPasses) {
    const std::uint64_t columns = (std::uint64_t{png.width} + pass.step_x - 1 - pass.x) / pass.step_x;
    const std::uint64_t rows = (std::uint64_t{png.height} + pass.step_y - 1 - pass.y) / pass.step_y;
    if (columns > 0) bytes += rows * ((columns * bits_per_pixel + 7) / 8 + 1);
  }
  return bytes;
}

// What stb_image fills of what it allocates. The joined data fills as much as the file has, and what it
// inflates to is the passes' rows: pages that nothing was written to take no memory.
void describe_memory(Bytes file, const PngImage& png, StbFile& image) {
  constexpr std::uint64_t kSmall = 128 << 10;
  const bool is_indexed = png.color_type == indexed;
  const std::uint64_t channels = is_indexed ? 1 : natural_channels(png);
  const bool has_color_key = png.has_transparency && !is_indexed;
  const std::uint64_t stored_bits = (channels - (has_color_key ? 1 : 0)) * png.depth;
  const std::uint64_t pixels = std::uint64_t{png.width} * png.height;
  const std::uint64_t deep = png.depth == 16 ? 2 : 1;
  const std::uint64_t inflated =
      png.interlaced ? pass_bytes(png, stored_bits) : ((png.width * stored_bits + 7) / 8 + 1) * png.height;
  const std::uint64_t unfiltered = pixels * channels * deep;
  const std::uint64_t result = pixels * (is_indexed ? 3 + (png.has_transparency ? 1 : 0) : channels);
  image.header.peak_bytes =
      image.own_piece.size() + kSmall +
      std::max({file.size() + inflated, inflated + unfiltered + (png.interlaced ? unfiltered / 2 : 0),
                is_indexed ? inflated + pixels + result : 0, deep == 2 ? unfiltered + result : 0});
  image.header.extra_bytes =
      image.own_piece.size() + kSmall + result + std::uint64_t{png.width} * image.header.channels;
}

}  // namespace

bool is_png(Bytes file) { return as_text(file).starts_with(kSignature); }

std::unique_ptr<OpenedImage> open_png(Bytes file, DecodeMonitor& monitor) {
  const PngImage png = read_chunks(file);
  auto image = std::make_unique<StbFile>("PNG", monitor);
  if (png.color_type == indexed && png.palette.data.size() < 3 * kPaletteEntries)
    fill_palette(file, png.palette, *image);
  else
    image->pieces = {file};
  image->describe(png.width, png.height, natural_channels(png), 0);
  image->max_bytes = max_stb_bytes(file, png);
  image->header.orientation = png.orientation.value();
  image->header.has_more_frames = png.is_animated;
  describe_memory(file, png, *image);
  return image;
}

}  // namespace chunkhit
