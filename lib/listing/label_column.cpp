#include "listing/label_column.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>

#include "base/hash.h"
#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {

std::uint32_t TextPool::add(std::string_view text) {
  if ((list_.size() + 1) * 4 > slots_.size() * 3) grow();
  const std::size_t slot = slot_of(text);
  if (slots_[slot] == 0) {
    if (count() == std::numeric_limits<std::uint32_t>::max() - 1)
      throw_bad_data("more than 4294967294 different labels");
    list_.add(text);
    slots_[slot] = count();
  }
  return slots_[slot] - 1;
}

// Returns the slot that holds the text, or the free one where it is to be inserted.
std::size_t TextPool::slot_of(std::string_view text) const {
  std::size_t slot = xxh3(as_bytes(text)) & (slots_.size() - 1);
  while (slots_[slot] != 0 && (*this)[slots_[slot] - 1] != text) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

/// Doubles the table; texts keep their numbers.
void TextPool::grow() {
  slots_.assign(std::max<std::size_t>(64, slots_.size() * 2), 0);
  for (std::uint32_t index = 0; index < count(); ++index) slots_[slot_of((*this)[index])] = index + 1;
}

namespace {

constexpr float kFirstGap = 16777216;  // 2^24: behind it a float skips whole numbers

// pandas writes integers of a column with missing values as 123456789.0.
std::string_view without_zeros(std::string_view text) {
  const std::size_t dot = text.find('.');
  const bool is_whole = dot != text.npos && text.find_first_not_of('0', dot + 1) == text.npos;
  return is_whole ? text.substr(0, dot) : text;
}

}  // namespace

void RoundedNumbers::check(std::string_view text, float value) {
  if (std::abs(value) < kFirstGap) return;
  const auto whole = parse_integer(without_zeros(text));
  // A long double holds 64 bits. A number in another form, 1e30 say, names no whole number digit by digit.
  if (!whole || static_cast<long double>(*whole) == static_cast<long double>(value)) return;
  if (count_++ > 0) return;
  first_ = text;
  first_value_ = value;
}

void RoundedNumbers::add_notice(SampleList& list) const {
  if (count_ == 0) return;
  std::array<char, 64> stored{};
  std::snprintf(stored.data(), stored.size(), "%.0f", static_cast<double>(first_value_));
  list.notices.push_back(count_text(count_, "label") +
                         (count_ == 1 ? " is a whole number" : " are whole numbers") +
                         " that no 32-bit float is equal to: " + first_ + " is packed as " + stored.data());
}

namespace {

constexpr std::size_t kExampleBytes = 40;
constexpr std::uint64_t kFewRows = 100;  // too few to suspect the column of being a key
// So many numbers, and so large a share of all labels, are a column of numbers with some bad cells.
constexpr std::uint64_t kMinNumbers = 10;
constexpr double kNumbersShare = 0.9;

bool are_few(std::uint64_t breaking, std::uint64_t all) { return breaking * 100 < all; }

bool are_nearly_all(std::uint64_t numbers, std::uint64_t all) {
  return numbers >= kMinNumbers && static_cast<double>(numbers) >= kNumbersShare * static_cast<double>(all);
}

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

// pandas writes 7.0 for 7 if the column has missing values.
void notice_whole_numbers(SampleList& list) {
  const bool whole =
      std::all_of(list.values.begin(), list.values.end(), [](float x) { return x == std::trunc(x); });
  if (whole && !list.values.empty())
    list.notices.push_back(
        "column \"" + list.label_columns[0] +
        "\": all labels are whole numbers written as floats and are packed as floats; write them as integers "
        "(7, not 7.0), or give `label_type` classes, to make them class ids");
}

// Several labels in one text make a class of each combination: "cat|dog" beside "cat" and "dog". Names may
// hold blanks themselves: these are suspect where there are far fewer words than classes.
void notice_joined_labels(SampleList& list) {
  for (const char joint : kJoints) {
    std::map<std::string_view, std::uint32_t> uses;
    std::string_view example;
    for (const std::string& name : list.classes) {
      if (name.find(joint) != std::string::npos) example = name;
      for (std::string_view rest = name; !rest.empty();) {
        const std::size_t end = std::min(rest.find(joint), rest.size());
        ++uses[rest.substr(0, end)];
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    const std::size_t uses_of_class = joint == ' ' ? 2 : 1;
    if (example.empty() || uses.size() * uses_of_class >= list.classes.size()) continue;
    list.notices.push_back("column \"" + list.label_columns[0] + "\": " + in_quotes(example) + " is one of " +
                           count_text(list.classes.size()) +
                           " classes; where a sample has several labels, give `label_separator` '" + joint +
                           "'");
    return;
  }
}

// What readers give for a sample without a class.
void notice_no_class(SampleList& list) {
  const auto count = static_cast<std::uint64_t>(std::ranges::count(list.class_ids, std::int64_t{-1}));
  if (count > 0)
    list.notices.push_back("column \"" + list.label_columns[0] + "\": " + count_text(count, "label") +
                           (count == 1 ? " is" : " are") +
                           " -1, which readers give for samples without a class");
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

void LabelColumn::finish(SampleList& list, bool are_names, LabelType type) {
  if (are_names) return finish_names(list);
  if (type == LabelType::classes) take_whole_numbers();
  const std::uint64_t names = count(LabelForm::name);
  const std::uint64_t numbers = count(LabelForm::number);
  const std::uint64_t all = labels_.size();
  const bool are_ids = type == LabelType::classes && names == 0;
  if (are_ids || are_few(names + numbers, all)) return finish_integers(list, type);
  if (are_few(names, all)) return finish_numbers(list);
  if (are_nearly_all(all - names, all)) fail_name(list);
  finish_names(list);
}

std::size_t LabelColumn::capacity_bytes() const {
  return texts_.capacity_bytes() + forms_.capacity() * sizeof forms_[0] +
         labels_.capacity() * sizeof labels_[0];
}

/// Makes whole numbers of 7.0 and its like.
void LabelColumn::take_whole_numbers() {
  for (std::uint32_t text = 0; text < texts_.count(); ++text)
    if (forms_[text] == LabelForm::number && parse_integer(without_zeros(texts_[text])))
      forms_[text] = LabelForm::integer;
  form_counts_ = {};
  for (const std::uint32_t label : labels_) ++form_counts_[static_cast<std::size_t>(forms_[label])];
}

void LabelColumn::finish_integers(SampleList& list, LabelType type) {
  const std::string reason = type == LabelType::classes
                                 ? "label is not a whole number, as `label_type` classes needs"
                                 : "label is not an integer, as the others are";
  reject_form(list, LabelForm::number, reason);
  reject_form(list, LabelForm::name, reason);
  std::vector<std::int64_t> ids(texts_.count());
  for (std::uint32_t text = 0; text < texts_.count(); ++text)
    if (forms_[text] == LabelForm::integer) ids[text] = *parse_integer(without_zeros(texts_[text]));
  list.label_kind = LabelKind::class_id;
  list.class_ids.reserve(labels_.size());
  for (const std::uint32_t label : labels_) list.class_ids.push_back(ids[label]);
  notice_key_column(list,
                    static_cast<std::size_t>(std::count(forms_.begin(), forms_.end(), LabelForm::integer)));
  notice_no_class(list);
  notice_spellings(list, ids);
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
  RoundedNumbers rounded;
  for (std::size_t index = 0; index < labels_.size(); ++index)
    rounded.check(texts_[labels_[index]], list.values[index]);
  rounded.add_notice(list);
  notice_fractions(list);
}

/// Where half of the labels are whole numbers, the others may be mistakes that make floats of class ids.
void LabelColumn::notice_fractions(SampleList& list) const {
  const std::uint64_t others = count(LabelForm::number);
  if (others == 0 || count(LabelForm::integer) * 2 < labels_.size()) return;
  const std::size_t first = first_of(LabelForm::number);
  list.notices.push_back("column \"" + list.label_columns[0] + "\": " + count_text(others, "label") + " of " +
                         count_text(labels_.size()) + " (the first: " + in_quotes(texts_[labels_[first]]) +
                         " of " + std::string(list.file(first)) + (others == 1 ? ") is" : ") are") +
                         " no whole number; all are packed as floats, none is a class id: `label_type` "
                         "numbers says so, classes makes rejects of the former");
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
  notice_joined_labels(list);
  const std::uint64_t numbers = count(LabelForm::integer) + count(LabelForm::number);
  if (numbers > 0 && numbers < labels_.size())
    list.notices.push_back("column \"" + list.label_columns[0] + "\": " + std::to_string(numbers) + " of " +
                           std::to_string(labels_.size()) + " labels are numbers but others are not (" +
                           example(LabelForm::name) + "); all are taken as names of classes");
}

void LabelColumn::reject_form(SampleList& list, LabelForm form, const std::string& reason) {
  if (count(form) == 0) return;
  std::vector<std::size_t> indices;
  std::vector<Reject> rejects;
  for (std::size_t index = 0; index < labels_.size(); ++index) {
    if (forms_[labels_[index]] != form) continue;
    indices.push_back(index);
    rejects.push_back(
        {list.row(index), std::string(list.file(index)), {std::string(texts_[labels_[index]])}, reason});
  }
  reject_samples(list, indices, std::move(rejects));
  std::erase_if(labels_, [&](std::uint32_t label) { return forms_[label] == form; });
}

void LabelColumn::fail_name(const SampleList& list) const {
  const std::size_t first = first_of(LabelForm::name);
  throw_bad_data("column \"" + list.label_columns[0] + "\": label " + in_quotes(texts_[labels_[first]]) +
                 " of row " + std::to_string(list.row(first)) + " (" + std::string(list.file(first)) +
                 ") is no number, but " + count_text(labels_.size() - count(LabelForm::name)) + " of " +
                 count_text(labels_.size()) +
                 " are; mend it, or `classes` FILE takes all labels as names of classes");
}

// Ids are numbers: "01" and "1" are the same class, whatever they were to the program that wrote them.
void LabelColumn::notice_spellings(SampleList& list, const std::vector<std::int64_t>& ids) const {
  std::vector<std::uint32_t> sorted;
  for (std::uint32_t text = 0; text < texts_.count(); ++text)
    if (forms_[text] == LabelForm::integer) sorted.push_back(text);
  std::ranges::sort(sorted, [&](auto a, auto b) { return std::pair(ids[a], a) < std::pair(ids[b], b); });
  const auto is_equal = [&](auto a, auto b) { return ids[a] == ids[b]; };
  const auto first = std::ranges::adjacent_find(sorted, is_equal);
  if (first == sorted.end()) return;
  const std::string both = in_quotes(texts_[first[0]]) + " and " + in_quotes(texts_[first[1]]);
  const std::size_t spellings = sorted.size();
  sorted.erase(std::unique(sorted.begin(), sorted.end(), is_equal), sorted.end());
  list.notices.push_back("column \"" + list.label_columns[0] + "\": labels are read as numbers, so that " +
                         both + " are one class; " + count_text(spellings) + " spellings are " +
                         count_text(sorted.size()) + (sorted.size() == 1 ? " class" : " classes") +
                         " (`classes` FILE takes them as names)");
}

std::size_t LabelColumn::first_of(LabelForm form) const {
  const auto found = std::ranges::find_if(labels_, [&](auto label) { return forms_[label] == form; });
  return static_cast<std::size_t>(found - labels_.begin());
}

std::string LabelColumn::example(LabelForm form) const {
  const auto found = std::find(forms_.begin(), forms_.end(), form);
  return in_quotes(texts_[static_cast<std::uint32_t>(found - forms_.begin())]);
}

}  // namespace chunkhit
