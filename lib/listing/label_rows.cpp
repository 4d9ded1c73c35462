#include "listing/label_rows.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
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
  if (error.empty()) error = labels.size() == 1 ? take_label(labels[0]) : take_numbers(labels);
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
    const auto value = parse_value(labels[column]);
    if (!value) {
      list_.values.resize(before);
      return "column \"" + list_.label_columns[column] + "\": " + form_error(label_form(labels[column]));
    }
    list_.values.push_back(*value);
    if (parse_number(labels[column])) rounded_.check(labels[column], *value);
  }
  return "";
}

void LabelRows::finish() {
  const std::vector<std::uint32_t> rows = kept_.empty() ? std::vector<std::uint32_t>() : list_.rows;
  const bool is_one = list_.label_columns.size() == 1 && sets_.empty();
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
  notice_na(list_);
  list_.xxh3 = hash_.value();
}

void LabelRows::finish_unlabelled(const std::vector<std::uint32_t>& rows_before) {
  kept_.finish(list_, rows_before);
  list_.xxh3 = hash_.value();
}

}  // namespace chunkhit
