// JPEG XL by libjxl: the first frame, 8 bits a channel, whatever the file has.
#include <jxl/decode.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>

#include "base/bytes.h"
#include "decode/channels.h"
#include "decode/formats.h"

namespace chunkhit {
namespace {

struct DestroyJxl {
  void operator()(JxlDecoder* decoder) const { JxlDecoderDestroy(decoder); }
};

using Decoder = std::unique_ptr<JxlDecoder, DestroyJxl>;

Decoder make_decoder() {
  Decoder decoder(JxlDecoderCreate(nullptr));
  if (decoder == nullptr) throw std::bad_alloc();
  JxlDecoderSetKeepOrientation(decoder.get(), JXL_TRUE);
  return decoder;
}

class JxlFile : public OpenedImage {
 public:
  JxlFile(Bytes file, DecodeMonitor& monitor) : file_(file), monitor_(monitor) {
    const Decoder decoder = make_decoder();
    JxlDecoderSubscribeEvents(decoder.get(), JXL_DEC_BASIC_INFO);
    JxlDecoderSetInput(decoder.get(), file_.data(), file_.size());
    const JxlDecoderStatus status = JxlDecoderProcessInput(decoder.get());
    if (status == JXL_DEC_NEED_MORE_INPUT)
      throw ImageError(RejectKind::damaged, "truncated: the data ends in the header");
    JxlBasicInfo info;
    if (status != JXL_DEC_BASIC_INFO || JxlDecoderGetBasicInfo(decoder.get(), &info) != JXL_DEC_SUCCESS)
      throw ImageError(RejectKind::damaged, "damaged JPEG XL: its header is malformed");
    reject_other_channels(decoder.get(), info);
    header.width = info.xsize;
    header.height = info.ysize;
    header.channels = (info.num_color_channels == 1 ? 1 : 3) + (info.alpha_bits > 0 ? 1 : 0);
    header.orientation = static_cast<int>(info.orientation);
    // libjxl has a float for each channel, and once more for what changes the whole image.
    constexpr std::uint64_t kTables = 16 << 20, kCopies = 3;
    const std::uint64_t floats = std::uint64_t{3} + info.num_extra_channels;
    const std::uint64_t pixels = std::uint64_t{header.width} * header.height;
    header.extra_bytes = pixels * header.channels;
    header.peak_bytes = kTables + header.extra_bytes + pixels * kCopies * floats * sizeof(float);
    header.has_more_frames = count_frames() > 1 && info.have_animation != JXL_FALSE;
  }

  void decode(const DecodePlan& plan, Image& image) override {
    ByteBuffer pixels;
    decode_whole(pixels);
    const Rect& region = plan.region;
    const std::size_t row_bytes = std::size_t{header.width} * header.channels;
    image.reshape(region.width, region.height, plan.channels);
    for (std::uint32_t y = 0; y < region.height; ++y)
      convert_channels(pixels.data() + (region.y + y) * row_bytes + std::size_t{region.x} * header.channels,
                       header.channels, image.row(y), plan.channels, region.width);
  }

 private:
  static void reject_other_channels(const JxlDecoder* decoder, const JxlBasicInfo& info) {
    if (info.alpha_premultiplied != JXL_FALSE)
      throw ImageError(RejectKind::unsupported,
                       "premultiplied alpha in JPEG XL is not supported; `djxl IN.jxl OUT.png` converts it");
    for (std::uint32_t i = 0; i < info.num_extra_channels; ++i) {
      JxlExtraChannelInfo extra;
      if (JxlDecoderGetExtraChannelInfo(decoder, i, &extra) == JXL_DEC_SUCCESS &&
          extra.type == JXL_CHANNEL_BLACK)
        throw ImageError(RejectKind::unsupported,
                         "CMYK in JPEG XL is not supported; `djxl IN.jxl OUT.png` converts it");
    }
  }

  // Counts frames and layers. A frame may be larger than the image that is cut out of it, and is rejected
  // then. Only the frames' headers are read here; what follows a damaged one is found by decoding.
  std::uint64_t count_frames() {
    const Decoder decoder = make_decoder();
    JxlDecoderSetCoalescing(decoder.get(), JXL_FALSE);
    JxlDecoderSubscribeEvents(decoder.get(), JXL_DEC_FRAME);
    JxlDecoderSetInput(decoder.get(), file_.data(), file_.size());
    const std::uint64_t pixels = std::uint64_t{header.width} * header.height;
    std::uint64_t frames = 0;
    for (; JxlDecoderProcessInput(decoder.get()) == JXL_DEC_FRAME; ++frames) {
      monitor_.check_time();
      JxlFrameHeader frame;
      if (JxlDecoderGetFrameHeader(decoder.get(), &frame) != JXL_DEC_SUCCESS) break;
      const std::uint32_t width = frame.layer_info.xsize, height = frame.layer_info.ysize;
      if (std::uint64_t{width} * height > pixels)
        throw ImageError(RejectKind::unsupported, "JPEG XL with a frame of " + std::to_string(width) + " x " +
                                                      std::to_string(height) + " pixels in an image of " +
                                                      std::to_string(header.width) + " x " +
                                                      std::to_string(header.height) +
                                                      " is not supported; `djxl IN.jxl OUT.png` converts it");
    }
    return frames;
  }

  // Steps of a 16th of the file: between them the time is looked at.
  void decode_whole(ByteBuffer& pixels) {
    const Decoder decoder = make_decoder();
    JxlDecoderSubscribeEvents(decoder.get(), JXL_DEC_FULL_IMAGE);
    constexpr std::size_t kMinStep = 16 << 10;
    const std::size_t step = std::max(kMinStep, file_.size() / 16);
    std::size_t used = 0;
    for (std::size_t given = 0; given < file_.size();) {
      monitor_.check_time();
      given = std::min(given + step, file_.size());
      JxlDecoderSetInput(decoder.get(), file_.data() + used, given - used);
      if (is_done(decoder.get(), pixels)) return monitor_.check_time();
      used = given - JxlDecoderReleaseInput(decoder.get());
    }
    throw ImageError(RejectKind::damaged, "truncated: the data ends before the image does");
  }

  /// Decodes what was given, and takes memory for the pixels when they come; returns whether that was all.
  bool is_done(JxlDecoder* decoder, ByteBuffer& pixels) {
    const JxlPixelFormat format{header.channels, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
    for (;;) {
      const JxlDecoderStatus status = JxlDecoderProcessInput(decoder);
      if (status == JXL_DEC_FULL_IMAGE) return true;
      if (status == JXL_DEC_NEED_MORE_INPUT) return false;
      std::size_t bytes = 0;
      const bool wants_room = status == JXL_DEC_NEED_IMAGE_OUT_BUFFER &&
                              JxlDecoderImageOutBufferSize(decoder, &format, &bytes) == JXL_DEC_SUCCESS &&
                              bytes == std::size_t{header.width} * header.height * header.channels;
      if (wants_room) pixels.resize(bytes);
      if (!wants_room ||
          JxlDecoderSetImageOutBuffer(decoder, &format, pixels.data(), bytes) != JXL_DEC_SUCCESS)
        throw ImageError(RejectKind::damaged, "damaged JPEG XL: its data is malformed");
    }
  }

  Bytes file_;
  DecodeMonitor& monitor_;
};

}  // namespace

bool is_jxl(Bytes file) {
  const JxlSignature found = JxlSignatureCheck(file.data(), file.size());
  return found == JXL_SIG_CODESTREAM || found == JXL_SIG_CONTAINER;
}

std::unique_ptr<OpenedImage> open_jxl(Bytes file, DecodeMonitor& monitor) {
  return std::make_unique<JxlFile>(file, monitor);
}

}  // namespace chunkhit
