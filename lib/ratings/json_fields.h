// First lines of JSON, and the options given for it → the fields that are read.
#pragma once

#include <string_view>

#include "chunkhit/sparse_spec.h"
#include "ratings/rating_format.h"
#include "ratings/rating_table.h"

namespace chunkhit {

/// Returns which fields of the objects are read: its `column_names` are those of the first lines, nested ones
/// with dots between the names. Fields that are given must have exactly that name; others are found by their
/// usual names. A time that is not given is used only where it can be read. `earlier` is of the input before,
/// and is returned where its fields are found again.
/// Throws bad_data beginning with `name`, also for what is JSON or looks like it and has no object on each
/// line, or usage.
[[nodiscard]] RatingTable detect_json_fields(const TextHead& head, const RatingTableSpec& spec,
                                             std::string_view name, const RatingTable* earlier = nullptr);

}  // namespace chunkhit
