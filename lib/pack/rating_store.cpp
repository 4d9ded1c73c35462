#include "pack/rating_store.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "chunkhit/error.h"
#include "pack/rating_records.h"

namespace chunkhit {
namespace {

static_assert(kBucketUsers <= 65'536, "a record has 16 bits for a user");

/// Small enough that many users with few ratings do not fill the memory with empty pages.
constexpr std::size_t kMaxPageBytes = 16 << 10;
constexpr std::size_t kMinPageBytes = 512;
/// Pages of each bucket that are to fit into memory, so that what is spilled at a time has some records of
/// each.
constexpr std::uint64_t kPagesOfBucket = 4;
/// Beside a page: its pointers, and what the allocator keeps.
constexpr std::size_t kPageOverhead = 64;
constexpr std::size_t kSpillBlockBytes = 1 << 20;
/// Whatever the limit is, so much is written, and read back, at a time.
constexpr std::uint64_t kMinSpillBytes = 32 << 10;

std::uint32_t largest(std::span<const std::uint32_t> numbers) {
  return *std::max_element(numbers.begin(), numbers.end());
}

}  // namespace

RatingStore::RatingStore(RatingStoreSpec spec) : spec_(std::move(spec)) {}

void RatingStore::append(std::span<const std::uint32_t> users, std::span<const std::uint32_t> items,
                         std::span<const float> values, std::span<const std::int64_t> times) {
  if (users.empty()) return;
  if (items.size() != users.size() || (!values.empty() && values.size() != users.size()) ||
      (!times.empty() && times.size() != users.size()))
    throw Error(ErrorCode::bad_data, "ratings with " + std::to_string(users.size()) + " users, " +
                                         std::to_string(items.size()) + " items, " +
                                         std::to_string(values.size()) + " values and " +
                                         std::to_string(times.size()) + " times");
  const bool timed = spec_.keeps_times && !times.empty();
  if (rating_count_ > 0 && timed != has_times_)
    throw Error(ErrorCode::bad_data, "some inputs have times and some have none");
  if (largest(users) == UINT32_MAX || largest(items) == UINT32_MAX)
    throw Error(ErrorCode::bad_data, "more than 2^32 - 1 users or items");
  has_times_ = timed;
  has_values_ = has_values_ || !values.empty();
  reach_user(largest(users));
  item_count_ = std::max(item_count_, largest(items) + 1);
  rating_count_ += users.size();
  timed ? append_records<true>(users, items, values, times)
        : append_records<false>(users, items, values, times);
}

template <bool kTimes>
void RatingStore::append_records(std::span<const std::uint32_t> users, std::span<const std::uint32_t> items,
                                 std::span<const float> values, std::span<const std::int64_t> times) {
  for (std::size_t index = 0; index < users.size(); ++index) {
    const std::size_t bucket = users[index] / kBucketUsers;
    if (cursors_[bucket].at == cursors_[bucket].end) add_page(bucket);
    std::uint8_t*& at = cursors_[bucket].at;
    store_little(at, static_cast<std::uint16_t>(users[index] % kBucketUsers));
    store_little(at + kRecordItemAt, items[index]);
    store_little(at + kRecordValueAt, values.empty() ? 1.0F : values[index]);
    if constexpr (kTimes) store_little(at + kRecordTimeAt, times[index]);
    at += record_bytes(kTimes);
    ++buckets_[bucket].rating_count;
  }
}

void RatingStore::reach_user(std::uint32_t largest) {
  user_count_ = std::max(user_count_, largest + 1);
  const std::size_t count = (std::size_t{user_count_} + kBucketUsers - 1) / kBucketUsers;
  if (count <= buckets_.size()) return;
  buckets_.resize(count);
  cursors_.resize(count);
}

std::size_t RatingStore::next_page_bytes() const {
  const std::uint64_t share = spec_.memory_bytes / (kPagesOfBucket * buckets_.size());
  return std::bit_floor(std::clamp<std::uint64_t>(share, kMinPageBytes, kMaxPageBytes));
}

void RatingStore::add_page(std::size_t bucket) {
  const std::size_t bytes = next_page_bytes();
  if (page_bytes_ + table_bytes_ + bytes > spec_.memory_bytes && page_bytes_ >= kMinSpillBytes) spill();
  const std::size_t record = record_bytes(has_times_);
  const auto used = static_cast<std::uint32_t>(bytes / record * record);
  buckets_[bucket].pages.push_back({std::make_unique_for_overwrite<std::uint8_t[]>(bytes), used});
  page_bytes_ += bytes + kPageOverhead;
  std::uint8_t* const begin = buckets_[bucket].pages.back().bytes.get();
  cursors_[bucket] = {begin, begin + used};
}

void RatingStore::spill() {
  if (file_ == nullptr) file_ = std::make_unique<SpillFile>(spec_.folder);
  Spill spilled;
  spilled.ends.reserve(buckets_.size());
  ByteBuffer block;
  std::uint64_t end = 0;
  const auto write = [&] {
    const std::uint64_t offset = file_->append(block);
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
  if (!pieces.empty()) {
    const std::uint8_t* const last = pieces.back().data();
    pieces.back() = {last, static_cast<std::size_t>(cursors_[bucket].at - last)};
  }
  return pieces;
}

// Shows a bucket's records in pieces; those of the file a block at a time, however many there are.
void RatingStore::scan(std::size_t bucket, const std::function<void(Bytes)>& visit) const {
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

}  // namespace chunkhit
