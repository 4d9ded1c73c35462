// Where a sample is cropped and whether it is mirrored: a function of which use of which sample it is.
#pragma once

#include <cstdint>

#include "chunkhit/image_loader.h"
#include "types/sample_shape.h"

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

/// What is cropped out of an image. Its first row and column are the image's own, below 0 in the padding.
struct Crop {
  std::int64_t top = 0;
  std::int64_t left = 0;
  bool flipped = false;  ///< mirrored after it was cropped out
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

}  // namespace chunkhit
