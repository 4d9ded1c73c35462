// A column of a table of samples, users or items that is kept beside their labels or ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "chunkhit/pack_info.h"
#include "types/text_list.h"

namespace chunkhit {

/// Values of a column by sample. The alternatives are in the order of ColumnType.
struct SampleColumn {
  std::string name;
  std::variant<std::vector<std::int64_t>, std::vector<double>, TextList> values;
  [[nodiscard]] ColumnType type() const { return static_cast<ColumnType>(values.index()); }
  [[nodiscard]] std::size_t size() const {
    return std::visit([](const auto& list) { return list.size(); }, values);
  }
  /// Appends the value of a sample of a column of the same type.
  void append(const SampleColumn& from, std::size_t index);
  /// Returns a value as text, such that reading it again gives the same one; a missing number is empty.
  [[nodiscard]] std::string value_text(std::size_t index) const;
  /// Appends the value that `value_text` gave; false for text that it never gives for this type.
  [[nodiscard]] bool append_text(std::string_view text);
};

/// A column of this name and type without values.
[[nodiscard]] SampleColumn empty_column(const PackColumn& column);

/// Names and types of columns.
[[nodiscard]] std::vector<PackColumn> column_types(const std::vector<SampleColumn>& columns);

/// Names of columns, in their order.
[[nodiscard]] std::vector<std::string> column_names(const std::vector<PackColumn>& columns);

/// Writes names and types of columns: "width (i64), name (text)"; "none" without columns.
[[nodiscard]] std::string columns_text(const std::vector<PackColumn>& columns);

/// Whether two columns hold the same values; missing numbers (NaN) are equal.
[[nodiscard]] bool are_equal(const SampleColumn& a, const SampleColumn& b);

}  // namespace chunkhit
