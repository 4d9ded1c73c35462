#include "manifest/id_list.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

constexpr std::size_t kWrittenBytes = 1 << 20;
constexpr std::ptrdiff_t kOwnFields = 3;  // before the kept columns

}  // namespace

IdListWriter::IdListWriter(const std::string& folder, std::string_view name, std::string_view header,
                           std::span<const PackColumn> kept)
    : name_(name), file_(folder + "/" + name_), text_(header) {
  for (const PackColumn& column : kept) append_csv_field(text_ += ',', column.name);
  text_ += '\n';
}

void IdListWriter::add(std::uint64_t ratings, std::string_view id, std::span<const std::string> kept) {
  text_ += std::to_string(count_++) + ',' + std::to_string(ratings) + ',';
  append_csv_field(text_, id);
  for (const std::string& value : kept) append_csv_field(text_ += ',', value);
  end_line();
}

void IdListWriter::add_unseen(std::string_view id) {
  append_csv_field(text_ += ",0,", id);
  end_line();
}

void IdListWriter::end_line() {
  text_ += '\n';
  if (text_.size() >= kWrittenBytes) write();
}

CompleteList IdListWriter::complete() {
  write();
  file_.flush();
  const FileRecord record{name_, file_.byte_count(), hash_.value()};
  return {record, std::move(file_)};
}

void IdListWriter::write() {
  hash_.update(as_bytes(text_));
  file_.append(as_bytes(text_));
  text_.clear();
}

IdListReader::IdListReader(std::string name, ByteSource source, std::string_view header)
    : rows_(std::move(name), std::move(source), ','), header_(header) {
  std::string found;
  if (rows_.next_row(fields_) && fields_.size() >= kOwnFields) {
    found = joined(std::span(fields_).first(kOwnFields), ",");
    kept_names_.assign(fields_.begin() + kOwnFields, fields_.end());
  }
  if (found != header_)
    throw_bad_data(rows_.name() + ": expected " +
                   (header == kItemsHeader ? "an items.csv (" : "a users.csv (") + std::string(header_) +
                   ")");
}

bool IdListReader::next() {
  if (!rows_.next_row(fields_)) return false;
  // A list that was cut or edited is noticed here: columns count up without a gap.
  const bool is_unseen = takes_unseen_ && !fields_.empty() && fields_[0].empty();
  if (fields_.size() != kOwnFields + kept_names_.size() ||
      (!is_unseen && fields_[0] != std::to_string(count_)))
    fail("expected " + std::string(header_.substr(0, header_.find(','))) + " " + std::to_string(count_) +
         ", its ratings and its " + std::string(header_.substr(header_.rfind(',') + 1)));
  if (!parse_all(fields_[1], ratings_))
    fail("ratings: expected a count, found \"" + std::string(fields_[1]) + '"');
  if (is_unseen && ratings_ != 0)
    fail("ratings: expected 0 for an item without a column, found " + std::to_string(ratings_));
  count_ += is_unseen ? 0 : 1;
  return true;
}

void IdListReader::fail(const std::string& what) const {
  throw_bad_data(rows_.name() + ":" + std::to_string(rows_.line()) + ": " + what);
}

std::vector<std::uint64_t> parse_item_counts(std::string_view text, const std::string& path,
                                             std::uint64_t column_count) {
  IdListReader items(path, source_of(text));
  std::vector<std::uint64_t> counts;
  while (items.next()) counts.push_back(items.ratings());
  if (counts.size() != column_count)
    throw_bad_data(path + ": " + std::to_string(counts.size()) + " items, expected " +
                   std::to_string(column_count));
  return counts;
}

SampleColumn parse_kept_column(std::string_view text, const std::string& path, std::string_view header,
                               std::span<const PackColumn> kept, std::size_t index, std::uint64_t count) {
  IdListReader list(path, source_of(text), header);
  if (!std::ranges::equal(list.kept_names(), kept, {}, {}, &PackColumn::name))
    throw_bad_data(path + ": has other columns than its manifest says");
  SampleColumn column = empty_column(kept[index]);
  while (list.next())
    if (!column.append_text(list.kept()[index]))
      list.fail("column \"" + column.name + "\": expected " + name_of(column.type()) + ", found \"" +
                printable_text(list.kept()[index]) + '"');
  if (column.size() != count)
    throw_bad_data(path + ": " + std::to_string(column.size()) + " rows, expected " + std::to_string(count));
  return column;
}

}  // namespace chunkhit
