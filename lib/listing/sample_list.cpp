#include "listing/sample_list.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

// A column of floats that happen to be whole must not read as a column of class ids.
std::string lone_number_text(float value) {
  std::string text = number_text(value);
  if (parse_integer(text)) text += ".0";
  return text;
}

}  // namespace

std::vector<std::string> SampleList::label_text(std::size_t index) const {
  if (label_kind == LabelKind::class_id) {
    const std::int64_t id = class_ids[index];
    return {classes.empty() ? std::to_string(id) : classes[static_cast<std::size_t>(id)]};
  }
  const std::size_t count = label_columns.size();
  if (count == 1) return {lone_number_text(values[index])};
  std::vector<std::string> texts;
  for (std::size_t column = 0; column < count; ++column)
    texts.push_back(number_text(values[index * count + column]));
  return texts;
}

namespace {

std::uint64_t file_hash(std::string_view file) {
  const bool is_plain = file.find("./") == file.npos && file.find("//") == file.npos;
  return is_plain ? xxh3(as_bytes(file))
                  : xxh3(as_bytes(std::filesystem::path(file).lexically_normal().string()));
}

bool have_equal_labels(const SampleList& list, std::size_t a, std::size_t b) {
  if (list.label_kind == LabelKind::class_id) return list.class_ids[a] == list.class_ids[b];
  const std::size_t columns = list.label_columns.size();
  const float* const values = list.values.data();
  return std::equal(values + a * columns, values + (a + 1) * columns, values + b * columns);
}

}  // namespace

void write_rows(SampleList& list) {
  if (!list.rows.empty()) return;
  list.rows.resize(list.size());
  std::iota(list.rows.begin(), list.rows.end(), 0u);
}

void SampleRows::add(std::string_view file) {
  if (list_.row_count == std::numeric_limits<std::uint32_t>::max())
    throw Error(ErrorCode::bad_data, "more than 4294967295 rows");
  if (list_.row_count != list_.size()) {
    write_rows(list_);
    list_.rows.push_back(static_cast<std::uint32_t>(list_.row_count));
  }
  list_.files.add(file);
  ++list_.row_count;
}

void SampleRows::reject(std::string_view file, std::vector<std::string> labels, std::string reason) {
  list_.rejects.push_back({list_.row_count, std::string(file), std::move(labels), std::move(reason)});
  ++list_.row_count;
}

void TextHash::add(std::string_view text) {
  append_little<std::uint64_t>(buffer_, text.size());
  const Bytes bytes = as_bytes(text);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kBufferBytes) flush();
}

std::uint64_t TextHash::value() {
  flush();
  return stream_.value();
}

void TextHash::flush() {
  stream_.update(buffer_);
  buffer_.clear();
}

std::vector<std::uint32_t> first_samples_of_files(const SampleList& list) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_file(list.size());
  for (std::uint32_t index = 0; index < by_file.size(); ++index)
    by_file[index] = {file_hash(list.file(index)), index};
  std::sort(by_file.begin(), by_file.end());
  const auto is_same = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::adjacent_find(by_file.begin(), by_file.end(), is_same) == by_file.end()) return {};
  std::vector<std::uint32_t> firsts(list.size());
  for (std::size_t at = 0; at < by_file.size(); ++at) {
    const bool repeats = at > 0 && is_same(by_file[at - 1], by_file[at]);
    firsts[by_file[at].second] = repeats ? firsts[by_file[at - 1].second] : by_file[at].second;
  }
  return firsts;
}

void notice_repeated_files(SampleList& list) {
  const std::vector<std::uint32_t> firsts = first_samples_of_files(list);
  std::size_t repeated = 0;
  std::set<std::uint32_t> with_other_labels;
  for (std::uint32_t index = 0; index < firsts.size(); ++index) {
    if (firsts[index] == index) continue;
    ++repeated;
    if (!have_equal_labels(list, index, firsts[index])) with_other_labels.insert(firsts[index]);
  }
  if (repeated == 0) return;
  std::string notice = std::to_string(repeated) + " of " + std::to_string(list.size()) +
                       " rows name a file that another row names too";
  if (!with_other_labels.empty())
    notice += "; " + count_text(with_other_labels.size(), "file") +
              (with_other_labels.size() == 1 ? " has" : " have") +
              " different labels: " + std::string(list.file(*with_other_labels.begin()));
  if (with_other_labels.size() > 1) notice += ", …";
  list.notices.push_back(std::move(notice));
}

}  // namespace chunkhit
