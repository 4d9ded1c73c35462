#include "base/near_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "base/words.h"

namespace chunkhit {
namespace {

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

/// Counts the letters to insert, delete, replace or swap with their neighbour (Damerau 1964), whatever their
/// case.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool equal = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (equal ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last.back();
}

}  // namespace

std::string did_you_mean(std::string_view given, std::span<const std::string> valid) {
  constexpr std::size_t kMaxLetters = 64, kLettersOfEdit = 3;
  if (given.empty() || given.size() > kMaxLetters) return "";
  const std::string* nearest = nullptr;
  std::size_t least = given.size() / kLettersOfEdit + 1;
  for (const std::string& name : valid) {
    if (name.size() > kMaxLetters) continue;
    const std::size_t distance = edit_distance(given, name);
    if (distance >= least || distance >= name.size()) continue;
    least = distance;
    nearest = &name;
  }
  if (nearest == nullptr && given.size() >= kLettersOfEdit)
    for (const std::string& name : valid)
      if (nearest == nullptr && name.starts_with(std::string(given) + "-")) nearest = &name;
  return nearest == nullptr ? "" : "; did you mean \"" + printable_text(*nearest) + "\"?";
}

}  // namespace chunkhit
