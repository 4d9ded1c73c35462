// Memory in which chunks stay: one copy for the processes that read the same ones, where it can be shared.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/chunk_buffers.h"
#include "cache/shared_memory.h"

namespace chunkhit {

/// Room for each of some chunks. A thread claims a chunk, fills it, and finishes it; after that nothing
/// writes there, and every process reads it. Any thread may call anything; threads of one process that
/// `claim` the same chunk come one after the other.
class ChunkArena {
 public:
  ChunkArena() = default;
  /// `sizes`: bytes of each chunk. `id`: tells the contents from other contents, for processes that share
  /// them; nothing: they are not shared. Throws as SharedMemory.
  ChunkArena(const std::vector<std::uint64_t>& sizes, std::optional<std::uint64_t> id);

  [[nodiscard]] std::uint8_t* chunk(std::size_t chunk) const { return data_ + starts_[chunk]; }
  /// Whether a chunk was finished.
  [[nodiscard]] bool is_ready(std::size_t chunk) const {
    return states_[chunk].load(std::memory_order_acquire) == kReady;
  }

  /// Whether nobody has filled a chunk, and nobody fills it now.
  [[nodiscard]] bool is_empty(std::size_t chunk) const { return states_[chunk] == kEmpty; }

  enum class Claim : std::uint8_t {
    filled,  ///< the chunk is ready, another process has filled it
    own,     ///< the caller is to fill it, and to call `finish` or `give_up`
    stuck,   ///< a process that was stopped fills it, or no process has finished a chunk for seconds: the
             ///< caller needs memory of its own
  };
  /// Waits while another process fills the chunk; takes over from one that has ended. A change of
  /// `interrupts` ends the wait as `stuck`. Throws std::bad_alloc, and try_again where the state of processes
  /// cannot be read or StopScope ends waiting.
  [[nodiscard]] Claim claim(std::size_t chunk, const std::atomic<std::uint32_t>* interrupts = nullptr);
  /// The same without waiting: `stuck` where a thread of any process fills the chunk now.
  [[nodiscard]] Claim try_claim(std::size_t chunk);
  /// Claims an empty chunk that the caller will fill, by `claim_reserved`; returns whether it could.
  [[nodiscard]] bool reserve(std::size_t chunk);
  /// Gets memory for a chunk that was reserved. Throws std::bad_alloc after `give_up`.
  void claim_reserved(std::size_t chunk) { static_cast<void>(populated(chunk, Claim::own)); }
  void finish(std::size_t chunk);
  void give_up(std::size_t chunk);
  /// Gives a ready chunk up, to fill it again, where no other process may read it.
  void forget(std::size_t chunk);
  /// Whether this is the first call for a chunk, of all processes.
  [[nodiscard]] bool first_use(std::size_t chunk) { return used_[chunk].exchange(1) == 0; }
  [[nodiscard]] bool is_shared() const { return shared_ != nullptr; }
  /// Memory for the state of each chunk.
  static constexpr std::uint64_t kStateBytes = 17;

 private:
  using State = std::atomic<std::uint64_t>;
  static_assert(State::is_always_lock_free);
  static constexpr std::uint64_t kEmpty = 0, kReady = 1;  // others: the process that fills it

  [[nodiscard]] bool take(std::size_t chunk, std::uint64_t seen);
  [[nodiscard]] Claim populated(std::size_t chunk, Claim claim);
  void end(std::size_t chunk, std::uint64_t state);
  void wake();

  std::vector<std::uint64_t> starts_;  // of each chunk, and the end
  std::unique_ptr<SharedMemory> shared_;
  MemoryMap own_;
  std::atomic<std::uint32_t>* changes_ = nullptr;  // counts what was finished and given up
  State* states_ = nullptr;                        // of each chunk
  std::atomic<std::uint8_t>* used_ = nullptr;      // of each chunk
  std::uint8_t* data_ = nullptr;
};

}  // namespace chunkhit
