// JSON about several packs.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace chunkhit {

/// Puts JSON objects into one, each under its name.
[[nodiscard]] std::string pack_list_json(const std::vector<std::pair<std::string, std::string>>& named);

}  // namespace chunkhit
