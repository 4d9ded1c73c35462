#include "cache/prepared_chunks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/remote/remote_file.h"
#include "base/words.h"
#include "cache/chunk_buffers.h"
#include "chunkhit/error.h"

namespace chunkhit {

void GiveBackMemory::operator()(std::uint8_t* memory) const {
  if (transfer) transfer->cancel();
  owner->give_back(memory);
}

void PreparedChunks::read(std::size_t chunk, MutableBytes stored, bool checks) {
  if (const PreparedChunk arrived = take(chunk, checks); arrived.memory) {
    std::ranges::copy(arrived.bytes(), stored.begin());
    return;
  }
  const ChunkSet::Location location = chunks_.find(chunk);
  chunks_.part(location).fetch(location.chunk, stored, checks);
}

/// Chunks of parts on servers: requested ahead, and kept on a local disk.
class RemoteChunks final : public PreparedChunks {
 public:
  RemoteChunks(const ChunkSet& chunks, const PreparedChunksSpec& spec);
  void ask(std::size_t chunk) override;
  [[nodiscard]] bool can_ask() const override;
  bool forget_asked() override;
  void forget(std::size_t chunk) override;
  [[nodiscard]] PreparedChunk take(std::size_t chunk, bool checks) override;
  void give_back(std::uint8_t* memory) override;
  [[nodiscard]] bool keeps_on_disk() const override { return disk_.has_value(); }
  void begin_epoch(NextVisit&& next_visit) override {
    if (disk_) disk_->begin_epoch(std::move(next_visit));
  }
  [[nodiscard]] PreparedStats stats() const override;
  void reset_stats() override;

 private:
  /// A chunk that was asked for, or is being taken.
  struct Asked {
    DiskCache::Claim claim;
    PreparedChunk stored;
    bool is_taken = false;
    [[nodiscard]] std::shared_ptr<Transfer>& transfer() { return stored.memory.get_deleter().transfer; }
  };
  [[nodiscard]] const RemoteFile* file_of(std::size_t chunk) const;
  [[nodiscard]] PreparedChunk take_memory(std::size_t chunk);
  [[nodiscard]] Asked& begin(std::size_t chunk);
  [[nodiscard]] PreparedChunk end(std::size_t chunk);
  void request(std::size_t chunk, Asked& asked);
  [[nodiscard]] bool find_on_disk(std::size_t chunk, Asked& asked);
  void receive(std::size_t chunk, Asked& asked, bool checks);
  void fetch(std::size_t chunk, Asked& asked, bool checks);
  [[nodiscard]] DiskCache::Claim wait_for_other(std::size_t chunk);

  PreparedChunksSpec spec_;
  std::optional<DiskCache> disk_;
  std::string no_disk_;                                               // why cache_dir is not used
  std::atomic<std::chrono::steady_clock::time_point> waits_again_{};  // for other processes
  std::mutex memory_mutex_;                                           // guards memory_; taken last
  ChunkBuffers memory_;
  mutable std::mutex mutex_;  // guards all below, but not what a taking thread does to its Asked
  std::map<std::size_t, Asked> asked_;
  std::size_t taken_count_ = 0;  // of asked_
  std::uint64_t not_kept_ = 0;   // fetched chunks, for lack of room on the disk
  PreparedStats stats_;
};

namespace {

using State = DiskCache::State;

// Another process that fetches a chunk is waited for, but not one that has only asked for it ahead, or was
// stopped; after that, none is for a while.
constexpr std::chrono::milliseconds kPollTime{2}, kMaxWait{500};
constexpr std::chrono::seconds kNoWait{10};

}  // namespace

RemoteChunks::RemoteChunks(const ChunkSet& chunks, const PreparedChunksSpec& spec)
    : PreparedChunks(chunks),
      spec_(spec),
      memory_(chunks.max_fetched_bytes(), std::min(chunks.chunk_count(), spec.max_asked + spec.kept_chunks)) {
  if (spec.cache_dir.empty()) return;
  try {
    disk_.emplace(chunks, spec.cache_dir, spec.cache_disk_bytes);
  } catch (const CacheLocked& locked) {
    no_disk_ = locked.what();
  }
}

/// The file that has a chunk, where a server has it.
const RemoteFile* RemoteChunks::file_of(std::size_t chunk) const {
  return chunks_.part(chunks_.find(chunk)).file().remote();
}

PreparedChunk RemoteChunks::take_memory(std::size_t chunk) {
  const std::lock_guard lock(memory_mutex_);
  PreparedChunk buffer;
  buffer.byte_count = chunks_.stored(chunks_.find(chunk)).stored_bytes;
  buffer.memory = {memory_.take(), GiveBackMemory{this}};
  return buffer;
}

void RemoteChunks::give_back(std::uint8_t* memory) {
  const std::lock_guard lock(memory_mutex_);
  memory_.give_back(memory);
}

bool RemoteChunks::can_ask() const {
  const std::lock_guard lock(mutex_);
  return asked_.size() - taken_count_ < spec_.max_asked;
}

void RemoteChunks::ask(std::size_t chunk) {
  if (file_of(chunk) == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (asked_.contains(chunk)) return;
  Asked asked;
  if (disk_) asked.claim = disk_->claim(chunk);
  if (asked.claim.state() == State::stored || asked.claim.state() == State::busy) return;
  asked.stored = take_memory(chunk);
  request(chunk, asked);
  asked_.emplace(chunk, std::move(asked));
}

/// Under the lock: asks the server for a chunk, whose bytes lie together in all parts that are not external.
void RemoteChunks::request(std::size_t chunk, Asked& asked) {
  const std::uint64_t offset = chunks_.stored(chunks_.find(chunk)).offset;
  asked.transfer() = file_of(chunk)->receive(offset, asked.stored.bytes());
}

bool RemoteChunks::forget_asked() {
  const std::lock_guard lock(mutex_);
  for (auto& [chunk, asked] : asked_)
    if (asked.transfer()) asked.transfer()->cancel();
  std::erase_if(asked_, [](const auto& each) { return !each.second.is_taken; });
  return true;
}

void RemoteChunks::forget(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  const auto found = asked_.find(chunk);
  if (found != asked_.end() && !found->second.is_taken) asked_.erase(found);
}

/// What `take` begins with: a chunk that was asked for ahead, or memory for it.
RemoteChunks::Asked& RemoteChunks::begin(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  auto found = asked_.find(chunk);
  if (found == asked_.end()) {
    Asked asked;
    if (disk_) asked.claim = disk_->claim(chunk);
    asked.stored = take_memory(chunk);
    found = asked_.emplace(chunk, std::move(asked)).first;
  }
  found->second.is_taken = true;
  ++taken_count_;
  return found->second;
}

PreparedChunk RemoteChunks::end(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  --taken_count_;
  return std::move(asked_.extract(chunk).mapped().stored);
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

/// Reads a chunk from the disk; a damaged one is removed there.
bool RemoteChunks::find_on_disk(std::size_t chunk, Asked& asked) {
  if (!disk_) return false;
  if (asked.claim.state() == State::busy) asked.claim = wait_for_other(chunk);
  if (asked.claim.state() != State::stored) return false;
  const ChunkSet::Location location = chunks_.find(chunk);
  const std::uint64_t block_bytes = chunks_.part(location).spec().block_bytes();
  const bool is_loaded = disk_->load(chunk, asked.stored.bytes());
  if (is_loaded && hash_chunk(asked.stored.bytes(), block_bytes).chunk == chunks_.stored(location).xxh3) {
    const std::lock_guard lock(mutex_);
    ++stats_.disk_chunks;
    return true;
  }
  if (is_loaded) disk_->remove(chunk);
  asked.claim = disk_->claim(chunk);
  return false;
}

void RemoteChunks::receive(std::size_t chunk, Asked& asked, bool checks) {
  {
    const std::lock_guard lock(mutex_);
    if (!asked.transfer()) request(chunk, asked);
  }
  const MutableBytes stored = asked.stored.bytes();
  static_cast<void>(asked.transfer()->wait(stored.size()));
  const ChunkSet::Location location = chunks_.find(chunk);
  if (checks) chunks_.part(location).check(location.chunk, stored);
}

void RemoteChunks::fetch(std::size_t chunk, Asked& asked, bool checks) {
  std::uint64_t fetched = asked.stored.bytes().size();
  try {
    receive(chunk, asked, checks);
  } catch (const Error& error) {
    // What was damaged on its way comes whole at the second try.
    if (error.code() != ErrorCode::bad_data) throw;
    fetched += fetched;
    {
      const std::lock_guard lock(mutex_);
      asked.transfer().reset();
    }
    receive(chunk, asked, checks);
  }
  const bool is_kept = !disk_ || disk_->store(chunk, std::move(asked.claim), asked.stored.bytes());
  const std::lock_guard lock(mutex_);
  stats_.remote_bytes += fetched;
  if (!is_kept) ++not_kept_;
}

/// What a disk is to keep is checked in any case.
PreparedChunk RemoteChunks::take(std::size_t chunk, bool checks) {
  if (file_of(chunk) == nullptr) return {};
  Asked& asked = begin(chunk);
  try {
    if (!find_on_disk(chunk, asked)) fetch(chunk, asked, checks || disk_);
  } catch (...) {
    static_cast<void>(end(chunk));
    throw;
  }
  return end(chunk);
}

PreparedStats RemoteChunks::stats() const {
  const std::lock_guard lock(mutex_);
  PreparedStats stats = stats_;
  if (not_kept_ > 0)
    stats.notices.push_back("cache_dir: " + count_text(not_kept_, "fetched chunk") +
                            " not kept, for lack of room: cache_disk_bytes is " +
                            bytes_text(static_cast<double>(disk_->max_bytes())) + ", or the disk is full");
  if (!no_disk_.empty()) stats.notices.push_back(no_disk_);
  return stats;
}

void RemoteChunks::reset_stats() {
  const std::lock_guard lock(mutex_);
  stats_ = {};
  not_kept_ = 0;
}

namespace {

bool is_remote(const ChunkSet& chunks) {
  return std::ranges::any_of(chunks.parts(),
                             [](const auto& part) { return part->file().remote() != nullptr; });
}

}  // namespace

/// As many as keep a fast and distant server busy.
std::size_t max_asked_chunks(const ChunkSet& chunks, std::uint64_t memory) {
  constexpr std::uint64_t kMaxBytes = 128 << 20, kMemoryShare = 8, kMinChunks = 2, kMaxChunks = 128;
  if (!is_remote(chunks)) return 0;
  const std::uint64_t bytes = std::min(kMaxBytes, memory / kMemoryShare);
  const std::uint64_t fitting = bytes / std::max<std::uint64_t>(1, chunks.max_fetched_bytes());
  return static_cast<std::size_t>(std::clamp(fitting, kMinChunks, kMaxChunks));
}

std::unique_ptr<PreparedChunks> prepare_chunks(const ChunkSet& chunks, const PreparedChunksSpec& spec) {
  if (is_remote(chunks)) return std::make_unique<RemoteChunks>(chunks, spec);
  return std::make_unique<PreparedChunks>(chunks);
}

}  // namespace chunkhit
