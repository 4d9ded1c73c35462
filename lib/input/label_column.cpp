#include "input/label_column.h"

#include <algorithm>
#include <cmath>

#include "input/sample_rows.h"

namespace chunkhit {
namespace {

constexpr std::size_t kExampleBytes = 40;
constexpr std::uint64_t kFewRows = 100;  // too few to suspect the column of being a key

bool are_few(std::uint64_t breaking, std::uint64_t all) { return breaking * 100 < all; }

std::string in_quotes(std::string_view text) {
  if (text.size() <= kExampleBytes) return '"' + std::string(text) + '"';
  std::size_t end = kExampleBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return '"' + std::string(text.substr(0, end)) + "…\"";
}

void notice_key_column(SampleList& list, std::size_t different_count) {
  if (list.size() < kFewRows || different_count * 2 < list.size()) return;
  list.notices.push_back("column \"" + list.label_columns[0] + "\": " + std::to_string(different_count) +
                         " different classes for " + std::to_string(list.size()) +
                         " samples; is it the right column?");
}

// A column that went through a program without integers with gaps (pandas) reads 7.0 where 7 was meant.
void notice_whole_numbers(SampleList& list) {
  const bool whole =
      std::all_of(list.values.begin(), list.values.end(), [](float x) { return x == std::trunc(x); });
  if (whole)
    list.notices.push_back(
        "column \"" + list.label_columns[0] +
        "\": all labels are whole numbers written as floats and are packed as floats; write them as "
        "integers (7, not 7.0) to make them class ids");
}

}  // namespace

LabelForm LabelColumn::add(std::string_view text) {
  const std::uint32_t label = texts_.add(text);
  if (label == forms_.size()) forms_.push_back(label_form(text));
  const LabelForm form = forms_[label];
  if (!can_be_label(form)) return form;
  labels_.push_back(label);
  ++form_counts_[static_cast<std::size_t>(form)];
  return form;
}

void LabelColumn::finish(SampleList& list, bool are_names) {
  if (are_names) return finish_names(list);
  const std::uint64_t names = count(LabelForm::name);
  const std::uint64_t numbers = count(LabelForm::number);
  const std::uint64_t all = labels_.size();
  if (are_few(names + numbers, all)) return finish_integers(list);
  if (are_few(names, all)) return finish_numbers(list);
  finish_names(list);
}

std::size_t LabelColumn::capacity_bytes() const {
  return texts_.capacity_bytes() + forms_.capacity() * sizeof forms_[0] +
         labels_.capacity() * sizeof labels_[0];
}

void LabelColumn::finish_integers(SampleList& list) {
  reject_form(list, LabelForm::number, "label is not an integer, as the others are");
  reject_form(list, LabelForm::name, "label is not an integer, as the others are");
  std::vector<std::int64_t> ids(texts_.count());
  for (std::uint32_t text = 0; text < texts_.count(); ++text)
    if (forms_[text] == LabelForm::integer) ids[text] = *parse_integer(texts_[text]);
  list.label_kind = LabelKind::class_id;
  list.class_ids.reserve(labels_.size());
  for (const std::uint32_t label : labels_) list.class_ids.push_back(ids[label]);
  notice_key_column(list,
                    static_cast<std::size_t>(std::count(forms_.begin(), forms_.end(), LabelForm::integer)));
}

void LabelColumn::finish_numbers(SampleList& list) {
  reject_form(list, LabelForm::name, "label is not a number, as the others are");
  std::vector<float> numbers(texts_.count());
  for (std::uint32_t text = 0; text < texts_.count(); ++text)
    if (is_number(forms_[text])) numbers[text] = *parse_number(texts_[text]);
  list.label_kind = LabelKind::numbers;
  list.values.reserve(labels_.size());
  for (const std::uint32_t label : labels_) list.values.push_back(numbers[label]);
  notice_whole_numbers(list);
}

void LabelColumn::finish_names(SampleList& list) {
  std::vector<std::uint32_t> sorted;
  for (std::uint32_t text = 0; text < texts_.count(); ++text)
    if (can_be_label(forms_[text])) sorted.push_back(text);
  std::sort(sorted.begin(), sorted.end(), [this](auto a, auto b) { return texts_[a] < texts_[b]; });
  std::vector<std::uint32_t> ids(texts_.count());
  for (std::uint32_t id = 0; id < sorted.size(); ++id) {
    ids[sorted[id]] = id;
    list.classes.emplace_back(texts_[sorted[id]]);
  }
  list.label_kind = LabelKind::class_id;
  list.class_ids.reserve(labels_.size());
  for (const std::uint32_t label : labels_) list.class_ids.push_back(ids[label]);
  notice_key_column(list, list.classes.size());
  const std::uint64_t numbers = count(LabelForm::integer) + count(LabelForm::number);
  if (numbers > 0 && numbers < labels_.size())
    list.notices.push_back("column \"" + list.label_columns[0] + "\": " + std::to_string(numbers) + " of " +
                           std::to_string(labels_.size()) + " labels are numbers but others are not (" +
                           example(LabelForm::name) + "); all are taken as names of classes");
}

void LabelColumn::reject_form(SampleList& list, LabelForm form, const std::string& reason) {
  if (count(form) == 0) return;
  write_rows(list);
  std::size_t kept = 0;
  std::uint64_t begin = 0;
  std::uint64_t kept_end = 0;
  for (std::size_t index = 0; index < labels_.size(); ++index) {
    const std::string_view file = std::string_view(list.text).substr(begin, list.name_ends[index] - begin);
    begin = list.name_ends[index];
    if (forms_[labels_[index]] == form) {
      list.rejects.push_back(
          {list.rows[index], std::string(file), {std::string(texts_[labels_[index]])}, reason});
      continue;
    }
    std::char_traits<char>::move(list.text.data() + kept_end, file.data(), file.size());
    kept_end += file.size();
    list.name_ends[kept] = kept_end;
    list.rows[kept] = list.rows[index];
    labels_[kept++] = labels_[index];
  }
  list.text.resize(kept_end);
  list.name_ends.resize(kept);
  list.rows.resize(kept);
  labels_.resize(kept);
  std::sort(list.rejects.begin(), list.rejects.end(),
            [](const auto& a, const auto& b) { return a.row < b.row; });
}

std::string LabelColumn::example(LabelForm form) const {
  const auto found = std::find(forms_.begin(), forms_.end(), form);
  return in_quotes(texts_[static_cast<std::uint32_t>(found - forms_.begin())]);
}

}  // namespace chunkhit
