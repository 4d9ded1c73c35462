#include "pack/user_rows.h"

#include <algorithm>
#include <bit>

namespace chunkhit {

void list_live(const RatingRow& row, const LiveRatings& live, std::vector<std::uint32_t>& entries) {
  entries.resize(live.users[row.user] != 0 ? row.items.size() : 0);
  std::size_t count = 0;
  for (std::uint32_t index = 0; index < entries.size(); ++index) {
    entries[count] = index;
    count += live.items[row.items[index]];
  }
  entries.resize(count);
}

void UserRows::make(const RatingRow& row, Part pack) {
  pack_ = pack;
  unseen_ = 0;
  concerned_ = false;
  x_.clear();
  held_out_.clear();
  if (source_.split.is_by_user() && source_.split.part_of(row.user) != pack) return;
  if (pack == Part::train && !source_.split.divides_rows()) {
    make_whole(row);
    return;
  }
  list_live(row, source_.live, entries_);
  if (source_.split.is_by_user())
    make_held_out_user(row);
  else
    make_from_parts(row);
}

/// All that is live is for training, so it has a column; what is not live has none.
void UserRows::make_whole(const RatingRow& row) {
  if (source_.live.users[row.user] == 0) return;
  x_.resize(row.items.size());
  std::size_t count = 0;
  for (std::size_t index = 0; index < row.items.size(); ++index) {
    const std::uint32_t column = source_.columns.columns[row.items[index]];
    const float value = row.values.empty() ? 1.0F : row.values[index];
    x_[count] = RowEntry{column} << 32 | std::bit_cast<std::uint32_t>(value);
    count += column != kNoColumn ? 1 : 0;
  }
  x_.resize(count);
  concerned_ = count > 0;
}

std::uint64_t UserRows::count_whole(const RatingRow& row) const {
  if (source_.live.users[row.user] == 0) return 0;
  const auto has_column = [&](std::uint32_t item) { return source_.columns.columns[item] != kNoColumn; };
  return static_cast<std::uint64_t>(std::count_if(row.items.begin(), row.items.end(), has_column));
}

/// The items that are columns come first, and are then divided: as vae_cf.
void UserRows::make_held_out_user(const RatingRow& row) {
  concerned_ = true;  // also without ratings that are left, as a user of a list may be
  const auto is_unseen = [&](std::uint32_t index) { return column_of(row, index) == kNoColumn; };
  unseen_ = std::erase_if(entries_, is_unseen);
  items_.clear();
  for (const std::uint32_t index : entries_) items_.push_back(row.items[index]);
  source_.split.fold(row.user, items_, asked_);
  for (std::size_t at = 0; at < entries_.size(); ++at)
    add(row, entries_[at], asked_[at] != 0 ? held_out_ : x_);
}

void UserRows::make_from_parts(const RatingRow& row) {
  source_.split.divide(row, entries_, parts_);
  for (std::size_t at = 0; at < entries_.size(); ++at) {
    const bool is_of_pack = parts_[at] == pack_;
    const bool is_given = source_.split.is_given(parts_[at], pack_);
    if (!is_given && !is_of_pack) continue;
    concerned_ |= is_of_pack;
    if (column_of(row, entries_[at]) != kNoColumn)
      add(row, entries_[at], is_given ? x_ : held_out_);
    else
      unseen_ += is_of_pack ? 1 : 0;
  }
}

void UserRows::add(const RatingRow& row, std::uint32_t index, std::vector<RowEntry>& to) const {
  const float value = row.values.empty() ? 1.0F : row.values[index];
  to.push_back(RowEntry{column_of(row, index)} << 32 | std::bit_cast<std::uint32_t>(value));
}

}  // namespace chunkhit
