#include "decode/class_ids.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/bytes.h"
#include "decode/image_decoder.h"

namespace chunkhit {
namespace {

/// A bitmap or GIF: gray levels and colors of its pixels.
class ColorIds final : public OpenedImage {
 public:
  explicit ColorIds(std::unique_ptr<OpenedImage> colors) : colors_(std::move(colors)) {
    header = colors_->header;
    header.channels = 1;
    const std::uint64_t pixel_count = std::uint64_t{header.width} * header.height;
    if (natural_channels() != 1) header.extra_bytes += pixel_count * natural_channels();
  }
  void decode(const DecodePlan& plan, Image& image) override {
    if (natural_channels() == 1) return colors_->decode(plan, image);
    Image natural;
    colors_->decode({1, plan.region, natural_channels()}, natural);
    image.reshape(natural.width, natural.height, 1);
    ClassIds ids(natural.channels);
    for (std::uint32_t y = 0; y < natural.height; ++y)
      ids.take(natural.row(y), 0, y, natural.width, image.row(y));
    ids.finish();
  }

 private:
  [[nodiscard]] std::uint32_t natural_channels() const { return colors_->header.channels; }

  std::unique_ptr<OpenedImage> colors_;
};

/// Values of fewer than 8 bits are scaled there.
std::unique_ptr<OpenedImage> open_bmp_ids(Bytes file, DecodeMonitor& monitor) {
  auto ids = std::make_unique<ColorIds>(open_bmp(file, monitor));
  constexpr std::size_t kBitsOffset = 28, kOs2BitsOffset = 24, kHeaderBytesOffset = 14;
  const bool is_os2 = load_little<std::uint32_t>(file.data() + kHeaderBytesOffset) == 12;
  if (load_little<std::uint16_t>(file.data() + (is_os2 ? kOs2BitsOffset : kBitsOffset)) == 16)
    throw ImageError(RejectKind::unsupported,
                     "has 5 or 6 bits a color, expected class ids of 8 bits; save masks as PNG");
  return ids;
}

std::unique_ptr<OpenedImage> open_gif_ids(Bytes file, DecodeMonitor& monitor) {
  return std::make_unique<ColorIds>(open_gif(file, monitor));
}

bool is_any_pnm(Bytes file) { return is_pnm(file) || is_plain_pnm(file); }

constexpr std::array kMaskFormats{
    ImageFormat{"png", is_png, open_png_ids},    ImageFormat{"npy", is_npy, open_npy_ids},
    ImageFormat{"bmp", is_bmp, open_bmp_ids},    ImageFormat{"gif", is_gif, open_gif_ids},
    ImageFormat{"tiff", is_tiff, open_tiff_ids}, ImageFormat{"pnm", is_any_pnm, open_pnm_ids}};

std::string colors_text(std::string_view red, std::string_view green, std::string_view blue) {
  std::string text = "has colors: red ";
  return text.append(red).append(", green ").append(green).append(", blue ").append(blue);
}

}  // namespace

std::unique_ptr<OpenedImage> open_class_ids(Bytes file, DecodeMonitor& monitor) {
  const auto format = std::ranges::find_if(
      kMaskFormats, [&](const ImageFormat& candidate) { return candidate.detect(file); });
  if (format == kMaskFormats.end()) throw ImageError(RejectKind::unsupported, no_mask_type(is_jpeg(file)));
  std::unique_ptr<OpenedImage> opened = format->open(file, monitor);
  opened->header.format = format->name;
  return opened;
}

std::string no_mask_type(bool is_jpeg) {
  const std::string expected = "expected PNG, TIFF, npy, BMP, GIF or PGM, which keep class ids";
  return is_jpeg ? "is a JPEG, which changes values along edges; " + expected
                 : "is of another type, " + expected;
}

template <class Value>
void ClassIds::note(const Value* pixel, std::uint64_t x, std::uint64_t y) {
  const std::uint64_t position = y << 32 | x;
  if (position >= first_) return;
  first_ = position;
  const std::string at = " at (" + std::to_string(x) + ", " + std::to_string(y) + ")";
  const auto text = [&](std::size_t channel) { return std::to_string(pixel[channel]); };
  const bool has_colors = channels_ >= 3 && (pixel[0] != pixel[1] || pixel[0] != pixel[2]);
  const bool fits = std::cmp_greater_equal(pixel[0], 0) && std::cmp_less_equal(pixel[0], 255);
  if (has_colors)
    reason_ = colors_text(text(0), text(1), text(2)) + at +
              ": expected one value a pixel; map colors to class ids, or make a second image of it by :view";
  else if (!fits)
    reason_ = "value " + text(0) + at + " does not fit 8 bits; map class ids to 0-255";
  else
    reason_ = "alpha " + text(channels_ - 1) + at + ": expected an opaque mask (" + std::to_string(opaque_) +
              "); save it without alpha";
}

template <class Value>
void ClassIds::take(const Value* pixels, std::uint32_t x, std::uint32_t y, std::size_t count,
                    std::uint8_t* out) {
  if constexpr (std::is_same_v<Value, std::uint8_t>) {
    if (channels_ == 1) {
      std::memcpy(out, pixels, count);
      return;
    }
  }
  const bool has_colors = channels_ >= 3, has_alpha = channels_ % 2 == 0;
  for (std::size_t i = 0; i < count; ++i, pixels += channels_) {
    out[i] = static_cast<std::uint8_t>(pixels[0]);
    const bool is_id = std::cmp_greater_equal(pixels[0], 0) && std::cmp_less_equal(pixels[0], 255) &&
                       (!has_colors || (pixels[0] == pixels[1] && pixels[0] == pixels[2])) &&
                       (!has_alpha || std::cmp_equal(pixels[channels_ - 1], opaque_));
    if (!is_id) note(pixels, x + i, y);
  }
}

void ClassIds::finish() const {
  if (!reason_.empty()) throw ImageError(RejectKind::values, reason_);
}

template void ClassIds::take(const std::uint8_t*, std::uint32_t, std::uint32_t, std::size_t, std::uint8_t*);
template void ClassIds::take(const std::int8_t*, std::uint32_t, std::uint32_t, std::size_t, std::uint8_t*);
template void ClassIds::take(const std::uint16_t*, std::uint32_t, std::uint32_t, std::size_t, std::uint8_t*);
template void ClassIds::take(const std::int16_t*, std::uint32_t, std::uint32_t, std::size_t, std::uint8_t*);
template void ClassIds::take(const std::uint32_t*, std::uint32_t, std::uint32_t, std::size_t, std::uint8_t*);
template void ClassIds::take(const std::int32_t*, std::uint32_t, std::uint32_t, std::size_t, std::uint8_t*);
template void ClassIds::take(const std::uint64_t*, std::uint32_t, std::uint32_t, std::size_t, std::uint8_t*);
template void ClassIds::take(const std::int64_t*, std::uint32_t, std::uint32_t, std::size_t, std::uint8_t*);

}  // namespace chunkhit
