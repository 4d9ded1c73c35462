// How the sizes of input images are distributed: exact counts, so that images add up to the same in any
// order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chunkhit/pack_info.h"

namespace chunkhit {

/// The image that a sample was made of, upright.
struct InputImage {
  std::string_view format;  ///< as decoders name it; outlives this
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  double squeeze = 1;        ///< factor by which the transform changed the aspect ratio, 1 or more
  double crop_loss = 0;      ///< share of the area that the crop removed, below 1
  double padding = 0;        ///< share of the sample that is a black border, below 1
  bool loses_alpha = false;  ///< alpha was dropped
  bool has_more_frames = false;
  std::uint32_t max_value = 0;  ///< of 16 bits a value, where the whole range becomes 0 to 255; else 0
};

/// Adds one image.
void add_image(const InputImage& image, InputSizes& sizes);

/// Adds the sizes of other images; the sum of what is known and what is not is not known.
void add_sizes(const std::optional<InputSizes>& other, std::optional<InputSizes>& sizes);

/// Says what was lost of how many images: what those below say of them.
[[nodiscard]] std::vector<std::string> input_notices(const InputSizes& sizes);

/// Says how many images were squeezed or stretched by more than kMaxSqueeze; empty where none was.
[[nodiscard]] std::string squeeze_text(const InputSizes& sizes);

/// Says how many images lost more than kMaxCropLoss of their area to the crop; empty where none did.
[[nodiscard]] std::string crop_text(const InputSizes& sizes);

/// Says how many images are smaller than the crop, and how much of a sample is border; empty where none is.
[[nodiscard]] std::string padding_text(const InputSizes& sizes);

/// Says how many images show the colors that transparent pixels hide; empty where none does.
[[nodiscard]] std::string alpha_text(const InputSizes& sizes);

/// Says how many images are the first page or frame of several; empty where none is.
[[nodiscard]] std::string frames_text(const InputSizes& sizes);

/// Says that 16-bit images have values up to kMaxLowValue alone, which become dark; empty where they do not.
[[nodiscard]] std::string range_text(const InputSizes& sizes);

}  // namespace chunkhit
