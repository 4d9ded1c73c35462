// Numbers, lists and external text in messages, and names that a misspelt one may mean.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace chunkhit {

/// Writes bytes for people, in powers of 1000: "512 B", "31.1 MB".
[[nodiscard]] std::string bytes_text(double bytes);

/// Writes bytes as flags take them, in powers of 1024, rounded up: "1G", "1370M", "24K".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

/// Writes bytes as --memory-bytes takes them, rounded up: "192M", "3G".
[[nodiscard]] std::string memory_text(double bytes);

/// Writes a count with commas: "1,234,567".
[[nodiscard]] std::string count_text(std::uint64_t count);
/// Writes how many things: "1 part", "1,234 parts".
[[nodiscard]] std::string count_text(std::uint64_t count, const char* thing);

/// Joins the texts of things, which `text_of` gives, with another between each two of them.
template <class Things, class TextOf = std::identity>
[[nodiscard]] std::string joined(const Things& things, std::string_view between = ", ", TextOf text_of = {}) {
  std::string list;
  bool is_first = true;
  for (const auto& thing : things)
    list.append(std::exchange(is_first, false) ? "" : between).append(std::invoke(text_of, thing));
  return list;
}

/// Joins the texts whose values are not 0.
[[nodiscard]] std::string joined_where(std::span<const std::string> texts, std::span<const float> values,
                                       std::string_view between);

/// Writes text from outside such that it stays on its line and tells a terminal nothing: control characters
/// as "\n", "\t" or "\x1b", all else as it is.
[[nodiscard]] std::string printable_text(std::string_view text);

/// Whether the values of a column look like ids of what several images belong to: the name has a word for it
/// (patient_id, scanID), or few images have each of many texts. `different` values of `count` images.
[[nodiscard]] bool may_be_ids(std::string_view name, bool is_text, std::size_t different, std::size_t count);

/// "; did you mean \"label\"?" with the valid name that `given` was most likely to be, case and a few letters
/// aside, else the first one that begins with it and a dash; empty where there is none.
[[nodiscard]] std::string did_you_mean(std::string_view given, std::span<const std::string> valid);

}  // namespace chunkhit
