// First lines of a table of ratings, and the options given for it → how the table is to be parsed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chunkhit/sparse_spec.h"
#include "ratings/rating_fields.h"
#include "ratings/rating_format.h"
#include "ratings/rating_text.h"

namespace chunkhit {

/// Detected properties of a table.
struct RatingTable {
  RatingTextSpec text;
  std::vector<std::string> column_names;  ///< empty: no header
  std::vector<std::string> notices;       ///< columns that were found and not used
  std::string unread_time;  ///< why a column that is named as times are is not used; empty: there is none
  bool operator==(const RatingTable&) const = default;
};

/// Returns how a table is to be parsed. Delimiters are tried in the order ::, tab, then of ; , | the one that
/// makes most columns, then blanks; the one is taken that is in each of the first lines equally often.
/// Quotes are detected where the first field that begins with one also ends with one. Where none begins with
/// one, the quoting stays automatic: one that comes later makes its line bad. Else, and between blanks, they
/// are letters, and a field that stands in quotes makes its line bad. Later inputs follow the first that has
/// quotes.
///
/// A first line is a header when it has one of the usual names or of those given, names with RecBole's types
/// ("user_id:token"), or no number in the value's or time's column while a later line has one. Columns that
/// are given must have exactly that name; those that are not are found by their usual names.
/// A first line that is no header but has text as an id where all later ones have numbers is an error that
/// names --header. A time that is not given is used only where it can be read. Without a header, times and
/// decimals where ids usually stand are an error, and so is a value that is not given where ids stand
/// elsewhere.
///
/// Where there is no header but `earlier` had one, its columns are taken. Throws bad_data beginning with
/// `name`, or usage.
[[nodiscard]] RatingTable detect_rating_table(const TextHead& head, const RatingTableSpec& spec,
                                              std::string_view name, const RatingTable* earlier = nullptr);

}  // namespace chunkhit
