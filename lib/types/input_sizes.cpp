#include "types/input_sizes.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/text.h"
#include "base/words.h"

namespace chunkhit {
namespace {

/// The smallest number of a range: the number's first four binary digits. No logarithm, so that every machine
/// finds the same.
std::uint64_t range_begin(std::uint64_t number) {
  constexpr int kDigits = 4;
  const int shift = std::max(0, static_cast<int>(std::bit_width(number)) - kDigits);
  return number >> shift << shift;
}

void add_number(double number, double range, SizeCounts& counts) {
  const bool is_first = counts.ranges.empty();
  counts.min = is_first ? number : std::min(counts.min, number);
  counts.max = is_first ? number : std::max(counts.max, number);
  ++counts.ranges[range];
}

void add_counts(const SizeCounts& other, SizeCounts& counts) {
  const bool is_first = counts.ranges.empty();
  counts.min = is_first ? other.min : std::min(counts.min, other.min);
  counts.max = is_first ? other.max : std::max(counts.max, other.max);
  for (const auto& [range, images] : other.ranges) counts.ranges[range] += images;
}

/// The entry of a format; entries are sorted by name.
InputFormat& entry_of(std::string_view format, InputSizes& sizes) {
  const auto found = std::ranges::lower_bound(sizes.formats, format, {}, &InputFormat::format);
  if (found != sizes.formats.end() && found->format == format) return *found;
  return *sizes.formats.insert(found, {std::string(format), 0, {}, {}, {}});
}

std::string percent_text(double share) { return number_text(std::round(share * 1000) / 10) + " %"; }

}  // namespace

void add_image(const InputImage& image, InputSizes& sizes) {
  constexpr int kFraction = 20;  // binary digits of an aspect ratio behind its point
  InputFormat& entry = entry_of(image.format, sizes);
  ++entry.images;
  add_number(image.width, static_cast<double>(range_begin(image.width)), entry.width);
  add_number(image.height, static_cast<double>(range_begin(image.height)), entry.height);
  const std::uint64_t ratio = (std::uint64_t{image.width} << kFraction) / image.height;
  add_number(static_cast<double>(image.width) / image.height,
             static_cast<double>(range_begin(ratio)) / (1 << kFraction), entry.aspect_ratio);
  sizes.squeezed += image.squeeze > kMaxSqueeze ? 1 : 0;
  sizes.max_squeeze = std::max(sizes.max_squeeze, image.squeeze);
  sizes.alpha_dropped += image.loses_alpha ? 1 : 0;
  sizes.frames_dropped += image.has_more_frames ? 1 : 0;
  sizes.deep += image.max_value > 0 ? 1 : 0;
  sizes.max_value = std::max(sizes.max_value, image.max_value);
  sizes.padded += image.padding > 0 ? 1 : 0;
  sizes.max_padding = std::max(sizes.max_padding, image.padding);
  if (image.crop_loss <= kMaxCropLoss) return;
  ++sizes.cropped;
  sizes.max_crop_loss = std::max(sizes.max_crop_loss, image.crop_loss);
}

void add_sizes(const std::optional<InputSizes>& other, std::optional<InputSizes>& sizes) {
  if (!other) sizes.reset();
  if (!sizes) return;
  for (const InputFormat& from : other->formats) {
    InputFormat& entry = entry_of(from.format, *sizes);
    entry.images += from.images;
    add_counts(from.width, entry.width);
    add_counts(from.height, entry.height);
    add_counts(from.aspect_ratio, entry.aspect_ratio);
  }
  sizes->squeezed += other->squeezed;
  sizes->max_squeeze = std::max(sizes->max_squeeze, other->max_squeeze);
  sizes->alpha_dropped += other->alpha_dropped;
  sizes->frames_dropped += other->frames_dropped;
  sizes->deep += other->deep;
  sizes->max_value = std::max(sizes->max_value, other->max_value);
  sizes->padded += other->padded;
  sizes->max_padding = std::max(sizes->max_padding, other->max_padding);
  sizes->cropped += other->cropped;
  sizes->max_crop_loss = std::max(sizes->max_crop_loss, other->max_crop_loss);
}

std::vector<std::string> input_notices(const InputSizes& sizes) {
  std::vector<std::string> notices{squeeze_text(sizes), crop_text(sizes),   padding_text(sizes),
                                   alpha_text(sizes),   frames_text(sizes), range_text(sizes)};
  std::erase(notices, "");
  return notices;
}

std::string squeeze_text(const InputSizes& sizes) {
  if (sizes.squeezed == 0) return {};
  return count_text(sizes.squeezed, "image") + (sizes.squeezed == 1 ? " was" : " were") +
         " squeezed or stretched by more than " + number_text(kMaxSqueeze) + " to 1, at most by " +
         number_text(std::round(sizes.max_squeeze * 100) / 100) + " to 1";
}

std::string crop_text(const InputSizes& sizes) {
  if (sizes.cropped == 0) return {};
  return count_text(sizes.cropped, "image") + " lost more than " + number_text(kMaxCropLoss * 100) +
         " % of the area to the crop, at most " + percent_text(sizes.max_crop_loss);
}

std::string padding_text(const InputSizes& sizes) {
  if (sizes.padded == 0) return {};
  std::uint64_t images = 0;
  for (const InputFormat& entry : sizes.formats) images += entry.images;
  return count_text(sizes.padded) + " of " + count_text(images, "image") +
         (sizes.padded == 1 ? " is" : " are") + " smaller than the crop: black borders, at most " +
         percent_text(sizes.max_padding) + " of a sample";
}

std::string alpha_text(const InputSizes& sizes) {
  if (sizes.alpha_dropped == 0) return {};
  return count_text(sizes.alpha_dropped, "image") + (sizes.alpha_dropped == 1 ? " has" : " have") +
         " alpha, which was dropped: transparent pixels got the colors that they hide";
}

std::string frames_text(const InputSizes& sizes) {
  if (sizes.frames_dropped == 0) return {};
  return count_text(sizes.frames_dropped, "image") + (sizes.frames_dropped == 1 ? " is" : " are") +
         " the first page or frame of a file with more, which were left out";
}

std::string range_text(const InputSizes& sizes) {
  if (sizes.deep == 0 || sizes.max_value > kMaxLowValue) return {};
  return count_text(sizes.deep, "image") + (sizes.deep == 1 ? " has" : " have") +
         " 16 bits a value and none above " + count_text(sizes.max_value) + ": samples are dark, with " +
         count_text(sizes.max_value / 256 + 1) + " of 256 levels; `scale_from` 0," +
         std::to_string(sizes.max_value) + " makes the largest value white";
}

}  // namespace chunkhit
