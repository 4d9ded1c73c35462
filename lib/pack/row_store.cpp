#include "pack/row_store.h"

#include <oneapi/tbb/parallel_for.h>

#include <utility>

#include "base/bytes.h"
#include "pack/rating_store.h"

namespace chunkhit {
namespace {

template <class T>
void append_array(ByteBuffer& bytes, const std::vector<T>& values) {
  const auto* const from = reinterpret_cast<const std::uint8_t*>(values.data());
  bytes.insert(bytes.end(), from, from + values.size() * sizeof(T));
}

template <class T>
void read_array(const SpillFile& file, std::uint64_t& offset, std::uint64_t count, std::vector<T>& values) {
  values.resize(count);
  file.read_at(offset, {reinterpret_cast<std::uint8_t*>(values.data()), count * sizeof(T)});
  offset += count * sizeof(T);
}

}  // namespace

RowStore::RowStore(std::size_t bucket_count, const std::string& spill_folder)
    : buckets_(bucket_count), places_(bucket_count) {
  if (!spill_folder.empty()) file_ = std::make_unique<SpillFile>(spill_folder);
}

void RowStore::put(std::size_t bucket, RatingRows rows) {
  if (file_ == nullptr) {
    buckets_[bucket] = std::move(rows);
    return;
  }
  ByteBuffer bytes;
  append_array(bytes, rows.indptr);
  append_array(bytes, rows.items);
  append_array(bytes, rows.values);
  append_array(bytes, rows.times);
  append_array(bytes, rows.places);
  places_[bucket] = {file_->append(bytes), rows.row_count(),    rows.nnz(),
                     !rows.values.empty(), !rows.times.empty(), !rows.places.empty()};
  buckets_[bucket].first_user = rows.first_user;
}

RatingRow RowStore::row(std::uint32_t user) const {
  return buckets_[user / kBucketUsers].row(user % kBucketUsers);
}

void RowStore::for_each_bucket(const std::function<void(const RatingRows&)>& visit) const {
  tbb::parallel_for(std::size_t{0}, buckets_.size(), [&](std::size_t bucket) {
    if (file_ == nullptr)
      visit(buckets_[bucket]);
    else
      visit(load(bucket));
  });
}

RatingRows RowStore::load(std::size_t bucket) const {
  const Place& place = places_[bucket];
  RatingRows rows;
  rows.first_user = buckets_[bucket].first_user;
  std::uint64_t offset = place.offset;
  read_array(*file_, offset, place.row_count + 1, rows.indptr);
  read_array(*file_, offset, place.nnz, rows.items);
  if (place.has_values) read_array(*file_, offset, place.nnz, rows.values);
  if (place.has_times) read_array(*file_, offset, place.nnz, rows.times);
  if (place.has_places) read_array(*file_, offset, place.nnz, rows.places);
  return rows;
}

}  // namespace chunkhit
