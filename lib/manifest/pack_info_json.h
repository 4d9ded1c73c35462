// JSON that wraps other JSON of packs: several packs by name, and errors. (`pack_info_json` itself is
// public.)
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace chunkhit {

/// Formats an error as the JSON object {"error": …}.
[[nodiscard]] std::string error_json(const std::string& error);

/// Puts JSON objects into one, each under its name.
[[nodiscard]] std::string pack_list_json(const std::vector<std::pair<std::string, std::string>>& named);

}  // namespace chunkhit
