// Which sample comes at which place of an epoch: a function of (source, seed, epoch), the same for any number
// of threads and ranks. The order is a format: schemas/order.md.
#pragma once

#include <cstdint>
#include <vector>

#include "batch/chunk_grid.h"
#include "batch/permutation.h"
#include "chunkhit/reader.h"

namespace chunkhit {

struct OrderSpec {
  Shuffle shuffle = Shuffle::none;
  std::uint64_t seed = 0;
  std::uint32_t window_chunks = 64;  ///< at least 1
  bool operator==(const OrderSpec&) const = default;
};

/// The order of one epoch. A place is a number in [0, sample_count). Chunks are visited in slots: slot s
/// holds chunk chunk_at(s); Shuffle::none and window need them one after the other. Any thread may ask.
class EpochOrder {
 public:
  EpochOrder(const ChunkGrid& grid, const OrderSpec& spec, std::uint64_t epoch);
  /// A window's permutation and chunks, kept by whoever asks for place after place, over
  /// any epochs and seeds of one source.
  class Window {
   public:
    Window() = default;

   private:
    friend class EpochOrder;
    std::uint64_t window_seed_ = 0;  // of the order that entered it
    std::uint64_t first_place_ = 0;
    std::uint64_t end_place_ = 0;
    std::uint64_t first_slot_ = 0;
    Permutation places_{0, 0};
    std::vector<std::uint64_t> chunks_;  // of its slots; none where there are many
  };
  /// The sample at a place. With a window, places near the last one cost less.
  [[nodiscard]] ChunkGrid::Place operator()(std::uint64_t place, Window& window) const;
  [[nodiscard]] ChunkGrid::Place operator()(std::uint64_t place) const;
  /// The chunk that is visited as number `slot` (none, window; global has no slots, and gives `slot`).
  [[nodiscard]] std::uint64_t chunk_at(std::uint64_t slot) const;
  /// The slots [first, end) that the places [first, end) need, end ≤ sample_count: whole windows; with global
  /// all chunks. Both ends grow with the places.
  struct Slots {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    bool operator==(const Slots&) const = default;
  };
  [[nodiscard]] Slots slots_of(std::uint64_t first_place, std::uint64_t end_place) const;

 private:
  [[nodiscard]] std::uint64_t window_end(std::uint64_t first_slot) const;
  [[nodiscard]] std::uint64_t window_start(std::uint64_t slot) const { return slot - slot % window_chunks_; }
  void enter_window(std::uint64_t place, Window& window) const;
  void list_chunks(Window& window) const;
  [[nodiscard]] ChunkGrid::Place find_outside_windows(std::uint64_t place) const;
  [[nodiscard]] ChunkGrid::Place find_in(const Window& window, std::uint64_t place) const;

  Shuffle shuffle_;
  std::uint64_t window_chunks_;
  std::uint64_t window_seed_;
  Permutation shuffled_;  // of the samples (global) or of the chunks (window)
  ChunkGrid slots_;       // the chunks in the order of their visits
};

/// Returns how well an order mixes. Exact where all chunks have as many samples, or one window holds all.
[[nodiscard]] MixingInfo mixing_of(const ChunkGrid& grid, const OrderSpec& spec);

}  // namespace chunkhit
