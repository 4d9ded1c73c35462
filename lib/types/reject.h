// A row of the input that was not packed, or not without a warning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chunkhit {

/// A row that cannot be packed, known before any file is opened or after; in a list of warnings, one that was
/// packed.
struct Reject {
  std::uint64_t row = 0;            ///< zero-based row of the input list
  std::string file;                 ///< file as in the input list
  std::vector<std::string> labels;  ///< labels as in the input list
  std::string reason;
};

}  // namespace chunkhit
