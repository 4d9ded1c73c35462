// What is cropped out of a sample, resized or not, and how it is mirrored and turned: a function of which use
// of which sample it is.
#pragma once

#include <cstdint>

#include "chunkhit/image_loader.h"
#include "transform/resample.h"
#include "types/image.h"

namespace chunkhit {

/// Which use of which sample this is; all that random changes depend on.
struct SampleUse {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t sample = 0;
  std::uint64_t pass = 0;  ///< which echo; echo · r more after r other uses in the epoch
};

/// Throws usage, naming the option, when the options of flips and crops make no sense for any image.
void check_augment(const AugmentSpec& spec);

/// Tells uses apart; the seed comes in later (`use` in schemas/order.md).
[[nodiscard]] std::uint64_t index_of(const SampleUse& use);

/// A number in [0, 1) of 53 random bits, so that a share of 1 is always reached and a share of 0 never.
[[nodiscard]] inline double random_share(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

/// What is cropped out of an image. Its first row and column are the image's own, below 0 in the padding. The
/// flags apply to the crop, in their order: any flips and quarter turns are some of these three.
struct Crop {
  std::int64_t top = 0;
  std::int64_t left = 0;
  bool flipped = false;      ///< mirrored left to right
  bool upside_down = false;  ///< mirrored top to bottom
  bool transposed = false;   ///< its rows become columns
};

/// Chooses crops.
class RandomCrop {
 public:
  /// Throws usage, naming the option, when the spec makes no sense for the image.
  RandomCrop(const SampleShape& image, const AugmentSpec& spec);
  [[nodiscard]] std::uint32_t height() const { return height_; }
  [[nodiscard]] std::uint32_t width() const { return width_; }
  /// Whether every crop is the whole image as it is.
  [[nodiscard]] bool keeps_all() const;
  /// The crop's position is random, each equally likely, or torchvision's CenterCrop.
  [[nodiscard]] Crop operator()(const SampleUse& use) const;

 private:
  AugmentSpec spec_;
  std::uint32_t height_;
  std::uint32_t width_;
  std::int64_t free_rows_;     // how far the crop can be moved down and to the right
  std::int64_t free_columns_;  // within the padded image; below 0 it pads more
};

/// What becomes of one use of an image: `box` of it is resized; the request's source is the box.
struct ResizedPart {
  Rect box;
  ResampleRequest request;
};

/// A sample of zeros, and where a request's window lies in it.
struct ResizedCanvas {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t paste_y = 0;
  std::uint32_t paste_x = 0;
};

/// Plans augment.resized_crop, or augment.resize_short with a crop, for images of any size. Vertical flips
/// and quarter turns are left to a RandomCrop of the resized sample (`rest`).
class ResizedCrop {
 public:
  /// Throws usage, naming the option, when the spec makes no sense.
  explicit ResizedCrop(const AugmentSpec& spec);
  /// Whether images are resized at all.
  [[nodiscard]] bool resizes() const { return spec_.resized_crop.height != 0 || spec_.resize_short != 0; }
  /// Throws usage, naming the option, when an image has no such part: sides over kMaxSidePixels, or a random
  /// crop that is larger than the resized image. In the middle such a crop has zeros around the image.
  [[nodiscard]] ResizedPart operator()(std::uint32_t height, std::uint32_t width, const SampleUse& use) const;
  /// What remains to be done to resized samples.
  [[nodiscard]] static AugmentSpec rest(const AugmentSpec& spec);
  /// The sample that a request of this is for: larger than the window where the crop is than the image.
  [[nodiscard]] ResizedCanvas canvas(const ResampleRequest& request) const;

 private:
  [[nodiscard]] Rect random_box(std::uint32_t height, std::uint32_t width, const SampleUse& use) const;
  [[nodiscard]] ResizedPart resized_short(std::uint32_t height, std::uint32_t width,
                                          const SampleUse& use) const;

  AugmentSpec spec_;
  double min_log_aspect_ = 0;
  double max_log_aspect_ = 0;
};

}  // namespace chunkhit
