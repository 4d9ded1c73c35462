// Names that a misspelt one was most likely to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace chunkhit {

/// "; did you mean \"label\"?" with the valid name that `given` was most likely to be, case and a few letters
/// aside, else the first one that begins with it and a dash; empty where there is none.
[[nodiscard]] std::string did_you_mean(std::string_view given, std::span<const std::string> valid);

}  // namespace chunkhit
