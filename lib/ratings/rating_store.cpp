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

template <class Numbers>
MutableBytes room_for(std::uint64_t count, Numbers& values) {
  values.resize(count);
  return {reinterpret_cast<std::uint8_t*>(values.data()), count * sizeof(values[0])};
}

}  // namespace

RatingStore::RatingStore(RatingStoreSpec spec) : spec_(std::move(spec)) {}

/// Checks the whole block before anything changes, so that bad data leave the store as it was.
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
  if (!is_wide_ && (largest(items) >> kNarrowItemBits != 0 || !fits_narrow(values, users.size()))) widen();
  if (is_wide_)
    timed ? append_records<true, true>(users, items, values, times)
          : append_records<true, false>(users, items, values, times);
  else
    timed ? append_records<false, true>(users, items, values, times)
          : append_records<false, false>(users, items, values, times);
}

/// Finds the codes of the values of `count` ratings.
bool RatingStore::fits_narrow(std::span<const float> values, std::size_t count) {
  constexpr std::array<float, 1> kOne{1};
  block_codes_.clear();
  if (!codes_.encode(values.empty() ? kOne : values, block_codes_)) return false;
  if (values.empty()) block_codes_.resize(count, block_codes_[0]);
  return true;
}

/// The template parameters keep the layout out of the loop, which runs once for each rating. Where the input
/// is grouped by user, the bucket's cursor stays in a register.
template <bool kWide, bool kTimes>
void RatingStore::append_records(std::span<const std::uint32_t> users, std::span<const std::uint32_t> items,
                                 std::span<const float> values, std::span<const std::int64_t> times) {
  std::size_t bucket = users[0] / kBucketUsers;
  Cursor cursor = cursors_[bucket];
  for (std::size_t index = 0; index < users.size(); ++index) {
    if (users[index] / kBucketUsers != bucket) {
      cursors_[bucket] = cursor;
      bucket = users[index] / kBucketUsers;
      cursor = cursors_[bucket];
    }
    if (cursor.at == cursor.end) {
      cursors_[bucket] = cursor;
      add_page(bucket);
      cursor = cursors_[bucket];
    }
    RatingRecord rating{.user = users[index] % kBucketUsers, .item = items[index]};
    if constexpr (kWide)
      rating.value = values.empty() ? 1.0F : values[index];
    else
      rating.code = block_codes_[index];
    if constexpr (kTimes) rating.time = times[index];
    write_record<kWide, kTimes>(rating, cursor.at);
    cursor.at += RecordLayout{kWide, kTimes}.bytes();
  }
  cursors_[bucket] = cursor;
}

/// Rewrites the records in memory as wide ones, once a rating came that no narrow record can hold. They are
/// spilled instead where wide ones would pass the limit.
void RatingStore::widen() {
  const RecordLayout narrow = layout();
  if (page_bytes_ > 0 && (is_spilled() || wide_page_bytes() + table_bytes_ > spec_.memory_bytes)) spill();
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) close_page(bucket);
  is_wide_ = true;
  const std::size_t wide_bytes = layout().bytes();
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    const std::vector<Page> pages = std::exchange(buckets_[bucket].pages, {});
    Cursor& cursor = cursors_[bucket];
    for (const Page& page : pages) {
      buckets_[bucket].rating_count -= page.used_bytes / narrow.bytes();
      page_bytes_ -= page.allocated_bytes + kPageOverhead;
      RecordPiece{{page.bytes.get(), page.used_bytes}, narrow}.for_each([&](RatingRecord rating) {
        if (cursor.at == cursor.end) put_page(bucket, next_page_bytes());
        rating.value = codes_.value(rating.code);
        has_times_ ? write_record<true, true>(rating, cursor.at)
                   : write_record<true, false>(rating, cursor.at);
        cursor.at += wide_bytes;
      });
    }
  }
}

/// Memory of all pages, were they rewritten; only before the first spill.
std::uint64_t RatingStore::wide_page_bytes() const {
  const std::size_t page = next_page_bytes();
  const std::uint64_t ratings = page / RecordLayout{true, has_times_}.bytes();
  std::uint64_t pages = 0;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket)
    pages += (ratings_in(bucket) + ratings - 1) / ratings;
  return pages * (page + kPageOverhead);
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
  put_page(bucket, bytes);
}

/// A page holds whole records only; the bytes that remain at its end stay unused.
void RatingStore::put_page(std::size_t bucket, std::size_t bytes) {
  close_page(bucket);
  const std::size_t record = layout().bytes();
  buckets_[bucket].pages.push_back({std::make_unique_for_overwrite<std::uint8_t[]>(bytes), bytes, 0});
  page_bytes_ += bytes + kPageOverhead;
  std::uint8_t* const begin = buckets_[bucket].pages.back().bytes.get();
  cursors_[bucket] = {begin, begin + bytes / record * record};
}

/// Counts the records of a bucket's last page, to which nothing is added from now on.
void RatingStore::close_page(std::size_t bucket) {
  Cursor& cursor = cursors_[bucket];
  if (cursor.at == nullptr) return;
  Page& page = buckets_[bucket].pages.back();
  page.used_bytes = static_cast<std::uint32_t>(cursor.at - page.bytes.get());
  buckets_[bucket].rating_count += page.used_bytes / layout().bytes();
  cursor = {};
}

std::uint64_t RatingStore::ratings_in(std::size_t bucket) const {
  const Bucket& of = buckets_[bucket];
  const std::uint8_t* const at = cursors_[bucket].at;
  const std::size_t open_bytes =
      at == nullptr ? 0 : static_cast<std::size_t>(at - of.pages.back().bytes.get());
  return of.rating_count + open_bytes / layout().bytes();
}

/// Counts records and rows together: the allocator may keep the memory of records that are freed. Narrow ones
/// may take what wide ones and their rows take at most, which is 22 bytes a rating where the limit counts 10.
bool RatingStore::has_room_for_rows(RowForm form, bool keeps_times) const {
  const bool has_positions = form == RowForm::with_positions || form == RowForm::came_with_positions;
  const bool has_times = has_times_ && (keeps_times || form == RowForm::with_positions);
  const std::uint64_t row_bytes = sizeof(std::uint32_t) + (has_values_ ? sizeof(float) : 0) +
                                  (has_positions ? sizeof(std::uint32_t) : 0) +
                                  (has_times ? sizeof(std::int64_t) : 0);
  return (layout().bytes() + row_bytes) * rating_count_ <= spec_.memory_bytes / 10 * 22;
}

/// Writes all pages to the file, bucket by bucket. `ends` is a prefix sum over the buckets, so that a
/// bucket's records of this spill are one contiguous range of the file.
void RatingStore::spill() {
  if (file_ == nullptr) file_ = std::make_unique<SpillFile>(spec_.folder);
  Spill spilled{.offset = 0, .layout = layout(), .ends = {}};
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
    close_page(bucket);
    for (const Bytes page : records_in_memory(bucket)) {
      block.insert(block.end(), page.begin(), page.end());
      end += page.size();
      if (block.size() >= kSpillBlockBytes) write();
    }
    buckets_[bucket].pages = std::vector<Page>();
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
  // The last page may still be filled: it ends at the write cursor then.
  if (cursors_[bucket].at != nullptr) {
    const std::uint8_t* const last = pieces.back().data();
    pieces.back() = {last, static_cast<std::size_t>(cursors_[bucket].at - last)};
  }
  return pieces;
}

// Shows a bucket's records in pieces; those of the file a block at a time, however many there are.
void RatingStore::scan(std::size_t bucket, const std::function<void(RecordPiece)>& visit) const {
  ByteBuffer block;
  for (const Spill& spill : spills_) {
    if (bucket >= spill.ends.size()) continue;
    // A multiple of the record size, so that no record is divided between two blocks.
    const std::size_t block_bytes = kSpillBlockBytes / spill.layout.bytes() * spill.layout.bytes();
    std::uint64_t at = bucket == 0 ? 0 : spill.ends[bucket - 1];
    while (at < spill.ends[bucket]) {
      block.resize(std::min<std::uint64_t>(block_bytes, spill.ends[bucket] - at));
      file_->read_at(spill.offset + at, block);
      at += block.size();
      visit({block, spill.layout});
    }
  }
  for (const Bytes page : records_in_memory(bucket)) visit({page, layout()});
}

std::vector<std::uint64_t> RatingStore::count_ratings(std::size_t bucket) const {
  const std::uint64_t first = std::uint64_t{bucket} * kBucketUsers;
  const std::uint64_t count = std::min<std::uint64_t>(kBucketUsers, user_count_ - first);
  return count_records([&](const auto& visit) { scan(bucket, visit); }, 0, static_cast<std::uint32_t>(count));
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
  // A scan is called twice: most buckets are read once. Narrow records were spilled before wide ones.
  std::array<ByteBuffer, 2> kept;
  const std::uint64_t bytes = ratings_in(bucket) * layout().bytes();
  const bool keeps = is_spilled() && bytes <= kSpillBlockBytes;
  if (keeps)
    scan(bucket, [&](RecordPiece piece) {
      ByteBuffer& to = kept[piece.layout.is_wide ? 1 : 0];
      to.insert(to.end(), piece.bytes.begin(), piece.bytes.end());
    });
  const RecordScan show = [&](const auto& visit) {
    if (!keeps) return scan(bucket, visit);
    for (const bool is_wide : {false, true}) visit({kept[is_wide ? 1 : 0], {is_wide, has_times_}});
  };
  RatingRows rows;
  rows.first_user = first_user;
  rows_of_records(show, {has_times_, has_values_, form, &codes_}, first_user % kBucketUsers,
                  end_user - first_user, rows);
  return rows;
}

RatingRows RatingStore::bucket(std::size_t index, RowForm form) const {
  const auto first = static_cast<std::uint32_t>(index * kBucketUsers);
  return rows(first, first + std::min(kBucketUsers, user_count_ - first), form);
}

void RatingStore::drop(std::size_t index) {
  close_page(index);
  buckets_[index].pages = std::vector<Page>();
}

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
