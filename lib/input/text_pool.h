// Different texts, each kept once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chunkhit {

/// Numbers different texts from 0 in the order in which they come: about 12 bytes a text beside its own.
class TextPool {
 public:
  /// Gives the number of a text, a new one where it was not there. Throws bad_data beyond 2^32 - 1 texts.
  [[nodiscard]] std::uint32_t add(std::string_view text);
  [[nodiscard]] std::string_view operator[](std::uint32_t index) const;
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(ends_.size()); }
  [[nodiscard]] std::size_t capacity_bytes() const;

 private:
  [[nodiscard]] std::size_t slot_of(std::string_view text) const;
  void grow();

  std::string text_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> slots_;  // open addressing, at most 3/4 full; number + 1, 0 where free
};

}  // namespace chunkhit
