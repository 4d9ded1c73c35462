// What a ChunkCache asks for that processes share.
#include <unistd.h>

#include <chrono>
#include <system_error>
#include <thread>

#include "base/per_thread.h"
#include "cache/chunk_cache.h"

namespace chunkhit {

/// Under the lock: no other process asks for the chunk, and it is filled once it is there.
void ChunkCache::ask_reserved(std::size_t chunk) {
  try {
    prepared_->ask(chunk);
  } catch (...) {
    arena_.give_up(chunk);
    throw;
  }
  entries_[chunk].reserved_by = ::getpid();  // from now on a thread may take it
  try {
    // A forked child has not the thread of its parent, and must not wait for it either.
    if (filler_process_ != ::getpid()) {
      static_cast<void>(filler_.release());
      filler_ = std::make_unique<ChunkFiller>([this](std::size_t asked) { fill_asked(asked); });
      filler_process_ = ::getpid();
    }
    filler_->add(chunk);
  } catch (const std::system_error&) {
    // Without a thread it is filled when it is needed here.
  }
}

void ChunkCache::fill_asked(std::size_t chunk) {
  // By now a thread may have taken it that needs it.
  if (entries_[chunk].reserved_by != ::getpid()) return;
  static PerThread<ByteBuffer> scratch;
  const ChunkSet::Location location = chunks_.find(chunk);
  try {
    if (spec_.cache == Cache::decoded)
      static_cast<void>(fill_decoded(chunk, location, scratch.get()));
    else
      static_cast<void>(fill_stored(chunk, location));
  } catch (const std::exception&) {
    // The thread that needs the chunk meets the error, too.
  }
}

/// Gives up what the thread has not begun.
void ChunkCache::give_up_asked() {
  const std::lock_guard lock(mutex_);
  if (!filler_ || filler_process_ != ::getpid()) return;
  for (const std::size_t chunk : filler_->forget())
    if (entries_[chunk].reserved_by.exchange(0) == ::getpid()) arena_.give_up(chunk);
}

bool ChunkCache::forget_asked() {
  ++interrupts_;
  give_up_asked();
  return prepared_->forget_asked();
}

ChunkCache::~ChunkCache() {
  if (filler_process_ != ::getpid()) static_cast<void>(filler_.release());
  // It may wait for what does not arrive, or be about to.
  while (filler_ && !filler_->stop() && forget_asked())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  give_up_asked();
}

}  // namespace chunkhit
