#include "ratings/swapped_ids.h"

#include <algorithm>
#include <string_view>

namespace chunkhit {
namespace {

bool is_code(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); });
}

/// "B00004YUTF", or the ten digits of a book.
bool is_product(std::string_view text) {
  constexpr std::size_t kLength = 10;
  return text.size() == kLength && is_code(text) && (text.starts_with("B0") || text[0] <= '9');
}

/// "A2SUAM1J3GNN3B".
bool is_customer(std::string_view text) {
  constexpr std::size_t kMinLength = 10;
  return text.size() >= kMinLength && is_code(text) && text[0] == 'A';
}

}  // namespace

std::string swapped_ids_warning(std::span<const std::vector<std::string>> lines, std::size_t user,
                                std::size_t item) {
  const auto look_swapped = [&](const std::vector<std::string>& fields) {
    return std::max(user, item) < fields.size() && is_product(fields[user]) && is_customer(fields[item]);
  };
  if (lines.empty() || !std::ranges::all_of(lines, look_swapped)) return "";
  const std::string users = std::to_string(user + 1), items = std::to_string(item + 1);
  return "warning: column " + users + " is read as users, but looks like products (" + lines[0][user] +
         "), and column " + items + ", read as items, like users (" + lines[0][item] + "): `user` " + items +
         " `item` " + users + " takes them the other way";
}

}  // namespace chunkhit
