#include "cache/arena_chunks.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/per_thread.h"
#include "base/resources.h"
#include "base/words.h"

namespace chunkhit {
namespace {

std::uint64_t kept_bytes(const ChunkSet& chunks, Cache cache, std::size_t chunk) {
  const ChunkSet::Location location = chunks.find(chunk);
  return cache == Cache::decoded ? chunks.decoded_bytes(location) : chunks.stored(location).stored_bytes;
}

}  // namespace

std::optional<std::uint64_t> arena_id(const ChunkSet& chunks, Kept kept, bool checks) {
  std::optional<std::uint64_t> id = chunks.contents_id();
  // What was not compared with its hashes is for processes that do not compare either.
  if (id) id = *id ^ (2 * static_cast<std::uint64_t>(kept) + (checks ? 1 : 0));
  return id;
}

ChunkArena make_arena(const ChunkSet& chunks, Cache cache, bool checks, bool shares) {
  if (cache == Cache::none) return {};
  const bool is_decoded = cache == Cache::decoded;
  std::vector<std::uint64_t> sizes;
  for (std::size_t chunk = 0; chunk < chunks.chunk_count(); ++chunk)
    sizes.push_back(kept_bytes(chunks, cache, chunk));
  const Kept kept = is_decoded ? Kept::decoded : Kept::stored;
  const std::uint64_t bytes = is_decoded ? chunks.decoded_bytes() : chunks.stored_bytes();
  return with_memory(
      std::string(is_decoded ? "cache decoded: " : "cache compressed: ") +
          bytes_text(static_cast<double>(bytes)) +
          " of samples are more memory than can be had: take cache none",
      [&] { return ChunkArena(sizes, shares ? arena_id(chunks, kept, checks) : std::nullopt); });
}

/// A thread that fills chunks that this process has asked a server for, one after the other, so that other
/// processes do not wait until they are needed here.
class ChunkFiller {
 public:
  /// `fill`: throws nothing.
  explicit ChunkFiller(std::function<void(std::size_t chunk)> fill)
      : fill_(std::move(fill)), thread_([this](const std::stop_token& stop) { run(stop); }) {}
  void add(std::size_t chunk) {
    const std::lock_guard lock(mutex_);
    asked_.push_back(chunk);
    changed_.notify_one();
  }
  /// Returns the chunks whose filling has not begun, which is given up.
  [[nodiscard]] std::deque<std::size_t> forget() {
    const std::lock_guard lock(mutex_);
    return std::exchange(asked_, {});
  }
  /// Ends the thread after the chunk that it fills; returns whether it has ended.
  bool stop() {
    thread_.request_stop();
    return has_ended_;
  }

 private:
  void run(const std::stop_token& stop) {
    for (std::unique_lock lock(mutex_); changed_.wait(lock, stop, [&] { return !asked_.empty(); });) {
      if (stop.stop_requested()) break;
      const std::size_t chunk = asked_.front();
      asked_.pop_front();
      lock.unlock();
      fill_(chunk);
      lock.lock();
    }
    has_ended_ = true;
  }

  const std::function<void(std::size_t)> fill_;
  std::mutex mutex_;  // guards the two below
  std::deque<std::size_t> asked_;
  std::condition_variable_any changed_;
  std::atomic<bool> has_ended_{false};
  std::jthread thread_;  // last: uses all above
};

ArenaChunks::ArenaChunks(ChunkReads& reads, Cache cache, ChunkArena arena)
    : reads_(reads), cache_(cache), arena_(std::move(arena)), chunks_(reads.chunks().chunk_count()) {}

ArenaChunks::~ArenaChunks() {
  if (filler_process_ != ::getpid()) static_cast<void>(filler_.release());
  // It may wait for what does not arrive, or be about to.
  while (filler_ && !filler_->stop() && forget_asked())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  give_up_asked();
}

MutableBytes ArenaChunks::memory(std::size_t chunk) const {
  return {arena_.chunk(chunk), kept_bytes(reads_.chunks(), cache_, chunk)};
}

/// A chunk that was reserved is this process's own.
ChunkArena::Claim ArenaChunks::claim(std::size_t chunk) {
  if (chunks_[chunk].reserved_by.exchange(0) != ::getpid()) return arena_.claim(chunk, &interrupts_);
  arena_.claim_reserved(chunk);
  return ChunkArena::Claim::own;
}

bool ArenaChunks::fill(std::size_t chunk, ByteBuffer& scratch) {
  std::atomic<bool>& was_found = chunks_[chunk].was_found;
  if (was_found && arena_.is_ready(chunk)) return true;
  const ChunkArena::Claim claim = this->claim(chunk);
  if (claim == ChunkArena::Claim::stuck) return false;
  if (claim == ChunkArena::Claim::own) {
    try {
      fill_now(chunk, scratch);
    } catch (...) {
      arena_.give_up(chunk);
      throw;
    }
    was_found = true;  // before a thread that waits for it finds it there
    arena_.finish(chunk);
    return true;
  }
  reads_.prepared().forget(chunk);
  if (!was_found.exchange(true)) reads_.count_shared();
  return true;
}

void ArenaChunks::fill_now(std::size_t chunk, ByteBuffer& scratch) {
  const ChunkSet::Location location = reads_.chunks().find(chunk);
  if (keeps_stored())
    reads_.fetch(chunk, location, memory(chunk));
  else
    reads_.load(chunk, location, memory(chunk), scratch);
}

void ArenaChunks::forget(std::size_t chunk) {
  if (arena_.is_ready(chunk)) arena_.forget(chunk);
}

void ArenaChunks::ask(std::size_t chunk) {
  if (!arena_.reserve(chunk)) return;
  try {
    reads_.prepared().ask(chunk);
  } catch (...) {
    arena_.give_up(chunk);
    throw;
  }
  chunks_[chunk].reserved_by = ::getpid();  // from now on a thread may take it
  try {
    start_filling(chunk);
  } catch (const std::system_error&) {
    // Without a thread it is filled when it is needed here.
  }
}

/// A forked child has not the thread of its parent, and must not wait for it either.
void ArenaChunks::start_filling(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  if (filler_process_ != ::getpid()) {
    static_cast<void>(filler_.release());
    filler_ = std::make_unique<ChunkFiller>([this](std::size_t asked) { fill_asked(asked); });
    filler_process_ = ::getpid();
  }
  filler_->add(chunk);
}

void ArenaChunks::fill_asked(std::size_t chunk) {
  // By now a thread may have taken it that needs it.
  if (chunks_[chunk].reserved_by != ::getpid()) return;
  static PerThread<ByteBuffer> scratch;
  try {
    static_cast<void>(fill(chunk, scratch.get()));
  } catch (const std::exception&) {
    // The thread that needs the chunk meets the error, too.
  }
}

/// Gives up what the thread has not begun.
void ArenaChunks::give_up_asked() {
  const std::lock_guard lock(mutex_);
  if (!filler_ || filler_process_ != ::getpid()) return;
  for (const std::size_t chunk : filler_->forget())
    if (chunks_[chunk].reserved_by.exchange(0) == ::getpid()) arena_.give_up(chunk);
}

bool ArenaChunks::forget_asked() {
  ++interrupts_;
  give_up_asked();
  return reads_.prepared().forget_asked();
}

}  // namespace chunkhit
