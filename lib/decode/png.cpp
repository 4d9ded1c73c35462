// PNG: the chunks are checked here, the pixels decoded by stb_image. Layout: PNG specification, 2nd edition
// (ISO 15948).
#include <libdeflate.h>

#include <algorithm>
#include <array>

#include "decode/big_endian.h"
#include "decode/formats.h"
#include "decode/png_orientation.h"
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
struct PngPicture {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t depth = 0;
  unsigned color_type = 0;
  bool interlaced = false;
  bool has_transparency = false;
  bool has_data = false;
  bool ended = false;
  Chunk palette;
  PngOrientation orientation;
};

std::string next_chunk(Bytes file, std::size_t& at, Chunk& chunk) {
  if (file.size() - at < kChunkFrameBytes) return "truncated: there is no end chunk";
  const std::size_t length = load_big32(file.data() + at);
  chunk.type = as_text(file.subspan(at + 4, 4));
  chunk.offset = at;
  if (length > file.size() - at - kChunkFrameBytes)
    return "truncated: the data ends in chunk " + std::string(chunk.type);
  chunk.data = file.subspan(at + 8, length);
  const std::uint32_t stored = load_big32(chunk.data.data() + length);
  if (libdeflate_crc32(0, file.data() + at + 4, length + 4) != stored)
    return "damaged PNG: the checksum of chunk " + std::string(chunk.type) + " does not match";
  at += length + kChunkFrameBytes;
  return {};
}

std::string read_ihdr(const Chunk& chunk, PngPicture& picture) {
  if (chunk.type == "CgBI") return "Apple's PNG variant (CgBI) is not supported";
  if (chunk.type != "IHDR" || chunk.data.size() != kHeaderBytes)
    return "damaged PNG: its header is not the first chunk";
  picture.width = load_big32(chunk.data.data());
  picture.height = load_big32(chunk.data.data() + 4);
  picture.depth = chunk.data[8];
  picture.color_type = chunk.data[9];
  picture.interlaced = chunk.data[12] != 0;
  constexpr std::array<std::uint32_t, 5> kDepths{1, 2, 4, 8, 16};
  const bool known_depth = std::ranges::find(kDepths, picture.depth) != kDepths.end();
  const bool known = known_depth && (picture.color_type == gray ? true
                                     : picture.color_type == indexed
                                         ? picture.depth <= 8
                                         : (picture.color_type == rgb || picture.color_type == gray_alpha ||
                                            picture.color_type == rgb_alpha) &&
                                               picture.depth >= 8);
  if (!known)
    return "damaged PNG: colour type " + std::to_string(picture.color_type) + " with " +
           std::to_string(picture.depth) + " bits";
  return {};
}

// Order and number of chunks are checked because stb_image relies on them.
std::string note_chunk(const Chunk& chunk, PngPicture& picture) {
  std::string out_of_place = "damaged PNG: chunk " + std::string(chunk.type) + " is out of place";
  const bool has_palette = picture.palette.data.data() != nullptr;
  if (chunk.type == "PLTE") {
    if (has_palette || picture.has_data || picture.has_transparency) return out_of_place;
    picture.palette = chunk;
    const bool whole_entries = chunk.data.size() % 3 == 0 && !chunk.data.empty();
    return whole_entries && chunk.data.size() <= 3 * kPaletteEntries
               ? ""
               : "damaged PNG: its palette has a wrong size";
  }
  if (chunk.type == "tRNS") {
    const bool allowed =
        picture.color_type == indexed ? has_palette : picture.color_type == gray || picture.color_type == rgb;
    if (!allowed || picture.has_transparency || picture.has_data) return out_of_place;
    picture.has_transparency = true;
    return {};
  }
  picture.orientation.add(chunk.type, chunk.data);
  if (chunk.type == "IDAT") {
    picture.has_data = true;
    return picture.color_type == indexed && !has_palette ? "damaged PNG: it has no palette" : "";
  }
  if (chunk.type == "IEND") {
    picture.ended = true;
    return picture.has_data ? "" : "damaged PNG: it has no pixel data";
  }
  constexpr unsigned kAncillary = 0x20;  // the case of the first letter
  const bool critical = (static_cast<unsigned char>(chunk.type[0]) & kAncillary) == 0;
  return critical ? "damaged PNG: unknown chunk " + std::string(chunk.type) : "";
}

std::string check_chunks(Bytes file, PngPicture& picture) {
  std::size_t at = kSignature.size();
  Chunk chunk;
  std::string fault = next_chunk(file, at, chunk);
  if (fault.empty()) fault = read_ihdr(chunk, picture);
  while (fault.empty() && !picture.ended) {
    fault = next_chunk(file, at, chunk);
    if (fault.empty()) fault = note_chunk(chunk, picture);
  }
  return fault;
}

std::uint32_t natural_channels(const PngPicture& picture) {
  const bool colored =
      picture.color_type == indexed ? !is_gray(picture.palette.data, 3) : (picture.color_type & rgb) != 0;
  const bool has_alpha = picture.has_transparency || (picture.color_type & gray_alpha) != 0;
  return (colored ? 3 : 1) + (has_alpha ? 1 : 0);
}

// stb_image leaves palette entries that the file leaves out undefined, though pixels may use them: here such
// an entry is the gray of its number, as in Pillow.
void fill_palette(Bytes png, const Chunk& palette, StbFile& file) {
  constexpr std::size_t kFullBytes = 3 * kPaletteEntries;
  file.own_piece.assign({0, 0, kFullBytes >> 8, kFullBytes & 255, 'P', 'L', 'T', 'E'});
  ByteBuffer& chunk = file.own_piece;
  chunk.insert(chunk.end(), palette.data.begin(), palette.data.end());
  for (std::size_t value = palette.data.size(); value < kFullBytes; ++value)
    chunk.push_back(static_cast<std::uint8_t>(value / 3));
  chunk.insert(chunk.end(), 4, std::uint8_t{0});  // the checksum, which stb_image does not read
  file.pieces = {png.first(palette.offset), Bytes(chunk),
                 png.subspan(palette.offset + kChunkFrameBytes + palette.data.size())};
}

// What stb_image holds at most, one step after the other: the joined data, grown by doubling, and what it
// inflates to; that and the pixels, and half of them again while it joins interlaced passes; pixels of 16
// bits and of 8; indices and the pixels of the expanded palette. Data beyond the last row would take more.
std::uint64_t max_stb_bytes(Bytes file, const PngPicture& picture) {
  constexpr std::uint64_t kSmall = 64 << 10;
  const std::uint64_t channels = picture.color_type == indexed ? 1 : natural_channels(picture);
  const std::uint64_t row_bytes = (std::uint64_t{picture.width} * picture.depth + 7) / 8 * channels + 1;
  const std::uint64_t inflated = row_bytes * picture.height +
                                 (picture.interlaced ? 7 * row_bytes + 8 * std::uint64_t{picture.height} : 0);
  const std::uint64_t pixel_count = std::uint64_t{picture.width} * picture.height;
  const std::uint64_t pixel_bytes = pixel_count * channels * (picture.depth == 16 ? 2 : 1);
  const std::uint64_t joining = 2 * file.size() + inflated;
  const std::uint64_t unfiltering =
      inflated + pixel_bytes + (picture.interlaced ? pixel_bytes / 2 + pixel_bytes / 8 : 0);
  const std::uint64_t narrowing = picture.depth == 16 ? pixel_bytes + pixel_bytes / 2 : 0;
  const std::uint64_t expanding = picture.color_type == indexed ? pixel_count * 5 : 0;
  return std::max({joining, unfiltering, narrowing, expanding}) + kSmall;
}

}  // namespace

bool is_png(Bytes file) { return as_text(file).starts_with(kSignature); }

std::string decode_png(Bytes file, const PlanDecode& plan, DecodeMonitor& monitor, Image& image) {
  PngPicture picture;
  std::string fault = check_chunks(file, picture);
  if (!fault.empty()) return fault;
  StbFile opened;
  if (picture.color_type == indexed && picture.palette.data.size() < 3 * kPaletteEntries)
    fill_palette(file, picture.palette, opened);
  else
    opened.pieces = {file};
  opened.describe("PNG", "png", picture.width, picture.height, natural_channels(picture), 0);
  opened.max_bytes = max_stb_bytes(file, picture);
  opened.header.orientation = picture.orientation.value();
  opened.header.extra_bytes = opened.max_bytes + file.size();
  return decode_file(opened, plan, monitor, image);
}

}  // namespace chunkhit
