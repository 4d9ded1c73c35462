#include "decode/id_names.h"

#include <unordered_map>
#include <unordered_set>

namespace chunkhit {
namespace {

std::string unique_name(std::string_view name, std::uint64_t& uses,
                        const std::unordered_set<std::string_view>& names,
                        const std::unordered_set<std::string>& made) {
  for (;;) {
    std::string changed = std::string(name) + '-' + std::to_string(++uses);
    if (!names.contains(changed) && !made.contains(changed)) return changed;
  }
}

}  // namespace

std::size_t make_unique_names(IdNames& names) {
  std::unordered_set<std::string_view> different;
  for (std::size_t i = 0; i < names.size(); ++i) different.insert(names[i]);
  if (different.size() == names.size()) return 0;
  std::unordered_map<std::string_view, std::uint64_t> uses;  // how often a name was there before
  std::unordered_set<std::string> made;
  IdNames unique;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [use, is_first] = uses.try_emplace(names[i], 0);
    if (is_first)
      unique.add(names[i]);
    else
      unique.add(*made.insert(unique_name(names[i], use->second, different, made)).first);
  }
  names = std::move(unique);
  return made.size();
}

}  // namespace chunkhit
