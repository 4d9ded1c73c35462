#include "ratings/stored_values.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/throw_error.h"
#include "types/csr_rows.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

bool is_scaled(ValueType type) { return type == ValueType::u8 || type == ValueType::u16; }

double max_stored(ValueType type) { return type == ValueType::u8 ? 255 : 65'535; }

/// Whether the value rules keep a rating, whatever other ratings its user has.
bool is_kept(float value, const RatingRules& rules) {
  if (value == 0 && rules.zeros == Zeros::drop) return false;
  return !rules.above || value > *rules.above;
}

}  // namespace

std::optional<StoredValues> parse_stored_values(const std::string& text) {
  if (text == "auto") return std::nullopt;
  const auto refuse = [&] {
    throw_usage(
        "`values`: expected auto, none, u8, u16 or f32, of u8 and u16 also with a scale above 0, as "
        "u8:0.5; found '" +
        text + "'");
  };
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::optional<ValueType> type = enum_of<ValueType>(text.substr(0, colon));
  if (!type) refuse();
  StoredValues values{*type, 1};
  if (colon == text.size()) return values;
  const bool is_number = parse_all(text.substr(colon + 1), values.scale) && std::isfinite(values.scale);
  if (!is_number || values.scale <= 0 || !is_scaled(*type)) refuse();
  return values;
}

std::string stored_values_text(const std::optional<StoredValues>& values) {
  if (!values) return "auto";
  return name_of(values->type) + (values->scale == 1 ? "" : ":" + number_text(values->scale));
}

bool holds(const StoredValues& values, float rating) {
  std::uint16_t number = 0;
  switch (values.type) {
    case ValueType::none:
      return rating == 1;
    case ValueType::u8:
      return find_stored_number(rating, values.scale, number) && number <= UINT8_MAX;
    case ValueType::u16:
      return find_stored_number(rating, values.scale, number);
    case ValueType::f32:
      break;
  }
  return true;
}

std::string expected_rating_text(const StoredValues& values) {
  if (values.type == ValueType::none) return "1";
  if (!is_scaled(values.type)) return "a number";
  const std::string what =
      values.scale == 1 ? "a whole number" : "a multiple of " + number_text(values.scale);
  return what + " from 0 to " + number_text(max_stored(values.type) * values.scale);
}

std::size_t find_misfit(std::span<const float> values, const RatingRules& rules) {
  if (!rules.values || rules.duplicates == Duplicates::sum || rules.binarize) return values.size();
  const auto is_misfit = [&](float value) { return !holds(*rules.values, value) && is_kept(value, rules); };
  return static_cast<std::size_t>(std::ranges::find_if(values, is_misfit) - values.begin());
}

}  // namespace chunkhit
