#include "listing/json_labels.h"

#include <nlohmann/json.hpp>

#include "base/words.h"

namespace chunkhit {

LabelTexts json_labels(std::string_view text, std::span<const std::string> keys) {
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object()) return {{}, "its .json is no JSON object"};
  LabelTexts found;
  for (const std::string& key : keys) {
    const auto value = object.find(key);
    if (value == object.end()) return {{}, "its .json has no key \"" + printable_text(key) + '"'};
    if (!value->is_string() && !value->is_number())
      return {{}, "key \"" + printable_text(key) + "\" of its .json is neither text nor a number"};
    found.labels.push_back(value->is_string() ? value->get<std::string>() : value->dump());
  }
  return found;
}

}  // namespace chunkhit
