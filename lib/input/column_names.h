// Names of columns in a header, and what they mean.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "input/rating_fields.h"

namespace chunkhit {

/// Takes RecBole's type from a name: "user_id:token".
[[nodiscard]] std::string_view without_type(std::string_view name);

/// A name without its type, capitals, blanks, - and _: "User_ID" as "userid".
[[nodiscard]] std::string plain_name(std::string_view name);

/// The plain names that columns for a field have in the data sets that people have, the most telling first.
[[nodiscard]] std::span<const std::string_view> usual_names(RatingField field);

/// Returns whether a column of this name usually is for this field.
[[nodiscard]] bool is_usual_name(std::string_view name, RatingField field);

}  // namespace chunkhit
