#include "cache/remote_chunks.h"

#include <thread>

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

RemoteChunks::Buffer::~Buffer() {
  if (transfer_) transfer_->cancel();
  if (data_ != nullptr) owner_->give_back(data_);
}

std::uint8_t* RemoteChunks::Buffer::release() {
  transfer_.reset();
  return std::exchange(data_, nullptr);
}

RemoteChunks::RemoteChunks(const ChunkSet& chunks, const RemoteChunksSpec& spec)
    : chunks_(chunks),
      spec_(spec),
      memory_(chunks.max_fetched_bytes(),
              std::min(chunks.chunk_count(), spec.chunks_ahead + spec.kept_chunks)) {
  if (spec.cache_dir.empty()) return;
  try {
    disk_.emplace(chunks, spec.cache_dir, spec.cache_disk_bytes);
  } catch (const CacheLocked& locked) {
    no_disk_ = locked.what();
  }
}

RemoteChunks::Buffer RemoteChunks::take_memory(std::size_t chunk) {
  const std::lock_guard lock(memory_mutex_);
  return {*this, memory_.take(), chunks_.stored(chunks_.find(chunk)).stored_bytes};
}

void RemoteChunks::give_back(std::uint8_t* memory) {
  const std::lock_guard lock(memory_mutex_);
  memory_.give_back(memory);
}

bool RemoteChunks::can_read_ahead() const {
  const std::lock_guard lock(mutex_);
  return asked_.size() - fetched_count_ < spec_.chunks_ahead;
}

void RemoteChunks::read_ahead(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  if (asked_.contains(chunk)) return;
  Asked asked;
  if (disk_) asked.claim = disk_->claim(chunk);
  if (asked.claim.state() == State::stored || asked.claim.state() == State::busy) return;
  asked.stored = take_memory(chunk);
  ask(chunk, asked);
  asked_.emplace(chunk, std::move(asked));
}

/// Under the lock: asks the server for a chunk. One whose bytes are in several places comes to the file's own
/// memory.
void RemoteChunks::ask(std::size_t chunk, Asked& asked) {
  const ChunkSet::Location location = chunks_.find(chunk);
  const ChunkReader& part = chunks_.part(location);
  if (part.is_in_one_place(location.chunk))
    asked.stored.transfer_ = part.file().receive(part.chunks()[location.chunk].offset, asked.stored.bytes());
  else
    part.read_ahead(location.chunk);
}

void RemoteChunks::forget_ahead() {
  const std::lock_guard lock(mutex_);
  for (const auto& part : chunks_.parts()) part->file().forget_ahead();
  for (const auto& [chunk, asked] : asked_)
    if (asked.stored.transfer_) asked.stored.transfer_->cancel();
  std::erase_if(asked_, [](const auto& each) { return !each.second.is_fetched; });
}

/// What `fetch` begins with: a chunk that was asked for ahead, or memory for it.
RemoteChunks::Asked& RemoteChunks::begin(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  auto found = asked_.find(chunk);
  if (found == asked_.end()) {
    Asked asked;
    if (disk_) asked.claim = disk_->claim(chunk);
    asked.stored = take_memory(chunk);
    found = asked_.emplace(chunk, std::move(asked)).first;
  }
  found->second.is_fetched = true;
  ++fetched_count_;
  return found->second;
}

RemoteChunks::Buffer RemoteChunks::end(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  --fetched_count_;
  return std::move(asked_.extract(chunk).mapped().stored);
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

bool RemoteChunks::find_on_disk(std::size_t chunk, Asked& asked) {
  if (!disk_) return false;
  if (asked.claim.state() == State::busy) asked.claim = wait_for_other(chunk);
  if (asked.claim.state() != State::stored) return false;
  if (load(chunk, asked.stored.bytes())) return true;
  asked.claim = disk_->claim(chunk);  // it was removed just now
  return false;
}

void RemoteChunks::receive(std::size_t chunk, Asked& asked, bool checks) {
  const ChunkSet::Location location = chunks_.find(chunk);
  const ChunkReader& part = chunks_.part(location);
  const MutableBytes stored = asked.stored.bytes();
  if (!part.is_in_one_place(location.chunk)) return part.fetch(location.chunk, stored, checks);
  {
    const std::lock_guard lock(mutex_);
    if (!asked.stored.transfer_) ask(chunk, asked);
  }
  static_cast<void>(asked.stored.transfer_->wait(stored.size()));
  if (checks) part.check(location.chunk, stored);
}

RemoteChunks::Buffer RemoteChunks::fetch(std::size_t chunk, bool checks) {
  Asked& asked = begin(chunk);
  try {
    if (find_on_disk(chunk, asked)) return end(chunk);
    checks = checks || disk_;
    std::uint64_t fetched = asked.stored.bytes().size();
    try {
      receive(chunk, asked, checks);
    } catch (const Error& error) {
      // What was damaged on its way comes whole at the second try.
      if (error.code() != ErrorCode::bad_data) throw;
      fetched += fetched;
      {
        const std::lock_guard lock(mutex_);
        asked.stored.transfer_.reset();
      }
      receive(chunk, asked, checks);
    }
    const bool is_kept = !disk_ || disk_->store(chunk, std::move(asked.claim), asked.stored.bytes());
    const std::lock_guard lock(mutex_);
    stats_.bytes += fetched;
    if (!is_kept) ++stats_.chunks_not_kept;
  } catch (...) {
    static_cast<void>(end(chunk));
    throw;
  }
  return end(chunk);
}

void RemoteChunks::begin_epoch(NextVisit next_visit) {
  if (disk_) disk_->begin_epoch(std::move(next_visit));
}

RemoteStats RemoteChunks::stats() const {
  const std::lock_guard lock(mutex_);
  RemoteStats stats = stats_;
  if (disk_) stats.max_disk_bytes = disk_->max_bytes();
  stats.no_disk = no_disk_;
  return stats;
}

void RemoteChunks::reset_stats() {
  const std::lock_guard lock(mutex_);
  stats_ = {};
}

}  // namespace chunkhit
