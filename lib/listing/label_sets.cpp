#include "listing/label_sets.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMaxNames = 16384;

/// The texts of a list as JSON, Python and NumPy write it.
std::vector<std::string_view> listed_texts(std::string_view list) {
  constexpr std::string_view kBetween = ", \t\r\n";  // NumPy wraps long ones
  std::vector<std::string_view> texts;
  const std::size_t end = list.size() - 1;
  for (std::size_t at = list.find_first_not_of(kBetween, 1); at < end;
       at = list.find_first_not_of(kBetween, at)) {
    const char first = list[at];
    const bool is_quoted = first == '"' || first == '\'';
    at += is_quoted ? 1 : 0;
    const std::size_t stop =
        std::min(end, is_quoted ? list.find(first, at) : list.find_first_of(kBetween, at));
    if (stop > at) texts.push_back(list.substr(at, stop - at));
    at = stop + (is_quoted ? 1 : 0);
  }
  return texts;
}

}  // namespace

std::vector<std::string_view> LabelSets::names_in(std::string_view cell) const {
  const std::string_view plain = without_blanks(cell);
  if (is_text_list(plain)) return listed_texts(plain);
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
  is_separated_ = is_separated_ || names.size() > 1 || cell.find(separator_) != cell.npos;
  if (names.empty() && empty_labels_ == EmptyLabels::reject) return false;
  empty_count_ += names.empty() ? 1 : 0;
  for (const std::string_view name : names) found_.push_back(names_.add(name));
  ends_.push_back(found_.size());
  return true;
}

void LabelSets::finish(SampleList& list, bool are_names_known) {
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
  list.names_column = std::exchange(list.label_columns, {}).front();
  list.label_separator = separator_;
  for (const std::uint32_t name : sorted) list.label_columns.emplace_back(names_[name]);
  list.values.assign(ends_.size() * columns.size(), 0);
  for (std::size_t sample = 0, at = 0; sample < ends_.size(); ++sample)
    for (; at < ends_[sample]; ++at) list.values[sample * columns.size() + columns[found_[at]]] = 1;
  if (!are_names_known && !is_separated_ && !sorted.empty()) notice_single_names(list);
  list.empty_labels = empty_count_;
  if (empty_count_ > 0)
    list.notices.push_back(count_text(empty_count_, "image") + (empty_count_ == 1 ? " has" : " have") +
                           " none of the labels: all of theirs are 0 (`empty_labels` reject rejects them)");
}

// A separator that no cell holds makes a class of each combination of names.
void LabelSets::notice_single_names(SampleList& list) const {
  const auto joint = std::ranges::find_if(kJoints, [&](char one) {
    return std::ranges::any_of(list.label_columns,
                               [&](const auto& name) { return name.find(one) != name.npos; });
  });
  const auto is_example = [&](const std::string& name) {
    return joint == kJoints.end() || name.find(*joint) != name.npos;
  };
  list.notices.push_back(
      "column \"" + list.names_column + "\": no cell holds the `label_separator` '" + separator_ +
      "': each is one name, as \"" + *std::ranges::find_if(list.label_columns, is_example) + "\"" +
      (joint == kJoints.end() ? "; is it the right one?" : std::string("; is it '") + *joint + "'?"));
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
}

}  // namespace chunkhit
