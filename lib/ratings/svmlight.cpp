#include "ratings/svmlight.h"

#include <algorithm>

#include "ratings/matrix_market.h"
#include "ratings/rating_fields.h"
#include "ratings/rating_text.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMaxSvmlightLineBytes = std::size_t{64} << 20;
constexpr std::string_view kGroupMark = "qid:";

}  // namespace

SvmlightReader::SvmlightReader(std::vector<std::string> paths, bool rounds_values,
                               std::unique_ptr<TextStream> opened)
    : paths_(std::move(paths)),
      rounds_values_(rounds_values),
      opened_(std::move(opened)),
      collector_(paths_.size() == 1 ? paths_[0] : "svmlight", {}, {}, false) {
  if (open_next() && paths_.size() == 1) text_bytes_ = lines_->byte_count();
}

bool SvmlightReader::next(RatingBlock& block) {
  collector_.begin(block);
  while (block.line_count == 0 && (lines_ != nullptr || open_next())) read_lines(block);
  const bool has_ratings = collector_.finish();
  block.kept_bytes = labels_.memory_bytes();
  if (has_ratings || block.line_count > 0) return true;
  detect_shape();
  return false;
}

bool SvmlightReader::open_next() {
  if (next_path_ == paths_.size()) return false;
  const std::string& path = paths_[next_path_++];
  lines_ = path == "-" && opened_ ? std::make_unique<LineReader>(std::move(opened_), kMaxSvmlightLineBytes)
                                  : std::make_unique<LineReader>(path, kMaxSvmlightLineBytes);
  return true;
}

/// Reads until the block is full or the file ends.
void SvmlightReader::read_lines(RatingBlock& block) {
  const auto is_full = [&] {
    return collector_.is_full() || (!block.bad_lines.empty() && block.line_count >= kBlockRatings);
  };
  std::string_view line;
  const std::uint64_t before = lines_->bytes_done();
  while (!is_full()) {
    if (!lines_->next(line)) {
      block.text_bytes += lines_->bytes_done() - before;
      lines_.reset();
      return;
    }
    ++block.line_count;
    const std::string_view data = line.substr(0, line.find('#'));
    if (data.find_first_not_of(" \t") != std::string_view::npos)
      read_row(data, block);
    else
      ++(data.size() == line.size() ? block.blank_lines : block.comment_lines);
  }
  block.text_bytes += lines_->bytes_done() - before;
}

void SvmlightReader::read_row(std::string_view line, RatingBlock& block) {
  row_.clear();
  row_labels_.clear();
  row_group_ = RowLabels::kNoGroup;
  if (!parse_row(line)) {
    add_bad_line(block, lines_->line_number(), error_column_, error_, line);
    // The row stays, without entries: the numbers of the rows behind it must not depend on bad lines.
    row_.clear();
    row_labels_.clear();
    row_group_ = RowLabels::kNoGroup;
  }
  for (const Entry& entry : row_) collector_.add(row_count_, entry.index, entry.value);
  if (!row_.empty()) {
    lowest_index_ = std::min(lowest_index_, row_.front().index);
    highest_index_ = std::max(highest_index_, row_.back().index);
  }
  keep_labels();
  ++row_count_;
}

bool SvmlightReader::parse_row(std::string_view line) {
  FieldCursor fields(line);
  std::string_view field = fields.next();
  if (field.find(':') == std::string_view::npos) {  // else the row has no label
    if (!parse_labels(field, fields.column())) return false;
    field = fields.next();
  }
  if (field.starts_with(kGroupMark)) {
    if (!parse_group(field.substr(kGroupMark.size()), fields.column() + kGroupMark.size())) return false;
    field = fields.next();
  }
  for (; !field.empty(); field = fields.next())
    if (!parse_entry(field, fields.column())) return false;
  return true;
}

bool SvmlightReader::parse_labels(std::string_view field, std::uint64_t column) {
  for (std::size_t begin = 0; begin <= field.size();) {
    const std::size_t end = std::min(field.find(',', begin), field.size());
    const std::string_view text = field.substr(begin, end - begin);
    float label = 0;
    if (!parse_value(text, label)) return fail_at(column + begin, "label: expected a finite number", text);
    row_labels_.push_back(label);
    begin = end + 1;
  }
  return true;
}

bool SvmlightReader::parse_group(std::string_view text, std::uint64_t column) {
  if (parse_integer_id(text, row_group_) && row_group_ != RowLabels::kNoGroup) return true;
  return fail_at(column, "qid: expected a whole number of 64 bits", text);
}

bool SvmlightReader::parse_entry(std::string_view field, std::uint64_t column) {
  const std::size_t colon = field.find(':');
  if (colon == std::string_view::npos) return fail_at(column, "expected index:value", field);
  const std::string_view index_text = field.substr(0, colon);
  const auto index = parse_count(index_text);
  if (!index) return fail_at(column, "index: expected a whole number from 0", index_text);
  if (!row_.empty() && *index <= row_.back().index)
    return fail_at(column, "index: expected one above that before it", index_text);
  const std::string_view value_text = field.substr(colon + 1);
  float value = 0;
  if (!parse_value(value_text, value))
    return fail_at(column + colon + 1, "value: expected a finite number", value_text);
  if (!rounds_values_ && !keeps_value(value_text, value))
    return fail_at(column + colon + 1, (std::string("value: expected ") + kKeptValue).c_str(), value_text);
  row_.push_back({*index, value});
  return true;
}

bool SvmlightReader::fail_at(std::uint64_t column, const char* expected, std::string_view found) {
  error_column_ = column;
  error_ = {std::string(expected), found_text(found)};
  return false;
}

// Groups are kept from the first row that has one: most files have none.
void SvmlightReader::keep_labels() {
  labels_.values.insert(labels_.values.end(), row_labels_.begin(), row_labels_.end());
  labels_.ends.push_back(labels_.values.size());
  if (row_group_ != RowLabels::kNoGroup) labels_.groups.resize(row_count_, RowLabels::kNoGroup);
  if (!labels_.groups.empty() || row_group_ != RowLabels::kNoGroup) labels_.groups.push_back(row_group_);
}

void SvmlightReader::detect_shape() {
  if (!facts_.notices.empty()) return;
  const bool has_entries = lowest_index_ != UINT64_MAX;
  const int base = lowest_index_ == 0 ? 0 : 1;
  facts_.user_count = row_count_;
  facts_.first_item = base;
  facts_.item_count = has_entries ? highest_index_ + 1 - static_cast<std::uint64_t>(base) : 0;
  facts_.notices.push_back(base == 0 ? "the first column is taken as 0, because index 0 occurs"
                                     : "the first column is taken as 1, because no index 0 occurs");
}

}  // namespace chunkhit
