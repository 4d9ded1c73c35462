// WebP by libwebp: lossy, lossless, alpha, and the first frame of an animation. Layout: RFC 9649.
#include <webp/decode.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "decode/channels.h"
#include "decode/exif.h"
#include "decode/formats.h"
#include "decode/image_decoder.h"

namespace chunkhit {
namespace {

// libwebp does not say how much memory Huffman codes take: they are read here to bound it (RFC 9649).

constexpr std::size_t kMaxLength = 15;  // of a code
constexpr std::uint32_t kLiterals = 256, kLengthCodes = 24, kDistanceCodes = 40;
enum Transform : unsigned { predictor, cross_color, subtract_green, color_indexing };

void require_valid(bool holds) {
  if (!holds) throw ImageError(RejectKind::damaged, "damaged WebP: its Huffman codes are malformed");
}

/// Reads bits, the lowest one of a byte first.
class BitReader {
 public:
  explicit BitReader(Bytes data) : data_(data) {}
  std::uint32_t bit() {
    if (at_ == 8 * data_.size())
      throw ImageError(RejectKind::damaged, "truncated: the data ends in the Huffman codes");
    const std::uint32_t value = data_[at_ / 8] >> at_ % 8 & 1u;
    ++at_;
    return value;
  }
  std::uint32_t bits(unsigned count) {
    std::uint32_t value = 0;
    for (unsigned i = 0; i < count; ++i) value |= bit() << i;
    return value;
  }
  std::uint64_t left() const { return 8 * data_.size() - at_; }

 private:
  Bytes data_;
  std::uint64_t at_ = 0;
};

/// A canonical Huffman code; one of a single symbol takes no bits.
class HuffmanCode {
 public:
  explicit HuffmanCode(const std::vector<std::uint8_t>& lengths) {
    for (const std::uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    for (std::uint8_t length = 1; length <= kMaxLength; ++length)
      for (std::uint32_t symbol = 0; counts_[length] > 0 && symbol < lengths.size(); ++symbol)
        if (lengths[symbol] == length) symbols_.push_back(symbol);
    std::uint32_t unused = 1;  // of the codes of a length
    for (std::size_t length = 1; length <= kMaxLength; ++length) {
      unused *= 2;
      require_valid(symbols_.size() == 1 || counts_[length] <= unused);
      unused -= std::min(counts_[length], unused);
    }
    require_valid(!symbols_.empty() && (symbols_.size() == 1 || unused == 0));
  }

  std::uint32_t next(BitReader& reader) const {
    if (symbols_.size() == 1) return symbols_[0];
    std::uint32_t code = 0, first = 0, index = 0;
    for (std::size_t length = 1; length <= kMaxLength; ++length) {
      code |= reader.bit();
      if (code - first < counts_[length]) return symbols_[index + code - first];
      index += counts_[length];
      first = (first + counts_[length]) * 2;
      code *= 2;
    }
    require_valid(false);
    return 0;
  }

 private:
  std::array<std::uint32_t, kMaxLength + 1> counts_{};
  std::vector<std::uint32_t> symbols_;  // by code
};

HuffmanCode read_simple_code(BitReader& reader, std::uint32_t alphabet) {
  std::vector<std::uint8_t> lengths(std::max(alphabet, kLiterals));
  const bool has_two = reader.bit() != 0;
  lengths[reader.bits(reader.bit() != 0 ? 8 : 1)] = 1;
  if (has_two) lengths[reader.bits(8)] = 1;
  lengths.resize(alphabet);  // a symbol beyond it is none
  return HuffmanCode(lengths);
}

HuffmanCode read_code(BitReader& reader, std::uint32_t alphabet) {
  constexpr std::array<std::uint8_t, 19> kOrder{17, 18, 0, 1,  2,  3,  4,  5,  16, 6,
                                                7,  8,  9, 10, 11, 12, 13, 14, 15};
  constexpr std::array<unsigned, 3> kRepeatBits{2, 3, 7}, kFewestRepeats{3, 3, 11};
  if (reader.bit() != 0) return read_simple_code(reader, alphabet);
  std::vector<std::uint8_t> length_lengths(kOrder.size());
  const std::uint32_t count = reader.bits(4) + 4;
  for (std::uint32_t i = 0; i < count; ++i)
    length_lengths[kOrder[i]] = static_cast<std::uint8_t>(reader.bits(3));
  const HuffmanCode length_code(length_lengths);
  std::uint32_t left = alphabet;
  if (reader.bit() != 0) left = 2 + reader.bits(2 + 2 * reader.bits(3));
  require_valid(left <= alphabet);
  std::vector<std::uint8_t> lengths;
  for (std::uint8_t previous = 8; lengths.size() < alphabet && left > 0; --left) {
    const auto length = static_cast<std::uint8_t>(length_code.next(reader));
    if (length <= kMaxLength) {
      lengths.push_back(length);
      if (length != 0) previous = length;
      continue;
    }
    const std::size_t kind = length - kMaxLength - 1;
    const std::uint32_t repeats = reader.bits(kRepeatBits[kind]) + kFewestRepeats[kind];
    require_valid(lengths.size() + repeats <= alphabet);
    lengths.insert(lengths.end(), repeats, kind == 0 ? previous : std::uint8_t{0});
  }
  return HuffmanCode(lengths);
}

// A length or distance: a prefix code, then further bits.
std::uint64_t read_prefixed(BitReader& reader, std::uint32_t symbol) {
  if (symbol < 4) return symbol + 1;
  const std::uint32_t extra = (symbol - 2) / 2;
  return (std::uint64_t{2 + symbol % 2} << extra) + reader.bits(extra) + 1;
}

std::uint32_t read_cache_bits(BitReader& reader) {
  if (reader.bit() == 0) return 0;
  const std::uint32_t bits = reader.bits(4);
  require_valid(bits >= 1 && bits <= 11);
  return bits;
}

/// Passes over an image that describes the one of the pixels: it has one group of codes.
void skip_image(BitReader& reader, std::uint64_t pixel_count) {
  const std::uint32_t cache_bits = read_cache_bits(reader);
  const std::uint32_t cache = cache_bits > 0 ? 1u << cache_bits : 0;
  const HuffmanCode green = read_code(reader, kLiterals + kLengthCodes + cache);
  const HuffmanCode red = read_code(reader, kLiterals), blue = read_code(reader, kLiterals),
                    alpha = read_code(reader, kLiterals), distance = read_code(reader, kDistanceCodes);
  std::uint64_t pixels = 0;
  while (pixels < pixel_count) {
    const std::uint32_t symbol = green.next(reader);
    if (symbol >= kLiterals && symbol < kLiterals + kLengthCodes) {
      pixels += read_prefixed(reader, symbol - kLiterals);
      read_prefixed(reader, distance.next(reader));
      continue;
    }
    ++pixels;
    if (symbol >= kLiterals) continue;
    red.next(reader);
    blue.next(reader);
    alpha.next(reader);
  }
  require_valid(pixels == pixel_count);
}

std::uint32_t divide_up(std::uint32_t value, std::uint32_t bits) {
  return static_cast<std::uint32_t>((std::uint64_t{value} + (1u << bits) - 1) >> bits);
}

/// Passes over the transforms; gives the width of what is coded, which packs pixels of few colors.
std::uint32_t skip_transforms(BitReader& reader, std::uint32_t width, std::uint32_t height) {
  unsigned seen = 0;
  while (reader.bit() != 0) {
    const std::uint32_t transform = reader.bits(2);
    require_valid((seen >> transform & 1u) == 0);
    seen |= 1u << transform;
    if (transform == predictor || transform == cross_color) {
      const std::uint32_t bits = reader.bits(3) + 2;
      skip_image(reader, std::uint64_t{divide_up(width, bits)} * divide_up(height, bits));
    } else if (transform == color_indexing) {
      const std::uint32_t colors = reader.bits(8) + 1;
      skip_image(reader, colors);
      width = divide_up(width, colors > 16 ? 0 : colors > 4 ? 1 : colors > 2 ? 2 : 3);
    }
  }
  return width;
}

/// Bounds the memory that libwebp takes for the Huffman codes of a VP8L stream (RFC 9649, 3.4) of
/// width × height pixels: up to 65,536 groups of codes in a file of 300 KB. The stream begins behind the
/// size. Throws ImageError where it ends early or is malformed.
std::uint64_t max_huffman_bytes(Bytes stream, std::uint32_t width, std::uint32_t height) {
  // libwebp: tables of four bytes an entry (kTableSize), and what points into them.
  constexpr std::uint64_t kFewestEntries = 3020, kEntryBytes = 4, kGroupBytes = 640;
  constexpr std::uint64_t kMaxGroups = 65536, kUnmappedGroups = 1000, kFewestGroupBits = 20;
  BitReader reader(stream);
  width = skip_transforms(reader, width, height);
  const std::uint32_t cache_bits = read_cache_bits(reader);
  const std::uint64_t group_bytes =
      (kFewestEntries + (std::uint64_t{1} << cache_bits)) * kEntryBytes + kGroupBytes;
  if (reader.bit() == 0) return group_bytes;
  const std::uint32_t bits = reader.bits(3) + 2;
  const std::uint64_t block_count = std::uint64_t{divide_up(width, bits)} * divide_up(height, bits);
  return std::min(
             {std::max(block_count, kUnmappedGroups), kMaxGroups, reader.left() / kFewestGroupBits + 1}) *
         group_bytes;
}

constexpr std::size_t kRiffHeaderBytes = 12;  // "RIFF", size, "WEBP"
constexpr std::size_t kChunkHeaderBytes = 8;
constexpr std::size_t kFrameHeaderBytes = 16;       // of ANMF
constexpr unsigned kExifFlag = 8, kAlphaFlag = 16;  // of VP8X
constexpr int kLossy = 1, kLossless = 2;            // formats of libwebp

std::uint32_t load_little24(const std::uint8_t* from) {
  return from[0] | std::uint32_t{from[1]} << 8 | std::uint32_t{from[2]} << 16;
}

/// One chunk; of the last one in a truncated file, what the file has.
struct WebpChunk {
  std::string_view type;
  Bytes data;
};

WebpChunk next_chunk(Bytes& rest) {
  const std::uint64_t data_bytes = load_little<std::uint32_t>(rest.data() + 4);
  const Bytes behind = rest.subspan(kChunkHeaderBytes);
  const WebpChunk chunk{as_text(rest.first(4)),
                        behind.first(std::min<std::uint64_t>(data_bytes, behind.size()))};
  rest = behind.subspan(std::min<std::uint64_t>(data_bytes + data_bytes % 2, behind.size()));
  return chunk;
}

WebPBitstreamFeatures read_features(Bytes data) {
  WebPBitstreamFeatures features{};
  const VP8StatusCode status = WebPGetFeatures(data.data(), data.size(), &features);
  if (status == VP8_STATUS_NOT_ENOUGH_DATA)
    throw ImageError(RejectKind::damaged, "truncated: the data ends in the header");
  if (status != VP8_STATUS_OK) throw ImageError(RejectKind::damaged, "damaged WebP: its header is malformed");
  return features;
}

struct DeleteDecoder {
  void operator()(WebPIDecoder* decoder) const { WebPIDelete(decoder); }
};

class WebpFile : public OpenedImage {
 public:
  WebpFile(Bytes file, DecodeMonitor& monitor) : monitor_(monitor) {
    require_bytes(file, kRiffHeaderBytes + kChunkHeaderBytes);
    const std::uint64_t riff_bytes = std::uint64_t{load_little<std::uint32_t>(file.data() + 4)} + 8;
    is_cut_ = riff_bytes > file.size();
    frame_ = file.first(std::min<std::uint64_t>(riff_bytes, file.size()));
    const WebPBitstreamFeatures canvas = read_features(frame_);
    header.width = static_cast<std::uint32_t>(canvas.width);
    header.height = static_cast<std::uint32_t>(canvas.height);
    header.channels = canvas.has_alpha != 0 ? 4 : 3;
    rect_ = {0, 0, header.width, header.height};
    read_chunks(frame_.subspan(kRiffHeaderBytes), canvas);
    describe_memory(read_features(frame_));
  }

  void decode(const DecodePlan& plan, Image& image) override {
    if (is_cut_) monitor_.damage("truncated: the file is shorter than its header says");
    const std::size_t row_bytes = std::size_t{header.width} * header.channels;
    ByteBuffer canvas(header.height * row_bytes,
                      std::uint8_t{0});  // what no frame covers is transparent black
    decode_frame(canvas.data() + rect_.y * row_bytes + std::size_t{rect_.x} * header.channels, row_bytes);
    const Rect& region = plan.region;
    image.reshape(region.width, region.height, plan.channels);
    for (std::uint32_t y = 0; y < region.height; ++y)
      convert_channels(canvas.data() + (region.y + y) * row_bytes + std::size_t{region.x} * header.channels,
                       header.channels, image.row(y), plan.channels, region.width);
  }

 private:
  /// Finds the first frame of an animation and the orientation; a file without VP8X has neither.
  void read_chunks(Bytes rest, const WebPBitstreamFeatures& canvas) {
    const WebpChunk extended = next_chunk(rest);
    if (extended.type != "VP8X") return;
    const bool has_exif = (extended.data[0] & kExifFlag) != 0;
    const bool has_alpha = (extended.data[0] & kAlphaFlag) != 0;
    if (canvas.format == kLossy && !has_alpha) header.channels = 3;  // as Pillow takes it
    bool has_frame = canvas.has_animation == 0, has_orientation = !has_exif;
    while (rest.size() >= kChunkHeaderBytes &&
           !(has_frame && has_orientation && (canvas.has_animation == 0 || header.has_more_frames))) {
      const WebpChunk chunk = next_chunk(rest);
      if (chunk.type == "EXIF" && !has_orientation) {
        header.orientation = chunk_orientation(chunk.data);
        has_orientation = true;
      } else if (chunk.type == "ANMF") {
        if (!has_frame) take_frame(chunk.data);
        header.has_more_frames = has_frame;
        has_frame = true;
      }
    }
    if (!has_frame) throw ImageError(RejectKind::damaged, "damaged WebP: its animation has no frame");
  }

  void take_frame(Bytes data) {
    require_bytes(data, kFrameHeaderBytes, "first frame");
    rect_ = {2 * load_little24(data.data()), 2 * load_little24(data.data() + 3),
             1 + load_little24(data.data() + 6), 1 + load_little24(data.data() + 9)};
    frame_ = data.subspan(kFrameHeaderBytes);
    const WebPBitstreamFeatures features = read_features(frame_);
    if (rect_.width != static_cast<std::uint32_t>(features.width) ||
        rect_.height != static_cast<std::uint32_t>(features.height) ||
        std::uint64_t{rect_.x} + rect_.width > header.width ||
        std::uint64_t{rect_.y} + rect_.height > header.height)
      throw ImageError(RejectKind::damaged, "damaged WebP: its first frame does not fit in its canvas");
  }

  // Beside the canvas: a lossless frame is decoded to 4 bytes a pixel with up to three images of transforms
  // and codes at a 16th of the pixels; alpha may be such a frame itself, beside its plane.
  void describe_memory(const WebPBitstreamFeatures& frame) {
    constexpr std::uint64_t kTables = 1 << 20, kBytesPerColumn = 512;
    const std::uint64_t pixels = std::uint64_t{header.width} * header.height;
    if (pixels > monitor_.options().max_pixels) return;  // is rejected for that
    is_lossless_ = frame.format == kLossless;
    const std::uint64_t pixel_bytes = is_lossless_ ? 5 : frame.has_alpha != 0 ? 6 : 0;
    header.extra_bytes = pixels * header.channels;
    header.peak_bytes = header.extra_bytes + std::uint64_t{rect_.width} * rect_.height * pixel_bytes +
                        header.width * kBytesPerColumn + kTables + code_bytes();
  }

  /// Bounds the memory of the codes of what is lossless in the frame: all of it, or its alpha.
  [[nodiscard]] std::uint64_t code_bytes() const {
    constexpr std::size_t kVp8lSizeBytes = 5;
    constexpr unsigned kMethodMask = 3;
    std::uint64_t bytes = 0;
    Bytes rest = frame_.subspan(as_text(frame_).starts_with("RIFF") ? kRiffHeaderBytes : 0);
    while (rest.size() >= kChunkHeaderBytes) {
      const WebpChunk chunk = next_chunk(rest);
      const bool is_alpha = chunk.type == "ALPH" && !chunk.data.empty() && (chunk.data[0] & kMethodMask) == 1;
      if (is_alpha || chunk.type == "VP8L")
        bytes +=
            max_huffman_bytes(chunk.data.subspan(std::min(is_alpha ? 1 : kVp8lSizeBytes, chunk.data.size())),
                              rect_.width, rect_.height);
      if (chunk.type == "VP8L" || chunk.type == "VP8 ") break;
    }
    return bytes;
  }

  // Steps of a 16th of the file: between them the time is looked at. Steps of a lossless frame double,
  // because its codes are read again at each until they are complete.
  void decode_frame(std::uint8_t* pixels, std::size_t row_bytes) {
    const std::size_t size = (rect_.height - 1) * row_bytes + std::size_t{rect_.width} * header.channels;
    const std::unique_ptr<WebPIDecoder, DeleteDecoder> decoder(
        WebPINewRGB(header.channels == 4 ? MODE_RGBA : MODE_RGB, pixels, size, static_cast<int>(row_bytes)));
    if (decoder == nullptr) throw std::bad_alloc();
    constexpr std::size_t kMinStep = 16 << 10;
    const std::size_t step = std::max(kMinStep, frame_.size() / 16);
    VP8StatusCode status = VP8_STATUS_SUSPENDED;
    for (std::size_t given = 0; status == VP8_STATUS_SUSPENDED && given < frame_.size();) {
      monitor_.check_time();
      given = std::min(given + (is_lossless_ ? std::max(given, step) : step), frame_.size());
      status = WebPIUpdate(decoder.get(), frame_.data(), given);
    }
    monitor_.check_time();
    if (status == VP8_STATUS_OK) return;
    if (status == VP8_STATUS_OUT_OF_MEMORY) throw std::bad_alloc();
    int rows = 0;
    if (WebPIDecGetRGB(decoder.get(), &rows, nullptr, nullptr, nullptr) == nullptr) rows = 0;
    report_missing_rows(status, static_cast<std::uint32_t>(std::max(rows, 0)));
  }

  void report_missing_rows(VP8StatusCode status, std::uint32_t rows) {
    const bool is_truncated = status == VP8_STATUS_SUSPENDED || status == VP8_STATUS_NOT_ENOUGH_DATA;
    const std::string reason = (is_truncated ? "truncated: the data ends near row "
                                             : "damaged WebP: its data is malformed near row ") +
                               std::to_string(rect_.y + rows) + " of " + std::to_string(header.height);
    if (rows == 0) throw ImageError(RejectKind::damaged, reason);
    monitor_.damage(reason);
  }

  DecodeMonitor& monitor_;
  Bytes frame_;  // what libwebp decodes: the file, or an animation's first frame
  Rect rect_;    // of the frame on the canvas
  bool is_cut_ = false;
  bool is_lossless_ = false;
};

}  // namespace

bool is_webp(Bytes file) {
  const std::string_view text = as_text(file);
  return text.starts_with("RIFF") && text.size() >= kRiffHeaderBytes && text.substr(8, 4) == "WEBP";
}

std::unique_ptr<OpenedImage> open_webp(Bytes file, DecodeMonitor& monitor) {
  return std::make_unique<WebpFile>(file, monitor);
}

}  // namespace chunkhit
