#include "pack/images/preview_sheet.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <string>

#include "base/file.h"
#include "base/random.h"
#include "chunkhit/error.h"
#include "decode/channels.h"
#include "decode/image_decoder.h"
#include "listing/root_folder.h"
#include "pack/images/sample_decoder.h"
#include "transform/image_transform.h"
#include "transform/transform_plan.h"
#include "types/image.h"

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STBI_WRITE_NO_STDIO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wshadow"
#include <stb_image_write.h>
#pragma GCC diagnostic pop

namespace chunkhit {
namespace {

constexpr std::uint32_t kImages = 16;
constexpr std::uint32_t kColumns = 4;
constexpr std::uint32_t kTile = 128;   // pixels of a side
constexpr std::uint32_t kGap = 14;     // around a pair, whose number stands above it
constexpr std::uint32_t kBetween = 4;  // of the two images of a pair
constexpr std::uint8_t kPaper = 255;
constexpr std::uint8_t kBlank = 216;  // around an image, and in the place of one that is rejected
constexpr std::uint8_t kInk = 32;

/// Digits of 3 x 5 pixels, the top left one in the highest bit.
constexpr std::array<std::uint16_t, 10> kDigits{
    0b111'101'101'101'111, 0b010'110'010'010'111, 0b111'001'111'100'111, 0b111'001'111'001'111,
    0b101'101'111'001'001, 0b111'100'111'001'111, 0b111'100'111'101'111, 0b111'001'001'010'010,
    0b111'101'111'101'111, 0b111'101'111'001'111};
constexpr std::uint32_t kDotPixels = 2;

/// Share of a mask's color in what is drawn, the rest is the image's.
constexpr double kMaskShare = 0.55;

using Color = std::array<std::uint8_t, 3>;

/// The color of a value of masks: gray for 255, which losses often ignore; else a hue, in steps of an
/// irrational part of the circle, so that those in use differ. Reports draw the same.
Color mask_color(std::uint8_t value) {
  constexpr double kValue = 0.9, kSaturation = 0.85;
  if (value == UINT8_MAX) return {128, 128, 128};
  const double turn = std::fmod(value * std::numbers::sqrt2, 1.0) * 6;
  Color color;
  for (std::size_t channel = 0; channel < color.size(); ++channel) {
    const double at = std::fmod(turn + (channel == 0 ? 5 : channel == 1 ? 3 : 1), 6.0);
    const double part = std::clamp(std::min(at, 4 - at), 0.0, 1.0);
    color[channel] = static_cast<std::uint8_t>(std::nearbyint(255 * kValue * (1 - kSaturation * part)));
  }
  return color;
}

struct Position {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
};

void fill(Image& sheet, const Rect& area, std::uint8_t level) {
  for (std::uint32_t y = area.y; y < area.y + area.height; ++y)
    std::memset(sheet.row(y) + std::size_t{3} * area.x, level, std::size_t{3} * area.width);
}

void draw_number(std::uint32_t number, Position at, Image& sheet) {
  for (const char digit : std::to_string(number)) {
    for (std::uint32_t bit = 0; bit < 15; ++bit)
      if ((kDigits[static_cast<std::size_t>(digit - '0')] >> (14 - bit) & 1) != 0)
        fill(sheet, {at.x + bit % 3 * kDotPixels, at.y + bit / 3 * kDotPixels, kDotPixels, kDotPixels}, kInk);
    at.x += 4 * kDotPixels;
  }
}

/// Copies pixels without alpha, gray as three equal channels.
Image rgb_of(ImageView image) {
  Image rgb;
  rgb.reshape(image.width, image.height, 3);
  for (std::uint32_t y = 0; y < image.height; ++y)
    for (std::uint32_t x = 0; x < image.width; ++x)
      for (std::uint32_t c = 0; c < 3; ++c)
        rgb.row(y)[3 * x + c] = image.row(y)[x * image.channels + (image.channels < 3 ? 0 : c)];
  return rgb;
}

/// Lays the colors of a mask over its image; 0 leaves it as it is.
void draw_mask(const std::uint8_t* mask, Image& rgb) {
  for (std::size_t pixel = 0; pixel < std::size_t{rgb.width} * rgb.height; ++pixel) {
    if (mask[pixel] == 0) continue;
    const Color color = mask_color(mask[pixel]);
    for (std::size_t channel = 0; channel < color.size(); ++channel) {
      std::uint8_t& value = rgb.pixels[3 * pixel + channel];
      value =
          static_cast<std::uint8_t>(std::nearbyint(kMaskShare * color[channel] + (1 - kMaskShare) * value));
    }
  }
}

/// Draws an image into a tile, as large as it fits.
void draw_image(const Image& rgb, Position at, Image& sheet) {
  TransformSpec spec;
  spec.resize = Resize::fit;
  spec.resize_width = spec.resize_height = kTile;
  spec.pad_color = {kBlank, kBlank, kBlank};
  const TransformPlan plan = plan_transform(spec, rgb.width, rgb.height, 3, false);
  if (!plan.error.empty()) return;
  ImageView region = rgb.view();
  region.pixels = rgb.row(plan.region.y) + std::size_t{3} * plan.region.x;
  region.width = plan.region.width;
  region.height = plan.region.height;
  std::vector<std::uint8_t> tile(plan.sample.byte_count());
  ImageTransform(spec).apply(plan, region, tile.data());
  for (std::uint32_t y = 0; y < kTile; ++y)
    std::memcpy(sheet.row(at.y + y) + std::size_t{3} * at.x, tile.data() + std::size_t{3} * kTile * y,
                std::size_t{3} * kTile);
}

/// Decodes all of a file, as it is stored; a background shows behind its transparent pixels.
Image decode_stored(const PackImagesSpec& spec, Bytes bytes) {
  ImageFile file(bytes, decode_options(spec));
  const ImageHeader& header = file.header();
  const auto& background = spec.transform.background;
  const std::uint32_t channels = background && has_alpha(header.channels) ? 4 : 3;
  const std::uint64_t shown_bytes = std::uint64_t{channels} * header.width * header.height;
  if (std::max(header.peak_bytes, header.extra_bytes + shown_bytes) > spec.max_decode_bytes)
    throw ImageError(RejectKind::too_large, "is too large to be shown as a whole (`max_decode_bytes`)");
  Image image;
  file.decode({1, {0, 0, header.width, header.height}, channels}, image);
  if (channels == 4) compose_over(*background, 3, image);
  return image;
}

/// Makes the sheet, pair by pair.
class SheetPainter {
 public:
  SheetPainter(const ImageRun& run, const SampleShape& sample, const MemoryPlan& memory)
      : spec_(shown_spec(run.spec)),
        root_(run.options.root, spec_.follow_symlinks),
        context_{spec_, root_, sample, {}, MemoryBudget(memory.decode_bytes), memory.kept_bytes},
        decoder_(context_) {}

  /// Draws an image and its sample; says what was seen.
  SheetImage draw(const SampleList& list, std::size_t index, Position at, Image& sheet) {
    SheetImage seen;
    seen.file = list.file(index);
    fill(sheet, {at.x, at.y, kTile, kTile}, kBlank);
    fill(sheet, {at.x + kTile + kBetween, at.y, kTile, kTile}, kBlank);
    try {
      load_with_retries(spec_, root_, list, index, bytes_);
      look_at_header(seen);
      resize_empty(sample_, context_.sample.byte_count());
      decoder_.make(list, index, sample_.data());
      const SampleShape& shape = context_.sample;
      Image shown = rgb_of({sample_.data(), shape.width, shape.height, shape.channels,
                            std::size_t{shape.width} * shape.channels});
      for (std::size_t field = 0; field < shape.pairs.size(); ++field)
        if (shape.pairs[field].role == FieldRole::mask)
          draw_mask(sample_.data() + shape.offset_of(field), shown);
      draw_image(shown, {at.x + kTile + kBetween, at.y}, sheet);
    } catch (const ImageError& error) {
      seen.reject = error.reason();
      return seen;
    }
    draw_stored(at, sheet);
    return seen;
  }

 private:
  /// Draws the file; packing may need less of it than all, so that what cannot be shown is not rejected.
  void draw_stored(Position at, Image& sheet) const {
    try {
      draw_image(decode_stored(spec_, bytes_), at, sheet);
    } catch (const ImageError&) {
      return;  // the tile stays blank
    }
  }
  /// Samples as pixels of one image, whatever the pack's are.
  static PackImagesSpec shown_spec(PackImagesSpec spec) {
    spec.sizes = Sizes::fixed;
    spec.transform.layout = Layout::nhwc;
    return spec;
  }
  void look_at_header(SheetImage& seen) {
    const ImageFile image(bytes_, decode_options(spec_));
    const ImageHeader& header = image.header();
    const TransformPlan plan = plan_sample(spec_, header, context_.sample.pairs);
    if (!plan.error.empty()) throw ImageError(RejectKind::shape, plan.error);
    context_.sample = plan.sample;
    seen.width = header.width;
    seen.height = header.height;
    seen.orientation = header.orientation;
    seen.sample_width = plan.sample.width;
    seen.sample_height = plan.sample.height;
  }

  PackImagesSpec spec_;
  RootFolder root_;
  DecoderContext context_;
  SampleDecoder decoder_;
  ByteBuffer bytes_;
  ByteBuffer sample_;
};

void write_png(const Image& image, const std::string& path) {
  PendingFile file(path);
  const auto append = [](void* pending, void* data, int size) {
    static_cast<PendingFile*>(pending)->append(
        {static_cast<const std::uint8_t*>(data), static_cast<std::size_t>(size)});
  };
  const int is_written =
      stbi_write_png_to_func(append, &file, static_cast<int>(image.width), static_cast<int>(image.height), 3,
                             image.pixels.data(), static_cast<int>(image.row_bytes()));
  if (is_written == 0) throw Error(ErrorCode::try_again, path + ": there is no memory to encode it");
  file.publish();
}

}  // namespace

/// The number of an image of the i-th of `count` equal stretches of the list, drawn by seed. Equal steps
/// would show one camera alone where five take turns.
static std::size_t drawn_sample(std::uint32_t i, std::uint32_t count, std::size_t samples,
                                std::uint64_t seed) {
  const std::size_t begin = i * samples / count, end = (i + 1) * samples / count;
  return begin + static_cast<std::size_t>(random_below(end - begin, seed, Purpose::choice, i));
}

std::vector<SheetImage> write_preview_sheet(const ImageRun& run, const ImageInput& input,
                                            const MemoryPlan& memory) {
  const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(kImages, input.list.size()));
  constexpr std::uint32_t kWide = 2 * kTile + kBetween + kGap, kHigh = kTile + kGap;
  Image sheet;
  sheet.reshape(std::min(count, kColumns) * kWide + kGap, (count + kColumns - 1) / kColumns * kHigh + kGap,
                3);
  fill(sheet, {0, 0, sheet.width, sheet.height}, kPaper);
  SheetPainter painter(run, input.first.sample, memory);
  std::vector<SheetImage> seen;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Position at{kGap + i % kColumns * kWide, kGap + i / kColumns * kHigh};
    draw_number(i + 1, {at.x, at.y - kGap + 2}, sheet);
    const std::size_t drawn = drawn_sample(i, count, input.list.size(), run.spec.seed);
    seen.push_back(painter.draw(input.list, drawn, at, sheet));
  }
  write_png(sheet, run.options.sheet);
  return seen;
}

}  // namespace chunkhit
