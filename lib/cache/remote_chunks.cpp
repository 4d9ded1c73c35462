#include "cache/remote_chunks.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/hash.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

using State = DiskCache::State;

// Another process that fetches a chunk is waited for, but not one that has only asked for it ahead, or was
// stopped; after that, none is for a while.
constexpr std::chrono::milliseconds kPollTime{2}, kMaxWait{500};
constexpr std::chrono::seconds kNoWait{10};

}  // namespace

RemoteChunks::RemoteChunks(const ChunkSet& chunks, const RemoteChunksSpec& spec)
    : chunks_(chunks), spec_(spec) {
  if (!spec.cache_dir.empty()) disk_.emplace(chunks, spec.cache_dir, spec.cache_disk_bytes);
}

bool RemoteChunks::can_read_ahead() const {
  const std::lock_guard lock(mutex_);
  return ahead_.size() < spec_.chunks_ahead;
}

void RemoteChunks::read_ahead(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  if (ahead_.contains(chunk)) return;
  DiskCache::Claim claim;
  if (disk_) claim = disk_->claim(chunk);
  if (claim.state() == State::stored || claim.state() == State::busy) return;
  const ChunkSet::Location location = chunks_.find(chunk);
  chunks_.part(location).read_ahead(location.chunk);
  ahead_.emplace(chunk, std::move(claim));
}

void RemoteChunks::forget_ahead() {
  const std::lock_guard lock(mutex_);
  for (const auto& part : chunks_.parts()) part->file().forget_ahead();
  ahead_.clear();
}

/// The claim of a chunk that was asked for ahead, or a new one.
DiskCache::Claim RemoteChunks::take_ahead(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  const auto found = ahead_.find(chunk);
  if (found == ahead_.end()) return disk_ ? disk_->claim(chunk) : DiskCache::Claim();
  DiskCache::Claim claim = std::move(found->second);
  ahead_.erase(found);
  return claim;
}

/// Reads a chunk from the disk; a damaged one is removed there.
bool RemoteChunks::load(std::size_t chunk, MutableBytes stored) {
  if (!disk_->load(chunk, stored)) return false;
  const ChunkSet::Location location = chunks_.find(chunk);
  if (chunks_.part(location).has_hashes() && xxh3(stored) != chunks_.stored(location).xxh3) {
    disk_->remove(chunk);
    return false;
  }
  const std::lock_guard lock(mutex_);
  ++stats_.disk_chunks;
  return true;
}

DiskCache::Claim RemoteChunks::wait_for_other(std::size_t chunk) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  DiskCache::Claim claim = disk_->claim(chunk);
  while (claim.state() == State::busy && Clock::now() >= waits_again_.load()) {
    if (Clock::now() - begin > kMaxWait) waits_again_ = Clock::now() + kNoWait;
    std::this_thread::sleep_for(kPollTime);
    claim = disk_->claim(chunk);
  }
  return claim;
}

void RemoteChunks::fetch(std::size_t chunk, MutableBytes stored, bool checks) {
  DiskCache::Claim claim = take_ahead(chunk);
  if (disk_ && claim.state() == State::busy) claim = wait_for_other(chunk);
  if (disk_ && claim.state() == State::stored) {
    if (load(chunk, stored)) return;
    claim = disk_->claim(chunk);  // it was removed just now
  }
  const ChunkSet::Location location = chunks_.find(chunk);
  const auto fetch_now = [&] {
    chunks_.part(location).fetch(location.chunk, stored, checks || disk_.has_value());
    return stored.size();
  };
  std::uint64_t fetched = 0;
  try {
    fetched = fetch_now();
  } catch (const Error& error) {
    // What was damaged on its way comes whole at the second try.
    if (error.code() != ErrorCode::bad_data) throw;
    fetched = stored.size() + fetch_now();
  }
  {
    const std::lock_guard lock(mutex_);
    stats_.bytes += fetched;
    ahead_.erase(chunk);  // another thread may have asked for it since
  }
  if (disk_) disk_->store(chunk, std::move(claim), stored);
}

void RemoteChunks::begin_epoch(NextVisit next_visit) {
  if (disk_) disk_->begin_epoch(std::move(next_visit));
}

RemoteStats RemoteChunks::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void RemoteChunks::reset_stats() {
  const std::lock_guard lock(mutex_);
  stats_ = {};
}

}  // namespace chunkhit
