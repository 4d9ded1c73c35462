#include "augment/random_crop.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <string>

#include "base/exact_math.h"
#include "base/random.h"
#include "base/throw_error.h"
#include "chunkhit/image_spec.h"
#include "transform/transform_plan.h"

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

void check_range(const char* option, const std::array<double, 2>& range, double least, double greatest,
                 const char* expected) {
  const auto [low, high] = range;
  if (low > 0 && low >= least && low <= high && high <= greatest) return;
  std::ostringstream found;
  found << low << " to " << high;
  throw_usage(std::string("augment.resized_crop.") + option + ": found " + found.str() +
              ", expected two numbers " + expected + ", the lesser first");
}

void check_side(const char* option, std::uint32_t side) {
  if (side > kMaxSidePixels)
    throw_usage("augment." + std::string(option) + ": " + std::to_string(side) +
                " pixels, expected at most " + std::to_string(kMaxSidePixels));
}

void check_resized_crop(const AugmentSpec& spec) {
  const ResizedCropSpec& crop = spec.resized_crop;
  if ((crop.height == 0) != (crop.width == 0))
    throw_usage("augment.resized_crop.height: goes with resized_crop.width, both or neither");
  check_side("resize_short", spec.resize_short);
  if (spec.resize_short != 0 && spec.crop_padding != 0)
    throw_usage("augment.crop_padding: excludes resize_short");
  if (crop.height == 0 && crop != ResizedCropSpec())
    throw_usage("augment.resized_crop.area: goes with resized_crop.height and resized_crop.width");
  if (crop.height == 0 && spec.resize_short == 0 && spec.resample != AugmentSpec().resample)
    throw_usage("augment.resample: needs resized_crop or resize_short");
  if (crop.height == 0) return;
  if (spec.resize_short != 0) throw_usage("augment.resize_short: excludes resized_crop");
  if (spec.crop_height != 0 || spec.crop_width != 0)
    throw_usage("augment.crop_height: excludes resized_crop");
  check_side("resized_crop.height", crop.height);
  check_side("resized_crop.width", crop.width);
  check_range("area", crop.area, 0, 1, "above 0 and up to 1");
  check_range("aspect", crop.aspect, 0.001, 1000, "from 0.001 to 1000");
}

/// The numbers that one use of an image draws, by their index.
class Draws {
 public:
  explicit Draws(const SampleUse& use) : key_(random_bits(use.seed, Purpose::resized_crop, index_of(use))) {}
  [[nodiscard]] double uniform(double low, double high, std::uint64_t index) const {
    return low + (high - low) * random_share(random_bits(key_, Purpose::resized_crop, index));
  }
  [[nodiscard]] std::uint32_t below(std::uint32_t count, std::uint64_t index) const {
    return static_cast<std::uint32_t>(random_below(count, key_, Purpose::resized_crop, index));
  }

 private:
  std::uint64_t key_;
};

/// Turns a crop counterclockwise. A quarter is a flip left to right, whose rows become columns.
void turn(Crop& crop, std::uint64_t quarters) {
  if (quarters == 1 || quarters == 2) crop.flipped = !crop.flipped;
  if (quarters == 2 || quarters == 3) crop.upside_down = !crop.upside_down;
  crop.transposed = quarters % 2 == 1;
}

/// The largest box of an allowed aspect, in the middle: where no random one fits.
Rect middle_box(std::uint32_t height, std::uint32_t width, const std::array<double, 2>& aspect) {
  const auto rows = static_cast<double>(height), columns = static_cast<double>(width);
  double h = rows, w = columns;
  if (columns / rows < aspect[0]) h = std::max(std::nearbyint(columns / aspect[0]), 1.0);
  if (columns / rows > aspect[1]) w = std::max(std::nearbyint(rows * aspect[1]), 1.0);
  const auto box_height = static_cast<std::uint32_t>(h), box_width = static_cast<std::uint32_t>(w);
  return {(width - box_width) / 2, (height - box_height) / 2, box_width, box_height};
}

}  // namespace

void check_augment(const AugmentSpec& spec) {
  if (!(spec.flip_horizontal >= 0 && spec.flip_horizontal <= 1))
    throw_usage("augment.flip_horizontal: must be from 0 to 1");
  if (!(spec.flip_vertical >= 0 && spec.flip_vertical <= 1))
    throw_usage("augment.flip_vertical: must be from 0 to 1");
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
  return spec_.flip_horizontal == 0 && spec_.flip_vertical == 0 && !spec_.quarter_turns &&
         spec_.crop_padding == 0 && free_rows_ == 0 && free_columns_ == 0;
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
  const auto flips = [&](Purpose purpose, double share) {
    return random_share(random_bits(use.seed, purpose, index)) < share;
  };
  Crop crop{row - spec_.crop_padding, column - spec_.crop_padding,
            flips(Purpose::flip, spec_.flip_horizontal), flips(Purpose::flip_vertical, spec_.flip_vertical)};
  if (spec_.quarter_turns) turn(crop, random_below(4, use.seed, Purpose::quarter_turns, index));
  return crop;
}

ResizedCrop::ResizedCrop(const AugmentSpec& spec) : spec_(spec) {
  check_augment(spec);
  check_resized_crop(spec);
  spec_.flip_vertical = 0;
  spec_.quarter_turns = false;
  if (spec.resized_crop.height == 0) return;
  min_log_aspect_ = log_of(spec.resized_crop.aspect[0]);
  max_log_aspect_ = log_of(spec.resized_crop.aspect[1]);
}

AugmentSpec ResizedCrop::rest(const AugmentSpec& spec) {
  AugmentSpec rest;
  rest.flip_vertical = spec.flip_vertical;
  rest.quarter_turns = spec.quarter_turns;
  return rest;
}

Rect ResizedCrop::random_box(std::uint32_t height, std::uint32_t width, const SampleUse& use) const {
  constexpr std::uint64_t kBoxTries = 10, kDraws = 4;
  const ResizedCropSpec& crop = spec_.resized_crop;
  const double area = static_cast<double>(height) * static_cast<double>(width);
  const Draws draws(use);
  for (std::uint64_t draw = 0; draw < kBoxTries * kDraws; draw += kDraws) {
    const double box_area = area * draws.uniform(crop.area[0], crop.area[1], draw);
    const double aspect = exp_of(draws.uniform(min_log_aspect_, max_log_aspect_, draw + 1));
    const double w = std::nearbyint(std::sqrt(box_area * aspect));
    const double h = std::nearbyint(std::sqrt(box_area / aspect));
    if (!(w >= 1 && w <= width && h >= 1 && h <= height)) continue;
    const auto box_height = static_cast<std::uint32_t>(h), box_width = static_cast<std::uint32_t>(w);
    const std::uint32_t top = draws.below(height - box_height + 1, draw + 2);
    return {draws.below(width - box_width + 1, draw + 3), top, box_width, box_height};
  }
  return middle_box(height, width, crop.aspect);
}

ResizedPart ResizedCrop::resized_short(std::uint32_t height, std::uint32_t width,
                                       const SampleUse& use) const {
  TransformSpec resize;
  resize.resize = Resize::short_side;
  resize.resize_width = spec_.resize_short;
  const TransformPlan plan = plan_transform(resize, width, height, 1, false);
  if (!plan.error.empty()) throw_usage("augment.resize_short: " + plan.error);
  // As torchvision's CenterCrop pads: zeros around the image, the odd ones below and to the right.
  AugmentSpec inner = spec_;
  if (!spec_.random_crop && spec_.crop_height != 0) {
    inner.crop_height = std::min(spec_.crop_height, plan.resized_height);
    inner.crop_width = std::min(spec_.crop_width, plan.resized_width);
  }
  const RandomCrop random_crop({plan.resized_height, plan.resized_width, 1, Layout::nhwc}, inner);
  const Crop crop = random_crop(use);
  ResampleRequest request = resample_request(plan, spec_.resample);
  request.window = {static_cast<std::uint32_t>(crop.left), static_cast<std::uint32_t>(crop.top),
                    random_crop.width(), random_crop.height()};
  request.flipped = crop.flipped;
  return {{0, 0, width, height}, request};
}

ResizedPart ResizedCrop::operator()(std::uint32_t height, std::uint32_t width, const SampleUse& use) const {
  if (spec_.resize_short != 0) return resized_short(height, width, use);
  if (std::max(height, width) > kMaxSidePixels)
    throw_usage("augment.resized_crop: the image has a side of " + std::to_string(std::max(height, width)) +
                " pixels, expected at most " + std::to_string(kMaxSidePixels));
  const ResizedCropSpec& crop = spec_.resized_crop;
  const Rect box = random_box(height, width, use);
  AugmentSpec flip;
  flip.flip_horizontal = spec_.flip_horizontal;
  ResampleRequest request{spec_.resample,
                          box.width,
                          box.height,
                          static_cast<float>(box.width),
                          static_cast<float>(box.height),
                          crop.width,
                          crop.height,
                          {0, 0, crop.width, crop.height}};
  request.flipped = RandomCrop({height, width, 1, Layout::nhwc}, flip)(use).flipped;
  return {box, request};
}

ResizedCanvas ResizedCrop::canvas(const ResampleRequest& request) const {
  const Rect& window = request.window;
  if (spec_.resize_short == 0 || spec_.crop_height == 0) return {window.height, window.width, 0, 0};
  const std::uint32_t odd = request.flipped ? 1 : 0;
  return {spec_.crop_height, spec_.crop_width, (spec_.crop_height - window.height) / 2,
          (spec_.crop_width - window.width + odd) / 2};
}

}  // namespace chunkhit
