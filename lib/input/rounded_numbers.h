// Whole numbers that no 32-bit float is equal to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "input/sample_list.h"

namespace chunkhit {

/// Counts labels that are whole numbers in the input and others as 32-bit floats, from 2^24 on.
class RoundedNumbers {
 public:
  /// Compares a label's text with the value that is packed.
  void check(std::string_view text, float value);
  /// Adds a notice with the first one, where there are any.
  void add_notice(SampleList& list) const;

 private:
  std::uint64_t count_ = 0;
  std::string first_;
  float first_value_ = 0;
};

}  // namespace chunkhit
