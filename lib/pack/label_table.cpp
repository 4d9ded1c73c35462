#include "pack/label_table.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>

namespace chunkhit {
namespace {

/// Whole numbers up to here are exact as f32.
constexpr std::int64_t kMaxExact = std::int64_t{1} << 24;

std::size_t row_of(const IdMap& users, std::uint32_t user) {
  const std::string text = users.text(user);
  std::size_t row = 0;
  std::from_chars(text.data(), text.data() + text.size(), row);
  return row;
}

/// How many labels every user's row has, where all have as many.
std::size_t common_count(const RowLabels& labels, const IdMap& users, std::vector<std::string>& notices) {
  std::size_t least = SIZE_MAX;
  std::size_t most = 0;
  for (std::uint32_t user = 0; user < users.size(); ++user) {
    const std::size_t count = labels.of_row(row_of(users, user)).size();
    least = std::min(least, count);
    most = std::max(most, count);
  }
  if (most == 0) return 0;
  if (least == most) return least;
  notices.push_back("labels are left out: rows have " + std::to_string(least) + " to " +
                    std::to_string(most) + " of them, a pack has as many for each row");
  return 0;
}

bool has_exact_groups(const RowLabels& labels, std::vector<std::string>& notices) {
  if (labels.groups.empty()) return false;
  for (const std::int64_t group : labels.groups)
    if (group < -kMaxExact || group > kMaxExact) {
      notices.emplace_back("qid is left out: a row has none, or one that no 32-bit float is equal to");
      return false;
    }
  return true;
}

}  // namespace

LabelTable make_label_table(const RowLabels& labels, const IdMap& users, std::vector<std::string>& notices) {
  LabelTable table;
  const std::size_t count = common_count(labels, users, notices);
  const bool has_groups = has_exact_groups(labels, notices);
  for (std::size_t column = 0; column < count; ++column)
    table.columns.push_back(count == 1 ? "label" : "label-" + std::to_string(column + 1));
  if (has_groups) table.columns.emplace_back("qid");
  if (table.columns.empty()) return table;
  table.values.reserve(users.size() * table.columns.size());
  for (std::uint32_t user = 0; user < users.size(); ++user) {
    const std::size_t row = row_of(users, user);
    const auto of_row = labels.of_row(row);
    table.values.insert(table.values.end(), of_row.begin(),
                        of_row.begin() + static_cast<std::ptrdiff_t>(count));
    if (has_groups) table.values.push_back(static_cast<float>(labels.groups[row]));
  }
  return table;
}

}  // namespace chunkhit
