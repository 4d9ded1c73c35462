// Photoshop: the flattened picture of grey and RGB documents, 8 or 16 bits (the high byte is kept), plain or
// PackBits. Layout: Adobe Photoshop File Formats Specification, 2019.
#include <algorithm>

#include "decode/big_endian.h"
#include "decode/channels.h"
#include "decode/formats.h"

namespace chunkhit {
namespace {

constexpr std::size_t kHeaderBytes = 26;

/// What is needed of a document to find its pixels.
struct PsdPicture {
  std::uint32_t stored_channels = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t sample_bytes = 0;
  std::uint32_t mode = 0;
  bool packed = false;
  std::size_t data_offset = 0;  ///< of the samples, or of the table of packed row sizes
  [[nodiscard]] std::uint64_t row_bytes() const { return std::uint64_t{width} * sample_bytes; }
};

enum Mode : std::uint32_t { gray = 1, rgb = 3, duotone = 8 };

std::string check_psd(const PsdPicture& picture, std::uint32_t bits) {
  if (picture.mode != gray && picture.mode != rgb && picture.mode != duotone)
    return "PSD that is neither grey nor RGB is not supported";
  if (bits != 8 && bits != 16) return "PSD of " + std::to_string(bits) + " bits is not supported";
  constexpr std::uint32_t kMostChannels = 56;
  if (picture.stored_channels < (picture.mode == rgb ? 3u : 1u) || picture.stored_channels > kMostChannels)
    return "damaged PSD: it has " + std::to_string(picture.stored_channels) + " channels";
  constexpr std::uint32_t kMostSide = 30000;
  if (picture.width > kMostSide || picture.height > kMostSide)
    return "damaged PSD: a side is longer than 30000 pixels";
  return {};
}

// After the header come three blocks with their sizes (colour table, resources, layers), then the picture.
bool find_data(Bytes file, PsdPicture& picture, std::uint32_t& compression) {
  std::size_t at = kHeaderBytes;
  for (int block = 0; block < 3; ++block) {
    if (file.size() - at < 4) return false;
    const std::size_t block_bytes = load_big32(file.data() + at);
    at += 4;
    if (file.size() - at < block_bytes) return false;
    at += block_bytes;
  }
  if (file.size() - at < 2) return false;
  compression = load_big16(file.data() + at);
  picture.data_offset = at + 2;
  return true;
}

// Checks that the file is as long as its rows.
bool has_all_rows(Bytes file, const PsdPicture& picture) {
  const std::uint64_t room = file.size() - picture.data_offset;
  const std::uint64_t row_count = std::uint64_t{picture.stored_channels} * picture.height;
  if (!picture.packed) return room >= row_count * picture.row_bytes();
  if (room < row_count * 2) return false;
  std::uint64_t needed = row_count * 2;
  for (std::uint64_t row = 0; row < row_count; ++row)
    needed += load_big16(file.data() + picture.data_offset + row * 2);
  return room >= needed;
}

std::string read_psd(Bytes file, PsdPicture& picture) {
  if (file.size() < kHeaderBytes) return "truncated: the data ends in the header";
  picture.stored_channels = load_big16(file.data() + 12);
  picture.height = load_big32(file.data() + 14);
  picture.width = load_big32(file.data() + 18);
  const std::uint32_t bits = load_big16(file.data() + 22);
  picture.sample_bytes = bits / 8;
  picture.mode = load_big16(file.data() + 24);
  std::string fault = check_psd(picture, bits);
  if (!fault.empty()) return fault;
  std::uint32_t compression = 0;
  if (!find_data(file, picture, compression)) return "truncated: the data ends before the picture";
  if (compression > 1) return "PSD with compression " + std::to_string(compression) + " is not supported";
  picture.packed = compression == 1;
  return has_all_rows(file, picture) ? "" : "truncated: the data ends before the last row";
}

// PackBits: a byte n below 128 is followed by n + 1 bytes as they are, above 128 by one byte to be repeated
// 257 − n times.
bool unpack_bits(Bytes packed, MutableBytes row) {
  std::size_t at = 0, filled = 0;
  while (filled < row.size()) {
    if (at == packed.size()) return false;
    const std::size_t control = packed[at++];
    if (control == 128) continue;
    const std::size_t count = control < 128 ? control + 1 : 257 - control;
    const std::size_t stored = control < 128 ? count : 1;
    if (count > row.size() - filled || stored > packed.size() - at) return false;
    if (control < 128)
      std::copy_n(packed.data() + at, count, row.data() + filled);
    else
      std::fill_n(row.data() + filled, count, packed[at]);
    at += stored;
    filled += count;
  }
  return true;
}

/// Goes through the rows of all channels in the order of the file.
class RowReader {
 public:
  RowReader(Bytes file, const PsdPicture& picture)
      : picture_(picture),
        row_(picture.packed ? picture.row_bytes() : 0),
        data_(file.subspan(picture.data_offset)) {
    if (picture.packed) at_ = std::size_t{2} * picture.stored_channels * picture.height;
  }
  /// Gives the next row, or steps over it; nothing when it is damaged.
  const std::uint8_t* next(bool is_wanted) {
    const std::size_t stored =
        picture_.packed ? load_big16(data_.data() + 2 * index_++) : picture_.row_bytes();
    const Bytes bytes = data_.subspan(at_, stored);
    at_ += stored;
    if (!picture_.packed || !is_wanted) return bytes.data();
    return unpack_bits(bytes, row_) ? row_.data() : nullptr;
  }

 private:
  const PsdPicture& picture_;
  ByteBuffer row_;
  Bytes data_;
  std::size_t at_ = 0;
  std::size_t index_ = 0;
};

std::string read_region(Bytes file, const PsdPicture& picture, std::uint32_t channels, const Rect& region,
                        Image& natural) {
  natural.reshape(region.width, region.height, channels);
  RowReader rows(file, picture);
  for (std::uint32_t c = 0; c < channels; ++c) {
    for (std::uint32_t y = 0; y < picture.height; ++y) {
      const bool is_wanted = y >= region.y && y - region.y < region.height;
      const std::uint8_t* row = rows.next(is_wanted);
      if (row == nullptr) return "damaged PSD: row " + std::to_string(y) + " does not unpack to its width";
      if (!is_wanted) continue;
      std::uint8_t* out = natural.row(y - region.y) + c;
      for (std::uint32_t x = 0; x < region.width; ++x)
        out[std::size_t{x} * channels] = row[(std::size_t{region.x} + x) * picture.sample_bytes];
    }
  }
  return {};
}

}  // namespace

bool is_psd(Bytes file) { return as_text(file).starts_with(std::string_view("8BPS\0\1", 6)); }

std::string decode_psd(Bytes file, const PlanDecode& plan, DecodeMonitor& monitor, Image& image) {
  PsdPicture picture;
  std::string fault = read_psd(file, picture);
  if (!fault.empty()) return fault;
  ImageHeader header;
  header.format = "psd";
  header.width = picture.width;
  header.height = picture.height;
  // A fourth channel is the document's transparency; where there are more, none is known to be, so none is
  // taken.
  header.channels = picture.mode != rgb ? 1 : picture.stored_channels == 4 ? 4 : 3;
  header.extra_bytes = std::uint64_t{header.width} * header.height * header.channels + picture.row_bytes();
  std::optional<DecodePlan> wanted;
  fault = ask_plan(header, plan, monitor, wanted);
  if (!wanted) return fault;

  const Rect& region = wanted->region;
  if (wanted->channels == header.channels) return read_region(file, picture, header.channels, region, image);
  Image natural;
  fault = read_region(file, picture, header.channels, region, natural);
  if (!fault.empty()) return fault;
  image.reshape(region.width, region.height, wanted->channels);
  convert_channels(natural.pixels.data(), header.channels, image.pixels.data(), wanted->channels,
                   std::size_t{region.width} * region.height);
  return {};
}

}  // namespace chunkhit
