// GIF: the first frame, on a canvas that is transparent where the frame has a transparent colour, else of
// colour 0, as Pillow shows it. Layout: GIF89a specification (CompuServe, 1990).
#include <algorithm>

#include "decode/channels.h"
#include "decode/formats.h"
#include "decode/lzw.h"
#include "decode/packed_pixels.h"

namespace chunkhit {
namespace {

constexpr std::size_t kScreenEnd = 13;
constexpr std::size_t kDescriptorBytes = 9;
constexpr int kNoColor = -1;

/// The first frame and where it lies on the screen.
struct GifFrame {
  std::uint32_t screen_width = 0;
  std::uint32_t screen_height = 0;
  Rect place;
  bool interlaced = false;
  Palette palette;
  std::size_t color_count = 0;
  int transparent = kNoColor;
  unsigned code_bits = 0;
  Bytes blocks;  ///< what follows the code size: blocks of compressed data, and the rest of the file
};

/// Takes bytes from the front of a file.
class Cursor {
 public:
  explicit Cursor(Bytes bytes) : rest_(bytes) {}
  /// Gives the next `count` bytes; nothing when there are not so many.
  const std::uint8_t* take(std::size_t count) {
    if (rest_.size() < count) return nullptr;
    const std::uint8_t* bytes = rest_.data();
    rest_ = rest_.subspan(count);
    return bytes;
  }
  [[nodiscard]] Bytes rest() const { return rest_; }

 private:
  Bytes rest_;
};

bool read_colors(Cursor& cursor, unsigned flags, GifFrame& frame) {
  constexpr unsigned kHasTable = 0x80;
  if ((flags & kHasTable) == 0) return true;
  frame.color_count = std::size_t{2} << (flags & 7);
  const std::uint8_t* entries = cursor.take(3 * frame.color_count);
  if (entries == nullptr) return false;
  frame.palette = {};
  frame.palette.read_rgb(entries, frame.color_count);
  return true;
}

// An extension is a label and blocks up to an empty one; the one that matters names the transparent colour.
bool read_extension(Cursor& cursor, GifFrame& frame) {
  constexpr unsigned kGraphicControl = 0xf9, kHasTransparent = 1;
  const std::uint8_t* label = cursor.take(1);
  if (label == nullptr) return false;
  for (bool first = true;; first = false) {
    const std::uint8_t* size = cursor.take(1);
    const std::uint8_t* block = size == nullptr ? nullptr : cursor.take(*size);
    if (block == nullptr) return false;
    if (*size == 0) return true;
    if (first && *label == kGraphicControl && *size >= 4 && (block[0] & kHasTransparent) != 0)
      frame.transparent = block[3];
  }
}

bool read_descriptor(Cursor& cursor, GifFrame& frame) {
  constexpr unsigned kInterlaced = 0x40;
  const std::uint8_t* bytes = cursor.take(kDescriptorBytes);
  if (bytes == nullptr) return false;
  frame.place = {load_little<std::uint16_t>(bytes), load_little<std::uint16_t>(bytes + 2),
                 load_little<std::uint16_t>(bytes + 4), load_little<std::uint16_t>(bytes + 6)};
  frame.interlaced = (bytes[8] & kInterlaced) != 0;
  if (!read_colors(cursor, bytes[8], frame)) return false;
  const std::uint8_t* code_bits = cursor.take(1);
  if (code_bits == nullptr) return false;
  frame.code_bits = *code_bits;
  frame.blocks = cursor.rest();
  return true;
}

std::string read_gif(Bytes file, GifFrame& frame) {
  constexpr std::string_view kTruncated = "truncated: the data ends before the first frame";
  constexpr std::uint8_t kExtension = '!', kImage = ',', kTrailer = ';';
  Cursor cursor(file);
  const std::uint8_t* screen = cursor.take(kScreenEnd);
  if (screen == nullptr) return std::string(kTruncated);
  frame.screen_width = load_little<std::uint16_t>(screen + 6);
  frame.screen_height = load_little<std::uint16_t>(screen + 8);
  if (!read_colors(cursor, screen[10], frame)) return std::string(kTruncated);
  for (;;) {
    const std::uint8_t* tag = cursor.take(1);
    if (tag == nullptr) return std::string(kTruncated);
    if (*tag == kTrailer) return "damaged GIF: it has no frame";
    if (*tag == kExtension && !read_extension(cursor, frame)) return std::string(kTruncated);
    if (*tag == kImage) return read_descriptor(cursor, frame) ? "" : std::string(kTruncated);
  }
}

std::string check_gif(GifFrame& frame) {
  if (frame.place.width == 0 || frame.place.height == 0) return "damaged GIF: its first frame has no pixels";
  if (frame.code_bits < 1 || frame.code_bits > 8)
    return "damaged GIF: its code size is " + std::to_string(frame.code_bits);
  frame.screen_width = std::max(frame.screen_width, frame.place.x + frame.place.width);
  frame.screen_height = std::max(frame.screen_height, frame.place.y + frame.place.height);
  if (frame.color_count == 0) frame.color_count = 256;  // no table: indices are greys
  if (frame.transparent != kNoColor)
    frame.palette.rgba[4 * static_cast<std::size_t>(frame.transparent) + 3] = 0;
  return {};
}

// The blocks of compressed data, joined.
ByteBuffer join_blocks(Bytes blocks) {
  ByteBuffer data;
  data.reserve(blocks.size());
  for (std::size_t at = 0; at < blocks.size() && blocks[at] != 0;) {
    const std::size_t count = std::min<std::size_t>(blocks[at], blocks.size() - at - 1);
    data.insert(data.end(), blocks.data() + at + 1, blocks.data() + at + 1 + count);
    at += 1 + count;
  }
  return data;
}

// Row of the frame → row of the data: interlaced frames store every 8th row from 0, from 4, every 4th from 2,
// every 2nd from 1.
std::uint32_t stored_row(const GifFrame& frame, std::uint32_t y) {
  if (!frame.interlaced) return y;
  const std::uint32_t height = frame.place.height;
  const auto rows_of = [&](std::uint32_t first, std::uint32_t step) {
    return height > first ? (height - first + step - 1) / step : 0;
  };
  if (y % 8 == 0) return y / 8;
  if (y % 8 == 4) return rows_of(0, 8) + y / 8;
  if (y % 4 == 2) return rows_of(0, 8) + rows_of(4, 8) + y / 4;
  return rows_of(0, 8) + rows_of(4, 8) + rows_of(2, 4) + y / 2;
}

// Fills `indices` (region.width) with row `y` of the region: the canvas, and over it what the frame has
// there; false where the frame's row is not whole.
bool index_row(const GifFrame& frame, Bytes pixels, const Rect& region, std::uint32_t y,
               std::uint8_t* indices) {
  const Rect& place = frame.place;
  const int background = frame.transparent == kNoColor ? 0 : frame.transparent;
  std::fill_n(indices, region.width, static_cast<std::uint8_t>(background));
  const std::uint32_t screen_y = region.y + y;
  if (screen_y < place.y || screen_y - place.y >= place.height) return true;
  const std::uint32_t begin = std::max(region.x, place.x);
  const std::uint32_t end = std::min(region.x + region.width, place.x + place.width);
  const std::size_t row = std::size_t{stored_row(frame, screen_y - place.y)} * place.width;
  if (row + place.width > pixels.size()) return false;
  if (begin < end)
    std::copy_n(pixels.data() + row + (begin - place.x), end - begin, indices + (begin - region.x));
  return true;
}

/// Draws the wanted region from the frame's pixels, as many as there are; a row that lacks some is black.
std::string draw_region(const GifFrame& frame, Bytes pixels, std::uint32_t natural_channels,
                        const DecodePlan& wanted, const DecodeMonitor& monitor, Image& image) {
  const Rect& region = wanted.region;
  image.reshape(region.width, region.height, wanted.channels);
  ByteBuffer indices(region.width);
  ByteBuffer natural(std::size_t{region.width} * natural_channels);
  for (std::uint32_t y = 0; y < region.height; ++y) {
    if (monitor.is_out_of_time()) return monitor.time_error();
    if (!index_row(frame, pixels, region, y, indices.data())) {
      std::fill_n(image.row(y), std::size_t{region.width} * wanted.channels, std::uint8_t{0});
      continue;
    }
    frame.palette.look_up(indices.data(), region.width, natural_channels, natural.data());
    convert_channels(natural.data(), natural_channels, image.row(y), wanted.channels, region.width);
  }
  return {};
}

}  // namespace

bool is_gif(Bytes file) { return as_text(file).starts_with("GIF87a") || as_text(file).starts_with("GIF89a"); }

std::string decode_gif(Bytes file, const PlanDecode& plan, DecodeMonitor& monitor, Image& image) {
  GifFrame frame;
  std::string fault = read_gif(file, frame);
  if (fault.empty()) fault = check_gif(frame);
  if (!fault.empty()) return fault;
  const std::uint64_t pixel_count = std::uint64_t{frame.place.width} * frame.place.height;
  ImageHeader header;
  header.format = "gif";
  header.width = frame.screen_width;
  header.height = frame.screen_height;
  header.channels =
      (frame.palette.is_gray(frame.color_count) ? 1 : 3) + (frame.transparent == kNoColor ? 0 : 1);
  header.whole_picture = true;
  header.extra_bytes = pixel_count + file.size() + std::uint64_t{header.width} * 5 + kLzwTableBytes;
  std::optional<DecodePlan> wanted;
  fault = ask_plan(header, plan, monitor, wanted);
  if (!wanted) return fault;

  ByteBuffer pixels(pixel_count);
  const std::size_t filled = undo_lzw(join_blocks(frame.blocks), frame.code_bits, pixels);
  if (filled < pixel_count)
    fault = "truncated: the first frame ends at pixel " + std::to_string(filled) + " of " +
            std::to_string(pixel_count);
  const bool has_rows = filled >= frame.place.width;
  if (!fault.empty() && has_rows) fault = monitor.damage(fault);
  if (!fault.empty()) return fault;
  return draw_region(frame, Bytes(pixels).first(filled), header.channels, *wanted, monitor, image);
}

}  // namespace chunkhit
