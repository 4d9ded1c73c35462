// AVIF by libavif: the first image of a file, 8 bits a channel, whatever the file has.
#include <avif/avif.h>

#include <array>
#include <memory>
#include <new>
#include <string>

#include "base/bytes.h"
#include "decode/channels.h"
#include "decode/formats.h"

namespace chunkhit {
namespace {

struct DestroyAvif {
  void operator()(avifDecoder* decoder) const { avifDecoderDestroy(decoder); }
};

void require(avifResult result, const avifDecoder& decoder) {
  if (result == AVIF_RESULT_OK) return;
  if (result == AVIF_RESULT_OUT_OF_MEMORY) throw std::bad_alloc();
  if (result == AVIF_RESULT_TRUNCATED_DATA)
    throw ImageError(RejectKind::damaged, "truncated: the data ends early");
  const std::string detail(std::begin(decoder.diag.error));
  throw ImageError(RejectKind::damaged, std::string("damaged AVIF: ") + avifResultToString(result) +
                                            (detail.empty() ? "" : ": " + detail));
}

/// 0: top and bottom are exchanged; 1: left and right. libavif 1.0 renamed the field.
int mirror_of(const auto& imir) {
  if constexpr (requires { imir.mode; })
    return imir.mode;
  else
    return imir.axis;
}

/// The EXIF orientation that turns as the file says: first counter-clockwise, then mirrored.
int orientation_of(const avifImage& image) {
  constexpr int kNone = 0, kTopToBottom = 1, kLeftToRight = 2;
  constexpr std::array<std::array<int, 3>, 4> kOrientations{{{1, 4, 2}, {8, 5, 7}, {3, 2, 4}, {6, 7, 5}}};
  const bool turns = (image.transformFlags & AVIF_TRANSFORM_IROT) != 0;
  const bool mirrors = (image.transformFlags & AVIF_TRANSFORM_IMIR) != 0;
  const int mirror = !mirrors ? kNone : mirror_of(image.imir) == 0 ? kTopToBottom : kLeftToRight;
  return kOrientations.at(turns ? image.irot.angle % 4 : 0).at(static_cast<std::size_t>(mirror));
}

class AvifFile : public OpenedImage {
 public:
  AvifFile(Bytes file, DecodeMonitor& monitor) : monitor_(monitor), decoder_(avifDecoderCreate()) {
    if (decoder_ == nullptr) throw std::bad_alloc();
    decoder_->maxThreads = 1;
    decoder_->ignoreExif = decoder_->ignoreXMP = AVIF_TRUE;
    decoder_->imageDimensionLimit = 0;  // the number of pixels is looked at by the caller
    // What many writers leave out, and what is not needed for the pixels.
    decoder_->strictFlags = AVIF_STRICT_ENABLED & ~(AVIF_STRICT_PIXI_REQUIRED | AVIF_STRICT_CLAP_VALID);
    require(avifDecoderSetIOMemory(decoder_.get(), file.data(), file.size()), *decoder_);
    require(avifDecoderParse(decoder_.get()), *decoder_);
    const avifImage& image = *decoder_->image;
    if ((image.transformFlags & AVIF_TRANSFORM_CLAP) != 0)
      throw ImageError(RejectKind::unsupported,
                       "AVIF with a clean aperture is not supported; `avifdec IN.avif OUT.png` converts it");
    header.width = image.width;
    header.height = image.height;
    header.channels =
        (image.yuvFormat == AVIF_PIXEL_FORMAT_YUV400 ? 1 : 3) + (decoder_->alphaPresent ? 1 : 0);
    header.orientation = orientation_of(image);
    header.has_more_frames = decoder_->imageCount > 1;
    describe_memory(image);
  }

  void decode(const DecodePlan& plan, Image& image) override {
    // dav1d rejects larger frames than the header says before they take memory.
    decoder_->imageSizeLimit = static_cast<std::uint32_t>(std::uint64_t{header.width} * header.height);
    require(avifDecoderNextImage(decoder_.get()), *decoder_);
    monitor_.check_time();
    const avifImage& decoded = *decoder_->image;
    if (decoded.width != header.width || decoded.height != header.height)
      throw ImageError(RejectKind::damaged, "damaged AVIF: its image has another size than its header says");
    avifRGBImage rgb;
    avifRGBImageSetDefaults(&rgb, &decoded);
    const std::uint32_t channels = rgb_channels();
    rgb.depth = 8;
    rgb.format = channels == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    rgb.rowBytes = header.width * channels;
    ByteBuffer pixels(std::size_t{rgb.rowBytes} * header.height);
    rgb.pixels = pixels.data();
    require(avifImageYUVToRGB(&decoded, &rgb), *decoder_);
    const Rect& region = plan.region;
    image.reshape(region.width, region.height, plan.channels);
    for (std::uint32_t y = 0; y < region.height; ++y)
      convert_channels(
          pixels.data() + (region.y + y) * std::size_t{rgb.rowBytes} + std::size_t{region.x} * channels,
          channels, image.row(y), plan.channels, region.width);
  }

 private:
  [[nodiscard]] std::uint32_t rgb_channels() const { return header.channels % 2 == 0 ? 4 : 3; }

  // The planes of a frame, and once more for its grain or where it is put together from tiles.
  void describe_memory(const avifImage& image) {
    constexpr std::uint64_t kTables = 8 << 20, kPlaneCopies = 2;
    const std::uint64_t pixels = std::uint64_t{header.width} * header.height;
    const std::uint64_t sample_bytes = image.depth > 8 ? 2 : 1;
    header.extra_bytes = kTables + pixels * (kPlaneCopies * rgb_channels() * sample_bytes + rgb_channels());
  }

  DecodeMonitor& monitor_;
  std::unique_ptr<avifDecoder, DestroyAvif> decoder_;
};

}  // namespace

bool is_avif(Bytes file) {
  const avifROData data{file.data(), file.size()};
  return avifPeekCompatibleFileType(&data) == AVIF_TRUE;
}

std::unique_ptr<OpenedImage> open_avif(Bytes file, DecodeMonitor& monitor) {
  return std::make_unique<AvifFile>(file, monitor);
}

}  // namespace chunkhit
