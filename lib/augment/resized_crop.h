// Which part of an image a use of it shows where images are resized at reading, and how it is resized.
#pragma once

#include <cstdint>

#include "augment/random_crop.h"
#include "chunkhit/image_loader.h"
#include "transform/resample.h"
#include "types/image.h"

namespace chunkhit {

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

/// Plans augment.resized_crop, or augment.resize_short with a crop, for images of any size.
class ResizedCrop {
 public:
  /// Throws usage, naming the option, when the spec makes no sense.
  explicit ResizedCrop(const AugmentSpec& spec);
  /// Whether images are resized at all.
  [[nodiscard]] bool resizes() const { return spec_.resized_crop.height != 0 || spec_.resize_short != 0; }
  /// Throws usage, naming the option, when an image has no such part: sides over kMaxSidePixels, or a random
  /// crop that is larger than the resized image. In the middle such a crop has zeros around the image.
  [[nodiscard]] ResizedPart operator()(std::uint32_t height, std::uint32_t width, const SampleUse& use) const;
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
