// Labels that a JSON object holds.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chunkhit {

/// The labels of a sample as texts, one per column, or why there are none: then `error` is not empty.
struct LabelTexts {
  std::vector<std::string> labels;
  std::string error;
};

/// Takes the texts and numbers that a JSON object has under `keys`.
[[nodiscard]] LabelTexts json_labels(std::string_view text, std::span<const std::string> keys);

}  // namespace chunkhit
