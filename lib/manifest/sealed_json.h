// JSON text that carries its own hash in its last line, so that any changed byte is noticed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace chunkhit {

/// Writes a JSON object with a last key "xxh3": the hash of every byte before that key's line.
[[nodiscard]] std::string seal_json(const nlohmann::ordered_json& object);

/// Checks the hash and parses; throws bad_data naming `name`.
[[nodiscard]] nlohmann::ordered_json open_sealed_json(std::string_view text, const std::string& name);

}  // namespace chunkhit
