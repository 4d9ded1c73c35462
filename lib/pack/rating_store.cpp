#include "pack/rating_store.h"

#include <algorithm>
#include <string>
#include <utility>

#include "chunkhit/error.h"
#include "pack/rating_records.h"

namespace chunkhit {
namespace {

static_assert(kBucketUsers <= 65'536, "a record has 16 bits for a user");

/// Small enough that many users with few ratings do not fill the memory with empty pages.
constexpr std::size_t kPageBytes = 16 << 10;
constexpr std::size_t kSpillBlockBytes = 4 << 20;

/// A page holds whole records.
constexpr std::size_t used_page_bytes(bool has_times) {
  return kPageBytes / record_bytes(has_times) * record_bytes(has_times);
}

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
  }
}

void RatingStore::reach_user(std::uint32_t largest) {
  user_count_ = std::max(user_count_, largest + 1);
  const std::size_t count = (std::size_t{user_count_} + kBucketUsers - 1) / kBucketUsers;
  if (count <= buckets_.size()) return;
  buckets_.resize(count);
  cursors_.resize(count);
}

void RatingStore::add_page(std::size_t bucket) {
  if ((page_count_ + 1) * kPageBytes > spec_.memory_bytes && page_count_ > 0) spill();
  Bucket& full = buckets_[bucket];
  full.pages.push_back(std::make_unique_for_overwrite<std::uint8_t[]>(kPageBytes));
  ++page_count_;
  std::uint8_t* const begin = full.pages.back().get();
  cursors_[bucket] = {begin, begin + used_page_bytes(has_times_)};
}

void RatingStore::spill() {
  if (file_ == nullptr) file_ = std::make_unique<SpillFile>(spec_.folder);
  ByteBuffer block;
  std::vector<std::pair<std::size_t, std::uint64_t>> begun;  // bucket, where its bytes begin in the block
  const auto write = [&] {
    const std::uint64_t offset = file_->append(block);
    for (std::size_t index = 0; index < begun.size(); ++index) {
      const std::uint64_t end = index + 1 < begun.size() ? begun[index + 1].second : block.size();
      buckets_[begun[index].first].extents.push_back(
          {offset + begun[index].second, end - begun[index].second});
    }
    block.clear();
    begun.clear();
  };
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (const Bytes page : records_in_memory(bucket)) {
      if (begun.empty() || begun.back().first != bucket) begun.emplace_back(bucket, block.size());
      block.insert(block.end(), page.begin(), page.end());
      if (block.size() >= kSpillBlockBytes) write();
    }
    buckets_[bucket].pages.clear();
    cursors_[bucket] = {};
  }
  if (!block.empty()) write();
  page_count_ = 0;
}

std::vector<Bytes> RatingStore::records_in_memory(std::size_t bucket) const {
  std::vector<Bytes> pieces;
  for (const auto& page : buckets_[bucket].pages)
    pieces.emplace_back(page.get(), used_page_bytes(has_times_));
  if (!pieces.empty()) {
    const std::uint8_t* const last = pieces.back().data();
    pieces.back() = {last, static_cast<std::size_t>(cursors_[bucket].at - last)};
  }
  return pieces;
}

ByteBuffer RatingStore::records_in_file(std::size_t bucket) const {
  std::uint64_t bytes = 0;
  for (const Bucket::Extent& extent : buckets_[bucket].extents) bytes += extent.bytes;
  ByteBuffer read(bytes);
  std::uint64_t at = 0;
  for (const Bucket::Extent& extent : buckets_[bucket].extents) {
    file_->read_at(extent.offset, MutableBytes(read).subspan(at, extent.bytes));
    at += extent.bytes;
  }
  return read;
}

RatingRows RatingStore::rows(std::uint32_t first_user, std::uint32_t end_user, RowForm form) const {
  const std::size_t bucket = first_user / kBucketUsers;
  const ByteBuffer read_back = records_in_file(bucket);
  std::vector<Bytes> pieces{Bytes(read_back)};
  for (const Bytes page : records_in_memory(bucket)) pieces.push_back(page);
  RatingRows rows;
  rows.first_user = first_user;
  rows_of_records(pieces, {has_times_, has_values_, form}, first_user % kBucketUsers, end_user - first_user,
                  rows);
  return rows;
}

RatingRows RatingStore::bucket(std::size_t index, RowForm form) const {
  const auto first = static_cast<std::uint32_t>(index * kBucketUsers);
  return rows(first, first + std::min(kBucketUsers, user_count_ - first), form);
}

void RatingStore::drop(std::size_t index) { buckets_[index] = {}; }

}  // namespace chunkhit
