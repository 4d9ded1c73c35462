#include "ratings/rating_store.h"

#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/throw_error.h"

namespace chunkhit {
namespace {

/// Fewer keys than this are sorted by comparison, which is then faster than counting digits.
constexpr std::size_t kMinKeysToCount = 24;
constexpr int kDigitBits = 8;
constexpr std::size_t kDigits = 1 << kDigitBits;

bool is_before(std::uint64_t a, std::uint64_t b) { return a >> 32 < b >> 32; }

/// Copies the keys to `to` in the order of one digit, below `digit_end`; equal digits keep their order.
void sort_by_digit(std::span<const std::uint64_t> from, int shift, std::size_t digit_end, std::uint64_t* to) {
  // Counting sort: the counts become the offset at which each digit's keys begin.
  std::array<std::uint32_t, kDigits> next{};
  for (const std::uint64_t key : from) ++next[(key >> shift) % kDigits];
  std::uint32_t sum = 0;
  for (std::size_t digit = 0; digit < digit_end; ++digit) {
    const std::uint32_t count = next[digit];
    next[digit] = sum;
    sum += count;
  }
  for (const std::uint64_t key : from) to[next[(key >> shift) % kDigits]++] = key;
}

template <class Numbers>
MutableBytes room_for(std::uint64_t count, Numbers& values) {
  values.resize(count);
  return {reinterpret_cast<std::uint8_t*>(values.data()), count * sizeof(values[0])};
}

}  // namespace

/// LSD radix sort by the upper 32 bits (the item). It is stable: equal items keep their order, as in
/// stable_sort.
void KeySort::sort(std::span<std::uint64_t> keys) {
  if (std::is_sorted(keys.begin(), keys.end(), is_before)) return;
  if (keys.size() < kMinKeysToCount || keys.size() > UINT32_MAX) {
    std::stable_sort(keys.begin(), keys.end(), is_before);
    return;
  }
  // Digits that all keys have in common need no pass.
  std::uint64_t differing = 0;
  std::uint64_t all = 0;
  for (const std::uint64_t key : keys) {
    differing |= key ^ keys[0];
    all |= key;
  }
  other_.resize(std::max(other_.size(), keys.size()));
  std::span<std::uint64_t> from = keys;
  std::span<std::uint64_t> to(other_.data(), keys.size());
  for (int shift = 32; shift < 64; shift += kDigitBits) {
    if ((differing >> shift) % kDigits == 0) continue;
    sort_by_digit(from, shift, (all >> shift) % kDigits + 1, to.data());
    std::swap(from, to);
  }
  if (from.data() != keys.data()) std::copy(from.begin(), from.end(), keys.begin());
}

namespace {

struct RowRange {
  std::uint32_t first = 0;  ///< in the bucket
  std::uint32_t count = 0;
};

/// A position in a row is the lower half of a sort key and has 32 bits.
void check_lengths(const RatingRows& rows) {
  for (std::size_t row = 0; row < rows.row_count(); ++row)
    if (rows.indptr[row + 1] - rows.indptr[row] > UINT32_MAX)
      throw_bad_data("user number " + std::to_string(rows.first_user + row) + ": more than 2^32 - 1 ratings");
}

/// Writes each record to the next free position of its user's row, so that rows are in the input's order;
/// `rows.indptr` has been counted by an earlier scan. Returns the largest item.
std::uint32_t scatter_rows(const RecordScan& scan, RecordFields fields, RowRange range, RatingRows& rows) {
  const std::uint64_t nnz = rows.indptr.back();
  rows.items.resize(nnz);
  if (fields.values) rows.values.resize(nnz);
  if (fields.times) rows.times.resize(nnz);
  std::vector<std::uint64_t> next(rows.indptr.begin(), rows.indptr.end() - 1);
  std::uint32_t largest_item = 0;
  // Copies, which the numbers that are written cannot change.
  const auto write = [&next, range, fields, items = rows.items.data(), values = rows.values.data(),
                      times = rows.times.data()](Bytes piece, std::uint32_t largest) {
    for (std::size_t at = 0; at < piece.size(); at += record_bytes(fields.times)) {
      const std::uint8_t* record = piece.data() + at;
      const std::uint32_t row = load_little<std::uint16_t>(record) - range.first;
      // The subtraction wraps for users before the range, so that one comparison rejects both sides.
      if (row >= range.count) continue;
      const std::uint64_t to = next[row]++;
      items[to] = load_little<std::uint32_t>(record + kRecordItemAt);
      largest = std::max(largest, items[to]);
      if (fields.values) values[to] = load_little<float>(record + kRecordValueAt);
      if (fields.times) times[to] = load_little<std::int64_t>(record + kRecordTimeAt);
    }
    return largest;
  };
  scan([&](Bytes piece) { largest_item = write(piece, largest_item); });
  return largest_item;
}

/// Detects rows that have an item twice. Most rows have none and need no sort in RowForm::as_they_came.
class RepeatFinder {
 public:
  /// Keeps the last row of each item, unless that table would be far larger than the rows themselves.
  RepeatFinder(std::uint32_t largest_item, std::uint64_t nnz) {
    if (largest_item / kMaxItemsOfRating < nnz) last_rows_.resize(std::size_t{largest_item} + 1);
  }
  /// Returns true if an item may repeat, in particular always when there is no table.
  [[nodiscard]] bool may_repeat(std::span<const std::uint32_t> items) {
    if (last_rows_.empty()) return true;
    ++row_;
    bool repeats = false;
    for (const std::uint32_t item : items) repeats |= std::exchange(last_rows_[item], row_) == row_;
    return repeats;
  }

 private:
  static constexpr std::size_t kMaxItemsOfRating = 4;
  std::vector<std::uint32_t> last_rows_;  ///< by item: the row's number, from 1
  std::uint32_t row_ = 0;
};

/// Sorts rows by item; equal items stay in the order of the input. Keeps buffers.
class RowSorter {
 public:
  explicit RowSorter(RatingRows& rows) : rows_(rows) {}
  /// Sorts the entries [begin, end) of one row.
  void sort(std::uint64_t begin, std::uint64_t end) {
    const auto items = std::span(rows_.items).subspan(begin, end - begin);
    if (std::ranges::is_sorted(items)) return;
    keys_.resize(items.size());
    for (std::size_t at = 0; at < items.size(); ++at) keys_[at] = std::uint64_t{items[at]} << 32 | at;
    sorter_.sort(keys_);
    for (std::size_t at = 0; at < items.size(); ++at) items[at] = static_cast<std::uint32_t>(keys_[at] >> 32);
    reorder(rows_.values, begin, values_);
    reorder(rows_.times, begin, times_);
    reorder(rows_.positions, begin, positions_);
  }

 private:
  template <class Numbers>
  void reorder(Numbers& numbers, std::uint64_t begin, Numbers& before) {
    if (numbers.empty()) return;
    const auto of_row = std::span(numbers).subspan(begin, keys_.size());
    before.assign(of_row.begin(), of_row.end());
    for (std::size_t at = 0; at < of_row.size(); ++at)
      of_row[at] = before[static_cast<std::uint32_t>(keys_[at])];
  }

  RatingRows& rows_;
  KeySort sorter_;
  RatingRows::Numbers<std::uint64_t> keys_;  ///< item · 2^32 + position in the row
  RatingRows::Numbers<float> values_;
  RatingRows::Numbers<std::int64_t> times_;
  RatingRows::Numbers<std::uint32_t> positions_;
};

/// Sorts each row by item if its form requires it, and notes where its entries were.
void sort_rows(RowForm form, std::uint32_t largest_item, RatingRows& rows) {
  std::optional<RepeatFinder> repeats;
  if (form == RowForm::as_they_came || form == RowForm::came_with_positions)
    repeats.emplace(largest_item, rows.nnz());
  if (form == RowForm::with_positions || form == RowForm::came_with_positions)
    rows.positions.resize(rows.nnz());
  RowSorter sorter(rows);
  for (std::size_t row = 0; row < rows.row_count(); ++row) {
    const std::uint64_t begin = rows.indptr[row];
    const std::uint64_t end = rows.indptr[row + 1];
    if (!rows.positions.empty())
      std::iota(rows.positions.begin() + static_cast<std::ptrdiff_t>(begin),
                rows.positions.begin() + static_cast<std::ptrdiff_t>(end), 0u);
    if (!repeats || repeats->may_repeat(rows.row(row).items)) sorter.sort(begin, end);
  }
}

}  // namespace

/// Counts the records of each user and sums them up to CSR row pointers: `count` + 1 numbers.
std::vector<std::uint64_t> count_records(const RecordScan& scan, bool has_times, std::uint32_t first,
                                         std::uint32_t count) {
  std::vector<std::uint64_t> indptr(count + 1);
  scan([&](Bytes piece) {
    for (std::size_t at = 0; at < piece.size(); at += record_bytes(has_times)) {
      const std::uint32_t row = load_little<std::uint16_t>(piece.data() + at) - first;
      if (row < count) ++indptr[row + 1];
    }
  });
  for (std::size_t row = 0; row < count; ++row) indptr[row + 1] += indptr[row];
  return indptr;
}

void rows_of_records(const RecordScan& scan, RecordFields fields, std::uint32_t first, std::uint32_t count,
                     RatingRows& rows) {
  rows.indptr = count_records(scan, fields.times, first, count);
  check_lengths(rows);
  sort_rows(fields.form, scatter_rows(scan, fields, {first, count}, rows), rows);
}

namespace {

static_assert(kBucketUsers <= 65'536, "a record has 16 bits for a user");

/// Small enough that many users with few ratings do not fill the memory with empty pages.
constexpr std::size_t kMaxPageBytes = 16 << 10;
constexpr std::size_t kMinPageBytes = 512;
/// Pages of each bucket that are to fit into memory, so that what is spilled at a time has some records of
/// each.
constexpr std::uint64_t kPagesOfBucket = 4;
/// Memory of a page beside its bytes: the pointers to it and the allocator's bookkeeping.
constexpr std::size_t kPageOverhead = 64;
constexpr std::size_t kSpillBlockBytes = 1 << 20;
/// Smallest amount that is spilled or read back at a time, however low the memory limit is.
constexpr std::uint64_t kMinSpillBytes = 32 << 10;

std::uint32_t largest(std::span<const std::uint32_t> numbers) {
  return *std::max_element(numbers.begin(), numbers.end());
}

}  // namespace

RatingStore::RatingStore(RatingStoreSpec spec) : spec_(std::move(spec)) {}

/// Checks the whole block before anything changes, so that a failed append leaves the store as it was.
void RatingStore::append(std::span<const std::uint32_t> users, std::span<const std::uint32_t> items,
                         std::span<const float> values, std::span<const std::int64_t> times) {
  if (users.empty()) return;
  if (items.size() != users.size() || (!values.empty() && values.size() != users.size()) ||
      (!times.empty() && times.size() != users.size()))
    throw_bad_data("ratings with " + std::to_string(users.size()) + " users, " +
                   std::to_string(items.size()) + " items, " + std::to_string(values.size()) +
                   " values and " + std::to_string(times.size()) + " times");
  const bool timed = spec_.keeps_times && !times.empty();
  if (rating_count_ > 0 && timed != has_times_) throw_bad_data("some inputs have times and some have none");
  if (largest(users) == UINT32_MAX || largest(items) == UINT32_MAX)
    throw_bad_data("more than 2^32 - 1 users or items");
  has_times_ = timed;
  has_values_ = has_values_ || !values.empty();
  reach_user(largest(users));
  item_count_ = std::max(item_count_, largest(items) + 1);
  rating_count_ += users.size();
  timed ? append_records<true>(users, items, values, times)
        : append_records<false>(users, items, values, times);
}

/// The template parameter keeps the test for times out of the loop, which runs once for each rating. Where
/// the input is grouped by user, the bucket's cursor stays in a register.
template <bool kTimes>
void RatingStore::append_records(std::span<const std::uint32_t> users, std::span<const std::uint32_t> items,
                                 std::span<const float> values, std::span<const std::int64_t> times) {
  std::size_t bucket = users[0] / kBucketUsers;
  Cursor cursor = cursors_[bucket];
  std::size_t first = 0;  // rating of the bucket that is not counted yet
  const auto leave = [&](std::size_t end) {
    cursors_[bucket] = cursor;
    buckets_[bucket].rating_count += end - first;
    first = end;
  };
  for (std::size_t index = 0; index < users.size(); ++index) {
    if (users[index] / kBucketUsers != bucket) {
      leave(index);
      bucket = users[index] / kBucketUsers;
      cursor = cursors_[bucket];
    }
    if (cursor.at == cursor.end) {
      leave(index);
      add_page(bucket);
      cursor = cursors_[bucket];
    }
    store_little(cursor.at, static_cast<std::uint16_t>(users[index] % kBucketUsers));
    store_little(cursor.at + kRecordItemAt, items[index]);
    store_little(cursor.at + kRecordValueAt, values.empty() ? 1.0F : values[index]);
    if constexpr (kTimes) store_little(cursor.at + kRecordTimeAt, times[index]);
    cursor.at += record_bytes(kTimes);
  }
  leave(users.size());
}

/// Adds buckets up to the one of user `largest`.
void RatingStore::reach_user(std::uint32_t largest) {
  user_count_ = std::max(user_count_, largest + 1);
  const std::size_t count = (std::size_t{user_count_} + kBucketUsers - 1) / kBucketUsers;
  if (count <= buckets_.size()) return;
  buckets_.resize(count);
  cursors_.resize(count);
}

/// Pages shrink as the number of buckets grows, so that kPagesOfBucket pages of every bucket fit into the
/// limit.
std::size_t RatingStore::next_page_bytes() const {
  const std::uint64_t share = spec_.memory_bytes / (kPagesOfBucket * buckets_.size());
  return std::bit_floor(std::clamp<std::uint64_t>(share, kMinPageBytes, kMaxPageBytes));
}

void RatingStore::add_page(std::size_t bucket) {
  const std::size_t bytes = next_page_bytes();
  if (page_bytes_ + table_bytes_ + bytes > spec_.memory_bytes && page_bytes_ >= kMinSpillBytes) spill();
  // A page holds whole records only; the bytes that remain at its end stay unused.
  const std::size_t record = record_bytes(has_times_);
  const auto used = static_cast<std::uint32_t>(bytes / record * record);
  buckets_[bucket].pages.push_back({std::make_unique_for_overwrite<std::uint8_t[]>(bytes), used});
  page_bytes_ += bytes + kPageOverhead;
  std::uint8_t* const begin = buckets_[bucket].pages.back().bytes.get();
  cursors_[bucket] = {begin, begin + used};
}

/// Writes all pages to the file, bucket by bucket. `ends` is a prefix sum over the buckets, so that a
/// bucket's records of this spill are one contiguous range of the file.
void RatingStore::spill() {
  if (file_ == nullptr) file_ = std::make_unique<SpillFile>(spec_.folder);
  Spill spilled;
  spilled.ends.reserve(buckets_.size());
  ByteBuffer block;
  std::uint64_t end = 0;
  const auto write = [&] {
    const std::uint64_t offset = file_->append(block);
    // Only for the first block: `end` still counts exactly the bytes in it.
    if (end == block.size()) spilled.offset = offset;
    block.clear();
  };
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (const Bytes page : records_in_memory(bucket)) {
      block.insert(block.end(), page.begin(), page.end());
      end += page.size();
      if (block.size() >= kSpillBlockBytes) write();
    }
    buckets_[bucket].pages = std::vector<Page>();
    cursors_[bucket] = {};
    spilled.ends.push_back(end);
  }
  if (!block.empty()) write();
  page_bytes_ = 0;
  table_bytes_ += spilled.ends.size() * sizeof(std::uint64_t);
  spills_.push_back(std::move(spilled));
}

std::vector<Bytes> RatingStore::records_in_memory(std::size_t bucket) const {
  std::vector<Bytes> pieces;
  for (const Page& page : buckets_[bucket].pages) pieces.emplace_back(page.bytes.get(), page.used_bytes);
  // The last page is still being filled: it ends at the write cursor.
  if (!pieces.empty()) {
    const std::uint8_t* const last = pieces.back().data();
    pieces.back() = {last, static_cast<std::size_t>(cursors_[bucket].at - last)};
  }
  return pieces;
}

// Shows a bucket's records in pieces; those of the file a block at a time, however many there are.
void RatingStore::scan(std::size_t bucket, const std::function<void(Bytes)>& visit) const {
  // A multiple of the record size, so that no record is divided between two blocks.
  const std::size_t block_bytes = kSpillBlockBytes / record_bytes(has_times_) * record_bytes(has_times_);
  ByteBuffer block;
  for (const Spill& spill : spills_) {
    if (bucket >= spill.ends.size()) continue;
    std::uint64_t at = bucket == 0 ? 0 : spill.ends[bucket - 1];
    while (at < spill.ends[bucket]) {
      block.resize(std::min<std::uint64_t>(block_bytes, spill.ends[bucket] - at));
      file_->read_at(spill.offset + at, block);
      at += block.size();
      visit(block);
    }
  }
  for (const Bytes page : records_in_memory(bucket)) visit(page);
}

std::vector<std::uint64_t> RatingStore::count_ratings(std::size_t bucket) const {
  const std::uint64_t first = std::uint64_t{bucket} * kBucketUsers;
  const std::uint64_t count = std::min<std::uint64_t>(kBucketUsers, user_count_ - first);
  return count_records([&](const auto& visit) { scan(bucket, visit); }, has_times_, 0,
                       static_cast<std::uint32_t>(count));
}

std::uint64_t RatingStore::work_bytes_of_rating() const {
  return has_times_ ? kTimedRowWorkBytes : kRowWorkBytes;
}

/// Divides a bucket's users greedily into ranges whose ratings fit into `bytes`. A single user may exceed it.
std::vector<std::uint32_t> RatingStore::cut_bucket(std::size_t bucket, std::uint64_t bytes) const {
  const auto first = static_cast<std::uint32_t>(bucket * kBucketUsers);
  const std::uint32_t end = first + std::min(kBucketUsers, user_count_ - first);
  std::vector<std::uint32_t> cuts{first};
  const std::uint64_t most = std::max(bytes, kMinSpillBytes) / work_bytes_of_rating();
  if (ratings_in(bucket) > most) {
    const std::vector<std::uint64_t> indptr = count_ratings(bucket);
    for (std::uint32_t user = first + 1; user < end; ++user)
      if (indptr[user - first + 1] - indptr[cuts.back() - first] > most) cuts.push_back(user);
  }
  cuts.push_back(end);
  return cuts;
}

RatingRows RatingStore::rows(std::uint32_t first_user, std::uint32_t end_user, RowForm form) const {
  const std::size_t bucket = first_user / kBucketUsers;
  ByteBuffer kept;  // a scan is called twice: most buckets are read once
  const bool keeps = is_spilled() && ratings_in(bucket) * record_bytes(has_times_) <= kSpillBlockBytes;
  if (keeps) scan(bucket, [&](Bytes piece) { kept.insert(kept.end(), piece.begin(), piece.end()); });
  const RecordScan show = [&](const auto& visit) { keeps ? visit(kept) : scan(bucket, visit); };
  RatingRows rows;
  rows.first_user = first_user;
  rows_of_records(show, {has_times_, has_values_, form}, first_user % kBucketUsers, end_user - first_user,
                  rows);
  return rows;
}

RatingRows RatingStore::bucket(std::size_t index, RowForm form) const {
  const auto first = static_cast<std::uint32_t>(index * kBucketUsers);
  return rows(first, first + std::min(kBucketUsers, user_count_ - first), form);
}

void RatingStore::drop(std::size_t index) { buckets_[index].pages = std::vector<Page>(); }

CleanRows::CleanRows(std::size_t bucket_count, const std::string& spill_folder, std::uint64_t work_bytes)
    : bucket_count_(bucket_count) {
  if (spill_folder.empty()) {
    buckets_.resize(bucket_count);
    return;
  }
  extents_.resize(bucket_count);
  work_ = std::make_unique<MemoryBudget>(work_bytes);
  file_ = std::make_unique<SpillFile>(spill_folder);
}

void CleanRows::put(std::size_t bucket, RatingRows rows) {
  if (file_ == nullptr) {
    buckets_[bucket] = std::move(rows);
    return;
  }
  // One append, so that rows are read back by one system call.
  const std::array<Bytes, 5> arrays{bytes_of(rows.indptr), bytes_of(rows.items), bytes_of(rows.values),
                                    bytes_of(rows.times), bytes_of(rows.positions)};
  extents_[bucket].push_back({rows.first_user, file_->append(arrays), rows.row_count(), rows.nnz(),
                              !rows.values.empty(), !rows.times.empty(), !rows.positions.empty()});
}

void CleanRows::prefetch(std::uint32_t user) const {
  constexpr std::size_t kMaxBytes = 8 * kCacheLineBytes;  // what follows is loaded ahead by the CPU itself
  const RatingRow ratings = row(user);
  for (const Bytes bytes : {bytes_of(ratings.items), bytes_of(ratings.values)})
    for (std::size_t at = 0; at < std::min(bytes.size(), kMaxBytes); at += kCacheLineBytes)
      __builtin_prefetch(bytes.data() + at);
}

void CleanRows::for_each_bucket(const std::function<void(const RatingRows&)>& visit) const {
  tbb::parallel_for(std::size_t{0}, bucket_count_, [&](std::size_t bucket) {
    if (file_ == nullptr) return visit(buckets_[bucket]);
    for (const Extent& extent : extents_[bucket]) {
      // A single user may have more than the budget, and is then shown alone.
      const MemoryBudget::Share share(*work_, std::min(work_->total(), extent.nnz * kRowWorkBytes));
      visit(load(extent));
    }
  });
}

RatingRows CleanRows::load(const Extent& extent) const {
  RatingRows rows;
  rows.first_user = extent.first_user;
  const auto kept = [&](bool has) { return has ? extent.nnz : 0; };
  const std::array<MutableBytes, 5> arrays{
      room_for(extent.row_count + 1, rows.indptr), room_for(extent.nnz, rows.items),
      room_for(kept(extent.has_values), rows.values), room_for(kept(extent.has_times), rows.times),
      room_for(kept(extent.has_positions), rows.positions)};
  file_->read_at(extent.offset, arrays);
  return rows;
}

}  // namespace chunkhit
