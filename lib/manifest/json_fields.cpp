#include "manifest/json_fields.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/hash.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void throw_field(const char* key, const char* expected, const Json& found) {
  throw Error(ErrorCode::bad_data, std::string(key) + ": expected " + expected + ", found " + found.dump());
}

}  // namespace

std::uint64_t count_field(const Json& object, const char* key) {
  const Json& value = object.at(key);
  if (!value.is_number_unsigned()) throw_field(key, "a count", value);
  return value.get<std::uint64_t>();
}

std::int64_t integer_field(const Json& object, const char* key) {
  const Json& value = object.at(key);
  const bool fits = !value.is_number_unsigned() ||
                    value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (!value.is_number_integer() || !fits) throw_field(key, "a whole number of 64 bits", value);
  return value.get<std::int64_t>();
}

std::array<std::uint64_t, 4> four_counts_field(const Json& object, const char* key) {
  const Json& list = object.at(key);
  std::array<std::uint64_t, 4> counts{};
  const auto is_count = [](const Json& value) { return value.is_number_unsigned(); };
  if (!list.is_array() || list.size() != counts.size() || !std::all_of(list.begin(), list.end(), is_count))
    throw_field(key, "4 counts", list);
  std::copy(list.begin(), list.end(), counts.begin());
  return counts;
}

std::uint64_t hash_field(const Json& object, const char* key) {
  const Json& value = object.at(key);
  std::uint64_t hash = 0;
  if (!value.is_string() || !parse_hash(value.get_ref<const std::string&>(), hash))
    throw_field(key, "16 hexadecimal digits", value);
  return hash;
}

const Json& list_field(const Json& object, const char* key) {
  const Json& value = object.at(key);
  if (!value.is_array()) throw_field(key, "a list", value);
  return value;
}

}  // namespace chunkhit
