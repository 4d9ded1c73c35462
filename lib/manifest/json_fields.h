// Fields of JSON that came from a file. Each function throws bad_data, naming the key, for another type or a
// number out of range, and nlohmann's exception for a key that is missing.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace chunkhit {

/// Gives a whole number from 0 to 2^64 - 1. nlohmann's own `get` turns -1, 2.5 and 1e300 into some number.
[[nodiscard]] std::uint64_t count_field(const nlohmann::ordered_json& object, const char* key);

/// Gives a whole number of 64 bits with sign.
[[nodiscard]] std::int64_t integer_field(const nlohmann::ordered_json& object, const char* key);

/// Gives a list of exactly four whole numbers from 0 to 2^64 - 1.
[[nodiscard]] std::array<std::uint64_t, 4> four_counts_field(const nlohmann::ordered_json& object,
                                                             const char* key);

/// Gives the value of 16 hexadecimal digits.
[[nodiscard]] std::uint64_t hash_field(const nlohmann::ordered_json& object, const char* key);

/// Gives a list; its entries are not looked at.
[[nodiscard]] const nlohmann::ordered_json& list_field(const nlohmann::ordered_json& object, const char* key);

}  // namespace chunkhit
