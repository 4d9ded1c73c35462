#include "types/sample_column.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/text.h"
#include "base/words.h"
#include "types/enum_names.h"

namespace chunkhit {

void SampleColumn::append(const SampleColumn& from, std::size_t index) {
  std::visit(
      [&](auto& list) {
        const auto& source = std::get<std::decay_t<decltype(list)>>(from.values);
        if constexpr (std::is_same_v<std::decay_t<decltype(list)>, TextList>)
          list.add(source[index]);
        else
          list.push_back(source[index]);
      },
      values);
}

std::string SampleColumn::value_text(std::size_t index) const {
  if (const auto* const integers = std::get_if<std::vector<std::int64_t>>(&values))
    return number_text((*integers)[index]);
  if (const auto* const texts = std::get_if<TextList>(&values)) return std::string((*texts)[index]);
  const double number = std::get<std::vector<double>>(values)[index];
  return std::isnan(number) ? "" : fraction_text(number);
}

bool SampleColumn::append_text(std::string_view text) {
  if (auto* const texts = std::get_if<TextList>(&values)) {
    texts->add(text);
    return true;
  }
  if (auto* const integers = std::get_if<std::vector<std::int64_t>>(&values))
    return parse_all(text, integers->emplace_back());
  auto& numbers = std::get<std::vector<double>>(values);
  numbers.push_back(std::numeric_limits<double>::quiet_NaN());
  return text.empty() || (parse_all(text, numbers.back()) && std::isfinite(numbers.back()));
}

SampleColumn empty_column(const PackColumn& column) {
  SampleColumn empty{column.name, {}};
  if (column.type == ColumnType::float64) empty.values = std::vector<double>();
  if (column.type == ColumnType::text) empty.values = TextList();
  return empty;
}

std::vector<PackColumn> column_types(const std::vector<SampleColumn>& columns) {
  std::vector<PackColumn> types;
  types.reserve(columns.size());
  for (const SampleColumn& column : columns) types.push_back({column.name, column.type()});
  return types;
}

std::vector<std::string> column_names(const std::vector<PackColumn>& columns) {
  std::vector<std::string> names;
  names.reserve(columns.size());
  for (const PackColumn& column : columns) names.push_back(column.name);
  return names;
}

std::string columns_text(const std::vector<PackColumn>& columns) {
  const auto text_of = [](const PackColumn& column) {
    return column.name + " (" + name_of(column.type) + ")";
  };
  return columns.empty() ? "none" : joined(columns, ", ", text_of);
}

bool are_equal(const SampleColumn& a, const SampleColumn& b) {
  if (a.name != b.name || a.type() != b.type()) return false;
  const auto* const numbers = std::get_if<std::vector<double>>(&a.values);
  if (numbers == nullptr) return a.values == b.values;
  return std::ranges::equal(*numbers, std::get<std::vector<double>>(b.values), [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  });
}

}  // namespace chunkhit
