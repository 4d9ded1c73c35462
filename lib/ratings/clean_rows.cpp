#include "ratings/clean_rows.h"

#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/bytes.h"
#include "ratings/rating_store.h"

namespace chunkhit {
namespace {

template <class T>
MutableBytes room_for(std::uint64_t count, std::vector<T>& values) {
  values.resize(count);
  return {reinterpret_cast<std::uint8_t*>(values.data()), count * sizeof(T)};
}

}  // namespace

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

RatingRow CleanRows::row(std::uint32_t user) const {
  return buckets_[user / kBucketUsers].row(user % kBucketUsers);
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
