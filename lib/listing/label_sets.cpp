#include "listing/label_sets.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMaxNames = 16384;

/// Returns a row of a reject's texts with its labels at other columns; kept columns stay behind them.
std::vector<std::string> moved_labels(const std::vector<std::string>& texts,
                                      const std::vector<std::size_t>& columns, std::size_t count) {
  std::vector<std::string> moved(count, texts.empty() || texts[0].empty() ? "" : "0");
  for (std::size_t column = 0; column < columns.size() && column < texts.size(); ++column)
    moved[columns[column]] = texts[column];
  if (texts.size() > columns.size())
    moved.insert(moved.end(), texts.begin() + static_cast<std::ptrdiff_t>(columns.size()), texts.end());
  return moved;
}

}  // namespace

std::vector<std::string_view> LabelSets::names_in(std::string_view cell) const {
  std::vector<std::string_view> names;
  for (std::size_t begin = 0, end = 0; end != cell.npos; begin = end + separator_.size()) {
    end = cell.find(separator_, begin);
    const std::string_view name = without_blanks(cell.substr(begin, end == cell.npos ? end : end - begin));
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

bool LabelSets::add(std::string_view cell) {
  const std::vector<std::string_view> names = names_in(cell);
  for (const std::string_view name : names) found_.push_back(names_.add(name));
  if (!names.empty()) ends_.push_back(found_.size());
  return !names.empty();
}

void LabelSets::finish(SampleList& list) {
  if (names_.count() > kMaxNames)
    throw_bad_data("column \"" + list.label_columns[0] + "\": " + count_text(names_.count()) +
                   " different names, expected at most " + count_text(kMaxNames) +
                   "; is it the right `label_separator`?");
  std::vector<std::uint32_t> sorted(names_.count());
  std::iota(sorted.begin(), sorted.end(), 0u);
  std::ranges::sort(sorted, {}, [this](std::uint32_t name) { return names_[name]; });
  std::vector<std::uint32_t> columns(sorted.size());
  for (std::uint32_t column = 0; column < sorted.size(); ++column) columns[sorted[column]] = column;
  list.label_kind = LabelKind::numbers;
  list.label_columns.clear();
  for (const std::uint32_t name : sorted) list.label_columns.emplace_back(names_[name]);
  list.values.assign(ends_.size() * columns.size(), 0);
  for (std::size_t sample = 0, at = 0; sample < ends_.size(); ++sample)
    for (; at < ends_[sample]; ++at) list.values[sample * columns.size() + columns[found_[at]]] = 1;
  write_rejects(list);
}

/// Gives rejects the columns of samples: blanks where a cell has no names, or one that no sample has.
void LabelSets::write_rejects(SampleList& list) const {
  for (Reject& reject : list.rejects) {
    if (reject.labels.empty()) continue;
    const std::vector<std::string_view> names = names_in(reject.labels[0]);
    std::vector<std::string> texts(list.label_columns.size(), names.empty() ? "" : "0");
    for (const std::string_view name : names) {
      const auto column = std::ranges::find(list.label_columns, name);
      if (column == list.label_columns.end())
        texts.assign(texts.size(), "");
      else if (!texts[0].empty())
        texts[static_cast<std::size_t>(column - list.label_columns.begin())] = "1";
    }
    texts.insert(texts.end(), std::next(reject.labels.begin()), reject.labels.end());
    reject.labels = std::move(texts);
  }
}

void reorder_label_sets(SampleList& list, const std::vector<std::string>& known) {
  const std::size_t before = list.label_columns.size(), count = known.size();
  std::vector<std::size_t> columns;
  for (std::size_t column = 0; column < before; ++column) {
    const auto found = std::ranges::find(known, list.label_columns[column]);
    if (found == known.end()) {
      std::size_t sample = 0;
      while (sample + 1 < list.size() && list.values[sample * before + column] == 0) ++sample;
      throw_bad_data("`classes`: class \"" + list.label_columns[column] + "\" of " +
                     std::string(list.file(sample)) + " is not among the " + count_text(count) +
                     " that are listed" + did_you_mean(list.label_columns[column], known));
    }
    columns.push_back(static_cast<std::size_t>(found - known.begin()));
  }
  std::vector<float> values(list.size() * count);
  for (std::size_t sample = 0; sample < list.size(); ++sample)
    for (std::size_t column = 0; column < before; ++column)
      values[sample * count + columns[column]] = list.values[sample * before + column];
  list.values = std::move(values);
  list.label_columns = known;
  for (Reject& reject : list.rejects) reject.labels = moved_labels(reject.labels, columns, count);
}

}  // namespace chunkhit
