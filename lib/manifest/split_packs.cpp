#include "manifest/split_packs.h"

#include <algorithm>
#include <initializer_list>
#include <sstream>

#include "base/words.h"

namespace chunkhit {
namespace {

/// A choice of a split; empty where there is none.
std::string given(const RecordedSpec& spec, std::string_view name) {
  const std::string value = spec.get(name);
  return value == "none" ? "" : value;
}

/// Names of the packs that pack-sparse writes, of an amount, a list of users or a number of files each.
std::vector<std::string> rating_pack_names(const RecordedSpec& spec) {
  const auto has_any = [&](std::initializer_list<std::string_view> choices) {
    return std::ranges::any_of(choices, [&](std::string_view name) {
      const std::string value = given(spec, name);
      return !value.empty() && value != "0";
    });
  };
  std::vector<std::string> names{"train"};
  if (has_any({"validation", "validation-users", "validation-file"})) names.emplace_back("validation");
  if (has_any({"test", "test-users", "test-file", "before"}) || spec.get("split-by") == "leave-one-out")
    names.emplace_back("test");
  return names;
}

}  // namespace

std::vector<std::string> split_pack_names(const RecordedSpec& spec) {
  const std::string split_by = given(spec, "split-by");
  if (split_by == "users-by-id") return {};  // a pack that gets no user is not written
  if (!split_by.empty()) return rating_pack_names(spec);
  std::istringstream entries(given(spec, "split") + "," + given(spec, "split-folders"));
  std::vector<std::string> names;
  for (std::string entry; std::getline(entries, entry, ',');)
    if (!entry.empty()) names.push_back(entry.substr(0, entry.find('=')));
  return names;
}

std::string lost_ratings_text(const std::string& pack, const RatingStats& stats, std::uint64_t kept) {
  constexpr std::uint64_t kMaxLost = 10;  // one in so many
  const std::string name = pack + ": ";
  std::uint64_t lost = 0;
  for (const auto& [reason, count] : stats.left_out)
    if (reason == name + kLostOfUsers || reason == name + kLostOfItems) lost += count;
  const std::uint64_t all = lost + kept;
  if (lost * kMaxLost <= all) return "";
  return pack + " lacks " + std::to_string(lost * 100 / all) + " % of its ratings, " + count_text(lost) +
         " of " + count_text(all);
}

}  // namespace chunkhit
