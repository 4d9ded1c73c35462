// What detectors of tables and of JSON lines share: the columns that are asked for, and their errors.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "base/throw_error.h"
#include "chunkhit/sparse_spec.h"
#include "ratings/rating_table.h"
#include "types/enum_names.h"

namespace chunkhit {

class FieldDetector {
 protected:
  /// Messages name columns of tables by number, fields of JSON by name.
  FieldDetector(const RatingTableSpec& spec, std::string_view name, bool is_numbered)
      : name_(name),
        wishes_{&spec.user, &spec.item, &spec.value, &spec.time},
        is_numbered_(is_numbered),
        column_(is_numbered ? "column" : "field") {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw_bad_data(std::string(name_) + ": " + what);
  }
  static std::string flag(RatingField field) { return "`" + name_of(field) + "`"; }
  [[nodiscard]] const std::string& wish(RatingField field) const {
    return *wishes_[static_cast<std::size_t>(field)];
  }

  /// Notes that the column of times, which was found by its name, is not readable.
  void note_unread_time(const std::string& example) {
    const std::string& name = table_.column_names[*table_.text.columns.time];
    table_.unread_time =
        column_ + " \"" + name + "\" holds \"" + example + "\", which is no number or YYYY-MM-DD";
    table_.notices.push_back(column_ + " " + name + " is not used as time: \"" + example +
                             "\" is neither a number nor YYYY-MM-DD nor YYYY-MM-DDTHH:MM:SS");
  }

  /// One column cannot serve twice.
  void check_different() const {
    const RatingColumns& columns = table_.text.columns;
    const std::array<std::optional<std::size_t>, 4> found{columns.user, columns.item, columns.value,
                                                          columns.time};
    for (std::size_t one = 0; one < found.size(); ++one)
      for (std::size_t other = one + 1; other < found.size(); ++other)
        if (found[one] && found[one] == found[other]) {
          const bool are_given = !wishes_[one]->empty() && !wishes_[other]->empty();
          throw_usage(flag(static_cast<RatingField>(one)) + " and " + flag(static_cast<RatingField>(other)) +
                      (are_given ? " both name " : ": both are ") + column_ + " " +
                      (is_numbered_ ? std::to_string(*found[one] + 1)
                                    : "\"" + table_.column_names[*found[one]] + "\"") +
                      (are_given ? "" : "; give both"));
        }
  }

  std::string_view name_;
  std::array<const std::string*, 4> wishes_;
  bool is_numbered_;
  std::string column_;  // what messages call one
  RatingTable table_;
};

}  // namespace chunkhit
