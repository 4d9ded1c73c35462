// Names that columns of users, items, values and times usually have.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "ratings/rating_fields.h"

namespace chunkhit {

/// Returns the plain names that columns of a field have in common data sets, the most telling first.
[[nodiscard]] std::span<const std::string_view> usual_names(RatingField field);

/// Returns whether a column of this name usually is of this field.
[[nodiscard]] bool is_usual_name(std::string_view name, RatingField field);

/// The column with a usual name of users or items: the first one where that has such a name, or is called
/// "id", else the one with the most telling name.
[[nodiscard]] std::optional<std::size_t> find_usual_column(std::span<const std::string_view> names,
                                                           RatingField field);

}  // namespace chunkhit
