// WebP by libwebp: lossy, lossless, alpha, and the first frame of an animation. Layout: RFC 9649.
#include <webp/decode.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>

#include "base/bytes.h"
#include "decode/channels.h"
#include "decode/exif.h"
#include "decode/formats.h"
#include "decode/vp8l.h"

namespace chunkhit {
namespace {

constexpr std::size_t kRiffHeaderBytes = 12;  // "RIFF", size, "WEBP"
constexpr std::size_t kChunkHeaderBytes = 8;
constexpr std::size_t kFrameHeaderBytes = 16;       // of ANMF
constexpr unsigned kExifFlag = 8, kAlphaFlag = 16;  // of VP8X
constexpr int kLossy = 1, kLossless = 2;            // formats of libwebp

std::uint32_t load_little24(const std::uint8_t* from) {
  return from[0] | std::uint32_t{from[1]} << 8 | std::uint32_t{from[2]} << 16;
}

/// One chunk; of the last one in a truncated file, what the file has.
struct Chunk {
  std::string_view type;
  Bytes data;
};

Chunk next_chunk(Bytes& rest) {
  const std::uint64_t data_bytes = load_little<std::uint32_t>(rest.data() + 4);
  const Bytes behind = rest.subspan(kChunkHeaderBytes);
  const Chunk chunk{as_text(rest.first(4)), behind.first(std::min<std::uint64_t>(data_bytes, behind.size()))};
  rest = behind.subspan(std::min<std::uint64_t>(data_bytes + data_bytes % 2, behind.size()));
  return chunk;
}

WebPBitstreamFeatures read_features(Bytes data) {
  WebPBitstreamFeatures features{};
  const VP8StatusCode status = WebPGetFeatures(data.data(), data.size(), &features);
  if (status == VP8_STATUS_NOT_ENOUGH_DATA) throw ImageError("truncated: the data ends in the header");
  if (status != VP8_STATUS_OK) throw ImageError("damaged WebP: its header is malformed");
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
    const Chunk extended = next_chunk(rest);
    if (extended.type != "VP8X") return;
    const bool has_exif = (extended.data[0] & kExifFlag) != 0;
    const bool has_alpha = (extended.data[0] & kAlphaFlag) != 0;
    if (canvas.format == kLossy && !has_alpha) header.channels = 3;  // as Pillow takes it
    bool has_frame = canvas.has_animation == 0, has_orientation = !has_exif;
    while (rest.size() >= kChunkHeaderBytes && !(has_frame && has_orientation)) {
      const Chunk chunk = next_chunk(rest);
      if (chunk.type == "EXIF" && !has_orientation) {
        header.orientation = chunk_orientation(chunk.data);
        has_orientation = true;
      } else if (chunk.type == "ANMF" && !has_frame) {
        take_frame(chunk.data);
        has_frame = true;
      }
    }
    if (!has_frame) throw ImageError("damaged WebP: its animation has no frame");
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
      throw ImageError("damaged WebP: its first frame does not fit in its canvas");
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
    constexpr std::size_t kSizeBytes = 5;
    constexpr unsigned kMethodMask = 3;
    std::uint64_t bytes = 0;
    Bytes rest = frame_.subspan(as_text(frame_).starts_with("RIFF") ? kRiffHeaderBytes : 0);
    while (rest.size() >= kChunkHeaderBytes) {
      const Chunk chunk = next_chunk(rest);
      const bool is_alpha = chunk.type == "ALPH" && !chunk.data.empty() && (chunk.data[0] & kMethodMask) == 1;
      if (is_alpha || chunk.type == "VP8L")
        bytes += max_huffman_bytes(chunk.data.subspan(std::min(is_alpha ? 1 : kSizeBytes, chunk.data.size())),
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
    if (rows == 0) throw ImageError(reason);
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
