#include "decode/packed_pixels.h"

#include <algorithm>

#include "decode/big_endian.h"
#include "decode/channels.h"

namespace chunkhit {
namespace {

template <unsigned kBits>
void unpack_index(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                  std::uint32_t count, std::uint8_t* out) {
  constexpr unsigned kPerByte = 8 / kBits;
  for (std::uint32_t x = first; x < first + count; ++x, out += picture.channels) {
    const unsigned shift = 8 - kBits - x % kPerByte * kBits;
    const auto index = static_cast<std::uint8_t>(row[x / kPerByte] >> shift & ((1u << kBits) - 1));
    picture.palette.look_up(&index, 1, picture.channels, out);
  }
}

template <unsigned kGreenBits>
void unpack_16_bits(const std::uint8_t* row, std::uint32_t first, std::uint32_t count, std::uint8_t* out) {
  constexpr unsigned kGreen = (1u << kGreenBits) - 1;
  for (std::uint32_t x = first; x < first + count; ++x, out += 3) {
    const unsigned pixel = load_little<std::uint16_t>(row + std::size_t{2} * x);
    out[0] = static_cast<std::uint8_t>((pixel >> (5 + kGreenBits) & 31) * 255 / 31);
    out[1] = static_cast<std::uint8_t>((pixel >> 5 & kGreen) * 255 / kGreen);
    out[2] = static_cast<std::uint8_t>((pixel & 31) * 255 / 31);
  }
}

void reverse_pixels(std::uint8_t* pixels, std::uint32_t count, std::uint32_t channels) {
  for (std::uint32_t x = 0; x < count / 2; ++x)
    std::swap_ranges(pixels + std::size_t{x} * channels, pixels + (x + std::size_t{1}) * channels,
                     pixels + (count - std::size_t{1} - x) * channels);
}

}  // namespace

Palette::Palette() {
  for (std::size_t i = 0; i < rgba.size(); ++i) rgba[i] = static_cast<std::uint8_t>(i % 4 == 3 ? 255 : i / 4);
}

void Palette::read_bgr(const std::uint8_t* entries, std::size_t count, std::size_t entry_bytes,
                       bool has_alpha) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* entry = entries + i * entry_bytes;
    std::reverse_copy(entry, entry + 3, rgba.data() + 4 * i);
    if (has_alpha) rgba[4 * i + 3] = entry[3];
  }
}

void Palette::read_rgb(const std::uint8_t* entries, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) std::copy_n(entries + 3 * i, 3, rgba.data() + 4 * i);
}

bool Palette::is_gray(std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i)
    if (rgba[4 * i] != rgba[4 * i + 1] || rgba[4 * i] != rgba[4 * i + 2]) return false;
  return true;
}

void Palette::look_up(const std::uint8_t* indices, std::size_t count, std::uint32_t channels,
                      std::uint8_t* out) const {
  const std::size_t colors = channels >= 3 ? 3 : 1;
  for (std::size_t i = 0; i < count; ++i, out += channels) {
    const std::uint8_t* color = rgba.data() + std::size_t{4} * indices[i];
    std::copy_n(color, colors, out);
    if (channels % 2 == 0) out[colors] = color[3];
  }
}

void unpack_bytes(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                  std::uint32_t count, std::uint8_t* out) {
  const std::uint8_t* pixel = row + first * picture.pixel_bytes;
  for (std::uint32_t i = 0; i < count; ++i, pixel += picture.pixel_bytes, out += picture.channels)
    for (std::uint32_t c = 0; c < picture.channels; ++c) out[c] = pixel[picture.channel_byte[c]];
}

void unpack_index1(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                   std::uint32_t count, std::uint8_t* out) {
  unpack_index<1>(picture, row, first, count, out);
}

void unpack_index4(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                   std::uint32_t count, std::uint8_t* out) {
  unpack_index<4>(picture, row, first, count, out);
}

void unpack_index8(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                   std::uint32_t count, std::uint8_t* out) {
  picture.palette.look_up(row + first, count, picture.channels, out);
}

void unpack_555(const PackedPicture&, const std::uint8_t* row, std::uint32_t first, std::uint32_t count,
                std::uint8_t* out) {
  unpack_16_bits<5>(row, first, count, out);
}

void unpack_565(const PackedPicture&, const std::uint8_t* row, std::uint32_t first, std::uint32_t count,
                std::uint8_t* out) {
  unpack_16_bits<6>(row, first, count, out);
}

void unpack_scaled8(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                    std::uint32_t count, std::uint8_t* out) {
  const std::uint8_t* value = row + std::size_t{first} * picture.channels;
  const std::size_t value_count = std::size_t{count} * picture.channels;
  for (std::size_t i = 0; i < value_count; ++i) out[i] = picture.scaled[value[i]];
}

void unpack_scaled16(const PackedPicture& picture, const std::uint8_t* row, std::uint32_t first,
                     std::uint32_t count, std::uint8_t* out) {
  const std::uint8_t* value = row + std::size_t{2} * first * picture.channels;
  const std::size_t value_count = std::size_t{count} * picture.channels;
  for (std::size_t i = 0; i < value_count; ++i) out[i] = picture.scaled[load_big16(value + 2 * i)];
}

std::uint64_t count_whole_rows(const PackedPicture& picture) {
  const std::uint64_t room = picture.pixels.size();
  if (room < picture.row_bytes) return 0;
  return std::min<std::uint64_t>(picture.height, (room - picture.row_bytes) / picture.row_step + 1);
}

std::string check_rows(const PackedPicture& picture, DecodeMonitor& monitor) {
  const std::uint64_t rows = count_whole_rows(picture);
  if (rows == picture.height) return {};
  const std::string reason =
      "truncated: the data ends near row " + std::to_string(rows) + " of " + std::to_string(picture.height);
  return rows == 0 ? reason : monitor.damage(reason);
}

std::string decode_packed(const PackedPicture& picture, const DecodePlan& wanted,
                          const DecodeMonitor& monitor, Image& image) {
  const Rect& region = wanted.region;
  image.reshape(region.width, region.height, wanted.channels);
  ByteBuffer natural(std::size_t{region.width} * picture.channels);
  const std::uint32_t first = picture.mirrored ? picture.width - region.x - region.width : region.x;
  const std::uint64_t whole_rows = count_whole_rows(picture);
  for (std::uint32_t y = 0; y < region.height; ++y) {
    if (monitor.is_out_of_time()) return monitor.time_error();
    const std::uint32_t row = picture.top_first ? region.y + y : picture.height - 1 - region.y - y;
    if (row >= whole_rows) {
      std::fill_n(image.row(y), std::size_t{region.width} * wanted.channels, std::uint8_t{0});
      continue;
    }
    picture.unpack(picture, picture.pixels.data() + row * picture.row_step, first, region.width,
                   natural.data());
    if (picture.mirrored) reverse_pixels(natural.data(), region.width, picture.channels);
    convert_channels(natural.data(), picture.channels, image.row(y), wanted.channels, region.width);
  }
  return {};
}

}  // namespace chunkhit
