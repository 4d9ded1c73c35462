// A list of texts in one buffer: names of files, ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chunkhit {

/// Owns texts: 8 bytes each beside their own.
struct TextList {
  std::string text;                 ///< all texts, one after the other
  std::vector<std::uint64_t> ends;  ///< end of each text in `text`
  void add(std::string_view one) {
    text += one;
    ends.push_back(text.size());
  }
  void clear() {
    text.clear();
    ends.clear();
  }
  void shrink_to_fit() {
    text.shrink_to_fit();
    ends.shrink_to_fit();
  }
  [[nodiscard]] bool empty() const { return ends.empty(); }
  [[nodiscard]] std::size_t size() const { return ends.size(); }
  [[nodiscard]] std::size_t capacity_bytes() const {
    return text.capacity() + ends.capacity() * sizeof ends[0];
  }
  [[nodiscard]] std::string_view operator[](std::size_t index) const {
    const std::uint64_t begin = index == 0 ? 0 : ends[index - 1];
    return std::string_view(text).substr(begin, ends[index] - begin);
  }
  bool operator==(const TextList&) const = default;
};

}  // namespace chunkhit
