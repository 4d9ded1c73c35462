// Types of stored values that a spec freezes, and which ratings they hold.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "chunkhit/sparse_spec.h"

namespace chunkhit {

/// Writes what parse_stored_values reads.
[[nodiscard]] std::string stored_values_text(const std::optional<StoredValues>& values);

/// Whether a rating is a stored number times the scale, exactly.
[[nodiscard]] bool holds(const StoredValues& values, float rating);

/// Says what a rating must be to be held: "a multiple of 0.5 from 0 to 127.5".
[[nodiscard]] std::string expected_rating_text(const StoredValues& values);

/// Returns the index of the first input value that is stored as it stands and does not fit `rules.values`, or
/// the count of values. Values that a later sum or `binarize` changes fit here, as do those that the rules
/// drop.
[[nodiscard]] std::size_t find_misfit(std::span<const float> values, const RatingRules& rules);

}  // namespace chunkhit
