#include "manifest/split_packs.h"

#include <algorithm>
#include <initializer_list>
#include <sstream>

namespace chunkhit {
namespace {

/// Names of the packs that pack-sparse writes, of an amount, a list of users or a number of files each.
std::vector<std::string> rating_pack_names(const std::vector<SpecEntry>& spec) {
  const auto has_any = [&](std::initializer_list<std::string_view> choices) {
    return std::ranges::any_of(choices, [&](std::string_view name) {
      const std::string value = spec_value(spec, name);
      return !value.empty() && value != "0";
    });
  };
  std::vector<std::string> names{"train"};
  if (has_any({"validation", "validation-users", "validation-file"})) names.emplace_back("validation");
  if (has_any({"test", "test-users", "test-file", "before"}) ||
      spec_value(spec, "split-by") == "leave-one-out")
    names.emplace_back("test");
  return names;
}

}  // namespace

std::string spec_value(const std::vector<SpecEntry>& spec, std::string_view name) {
  const auto entry = std::ranges::find(spec, name, &SpecEntry::name);
  return entry == spec.end() || entry->value == "none" ? "" : entry->value;
}

std::vector<std::string> split_pack_names(const std::vector<SpecEntry>& spec) {
  const std::string split_by = spec_value(spec, "split-by");
  if (split_by == "users-by-id") return {};  // a pack that gets no user is not written
  if (!split_by.empty()) return rating_pack_names(spec);
  std::istringstream entries(spec_value(spec, "split") + "," + spec_value(spec, "split-folders"));
  std::vector<std::string> names;
  for (std::string entry; std::getline(entries, entry, ',');)
    if (!entry.empty()) names.push_back(entry.substr(0, entry.find('=')));
  return names;
}

}  // namespace chunkhit
