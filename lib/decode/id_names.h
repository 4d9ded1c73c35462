// Names of the rows or columns of a matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chunkhit {

/// Holds names in their order; none at all: ids are numbers.
struct IdNames {
  std::string text;                 ///< all names, one after the other
  std::vector<std::uint64_t> ends;  ///< where each ends in `text`
  void add(std::string_view name) {
    text += name;
    ends.push_back(text.size());
  }
  [[nodiscard]] std::size_t size() const { return ends.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t index) const {
    const std::uint64_t begin = index == 0 ? 0 : ends[index - 1];
    return std::string_view(text).substr(begin, ends[index] - begin);
  }
};

/// Appends "-1", "-2", ... to names that came before, as AnnData's obs_names_make_unique does, since two rows
/// of one name would become one user. Returns how many were changed.
std::size_t make_unique_names(IdNames& names);

}  // namespace chunkhit
