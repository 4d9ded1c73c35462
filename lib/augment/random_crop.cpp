#include "augment/random_crop.h"

#include <string>

#include "base/random.h"
#include "base/throw_error.h"

namespace chunkhit {
namespace {

// Keeps sums of positions and sizes far from overflow; no image is that large.
constexpr std::uint32_t kMaxPadding = 1u << 24;

// How far a crop can be moved in a padded side; below 0 a center crop, which pads more.
std::int64_t free_positions(const char* option, std::uint32_t side, const AugmentSpec& spec,
                            std::uint32_t crop) {
  const std::int64_t padded = side + std::int64_t{2} * spec.crop_padding;
  if (crop > padded && spec.random_crop)
    throw_usage("augment." + std::string(option) + ": " + std::to_string(crop) + " of " +
                std::to_string(padded) + " pixels");
  return padded - crop;
}

// Half, rounded to even, as torchvision's CenterCrop rounds; towards zero where it pads.
std::int64_t round_half(std::int64_t value) {
  const std::int64_t half = value / 2;
  return value % 2 == 0 || value < 0 ? half : half + half % 2;
}

}  // namespace

void check_augment(const AugmentSpec& spec) {
  if (!(spec.flip_horizontal >= 0 && spec.flip_horizontal <= 1))
    throw_usage("augment.flip_horizontal: must be from 0 to 1");
  if ((spec.crop_height == 0) != (spec.crop_width == 0))
    throw_usage("augment.crop_height: goes with crop_width, both or neither");
  if (spec.crop_height == 0 && spec.random_crop)
    throw_usage("augment.random_crop: needs crop_height and crop_width");
  if (spec.crop_height == 0 && spec.crop_padding != 0)
    throw_usage("augment.crop_padding: needs crop_height and crop_width");
  if (spec.crop_padding > kMaxPadding)
    throw_usage("augment.crop_padding: must be at most " + std::to_string(kMaxPadding));
}

std::uint64_t index_of(const SampleUse& use) {
  return mix_bits(mix_bits(mix_bits(use.epoch + 1) + use.sample) + use.pass);
}

RandomCrop::RandomCrop(const SampleShape& image, const AugmentSpec& spec) : spec_(spec) {
  check_augment(spec);
  height_ = spec.crop_height == 0 ? image.height : spec.crop_height;
  width_ = spec.crop_width == 0 ? image.width : spec.crop_width;
  free_rows_ = free_positions("crop_height", image.height, spec, height_);
  free_columns_ = free_positions("crop_width", image.width, spec, width_);
}

bool RandomCrop::keeps_all() const {
  return spec_.flip_horizontal == 0 && spec_.crop_padding == 0 && free_rows_ == 0 && free_columns_ == 0;
}

Crop RandomCrop::operator()(const SampleUse& use) const {
  const std::uint64_t index = index_of(use);
  std::int64_t row = round_half(free_rows_), column = round_half(free_columns_);
  if (spec_.random_crop) {
    const auto columns = static_cast<std::uint64_t>(free_columns_) + 1;
    const auto rows = static_cast<std::uint64_t>(free_rows_) + 1;
    const std::uint64_t position = random_below(rows * columns, use.seed, Purpose::crop, index);
    row = static_cast<std::int64_t>(position / columns);
    column = static_cast<std::int64_t>(position % columns);
  }
  const std::uint64_t flip_bits = random_bits(use.seed, Purpose::flip, index);
  return {row - spec_.crop_padding, column - spec_.crop_padding,
          random_share(flip_bits) < spec_.flip_horizontal};
}

}  // namespace chunkhit
