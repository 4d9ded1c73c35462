#include <nlohmann/json.hpp>

#include "base/words.h"
#include "listing/tar_samples.h"

namespace chunkhit {
namespace {

constexpr std::size_t kKeysToName = 20;

std::string keys_text(const nlohmann::json& object) {
  std::string text;
  std::size_t named = 0;
  for (const auto& [key, value] : object.items())
    if (named++ < kKeysToName) text += (text.empty() ? "\"" : ", \"") + printable_text(key) + '"';
  return text.empty() ? "{}" : text;
}

}  // namespace

LabelTexts json_labels(std::string_view text, std::span<const std::string> keys) {
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object()) return {{}, "its .json is no JSON object"};
  LabelTexts found;
  for (const std::string& key : keys) {
    const auto value = object.find(key);
    if (value == object.end())
      return {{}, "its .json has no key \"" + printable_text(key) + "\", only " + keys_text(object)};
    if (!value->is_string() && !value->is_number())
      return {{}, "key \"" + printable_text(key) + "\" of its .json is neither text nor a number"};
    found.labels.push_back(value->is_string() ? value->get<std::string>() : value->dump());
  }
  return found;
}

ColumnTexts json_columns(std::string_view text, std::span<const std::string> keys) {
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  ColumnTexts found;
  if (!object.is_object()) found.error = "its .json is no JSON object";
  for (std::size_t column = 0; column < keys.size() && found.error.empty(); ++column) {
    KeptValue& value = found.values.emplace_back();
    const auto field = object.find(keys[column]);
    if (field == object.end()) {
      found.lacks.resize(keys.size());
      found.lacks[column] = true;
    } else if (field->is_structured()) {
      found.error = "key \"" + printable_text(keys[column]) + "\" of its .json is " +
                    (field->is_array() ? "an array" : "an object") + ", expected a number or a text";
    } else if (!field->is_null()) {
      value.is_text = field->is_string();
      value.text = value.is_text ? field->get<std::string>() : field->dump();
    }
  }
  if (!found.lacks.empty())
    for (const auto& [key, value] : object.items())
      if (found.keys.size() < kKeysToName) found.keys.push_back(key);
  return found;
}

}  // namespace chunkhit
