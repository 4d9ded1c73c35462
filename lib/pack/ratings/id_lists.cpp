#include "pack/ratings/id_lists.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/line_reader.h"
#include "base/text_stream.h"
#include "base/throw_error.h"
#include "pack/pack_folder.h"
#include "ratings/pack_rows.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMaxIdBytes = 1 << 20;

/// Counts the ids of a list against --memory-bytes while they are read.
class ListMemory {
 public:
  ListMemory(const IdListUse& use, std::string name, std::optional<std::uint64_t> file_bytes)
      : use_(use), name_(std::move(name)), file_bytes_(file_bytes) {}

  /// Counts an id, of a line of so many bytes.
  void add(std::string_view id, std::size_t line_bytes) {
    ++listed_.listed_ids;
    listed_.listed_text_bytes += id.size();
    read_bytes_ += line_bytes;
    if (listed_.listed_ids % kIdsBetweenChecks == 0) check(false);
  }
  void finish() const { check(true); }

 private:
  void check(bool at_end) const {
    if (use_.memory == nullptr) return;
    ReadShare read{name_, {}};
    if (at_end)
      read.share = 1;
    else if (file_bytes_.value_or(0) > 0)
      read.share = std::min(0.999, static_cast<double>(read_bytes_) / static_cast<double>(*file_bytes_));
    use_.memory->check_listed(use_.flag, listed_, read);
  }

  static constexpr std::uint64_t kIdsBetweenChecks = 1 << 14;
  const IdListUse& use_;
  std::string name_;
  std::optional<std::uint64_t> file_bytes_;
  std::uint64_t read_bytes_ = 0;
  BesideIds listed_;
};

std::string items_file(const std::string& path) {
  std::error_code error;
  const std::filesystem::path given(path);
  if (!std::filesystem::is_directory(given, error)) return path;
  // Of the packs of a split each has the same items.
  for (const std::filesystem::path& folder : {given, given / "train"}) {
    if (std::filesystem::exists(folder / kItemsName, error)) return (folder / kItemsName).string();
    // A merged pack's may have another name.
    if (!holds_pack(folder.string(), kMatrixPacks)) continue;
    if (const auto held = find_manifest(folder.string()); held && held->ratings)
      return (folder / held->ratings->items.file).string();
  }
  throw_bad_data(path + ": is no pack of matrices: " + std::string(kItemsName) + " is missing");
}

/// Writes a list of ids with their ratings, and their rows of a table unless it is null.
template <class IdAt>
CompleteList write_list(IdListWriter list, std::size_t count, IdAt id_at, auto ratings,
                        const ColumnTable* columns) {
  std::vector<std::string> kept;
  for (std::size_t at = 0; at < count; ++at) {
    const std::string id = id_at(at);
    if (columns != nullptr) columns->value_texts(columns->find(id), kept);
    list.add(ratings[at], id, kept);
  }
  return list.complete();
}

std::vector<PackColumn> types_of(const ColumnTable* columns) {
  return columns == nullptr ? std::vector<PackColumn>() : columns->types();
}

}  // namespace

CompleteList write_users(const std::string& folder, std::span<const std::uint32_t> users,
                         std::span<const std::uint32_t> ratings, const IdMap& ids,
                         const ColumnTable* columns) {
  return write_list(
      {folder, kUsersName, kUsersHeader, types_of(columns)}, users.size(),
      [&](std::size_t row) { return ids.text(users[row]); }, ratings, columns);
}

CompleteList write_items(const std::string& folder, std::span<const std::string> ids,
                         std::span<const std::uint64_t> ratings, const ColumnTable* columns) {
  return write_list(
      {folder, kItemsName, kItemsHeader, types_of(columns)}, ids.size(),
      [&](std::size_t column) { return ids[column]; }, ratings, columns);
}

std::string hash_of_ids(std::span<const std::string> ids) {
  Xxh3Stream all;
  for (const std::string& id : ids) {
    all.update(as_bytes(id));
    all.update(as_bytes(std::string_view("\n")));
  }
  return hash_text(all.value());
}

/// An empty id, which no item has, stands before items without a column.
std::string hash_of_items(const ItemIds& items) {
  if (items.unseen.empty()) return hash_of_ids(items.columns);
  std::vector<std::string> ids = items.columns;
  ids.emplace_back();
  ids.insert(ids.end(), items.unseen.begin(), items.unseen.end());
  return hash_of_ids(ids);
}

namespace {

/// Calls `visit` with each item of a list, each of which it has once.
void read_items(const std::string& path, const IdListUse& use, const auto& visit) {
  TextStream stream(items_file(path));
  ListMemory memory(use, stream.name(), stream.byte_count());
  IdListReader items(stream.name(), [&](MutableBytes out) { return stream.read(out); });
  items.take_unseen();
  IdMap seen;
  while (items.next()) {
    const std::size_t count = seen.size();
    if (seen.add(items.id()) != count) items.fail("item " + std::string(items.id()) + " is repeated");
    memory.add(items.id(), items.line_bytes());
    visit(items);
  }
  memory.finish();
}

}  // namespace

ItemIds read_item_ids(const std::string& path, const IdListUse& use) {
  ItemIds ids;
  read_items(path, use, [&](const IdListReader& items) {
    (items.has_column() ? ids.columns : ids.unseen).emplace_back(items.id());
  });
  return ids;
}

bool are_item_lists(std::span<const std::string> paths) {
  const auto is_list = [](const std::string& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) return false;
    TextStream stream(path);
    return as_text(stream.head()).starts_with(kItemsHeader);
  };
  const auto lists = std::ranges::count_if(paths, is_list);
  if (lists == 0) return false;
  if (const auto other = std::ranges::find_if_not(paths, is_list); other != paths.end())
    throw_bad_data(*other +
                   ": is no list of items, as other inputs are: the counts of lists are added up alone");
  return true;
}

namespace {

[[noreturn]] void refuse_min_item(const std::string& when) {
  throw_usage("`min_item`: " + when + " counts of parts do not decide it; count all parts in one run");
}

}  // namespace

ItemCounts sum_item_lists(std::span<const std::string> paths, const RatingPacksSpec& spec,
                          const SparseMemory& memory) {
  if (spec.rules.min_item > 0 && (spec.rules.min_user > 0 || spec.split.split_by != SplitKind::none))
    refuse_min_item("with `min_user` or `split_by`");
  IdMap ids;
  std::vector<std::uint32_t> sums;
  for (const std::string& path : paths) {
    read_items(path, {"`count_items`", &memory}, [&](const IdListReader& items) {
      if (spec.rules.min_item > 0 && !items.has_column())
        refuse_min_item("of a split, which made an item without a column in " + path + ",");
      const std::uint32_t item = ids.add(items.id());
      sums.resize(ids.size());
      if (items.ratings() > UINT32_MAX - sums[item]) items.fail("more ratings than a count holds");
      sums[item] += static_cast<std::uint32_t>(items.ratings());
    });
    memory.check_listed("`count_items`", {.listed_ids = ids.size(), .listed_text_bytes = ids.text_bytes()},
                        {path, {}});
  }
  ItemCounts counts;
  std::vector<std::uint32_t> kept = sums;
  for (std::uint32_t& sum : kept) sum = sum < spec.rules.min_item ? 0 : sum;
  const bool is_sorted = spec.id_order == ItemOrder::sorted;
  const std::vector<std::uint32_t> sorted = is_sorted ? ids.sorted() : std::vector<std::uint32_t>();
  const ItemColumns columns = order_items(kept, spec.id_order, sorted);
  for (const std::uint32_t item : columns.items) {
    counts.ids.columns.push_back(ids.text(item));
    counts.ratings.push_back(sums[item]);
  }
  for (std::uint32_t item = 0; item < sums.size(); ++item)
    if (sums[item] == 0) counts.ids.unseen.push_back(ids.text(item));
  if (counts.ratings.empty()) throw_bad_data("no items are left in the lists");
  return counts;
}

void write_item_counts(const std::string& folder, const std::string& name, const ItemCounts& counts) {
  IdListWriter list(folder, name, kItemsHeader);
  for (std::size_t column = 0; column < counts.ratings.size(); ++column)
    list.add(counts.ratings[column], counts.ids.columns[column]);
  for (const std::string& id : counts.ids.unseen) list.add_unseen(id);
  CompleteList complete = list.complete();
  complete.file.publish();
}

std::vector<std::string> read_user_ids(const std::string& path, const IdListUse& use) {
  auto stream = std::make_unique<TextStream>(path);
  ListMemory memory(use, stream->name(), stream->byte_count());
  LineReader lines(std::move(stream), kMaxIdBytes);
  std::vector<std::string> ids;
  std::string_view line;
  while (lines.next(line)) {
    if (line.empty()) continue;
    ids.emplace_back(line);
    memory.add(line, line.size() + 1);
  }
  memory.finish();
  if (ids.empty()) throw_bad_data(lines.name() + ": expected users, one a line, found none");
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end()) throw_bad_data(lines.name() + ": user " + *twice + " is repeated");
  return ids;
}

}  // namespace chunkhit
