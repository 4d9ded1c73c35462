#include "pack/ratings/column_table.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/line_reader.h"
#include "base/text.h"
#include "base/text_stream.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "listing/kept_columns.h"
#include "manifest/id_list.h"
#include "ratings/rating_names.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMaxColumns = 1024;
constexpr std::size_t kMinRowsOfShare = 10;  // of fewer rows one is enough
constexpr std::uint64_t kMinShare = 100;     // one id in so many must be in common
constexpr std::size_t kRowsBetweenChecks = 1 << 14;

[[noreturn]] void refuse(const CsvReader& table, const std::string& what) {
  throw_bad_data(table.name() + ":" + std::to_string(table.line()) + ": " + what);
}

/// Whether a header is that of a pack's own items.csv or users.csv, with kept columns behind it.
bool is_pack_list(std::span<const std::string_view> header) {
  const std::string first = joined(header.first(std::min<std::size_t>(3, header.size())), ",");
  return first == kItemsHeader || first == kUsersHeader;
}

/// "::", or the delimiter that the first line has most often, of equally frequent ones the first: a comma.
std::string detect_delimiter(std::string_view text) {
  const std::string_view header = text.substr(0, text.find('\n'));
  const auto count = [&](char each) { return std::ranges::count(header, each); };
  const auto has_fewer = [&](char one, char other) { return count(one) < count(other); };
  const char most = std::max({',', '\t', ';', '|'}, has_fewer);
  std::ptrdiff_t pairs = 0;
  for (std::size_t at = header.find("::"); at != std::string_view::npos; at = header.find("::", at + 2))
    ++pairs;
  return pairs > 0 && pairs >= count(most) ? "::" : std::string(1, most);
}

std::string in_quotes(std::string_view text) { return '"' + printable_text(text) + '"'; }

/// Gives the lines of a table as CSV, for delimiters of several characters and quotes that are letters.
class LinesAsCsv {
 public:
  LinesAsCsv(std::unique_ptr<TextStream> stream, std::string delimiter, TextQuoting quoting)
      : lines_(std::move(stream), CsvReader::kMaxRowBytes),
        delimiter_(std::move(delimiter)),
        quoting_(quoting == TextQuoting::double_quote ? quoting : TextQuoting::none) {}
  std::size_t read(MutableBytes out) {
    if (at_ == text_.size()) read_line();
    const std::size_t count = std::min(out.size(), text_.size() - at_);
    std::copy_n(text_.begin() + static_cast<std::ptrdiff_t>(at_), count, out.begin());
    at_ += count;
    return count;
  }

 private:
  void read_line() {
    at_ = 0;
    text_.clear();
    std::string_view line;
    if (!lines_.next(line)) return;
    for (const std::string& field : all_fields(line, delimiter_, quoting_)) {
      append_csv_field(text_, field);
      text_ += ',';
    }
    if (!text_.empty()) text_.pop_back();
    text_ += '\n';
  }

  LineReader lines_;
  std::string delimiter_;
  TextQuoting quoting_;
  std::string text_;  // of a line
  std::size_t at_ = 0;
};

}  // namespace

ColumnTable::ColumnTable(const std::string& path, ColumnTableUse use) : use_(std::move(use)) {
  auto stream = std::make_unique<TextStream>(path, nullptr, use_.is_latin1);
  name_ = stream->name();
  if (as_text(stream->head()).starts_with("{\""))
    throw_bad_data(
        name_ +
        ": holds JSON, expected a table; of JSON lines: (echo asin,title; jq -r '[.asin, .title] | "
        "@csv' FILE) > items.csv");
  const std::string delimiter = detect_delimiter(as_text(stream->head()));
  const double all = static_cast<double>(stream->byte_count().value_or(0));
  std::uint64_t taken = 0;
  std::function<std::size_t(MutableBytes)> source = [&](MutableBytes out) { return stream->read(out); };
  std::optional<LinesAsCsv> lines;
  const bool is_csv = delimiter.size() == 1 && use_.quoting != TextQuoting::none;
  if (!is_csv) {
    lines.emplace(std::move(stream), delimiter, use_.quoting);
    source = [&](MutableBytes out) { return lines->read(out); };
  }
  CsvReader table(
      name_,
      [&](MutableBytes out) {
        const std::size_t count = source(out);
        taken += count;
        return count;
      },
      is_csv ? delimiter[0] : ',');
  table.advise("; double a quote inside a quoted field, or give `table_quote` none where quotes are letters");
  read_rows(table, [&] { return all > 0 ? std::min(0.999, static_cast<double>(taken) / all) : 0.0; });
}

void ColumnTable::read_rows(CsvReader& table, const std::function<double()>& share) {
  std::vector<std::string_view> fields;
  if (!table.next_row(fields)) throw_bad_data(name_ + ": is empty, expected a header line");
  const bool has_header = use_.header != TableHeader::no;
  std::vector<std::string> numbers;
  for (std::size_t field = 1; field <= fields.size(); ++field) numbers.push_back(std::to_string(field));
  read_header(table, has_header ? fields : std::vector<std::string_view>(numbers.begin(), numbers.end()));
  Xxh3Stream hash;
  hash.update(as_bytes(header_text_));
  for (bool is_row = !has_header || table.next_row(fields); is_row; is_row = table.next_row(fields)) {
    add_row(table, fields);
    hash.update(as_bytes(row_text(row_count() - 1)));
    if (row_count() % kRowsBetweenChecks == 0) check_memory(share());
  }
  xxh3_ = hash.value();
  check_memory(1);
  if (row_count() == 0) throw_bad_data(name_ + ": holds no rows below its header");
}

/// Finds the ids: in the column that is named as in the ratings, letters' case and dashes aside, else in one
/// with a usual name, else in the first.
std::size_t ColumnTable::find_ids(std::span<const std::string_view> header) const {
  if (use_.header == TableHeader::no) return 0;
  if (is_pack_list(header)) return 2;
  for (const bool is_exact : {true, false})
    for (std::size_t field = 0; field < header.size() && !use_.id_name.empty(); ++field)
      if (is_exact ? header[field] == use_.id_name : plain_name(header[field]) == plain_name(use_.id_name))
        return field;
  return find_usual_column(header, use_.field).value_or(0);
}

void ColumnTable::read_header(const CsvReader& table, std::span<const std::string_view> header) {
  const char* const hint =
      use_.header == TableHeader::automatic ? "; `table_header` no where this line is a row" : "";
  const bool of_pack = is_pack_list(header);
  id_field_ = find_ids(header);
  id_column_ = header[id_field_];
  if (id_column_.empty())
    refuse(table, "the column of ids has no name; pandas writes its index so, unless index=False is given");
  field_count_ = header.size();
  append_csv_field(header_text_, id_column_);
  for (std::size_t field = of_pack ? 3 : 0; field < header.size(); ++field) {
    if (field == id_field_) continue;
    const std::string name(header[field]);
    if (name.empty()) refuse(table, "column " + std::to_string(field + 1) + " has no name" + hint);
    if (const std::string problem = kept_text_problem(name, name); !problem.empty()) refuse(table, problem);
    if (std::ranges::find(columns_, name, &Column::name) != columns_.end())
      refuse(table, "two columns are named " + in_quotes(name) + hint);
    kept_fields_.push_back(field);
    columns_.push_back({name, {}, {}, {}});
    append_csv_field(header_text_ += ',', name);
  }
  header_text_ += '\n';
  if (columns_.empty() || columns_.size() > kMaxColumns)
    refuse(table, "expected the " + use_.things + "s' ids (" + in_quotes(id_column_) + ") and 1 to " +
                      count_text(kMaxColumns) + " further columns, found " + count_text(columns_.size()) +
                      "; columns stand between commas, tabs, semicolons, bars or ::");
}

void ColumnTable::add_row(const CsvReader& table, std::span<const std::string_view> fields) {
  if (fields.size() != field_count_)
    refuse(table,
           "row has " + count_text(fields.size(), "field") + ", expected " + count_text(field_count_) +
               " as in the first line; quote fields that hold the delimiter, or give `table_quote` none " +
               "where quotes are letters");
  const std::string_view id = fields[id_field_];
  if (is_missing_id(id) || !is_utf8(id) || id.find('\0') != std::string_view::npos)
    refuse(table, use_.things + ": expected an id, found " + in_quotes(id));
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    const std::string_view text = fields[kept_fields_[column]];
    if (const std::string problem = kept_text_problem(columns_[column].name, text); !problem.empty())
      refuse(table, problem + (is_utf8(text) ? "" : "; `encoding` latin-1 reads ISO 8859-1"));
    columns_[column].by_row.push_back(columns_[column].texts.add(text));
  }
  const std::size_t row = row_count();
  if (ids_.add(id) != row)
    refuse(table, use_.things + " " + in_quotes(id) + " has a row already; ids are in column " +
                      in_quotes(id_column_));
  id_text_bytes_ += id.size();
}

void ColumnTable::check_header(std::string_view id) const {
  if (use_.header != TableHeader::automatic || id != id_column_) return;
  throw_bad_data(name_ + ": line 1: its field of the ids is " + in_quotes(id) + ", which is a" +
                 (use_.things == "item" ? "n item" : " user") +
                 " of the ratings; `table_header` no takes the line as a row, yes as a header");
}

void ColumnTable::check_id_column(const std::string& name_in_ratings) const {
  if (use_.header == TableHeader::no || id_column_ == name_in_ratings ||
      std::ranges::find(columns_, name_in_ratings, &Column::name) == columns_.end())
    return;
  throw_usage(use_.flag + ": " + name_ + ": its column " + in_quotes(id_column_) +
              " was taken for the ids, but the ratings have them in " + in_quotes(name_in_ratings) +
              ": give `" + use_.things + "` " + name_in_ratings);
}

std::uint64_t ColumnTable::held_bytes() const {
  std::uint64_t bytes = ids_.memory_bytes();
  for (const Column& column : columns_)
    bytes += column.texts.capacity_bytes() + column.by_row.capacity() * sizeof(column.by_row[0]);
  return bytes;
}

void ColumnTable::check_memory(double share) const {
  if (use_.memory == nullptr) return;
  BesideIds listed;
  listed.listed_ids = row_count();
  listed.column_bytes = held_bytes();
  const ReadShare read{name_, share > 0 ? std::optional(share) : std::nullopt};
  use_.memory->check_listed(use_.flag, listed, read);
}

std::string ColumnTable::row_text(std::size_t row) const {
  std::string text;
  append_csv_field(text, id(row));
  for (const Column& column : columns_) append_csv_field(text += ',', column.texts[column.by_row[row]]);
  return text += '\n';
}

/// Ids without a row have the number behind the last row.
void ColumnTable::decide_types(bool has_missing) {
  for (Column& column : columns_) {
    if (has_missing) column.by_row.push_back(column.texts.add(""));
    column.values = kept_values(column.name, column.texts);
  }
}

std::vector<PackColumn> ColumnTable::types() const {
  std::vector<PackColumn> types;
  for (const Column& column : columns_) types.push_back({column.name, column.values.type()});
  return types;
}

void ColumnTable::value_texts(std::size_t row, std::vector<std::string>& texts) const {
  texts.clear();
  for (const Column& column : columns_) texts.push_back(column.values.value_text(column.by_row[row]));
}

void ColumnTable::append_to(std::vector<SampleColumn>& columns, std::size_t row) const {
  for (std::size_t column = 0; column < columns_.size(); ++column)
    columns[column].append(columns_[column].values, columns_[column].by_row[row]);
}

ColumnTables ColumnTables::read(const PackSparseSpec& spec, const IdColumnNames& names,
                                const SparseMemory* memory) {
  ColumnTables columns;
  ColumnTableUse use{"`item_columns`", "item",
                     names.item,       RatingField::item,
                     memory,           spec.table_header,
                     spec.table_quote, spec.input.encoding == TextEncoding::latin1};
  if (!spec.item_columns.empty()) columns.items.emplace(spec.item_columns, use);
  use.flag = "`user_columns`", use.things = "user", use.id_name = names.user, use.field = RatingField::user;
  if (!spec.user_columns.empty()) columns.users.emplace(spec.user_columns, use);
  return columns;
}

void ColumnTables::check_id_columns(const IdColumnNames& names) const {
  if (items) items->check_id_column(names.item);
  if (users) users->check_id_column(names.user);
}

void ColumnTables::check_headers(const IdMap& user_ids, const IdMap& item_ids) const {
  if (items && item_ids.find(items->id_column()) < item_ids.size()) items->check_header(items->id_column());
  if (users && user_ids.find(users->id_column()) < user_ids.size()) users->check_header(users->id_column());
}

void ColumnTables::record(RecordedIds& recorded) const {
  if (items) recorded.item_columns = hash_text(items->xxh3());
  if (users) recorded.user_columns = hash_text(users->xxh3());
}

std::uint64_t ColumnTables::held_bytes() const {
  return (items ? items->held_bytes() : 0) + (users ? users->held_bytes() : 0);
}

namespace {

/// Which rows of a table are used, and which ids of the packs have none.
class RowUse {
 public:
  explicit RowUse(const ColumnTable& table) : table_(table), is_used_(table.row_count()) {}
  void add(std::string_view id) {
    const std::size_t row = table_.find(id);
    if (row < is_used_.size())
      is_used_[row] = true;
    else
      ++without_row_;
  }
  [[nodiscard]] bool has_missing() const { return without_row_ > 0; }
  [[nodiscard]] ColumnTableStats stats() const {
    const auto unused = static_cast<std::uint64_t>(std::ranges::count(is_used_, false));
    return {std::filesystem::path(table_.name()).filename().string(), is_used_.size(), unused, without_row_};
  }
  /// Throws bad_data where hardly an id is in common: most likely the ids are in another column, or written
  /// otherwise. A large table may go with few ratings, so that the smaller side counts.
  void require_common(const std::string& example) const {
    const auto used = static_cast<std::uint64_t>(std::ranges::count(is_used_, true));
    const std::uint64_t ids = used + without_row_;
    const std::uint64_t least =
        is_used_.size() < kMinRowsOfShare ? 1 : std::min<std::uint64_t>(is_used_.size(), ids) / kMinShare;
    if (used >= std::max<std::uint64_t>(1, least)) return;
    const ColumnTableUse& use = table_.use();
    const std::string named =
        use.id_name.empty() ? "" : "named " + in_quotes(use.id_name) + " as in the ratings, else one ";
    throw_bad_data(table_.name() + ": column " + in_quotes(table_.id_column()) + " has " + count_text(used) +
                   " of the " + count_text(ids, use.things.c_str()) + " of the ratings: found ids such as " +
                   in_quotes(table_.id(0)) + ", expected such as " + in_quotes(example) + "; a column " +
                   named + "with a usual name, else the first one, holds the ids");
  }

 private:
  const ColumnTable& table_;
  std::vector<bool> is_used_;
  std::uint64_t without_row_ = 0;
};

/// Whether a user of the ratings that were read, also of those that no pack has, is not in the table.
bool lacks_users(const ColumnTable& table, const IdMap& users) {
  for (std::uint32_t user = 0; user < users.size(); ++user)
    if (table.find(users.text(user)) == table.row_count()) return true;
  return false;
}

}  // namespace

void ColumnTables::finish(std::span<const std::string> item_ids, const IdMap& all_users,
                          const RatingPacks& packs, RatingStats& stats) {
  if (items) {
    RowUse use(*items);
    for (const std::string& id : item_ids) use.add(id);
    use.require_common(item_ids.front());
    stats.item_columns = use.stats();
    items->decide_types(use.has_missing());
  }
  if (!users) return;
  RowUse use(*users);
  std::vector<bool> is_packed(all_users.size());
  for (const PackRows& rows : packs.packs)
    for (const std::uint32_t user : rows.users()) is_packed[user] = true;
  for (std::uint32_t user = 0; user < all_users.size(); ++user)
    if (is_packed[user]) use.add(all_users.text(user));
  use.require_common(all_users.text(0));
  stats.user_columns = use.stats();
  users->decide_types(lacks_users(*users, all_users));
}

namespace {

std::string notice_of(const ColumnTable& table, const ColumnTableStats& stats) {
  const std::string things = table.use().things;
  std::string text = table.use().flag + ": " + stats.file + ": " + count_text(stats.rows, "row") +
                     " with ids in " + in_quotes(table.id_column()) + ";";
  for (const PackColumn& column : table.types())
    text += (text.ends_with(';') ? " " : ", ") + column.name + " (" + name_of(column.type) + ")";
  if (stats.unused_rows > 0)
    text += "; " + count_text(stats.unused_rows, "row") + (stats.unused_rows == 1 ? " is" : " are") +
            " not used: no pack has the " + things + (stats.unused_rows == 1 ? "" : "s");
  if (stats.without_row > 0)
    text += "; " + count_text(stats.without_row, things.c_str()) + " without a row " +
            (stats.without_row == 1 ? "has" : "have") + " NaN or an empty text";
  return text;
}

}  // namespace

std::vector<std::string> ColumnTables::notices(const RatingStats& stats) const {
  std::vector<std::string> notices;
  if (items) notices.push_back(notice_of(*items, stats.item_columns.value()));
  if (users) notices.push_back(notice_of(*users, stats.user_columns.value()));
  return notices;
}

}  // namespace chunkhit
