#include "listing/kept_columns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/text.h"
#include "base/words.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMaxTextBytes = 1024;

bool is_missing(std::string_view text) {
  return text.empty() || text == "nan" || text == "NaN" || text == "NA";  // R writes NA
}

/// Reads a number that no program would take for a code: "007" and "0x1" are text.
std::optional<double> parse_plain_number(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.empty() || (digits[0] != '.' && (digits[0] < '0' || digits[0] > '9'))) return std::nullopt;
  if (digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9') return std::nullopt;
  double number = 0;
  return parse_all(text, number) && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

/// Returns the integers that the texts are, or nothing where one is none.
std::optional<std::vector<std::int64_t>> integers_of(const TextPool& texts) {
  std::vector<std::int64_t> integers(texts.count());
  for (std::uint32_t text = 0; text < texts.count(); ++text)
    if (!parse_integer_id(without_blanks(texts[text]), integers[text])) return std::nullopt;
  return integers;
}

/// Returns the numbers that the texts are, NaN for what is missing, or nothing where one is none, an integer
/// is not a number of this type, or all are missing and `has_number` is not set.
std::optional<std::vector<double>> numbers_of(const TextPool& texts, bool has_number) {
  std::vector<double> numbers(texts.count(), std::numeric_limits<double>::quiet_NaN());
  for (std::uint32_t text = 0; text < texts.count(); ++text) {
    const std::string_view plain = without_blanks(texts[text]);
    if (is_missing(plain)) continue;
    const std::optional<double> number = parse_plain_number(plain);
    if (!number) return std::nullopt;
    constexpr double kMaxExact = std::int64_t{1} << 53;
    const bool is_whole = plain.find_first_of(".eE") == std::string_view::npos;
    if (is_whole && std::abs(*number) >= kMaxExact) return std::nullopt;
    numbers[text] = *number;
    has_number = true;
  }
  return has_number ? std::optional(std::move(numbers)) : std::nullopt;
}

}  // namespace

std::string kept_text_problem(const std::string& name, std::string_view text) {
  const std::string location = "column \"" + name + "\": ";
  if (!is_utf8(text)) return location + "is not UTF-8";
  if (text.find('\0') != std::string_view::npos) return location + "holds a zero byte";
  if (text.size() > kMaxTextBytes)
    return location + "has " + count_text(text.size(), "byte") + ", expected at most " +
           count_text(kMaxTextBytes);
  return "";
}

SampleColumn kept_values(std::string name, const TextPool& texts, bool has_text, bool has_number) {
  SampleColumn column{std::move(name), {}};
  auto integers = has_text ? std::nullopt : integers_of(texts);
  auto numbers = has_text || integers ? std::nullopt : numbers_of(texts, has_number);
  if (integers) {
    column.values = *std::move(integers);
  } else if (numbers) {
    column.values = *std::move(numbers);
  } else {
    TextList& all = column.values.emplace<TextList>();
    for (std::uint32_t text = 0; text < texts.count(); ++text) all.add(texts[text]);
  }
  return column;
}

std::string KeptColumns::problem(std::span<const KeptValue> values) const {
  for (std::size_t column = 0; column < values.size(); ++column)
    if (std::string problem = kept_text_problem(names_[column], values[column].text); !problem.empty())
      return problem;
  return "";
}

void KeptColumns::add(std::span<const KeptValue> values) {
  for (std::size_t index = 0; index < values.size(); ++index) {
    Column& column = columns_[index];
    column.by_sample.push_back(column.texts.add(values[index].text));
    column.has_text = column.has_text || values[index].is_text;
    column.has_number = column.has_number || values[index].is_number;
  }
}

/// Leaves out samples that were rejected meanwhile; their texts go to their rejects.
void KeptColumns::keep(SampleList& list, const std::vector<std::uint32_t>& rows_before) {
  const std::size_t count = columns_.empty() ? 0 : columns_.front().by_sample.size();
  if (list.size() == count) return;
  std::vector<std::uint32_t> kept;
  for (std::uint32_t before = 0; before < count; ++before) {
    const std::uint32_t row = rows_before.empty() ? before : rows_before[before];
    if (kept.size() < list.size() && row == list.row(kept.size())) {
      kept.push_back(before);
      continue;
    }
    const auto reject = std::ranges::lower_bound(list.rejects, std::uint64_t{row}, {}, &Reject::row);
    for (const Column& column : columns_) reject->labels.emplace_back(column.texts[column.by_sample[before]]);
  }
  for (Column& column : columns_) {
    std::vector<std::uint32_t> texts;
    texts.reserve(kept.size());
    for (const std::uint32_t sample : kept) texts.push_back(column.by_sample[sample]);
    column.by_sample = std::move(texts);
  }
}

/// A column of numbers is text for a few values that are none, as a dash for what is missing.
void KeptColumns::note_few_texts(SampleList& list) const {
  for (std::size_t index = 0; index < columns_.size(); ++index) {
    const Column& column = columns_[index];
    if (column.has_text) continue;
    std::vector<std::uint32_t> others;  // the text of each sample that has no number
    std::uint64_t numbers = 0;
    for (const std::uint32_t text : column.by_sample) {
      const std::string_view plain = without_blanks(column.texts[text]);
      if (parse_plain_number(plain))
        ++numbers;
      else if (!is_missing(plain))
        others.push_back(text);
    }
    if (others.empty() || others.size() >= numbers) continue;
    list.notices.push_back("column \"" + names_[index] + "\" is text: " + count_text(others.size()) + " of " +
                           count_text(column.by_sample.size(), "value") +
                           (others.size() == 1 ? " is" : " are") + " no number, as \"" +
                           std::string(column.texts[others.front()]) +
                           "\"; empty and NA are missing numbers");
  }
}

void KeptColumns::finish(SampleList& list, const std::vector<std::uint32_t>& rows_before) {
  keep(list, rows_before);
  note_few_texts(list);
  for (std::size_t index = 0; index < columns_.size(); ++index) {
    const Column& column = columns_[index];
    const SampleColumn values = kept_values(names_[index], column.texts, column.has_text, column.has_number);
    SampleColumn& made = list.columns.emplace_back(empty_column({names_[index], values.type()}));
    for (const std::uint32_t text : column.by_sample) made.append(values, text);
  }
}

}  // namespace chunkhit
