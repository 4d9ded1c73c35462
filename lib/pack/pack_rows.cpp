#include "pack/pack_rows.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>

#include "pack/key_sort.h"

namespace chunkhit {
namespace {

constexpr std::uint32_t kNoRow = UINT32_MAX;

std::uint32_t column_of(RowEntry entry) { return static_cast<std::uint32_t>(entry >> 32); }
float value_of(RowEntry entry) { return std::bit_cast<float>(static_cast<std::uint32_t>(entry)); }

void append_row(std::vector<RowEntry>& entries, bool has_values, KeySort& sorter, CsrRows& to) {
  sorter.sort(entries);
  const std::size_t begin = to.indices.size();
  to.indices.resize(begin + entries.size());
  std::transform(entries.begin(), entries.end(), to.indices.begin() + static_cast<std::ptrdiff_t>(begin),
                 column_of);
  if (has_values) {
    to.values.resize(begin + entries.size());
    std::transform(entries.begin(), entries.end(), to.values.begin() + static_cast<std::ptrdiff_t>(begin),
                   value_of);
  }
  to.indptr.push_back(to.indices.size());
}

void clear(CsrRows& rows) {
  rows.indptr.assign(1, 0);
  rows.indices.clear();
  rows.values.clear();
}

/// Appends rows [first, end) of what was written in the order of rows; rows beyond the last rating are empty.
void read_rows(const RatingStore& store, std::uint64_t first, std::uint64_t end, bool has_values,
               CsrRows& to) {
  while (first < end && first < store.user_count()) {
    const std::uint64_t stop =
        std::min({end, std::uint64_t{store.user_count()}, (first / kBucketUsers + 1) * kBucketUsers});
    const RatingRows rows =
        store.rows(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(stop), RowForm::ascending);
    const std::uint64_t begin = to.indices.size();
    for (std::size_t row = 1; row < rows.indptr.size(); ++row) to.indptr.push_back(begin + rows.indptr[row]);
    to.indices.insert(to.indices.end(), rows.items.begin(), rows.items.end());
    if (has_values) to.values.insert(to.values.end(), rows.values.begin(), rows.values.end());
    first = stop;
  }
  to.indptr.resize(to.indptr.size() + (end - first), to.indices.size());
}

/// Ratings on their way to a store.
struct StoreBlock {
  std::vector<std::uint32_t> rows;
  std::vector<std::uint32_t> columns;
  std::vector<float> values;
  void add(std::uint32_t row, const std::vector<RowEntry>& entries) {
    for (const RowEntry entry : entries) {
      rows.push_back(row);
      columns.push_back(column_of(entry));
      values.push_back(value_of(entry));
    }
  }
};

std::vector<std::uint32_t> rows_of_users(std::span<const std::uint32_t> users, std::size_t user_count) {
  std::vector<std::uint32_t> rows(user_count, kNoRow);
  for (std::size_t row = 0; row < users.size(); ++row) rows[users[row]] = static_cast<std::uint32_t>(row);
  return rows;
}

}  // namespace

PackRows::PackRows(PackUsers users, const RowSource& source) : users_(std::move(users)), source_(source) {}

void PackRows::fill(std::uint64_t first, std::uint64_t end, CsrRows& x, CsrRows& held_out) const {
  clear(x);
  clear(held_out);
  if (x_on_disk_ == nullptr) {
    fill_from_memory(first, end, x, held_out);
    return;
  }
  read_rows(*x_on_disk_, first, end, source_.has_values, x);
  if (has_held_out()) read_rows(*held_out_on_disk_, first, end, source_.has_values, held_out);
}

void PackRows::fill_from_memory(std::uint64_t first, std::uint64_t end, CsrRows& x, CsrRows& held_out) const {
  UserRows rows(source_);
  KeySort sorter;
  for (std::uint64_t row = first; row < end; ++row) {
    rows.make(source_.rows.row(users_.users[row]), users_.part);
    append_row(rows.x(), source_.has_values, sorter, x);
    if (has_held_out()) append_row(rows.held_out(), source_.has_values, sorter, held_out);
  }
}

void write_rows_to_disk(const RowSource& source, const RatingStoreSpec& spec, std::vector<PackRows>& packs) {
  RatingStoreSpec each = spec;
  each.keeps_times = false;
  each.memory_bytes = spec.memory_bytes / (2 * packs.size());
  for (PackRows& pack : packs) {
    pack.x_on_disk_ = std::make_unique<RatingStore>(each);
    pack.held_out_on_disk_ = std::make_unique<RatingStore>(each);
    const std::vector<std::uint32_t> row_of = rows_of_users(pack.users(), source.live.users.size());
    std::mutex store_mutex;
    source.rows.for_each_bucket([&](const RatingRows& bucket) {
      UserRows rows(source);
      StoreBlock x;
      StoreBlock held_out;
      for (std::size_t index = 0; index < bucket.row_count(); ++index) {
        const RatingRow row = bucket.row(index);
        if (row_of[row.user] == kNoRow) continue;
        rows.make(row, pack.users_.part);
        x.add(row_of[row.user], rows.x());
        held_out.add(row_of[row.user], rows.held_out());
      }
      const std::lock_guard lock(store_mutex);
      pack.x_on_disk_->append(x.rows, x.columns, x.values, {});
      pack.held_out_on_disk_->append(held_out.rows, held_out.columns, held_out.values, {});
    });
  }
}

}  // namespace chunkhit
