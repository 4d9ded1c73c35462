#include "manifest/id_list.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kWrittenBytes = 1 << 20;

}  // namespace

IdListWriter::IdListWriter(const std::string& folder, std::string_view name, std::string_view header)
    : name_(name), file_(folder + "/" + name_), text_(header) {}

void IdListWriter::add(std::uint64_t ratings, std::string_view id) {
  text_ += std::to_string(count_++) + ',' + std::to_string(ratings) + ',';
  append_csv_field(text_, id);
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
    : rows_(std::move(name), std::move(source), ','), header_(header.substr(0, header.size() - 1)) {
  std::string found;
  if (rows_.next_row(fields_))
    for (const std::string_view field : fields_) found.append(found.empty() ? "" : ",").append(field);
  if (found != header_)
    throw Error(ErrorCode::bad_data, rows_.name() + ": expected " +
                                         (header == kItemsHeader ? "an items.csv (" : "a users.csv (") +
                                         std::string(header_) + ")");
}

bool IdListReader::next() {
  if (!rows_.next_row(fields_)) return false;
  // A list that was cut or edited is noticed here: columns count up without a gap.
  if (fields_.size() != 3 || fields_[0] != std::to_string(count_))
    fail("expected " + std::string(header_.substr(0, header_.find(','))) + " " + std::to_string(count_) +
         ", its ratings and its " + std::string(header_.substr(header_.rfind(',') + 1)));
  const char* const end = fields_[1].data() + fields_[1].size();
  const auto [stop, error] = std::from_chars(fields_[1].data(), end, ratings_);
  if (error != std::errc() || stop != end)
    fail("ratings: expected a count, found \"" + std::string(fields_[1]) + '"');
  ++count_;
  return true;
}

void IdListReader::fail(const std::string& what) const {
  throw Error(ErrorCode::bad_data, rows_.name() + ":" + std::to_string(rows_.line()) + ": " + what);
}

std::vector<std::uint64_t> parse_item_counts(std::string_view text, const std::string& path,
                                             std::uint64_t column_count) {
  IdListReader items(path, [&](MutableBytes out) {
    const std::size_t count = std::min(out.size(), text.size());
    std::copy_n(text.begin(), count, out.begin());
    text.remove_prefix(count);
    return count;
  });
  std::vector<std::uint64_t> counts;
  while (items.next()) counts.push_back(items.ratings());
  if (counts.size() != column_count)
    throw Error(ErrorCode::bad_data, path + ": " + std::to_string(counts.size()) + " items, expected " +
                                         std::to_string(column_count));
  return counts;
}

}  // namespace chunkhit
