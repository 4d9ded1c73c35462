#include "manifest/pack_list_json.h"

#include <nlohmann/json.hpp>

namespace chunkhit {

std::string pack_list_json(const std::vector<std::pair<std::string, std::string>>& named) {
  using Json = nlohmann::ordered_json;
  Json all = Json::object();
  for (const auto& [name, text] : named) all[name] = Json::parse(text);
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace chunkhit
