#include "transform/transform_plan.h"

#include <algorithm>
#include <cmath>

#include "transform/orientation.h"

namespace chunkhit {
namespace {

struct Size {
  std::uint64_t width = 0;
  std::uint64_t height = 0;
};

// Python's round(count / 2.0) for count ≥ 0: halves go to the even neighbour.
constexpr std::uint64_t round_half(std::uint64_t count) {
  const std::uint64_t below = count / 2;
  return count % 2 == 0 ? below : below + below % 2;
}

// Python's int(side * other / base): the quotient of two integers as the nearest double, cut to an integer.
std::uint64_t scaled_side(std::uint64_t side, std::uint64_t other, std::uint64_t base) {
  return static_cast<std::uint64_t>(static_cast<double>(side * other) / static_cast<double>(base));
}

// Gives one side a length; the other keeps the aspect.
Size with_side(Size source, bool side_is_width, std::uint64_t length) {
  if (side_is_width) return {length, scaled_side(length, source.height, source.width)};
  return {scaled_side(length, source.width, source.height), length};
}

// PIL.ImageOps.contain of 9.4, with its order of operations; nearbyint rounds as Python's round does.
Size contained(Size source, Size frame) {
  const auto width = static_cast<double>(source.width);
  const auto height = static_cast<double>(source.height);
  const double ratio = width / height;
  const double frame_ratio = static_cast<double>(frame.width) / static_cast<double>(frame.height);
  if (ratio > frame_ratio)
    return {frame.width,
            static_cast<std::uint64_t>(std::nearbyint(height / width * static_cast<double>(frame.width)))};
  if (ratio < frame_ratio)
    return {static_cast<std::uint64_t>(std::nearbyint(width / height * static_cast<double>(frame.height))),
            frame.height};
  return frame;
}

Size resized_size(const TransformSpec& spec, Size source) {
  const Size wanted{spec.resize_width, spec.resize_height};
  switch (spec.resize) {
    case Resize::none:
      return source;
    case Resize::exact:
      return wanted;
    case Resize::short_side:
      return with_side(source, source.width <= source.height, wanted.width);
    case Resize::long_side:
      return with_side(source, source.width >= source.height, wanted.width);
    case Resize::fit:
      return contained(source, wanted);
  }
  return source;
}

// Returns whether a resize that keeps or reduces a side would have to enlarge it after shrinking.
bool comes_to_enlarge(std::uint64_t source, std::uint64_t resized, std::uint64_t shrink) {
  return resized <= source && resized * shrink > source;
}

// The largest shrinking that leaves a reduction by at least 2 to the resize, as Pillow's reducing_gap of 2
// does.
std::uint32_t shrink_for(Size source, Size resized) {
  for (const std::uint32_t shrink : {8u, 4u, 2u}) {
    const std::uint64_t area_ratio = std::uint64_t{4} * shrink * shrink;
    if (source.width * source.height < area_ratio * resized.width * resized.height) continue;
    if (comes_to_enlarge(source.width, resized.width, shrink)) continue;
    if (comes_to_enlarge(source.height, resized.height, shrink)) continue;
    return shrink;
  }
  return 1;
}

// The intersection of the sample, [0, sample), with [start, start + length), which may begin before it.
struct Overlap {
  std::uint32_t first_in_sample;
  std::uint32_t first_in_other;
  std::uint32_t count;
};

Overlap overlap(std::int64_t start, std::uint64_t length, std::uint64_t sample) {
  const std::int64_t begin = std::max<std::int64_t>(start, 0);
  const std::int64_t end =
      std::min(start + static_cast<std::int64_t>(length), static_cast<std::int64_t>(sample));
  return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(begin - start),
          static_cast<std::uint32_t>(end - begin)};
}

/// The sample's length along one axis, and where canvas and image overlap it.
struct AxisPlacement {
  std::uint32_t sample;
  Overlap canvas;
  Overlap image;
};

// Centres the image on its canvas (ImageOps.pad), then crops the canvas or surrounds it with zeros
// (CenterCrop).
AxisPlacement placement(std::uint64_t image, std::uint64_t canvas, std::uint64_t crop) {
  const std::uint64_t sample = crop == 0 ? canvas : crop;
  const auto start = crop > canvas ? static_cast<std::int64_t>((crop - canvas) / 2)
                                   : -static_cast<std::int64_t>(round_half(canvas - sample));
  const auto inside = static_cast<std::int64_t>(round_half(canvas - image));
  return {static_cast<std::uint32_t>(sample), overlap(start, canvas, sample),
          overlap(start + inside, image, sample)};
}

std::uint32_t sample_channels(Channels channels, std::uint32_t source_channels) {
  switch (channels) {
    case Channels::rgb:
      return 3;
    case Channels::gray:
      return 1;
    case Channels::rgba:
      return 4;
    case Channels::keep:
      return source_channels;
  }
  return source_channels;
}

std::string error_of(Size size, const char* what) {
  if (std::min(size.width, size.height) == 0) return std::string(what) + " has no pixels";
  const std::uint64_t longest = std::max(size.width, size.height);
  if (longest <= kMaxSidePixels) return {};
  return std::string(what) + " has a side of " + std::to_string(longest) + " pixels, over the limit of " +
         std::to_string(kMaxSidePixels);
}

/// Sides after decoding at 1/shrink round up; the box keeps the exact size, which may be fractional.
void plan_source(Size source, Size resized, std::uint32_t shrink, int orientation, TransformPlan& plan) {
  plan.shrink = shrink;
  plan.source_width = static_cast<std::uint32_t>((source.width + shrink - 1) / shrink);
  plan.source_height = static_cast<std::uint32_t>((source.height + shrink - 1) / shrink);
  plan.box_width = static_cast<float>(source.width) / static_cast<float>(shrink);
  plan.box_height = static_cast<float>(source.height) / static_cast<float>(shrink);
  const FlippedAxes flipped = flipped_axes(orientation);
  if (flipped.x) plan.box_x = static_cast<float>(plan.source_width) - plan.box_width;
  if (flipped.y) plan.box_y = static_cast<float>(plan.source_height) - plan.box_height;
  plan.resized_width = static_cast<std::uint32_t>(resized.width);
  plan.resized_height = static_cast<std::uint32_t>(resized.height);
}

/// Finds the part of the resized image that is needed, and its position in the sample.
void plan_sample(const TransformSpec& spec, Size resized, TransformPlan& plan) {
  const bool fits = spec.resize == Resize::fit;
  const AxisPlacement across =
      placement(resized.width, fits ? spec.resize_width : resized.width, spec.crop_width);
  const AxisPlacement down =
      placement(resized.height, fits ? spec.resize_height : resized.height, spec.crop_height);
  plan.window = {across.image.first_in_other, down.image.first_in_other, across.image.count,
                 down.image.count};
  plan.paste_x = across.image.first_in_sample;
  plan.paste_y = down.image.first_in_sample;
  plan.canvas = {across.canvas.first_in_sample, down.canvas.first_in_sample, across.canvas.count,
                 down.canvas.count};
  plan.sample = {down.sample, across.sample, plan.channels, spec.layout};
}

}  // namespace

TransformPlan plan_transform(const TransformSpec& spec, std::uint32_t width, std::uint32_t height,
                             std::uint32_t source_channels, bool scales, int orientation) {
  TransformPlan plan;
  const Size source{width, height};
  plan.error = error_of(source, "the image");
  if (!plan.error.empty()) return plan;
  Size resized = resized_size(spec, source);
  resized = {std::max<std::uint64_t>(resized.width, 1), std::max<std::uint64_t>(resized.height, 1)};
  plan.error = error_of(resized, "the resized image");
  if (!plan.error.empty()) return plan;
  const bool shrinks = spec.decode == JpegDecode::fast && scales && spec.resize != Resize::none;
  plan_source(source, resized, shrinks ? shrink_for(source, resized) : 1, orientation, plan);
  plan.channels = sample_channels(spec.channels, source_channels);
  plan_sample(spec, resized, plan);
  plan.region = source_region(resample_request(plan, spec.resample));
  return plan;
}

ResampleRequest resample_request(const TransformPlan& plan, Filter filter) {
  return {filter,          plan.source_width,  plan.source_height,  plan.box_width,
          plan.box_height, plan.resized_width, plan.resized_height, plan.window,
          plan.box_x,      plan.box_y};
}

}  // namespace chunkhit
