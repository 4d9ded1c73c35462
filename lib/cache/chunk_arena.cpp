#include "cache/chunk_arena.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <new>

#include "base/bytes.h"
#include "base/process_state.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

using Clock = std::chrono::steady_clock;

/// A process that neither ends nor finishes a chunk is left alone after a while.
constexpr std::chrono::seconds kMaxWait{5};
constexpr long kPollNanoseconds = 50'000'000;
constexpr std::size_t kPageBytes = 4096;

// The state of a chunk that is being filled: 2, the process's id (22 bits) and when it started (40 bits).
constexpr std::uint64_t kFilling = 2;
constexpr unsigned kPidShift = 2, kStartShift = 24;
constexpr std::uint64_t kPidMask = (1 << 22) - 1, kStartMask = (std::uint64_t{1} << 40) - 1;

std::uint64_t filling_by(std::uint64_t pid, std::uint64_t start) {
  return kFilling | (pid & kPidMask) << kPidShift | (start & kStartMask) << kStartShift;
}

/// The state of a chunk that this process fills.
std::uint64_t filling_by_this_process() {
  static std::atomic<std::uint64_t> known{0};
  const auto pid = static_cast<std::uint64_t>(::getpid());
  std::uint64_t state = known.load(std::memory_order_relaxed);
  if (state == 0 || (state >> kPidShift & kPidMask) != (pid & kPidMask)) {
    const auto process = process_state(pid);
    state = filling_by(pid, process ? process->start : 0);
    known.store(state, std::memory_order_relaxed);
  }
  return state;
}

/// The process that fills a chunk; nothing where none does, or not any more.
std::optional<ProcessState> process_that_fills(std::uint64_t state) {
  if ((state & kFilling) == 0) return std::nullopt;
  const auto process = process_state(state >> kPidShift & kPidMask);
  const bool is_same = process && (process->start & kStartMask) == state >> kStartShift;
  return is_same ? process : std::nullopt;
}

/// Waits for another count of changes, a while at most.
void wait_for_change(std::atomic<std::uint32_t>& changes, std::uint32_t seen) {
  const timespec time{0, kPollNanoseconds};
  ::syscall(SYS_futex, &changes, FUTEX_WAIT, seen, &time, nullptr, 0);
}

/// Gets the pages of some memory at once. Where a page cannot be had, writing to it would end the process.
void take_pages(std::uint8_t* memory, std::size_t bytes) {
  static const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t before = reinterpret_cast<std::uintptr_t>(memory) % page_bytes;
  // Linux before 5.14 does not know it.
  if (::madvise(memory - before, before + bytes, MADV_POPULATE_WRITE) != 0 && errno != EINVAL)
    throw std::bad_alloc();
}

}  // namespace

ChunkArena::ChunkArena(const std::vector<std::uint64_t>& sizes, std::optional<std::uint64_t> id) {
  starts_.push_back(0);
  for (const std::uint64_t size : sizes) starts_.push_back(starts_.back() + round_up(size, kCacheLineBytes));
  // Samples that begin with a page, as they do in their file, are copied faster.
  const std::size_t table_bytes =
      round_up(kCacheLineBytes + sizes.size() * (sizeof *states_ + sizeof *used_), kPageBytes);
  const std::size_t bytes = table_bytes + starts_.back();
  if (id) {
    try {
      shared_ = std::make_unique<SharedMemory>(*id, bytes);
    } catch (const Error& error) {
      notice_ = error.what();
    }
  }
  if (!shared_) own_ = MemoryMap::of_memory(bytes);
  std::uint8_t* const memory = shared_ ? shared_->data() : own_.data();
  // New memory is zeros: no changes, kEmpty, not used.
  changes_ = reinterpret_cast<std::atomic<std::uint32_t>*>(memory);
  states_ = reinterpret_cast<State*>(memory + kCacheLineBytes);
  used_ = reinterpret_cast<std::atomic<std::uint8_t>*>(states_ + sizes.size());
  data_ = memory + table_bytes;
}

ChunkArena::Claim ChunkArena::claim(std::size_t chunk) {
  if (shared_) shared_->announce();
  const auto begin = Clock::now();
  for (;;) {
    const std::uint32_t changes = changes_->load();
    const std::uint64_t seen = states_[chunk].load(std::memory_order_acquire);
    if (seen == kReady) return prepare(chunk, Claim::filled);
    const auto other = process_that_fills(seen);
    if (!other && take(chunk, seen)) return prepare(chunk, Claim::own);
    if (!other) continue;
    if (other->is_stopped || Clock::now() - begin > kMaxWait) return Claim::stuck;
    wait_for_change(*changes_, changes);
  }
}

ChunkArena::Claim ChunkArena::try_claim(std::size_t chunk) {
  if (shared_) shared_->announce();
  const std::uint64_t seen = states_[chunk].load(std::memory_order_acquire);
  if (seen == kReady) return Claim::filled;
  return !process_that_fills(seen) && take(chunk, seen) ? prepare(chunk, Claim::own) : Claim::stuck;
}

bool ChunkArena::take(std::size_t chunk, std::uint64_t seen) {
  return states_[chunk].compare_exchange_strong(seen, filling_by_this_process());
}

/// What is filled by others is mapped at once, as a fault for each page takes longer than reading it.
ChunkArena::Claim ChunkArena::prepare(std::size_t chunk, Claim claim) {
  if (!shared_) return claim;
  try {
    take_pages(data_ + starts_[chunk], starts_[chunk + 1] - starts_[chunk]);
  } catch (...) {
    if (claim == Claim::own) give_up(chunk);
    throw;
  }
  return claim;
}

void ChunkArena::set(std::size_t chunk, std::uint64_t state) {
  states_[chunk].store(state, std::memory_order_release);
  if (!shared_) return;
  changes_->fetch_add(1);
  ::syscall(SYS_futex, changes_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void ChunkArena::finish(std::size_t chunk) { set(chunk, kReady); }
void ChunkArena::give_up(std::size_t chunk) { set(chunk, kEmpty); }

void ChunkArena::forget(std::size_t chunk) {
  if (!shared_) set(chunk, kEmpty);
}

}  // namespace chunkhit
