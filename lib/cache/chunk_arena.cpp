#include "cache/chunk_arena.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <new>
#include <utility>

#include "base/bytes.h"
#include "base/process_state.h"
#include "base/remote/http_client.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

using Clock = std::chrono::steady_clock;

/// A process that neither ends nor finishes a chunk is left alone after a while.
constexpr std::chrono::seconds kMaxWait{5}, kMaxWaitInAll{60};
constexpr long kPollNanoseconds = 50'000'000;

// The state of a chunk that is being filled: 2, the process's id (22 bits) and when it started (40 bits).
constexpr std::uint64_t kFilling = 2;
constexpr unsigned kPidShift = 2, kStartShift = 24;
constexpr std::uint64_t kPidMask = (1 << 22) - 1, kStartMask = (std::uint64_t{1} << 40) - 1;

std::uint64_t filling_by(std::uint64_t pid, std::uint64_t start) {
  return kFilling | (pid & kPidMask) << kPidShift | (start & kStartMask) << kStartShift;
}

std::atomic<std::uint64_t> own_state{0};

/// The state of chunks that this process fills, once it has claimed one; else 0.
std::uint64_t known_own_state() {
  const std::uint64_t state = own_state.load(std::memory_order_relaxed);
  return (state >> kPidShift & kPidMask) == (static_cast<std::uint64_t>(::getpid()) & kPidMask) ? state : 0;
}

std::uint64_t filling_by_this_process() {
  if (const std::uint64_t state = known_own_state(); state != 0) return state;
  const auto pid = static_cast<std::uint64_t>(::getpid());
  const auto process = process_state(pid);
  if (!process || !process->is_known)
    throw Error(ErrorCode::try_again, "/proc/self/stat cannot be read: too many files may be open");
  own_state.store(filling_by(pid, process->start), std::memory_order_relaxed);
  return known_own_state();
}

/// The process that fills a chunk; nothing where none does, or not any more.
std::optional<ProcessState> process_that_fills(std::uint64_t state) {
  if ((state & kFilling) == 0) return std::nullopt;
  const auto process = process_state(state >> kPidShift & kPidMask);
  const bool is_same =
      process && (!process->is_known || (process->start & kStartMask) == state >> kStartShift);
  return is_same ? process : std::nullopt;
}

/// Waits for another count of changes, a while at most.
void wait_for_change(std::atomic<std::uint32_t>& changes, std::uint32_t seen) {
  const timespec time{0, kPollNanoseconds};
  ::syscall(SYS_futex, &changes, FUTEX_WAIT, seen, &time, nullptr, 0);
}

}  // namespace

ChunkArena::ChunkArena(const std::vector<std::uint64_t>& sizes, std::optional<std::uint64_t> id) {
  starts_.push_back(0);
  for (const std::uint64_t size : sizes) starts_.push_back(starts_.back() + round_up(size, kCacheLineBytes));
  // Samples that begin with a page, as they do in their file, are copied faster.
  const std::size_t table_bytes =
      round_up(kCacheLineBytes + sizes.size() * (sizeof *states_ + sizeof *used_), SharedMemory::kPageBytes);
  const std::size_t bytes = table_bytes + starts_.back();
  if (id)
    shared_ = std::make_unique<SharedMemory>(*id, bytes);
  else
    own_ = MemoryMap::of_memory(bytes);
  std::uint8_t* const memory = shared_ ? shared_->data() : own_.data();
  // New memory is zeros: no changes, kEmpty, not used.
  changes_ = reinterpret_cast<std::atomic<std::uint32_t>*>(memory);
  states_ = reinterpret_cast<State*>(memory + kCacheLineBytes);
  used_ = reinterpret_cast<std::atomic<std::uint8_t>*>(states_ + sizes.size());
  data_ = memory + table_bytes;
  if (shared_) shared_->populate(memory, table_bytes);
}

ChunkArena::Claim ChunkArena::claim(std::size_t chunk, const std::atomic<std::uint32_t>* interrupts) {
  if (shared_) shared_->announce();
  const std::uint32_t interrupt = interrupts != nullptr ? interrupts->load() : 0;
  const auto first = Clock::now();
  auto begin = first;
  for (std::uint32_t before = changes_->load();;) {
    const std::uint32_t changes = changes_->load();
    if (std::exchange(before, changes) != changes) begin = Clock::now();
    const std::uint64_t seen = states_[chunk].load(std::memory_order_acquire);
    if (seen == kReady) return populated(chunk, Claim::filled);
    const auto other = process_that_fills(seen);
    if (!other && take(chunk, seen)) return populated(chunk, Claim::own);
    if (!other) continue;
    // A thread of this process ends in any case, and has the chunk's transfer.
    const auto now = Clock::now();
    if (seen != known_own_state() &&
        (other->is_stopped || now - begin > kMaxWait || now - first > kMaxWaitInAll ||
         (interrupts != nullptr && *interrupts != interrupt)))
      return Claim::stuck;
    if (const std::atomic<bool>* const stop = stop_of_thread(); stop != nullptr && *stop)
      throw Error(ErrorCode::try_again, "reading was stopped");
    wait_for_change(*changes_, changes);
  }
}

ChunkArena::Claim ChunkArena::try_claim(std::size_t chunk) {
  if (shared_) shared_->announce();
  const std::uint64_t seen = states_[chunk].load(std::memory_order_acquire);
  if (seen == kReady) return Claim::filled;
  return !process_that_fills(seen) && take(chunk, seen) ? populated(chunk, Claim::own) : Claim::stuck;
}

bool ChunkArena::reserve(std::size_t chunk) {
  if (shared_) shared_->announce();
  return take(chunk, kEmpty);
}

bool ChunkArena::take(std::size_t chunk, std::uint64_t seen) {
  return states_[chunk].compare_exchange_strong(seen, filling_by_this_process());
}

/// What is filled by others is mapped at once, as a fault for each page takes longer than reading it.
ChunkArena::Claim ChunkArena::populated(std::size_t chunk, Claim claim) {
  if (!shared_) return claim;
  try {
    shared_->populate(data_ + starts_[chunk], starts_[chunk + 1] - starts_[chunk]);
  } catch (...) {
    if (claim == Claim::own) give_up(chunk);
    throw;
  }
  return claim;
}

/// Ends a claim of this process; nothing where it has none any more.
void ChunkArena::end(std::size_t chunk, std::uint64_t state) {
  std::uint64_t own = known_own_state();
  if (own != 0 && states_[chunk].compare_exchange_strong(own, state)) wake();
}

void ChunkArena::wake() {
  changes_->fetch_add(1);
  ::syscall(SYS_futex, changes_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void ChunkArena::finish(std::size_t chunk) { end(chunk, kReady); }
void ChunkArena::give_up(std::size_t chunk) { end(chunk, kEmpty); }

void ChunkArena::forget(std::size_t chunk) {
  if (!shared_) states_[chunk] = kEmpty;
}

}  // namespace chunkhit
