// Labels and columns that a JSON object holds.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "listing/kept_columns.h"

namespace chunkhit {

/// The labels of a sample as texts, one per column, or why there are none: then `error` is not empty.
struct LabelTexts {
  std::vector<std::string> labels;
  std::string error;
};

/// The values of a sample's columns, or why there are none: then `error` is not empty.
struct ColumnTexts {
  std::vector<KeptValue> values;
  std::vector<std::string> keys;  ///< of the object, the first few, where it lacks one that is wanted
  std::vector<bool> lacks;        ///< by column; empty where it lacks none
  std::string error;
};

/// Takes the texts and numbers that a JSON object has under `keys`.
[[nodiscard]] LabelTexts json_labels(std::string_view text, std::span<const std::string> keys);

/// Takes the texts, numbers and truth values ("true", "false") that a JSON object has under `keys`. A key
/// that it lacks, or that is null, is a missing value.
[[nodiscard]] ColumnTexts json_columns(std::string_view text, std::span<const std::string> keys);

}  // namespace chunkhit
