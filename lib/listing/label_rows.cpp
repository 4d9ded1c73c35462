#include "listing/label_rows.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {
namespace {

constexpr const char* kNotUtf8Advice = "is not UTF-8; iconv -f cp1252 -t utf-8 converts texts of Windows";

std::string form_error(LabelForm form) {
  if (form == LabelForm::missing) return "label is missing";
  if (form == LabelForm::not_finite) return "label is not a finite number";
  if (form == LabelForm::not_utf8) return std::string("label ") + kNotUtf8Advice;
  return "label is not a number that a 32-bit float holds";
}

/// A number, or one of the truth values that pandas and JSON write.
std::optional<float> parse_value(std::string_view text) {
  if (text == "True" || text == "true") return 1.0f;
  if (text == "False" || text == "false") return 0.0f;
  return parse_number(text);
}

/// Whether a number is missing, as tables and programs write it.
bool is_missing_number(std::string_view text) {
  return label_form(text) == LabelForm::missing || lower(without_blanks(text)) == "nan";
}

/// A class may be called NA: Namibia's code, say.
void notice_na(SampleList& list) {
  const auto count = static_cast<std::uint64_t>(std::ranges::count_if(
      list.rejects, [](const Reject& reject) { return std::ranges::count(reject.labels, "NA") > 0; }));
  if (count > 0)
    list.notices.push_back(count_text(count, "row") + (count == 1 ? " has" : " have") +
                           " the label NA, which is a missing one, and " + (count == 1 ? "is" : "are") +
                           " rejected; a class of this name needs another");
}

}  // namespace

std::string LabelRows::take(std::string_view file, std::span<const std::string_view> labels,
                            std::span<const KeptValue> kept) {
  if (file.empty()) return "file name is missing";
  if (!is_utf8(file)) return std::string("file name ") + kNotUtf8Advice;
  std::string error = kept_.problem(kept);
  if (error.empty()) error = are_numbers() ? take_numbers(labels) : take_label(labels[0]);
  if (!error.empty()) return error;
  rows_.add(file);
  kept_.add(kept);
  return "";
}

std::string LabelRows::take_unlabelled(std::string_view file, std::span<const KeptValue> kept) {
  if (file.empty()) return "file name is missing";
  if (!is_utf8(file)) return std::string("file name ") + kNotUtf8Advice;
  std::string error = kept_.problem(kept);
  if (!error.empty()) return error;
  rows_.add(file);
  kept_.add(kept);
  return "";
}

std::string LabelRows::take_label(std::string_view text) {
  if (sets_.empty()) {
    const LabelForm form = column_.add(text);
    return can_be_label(form) ? "" : form_error(form);
  }
  if (is_text_list(without_blanks(text)) && text.find('\\') != text.npos)
    return "label is a list with backslashes in it, expected plain names";
  const LabelForm form = label_form(text);
  if (!can_be_label(form) && !without_blanks(text).empty()) return form_error(form);
  return sets_.add(text) ? "" : form_error(LabelForm::missing);
}

std::string LabelRows::take_numbers(std::span<const std::string_view> labels) {
  const std::size_t before = list_.values.size();
  for (std::size_t column = 0; column < labels.size(); ++column) {
    const std::string_view text = labels[column];
    if (const auto value = parse_value(text)) {
      list_.values.push_back(*value);
      if (parse_number(text)) rounded_.check(text, *value);
    } else if (missing_ != MissingLabels::reject && is_missing_number(text)) {
      list_.values.push_back(missing_ == MissingLabels::zero ? 0 : std::numeric_limits<float>::quiet_NaN());
      missing_counts_.resize(labels.size());
      ++missing_counts_[column];
    } else {
      list_.values.resize(before);
      return number_error(column, text);
    }
  }
  return "";
}

std::string LabelRows::number_error(std::size_t column, std::string_view text) {
  missing_rejects_ += missing_ == MissingLabels::reject && is_missing_number(text) ? 1 : 0;
  const LabelForm form = label_form(text);
  if (list_.label_columns.size() > 1)
    return "column \"" + list_.label_columns[column] + "\": " + form_error(form);
  return form == LabelForm::name ? "label is not a number, as `label_type` numbers needs" : form_error(form);
}

void LabelRows::finish() {
  const std::vector<std::uint32_t> rows = kept_.empty() ? std::vector<std::uint32_t>() : list_.rows;
  const bool has_numbers = are_numbers();
  const bool is_one = !has_numbers && sets_.empty();
  if (!sets_.empty())
    sets_.finish(list_, labels_are_names_);
  else if (is_one)
    column_.finish(list_, labels_are_names_, label_type_);
  else
    list_.label_kind = LabelKind::numbers;
  if (is_one && std::ranges::any_of(list_.classes, is_text_list))
    list_.notices.emplace_back(
        "labels are lists, each of which is a class of its own; `label_separator` '|' packs them as a 0 or 1 "
        "for each name");
  list_.is_detected = label_type_ == LabelType::automatic && is_one && list_.classes.empty();
  kept_.finish(list_, rows);
  rounded_.add_notice(list_);
  notice_missing();
  if (!has_numbers) notice_na(list_);
  list_.xxh3 = hash_.value();
}

void LabelRows::finish_unlabelled(const std::vector<std::uint32_t>& rows_before) {
  kept_.finish(list_, rows_before);
  list_.xxh3 = hash_.value();
}

void LabelRows::check_missing(const LabelColumns& columns) {
  if (columns.missing == MissingLabels::reject) return;
  if (!columns.label_separator.empty())
    throw_usage("`missing`: is for labels that are numbers; `empty_labels` is for `label_separator`");
  if (columns.label_column.size() == 1 && columns.label_type != LabelType::numbers)
    throw_usage(
        "`missing`: is for labels that are numbers: give several `label_column`, or `label_type` numbers");
}

std::string LabelRows::missing_advice() const {
  if (missing_rejects_ == 0) return "";
  return count_text(missing_rejects_, "row") + (missing_rejects_ == 1 ? " lacks" : " lack") +
         " a label and " + (missing_rejects_ == 1 ? "is" : "are") + " rejected; `missing` 0 or nan packs " +
         (missing_rejects_ == 1 ? "it" : "them");
}

/// Says how many labels are missing. A column of nothing else may be the wrong one.
void LabelRows::notice_missing() {
  if (missing_rejects_ > 0) list_.notices.push_back(missing_advice());
  const auto all = std::accumulate(missing_counts_.begin(), missing_counts_.end(), std::uint64_t{0});
  if (all == 0) return;
  if (all == list_.values.size())
    throw_bad_data("`missing`: found no number, all labels are blank; is it the right `label_column`?");
  const char* const packed = missing_ == MissingLabels::zero ? "0" : "NaN";
  list_.notices.push_back(count_text(all, "label") + (all == 1 ? " is" : " are") + " blank and packed as " +
                          packed);
  for (std::size_t column = 0; column < missing_counts_.size(); ++column)
    if (missing_counts_[column] == list_.size())
      list_.notices.push_back("column \"" + list_.label_columns[column] + "\": all labels are blank");
}

}  // namespace chunkhit
