// Windows and OS/2 bitmaps: 1, 4, 8, 16, 24 and 32 bits a pixel, without run lengths.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>

#include "decode/formats.h"
#include "decode/packed_pixels.h"

namespace chunkhit {
namespace {

constexpr std::size_t kFileHeaderBytes = 14;
constexpr std::size_t kOs2HeaderBytes = 12;
constexpr std::size_t kInfoHeaderBytes = 40;
constexpr std::size_t kMasksOffset = kFileHeaderBytes + kInfoHeaderBytes;

/// A bitmap's headers, as stored.
struct BmpHeader {
  std::uint64_t pixels_offset = 0;
  std::uint64_t header_bytes = 0;
  std::int32_t width = 0;
  std::int64_t height = 0;  ///< negative: the top row comes first
  std::uint32_t bits = 0;
  std::uint32_t compression = 0;
  std::uint64_t color_count = 0;
  std::array<std::uint32_t, 4> masks{};  ///< red, green, blue, alpha
};

enum Compression : std::uint32_t { uncompressed = 0, bit_fields = 3 };

std::string read_bmp_header(Bytes file, BmpHeader& header) {
  const auto at16 = [&](std::size_t offset) { return load_little<std::uint16_t>(file.data() + offset); };
  const auto at32 = [&](std::size_t offset) { return load_little<std::uint32_t>(file.data() + offset); };
  if (file.size() < kFileHeaderBytes + kOs2HeaderBytes) return "truncated: the data ends in the header";
  header.pixels_offset = at32(10);
  header.header_bytes = at32(kFileHeaderBytes);
  const bool os2 = header.header_bytes == kOs2HeaderBytes;
  if (!os2 && (header.header_bytes < kInfoHeaderBytes || header.header_bytes > 124))
    return "BMP with a header of " + std::to_string(header.header_bytes) + " bytes is not supported";
  if (file.size() < kFileHeaderBytes + header.header_bytes) return "truncated: the data ends in the header";
  header.width = os2 ? at16(18) : static_cast<std::int32_t>(at32(18));
  header.height = os2 ? at16(20) : static_cast<std::int32_t>(at32(22));
  header.bits = at16(os2 ? 24 : 28);
  header.compression = os2 ? 0 : at32(30);
  header.color_count = os2 ? 0 : at32(46);
  if (header.bits <= 8 && header.color_count == 0) header.color_count = std::uint64_t{1} << header.bits;
  if (header.compression != bit_fields) return {};
  const bool has_alpha = header.header_bytes >= kInfoHeaderBytes + 16;
  if (file.size() < kMasksOffset + (has_alpha ? 16 : 12)) return "truncated: the data ends in the header";
  for (std::size_t c = 0; c < (has_alpha ? 4 : 3); ++c) header.masks[c] = at32(kMasksOffset + 4 * c);
  return {};
}

std::string check_bmp(const BmpHeader& header) {
  constexpr std::array<std::uint32_t, 6> kBits{1, 4, 8, 16, 24, 32};
  if (header.compression == 1 || header.compression == 2) return "run-length encoded BMP is not supported";
  if (header.compression != uncompressed && header.compression != bit_fields)
    return "BMP with compression " + std::to_string(header.compression) + " is not supported";
  if (std::ranges::find(kBits, header.bits) == kBits.end() ||
      (header.compression == bit_fields && header.bits < 16))
    return "BMP of " + std::to_string(header.bits) + " bits a pixel is not supported";
  if (header.pixels_offset < kFileHeaderBytes + header.header_bytes)
    return "damaged BMP: its pixels begin inside its header";
  if (header.width <= 0 || header.height == 0) return "damaged BMP: its header gives no size";
  if (header.bits <= 8 && (header.color_count == 0 || header.color_count > 65536))
    return "damaged BMP: its palette has " + std::to_string(header.color_count) + " entries";
  return {};
}

std::string read_palette(Bytes file, BmpHeader& header, PackedPicture& picture) {
  const std::size_t entry_bytes = header.header_bytes == kOs2HeaderBytes ? 3 : 4;
  const std::uint64_t begin = kFileHeaderBytes + header.header_bytes;
  // Some writers forget the palette when they say where the pixels begin.
  if (header.pixels_offset == begin) header.pixels_offset += entry_bytes * header.color_count;
  if (begin + entry_bytes * header.color_count > file.size())
    return "truncated: the data ends in the palette";
  const std::size_t count = std::min<std::uint64_t>(header.color_count, std::uint64_t{1} << header.bits);
  picture.palette.read_bgr(file.data() + begin, count, entry_bytes, false);
  picture.channels = picture.palette.is_gray(count) ? 1 : 3;
  picture.unpack = header.bits == 1 ? unpack_index1 : header.bits == 4 ? unpack_index4 : unpack_index8;
  return {};
}

// Where in a pixel the byte lies that a mask covers; 4 for any other mask.
std::uint8_t byte_of_mask(std::uint32_t mask) {
  for (std::uint8_t byte = 0; byte < 4; ++byte)
    if (mask == 0xffu << 8 * byte) return byte;
  return 4;
}

std::string read_masks(const BmpHeader& header, PackedPicture& picture) {
  using Masks = std::array<std::uint32_t, 3>;
  const Masks colors{header.masks[0], header.masks[1], header.masks[2]};
  const bool by_masks = header.compression == bit_fields;
  picture.channels = 3;
  if (header.bits == 16) {
    picture.unpack = by_masks && colors == Masks{0xf800, 0x7e0, 0x1f} ? unpack_565 : unpack_555;
    const bool usual = !by_masks || picture.unpack == unpack_565 || colors == Masks{0x7c00, 0x3e0, 0x1f};
    return usual ? "" : "BMP with such colour masks is not supported";
  }
  picture.unpack = unpack_bytes;
  picture.pixel_bytes = header.bits / 8;
  picture.channel_byte = {2, 1, 0, 3};
  if (header.bits == 24 || !by_masks) return {};
  const bool no_masks = colors == Masks{} && header.masks[3] == 0;
  picture.channels = no_masks || header.masks[3] != 0 ? 4 : 3;
  if (no_masks) return {};
  for (std::size_t c = 0; c < picture.channels; ++c) {
    picture.channel_byte[c] = byte_of_mask(header.masks[c]);
    if (picture.channel_byte[c] > 3) return "BMP with such colour masks is not supported";
  }
  return {};
}

void find_rows(Bytes file, const BmpHeader& header, PackedPicture& picture) {
  picture.width = static_cast<std::uint32_t>(header.width);
  picture.height = static_cast<std::uint32_t>(std::abs(header.height));
  const std::uint64_t row_bits = std::uint64_t{picture.width} * header.bits;
  picture.row_bytes = (row_bits + 7) / 8;
  picture.row_step = round_up(row_bits, 32) / 8;
  picture.top_first = header.height < 0;
  picture.pixels = file.subspan(std::min<std::uint64_t>(file.size(), header.pixels_offset));
}

}  // namespace

bool is_bmp(Bytes file) {
  if (file.size() < kFileHeaderBytes + 4 || !as_text(file).starts_with("BM")) return false;
  const auto header_bytes = load_little<std::uint32_t>(file.data() + kFileHeaderBytes);
  return header_bytes >= kOs2HeaderBytes && header_bytes <= 255;
}

std::string decode_bmp(Bytes file, const PlanDecode& plan, DecodeMonitor& monitor, Image& image) {
  BmpHeader stored;
  PackedPicture picture;
  std::string fault = read_bmp_header(file, stored);
  if (fault.empty()) fault = check_bmp(stored);
  if (fault.empty())
    fault = stored.bits <= 8 ? read_palette(file, stored, picture) : read_masks(stored, picture);
  if (!fault.empty()) return fault;
  find_rows(file, stored, picture);
  fault = check_rows(picture, monitor);
  if (!fault.empty()) return fault;

  ImageHeader header;
  header.format = "bmp";
  header.width = picture.width;
  header.height = picture.height;
  header.channels = picture.channels;
  header.extra_bytes = std::uint64_t{header.width} * header.channels;
  std::optional<DecodePlan> wanted;
  fault = ask_plan(header, plan, monitor, wanted);
  return wanted ? decode_packed(picture, *wanted, monitor, image) : fault;
}

}  // namespace chunkhit
