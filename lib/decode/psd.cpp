// Photoshop: the flattened picture of grey and RGB documents, 8 or 16 bits (the high byte is kept), plain or
// PackBits. Layout: Adobe Photoshop File Formats Specification, 2019.
#include <algorithm>

#include "decode/big_endian.h"
#include "decode/channels.h"
#include "decode/formats.h"

namespace chunkhit {
namespace {

constexpr std::size_t kHeaderBytes = 26;

enum Mode : std::uint32_t { gray = 1, rgb = 3, duotone = 8 };

/// What is needed of a document to find its pixels.
struct PsdPicture {
  std::uint32_t stored_channels = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t sample_bytes = 0;
  std::uint32_t mode = 0;
  bool packed = false;
  std::size_t data_offset = 0;   ///< of the samples, or of the table of packed row sizes
  std::uint32_t whole_rows = 0;  ///< from the top, that all channels have
  [[nodiscard]] std::uint64_t row_bytes() const { return std::uint64_t{width} * sample_bytes; }
  /// A fourth channel is the document's transparency; where there are more, none is known to be, so none is
  /// taken.
  [[nodiscard]] std::uint32_t used_channels() const { return mode != rgb ? 1 : stored_channels == 4 ? 4 : 3; }
};

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

/// Gives how many rows the file has whole in the first `channels` channels: it holds them one behind the
/// other.
std::uint32_t count_whole_rows(Bytes file, const PsdPicture& picture, std::uint32_t channels) {
  const std::uint64_t room = file.size() - picture.data_offset;
  const std::uint64_t table_bytes =
      picture.packed ? std::uint64_t{2} * picture.stored_channels * picture.height : 0;
  if (room < table_bytes) return 0;
  const std::uint64_t row_count = std::uint64_t{channels} * picture.height;
  std::uint64_t needed = table_bytes;
  std::uint64_t row = 0;
  for (; row < row_count; ++row) {
    needed += picture.packed ? load_big16(file.data() + picture.data_offset + row * 2) : picture.row_bytes();
    if (needed > room) break;
  }
  const std::uint64_t before_last = row_count - picture.height;
  return row < before_last ? 0 : static_cast<std::uint32_t>(row - before_last);
}

/// Judges rows that are missing; gives the error, or how many rows there are.
std::string check_rows(Bytes file, PsdPicture& picture, DecodeMonitor& monitor) {
  picture.whole_rows = picture.height;
  if (count_whole_rows(file, picture, picture.stored_channels) == picture.height) return {};
  picture.whole_rows = count_whole_rows(file, picture, picture.used_channels());
  const std::string reason = "truncated: the data ends before the last row";
  return picture.whole_rows == 0 ? reason : monitor.damage(reason);
}

std::string read_psd(Bytes file, PsdPicture& picture, DecodeMonitor& monitor) {
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
  return check_rows(file, picture, monitor);
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

/// Puts a row of one channel, nothing for black, where the channel lies in the row of an image.
void put_channel(const std::uint8_t* row, const PsdPicture& picture, const Rect& region, std::uint8_t* out,
                 std::uint32_t channels) {
  for (std::uint32_t x = 0; x < region.width; ++x)
    out[std::size_t{x} * channels] =
        row == nullptr ? 0 : row[(std::size_t{region.x} + x) * picture.sample_bytes];
}

std::string read_region(Bytes file, const PsdPicture& picture, const Rect& region, DecodeMonitor& monitor,
                        Image& natural) {
  const std::uint32_t channels = picture.used_channels();
  natural.reshape(region.width, region.height, channels);
  std::fill(natural.pixels.begin(), natural.pixels.end(), std::uint8_t{0});
  RowReader rows(file, picture);
  for (std::uint32_t c = 0; c < channels; ++c) {
    const std::uint32_t row_count = c + 1 < channels ? picture.height : picture.whole_rows;
    for (std::uint32_t y = 0; y < row_count; ++y) {
      if (monitor.is_out_of_time()) return monitor.time_error();
      const bool is_wanted = y >= region.y && y - region.y < region.height && y < picture.whole_rows;
      const std::uint8_t* row = rows.next(is_wanted);
      std::string error;
      if (row == nullptr)
        error = monitor.damage("damaged PSD: row " + std::to_string(y) + " does not unpack to its width");
      if (!error.empty()) return error;
      if (is_wanted) put_channel(row, picture, region, natural.row(y - region.y) + c, channels);
    }
  }
  return {};
}

}  // namespace

bool is_psd(Bytes file) { return as_text(file).starts_with(std::string_view("8BPS\0\1", 6)); }

std::string decode_psd(Bytes file, const PlanDecode& plan, DecodeMonitor& monitor, Image& image) {
  PsdPicture picture;
  std::string fault = read_psd(file, picture, monitor);
  if (!fault.empty()) return fault;
  ImageHeader header;
  header.format = "psd";
  header.width = picture.width;
  header.height = picture.height;
  header.channels = picture.used_channels();
  header.extra_bytes = std::uint64_t{header.width} * header.height * header.channels + picture.row_bytes();
  std::optional<DecodePlan> wanted;
  fault = ask_plan(header, plan, monitor, wanted);
  if (!wanted) return fault;

  const Rect& region = wanted->region;
  if (wanted->channels == header.channels) return read_region(file, picture, region, monitor, image);
  Image natural;
  fault = read_region(file, picture, region, monitor, natural);
  if (!fault.empty()) return fault;
  image.reshape(region.width, region.height, wanted->channels);
  convert_channels(natural.pixels.data(), header.channels, image.pixels.data(), wanted->channels,
                   std::size_t{region.width} * region.height);
  return {};
}

}  // namespace chunkhit
