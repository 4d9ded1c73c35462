// Which sample comes at which position of an epoch: a function of (source, seed, epoch), the same for any
// number of threads and ranks. The order is a format: schemas/order.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "chunkhit/loader.h"

namespace chunkhit {

/// A keyed permutation of [0, count): a Feistel network over a · b ≥ count numbers, a a power of two near the
/// root of count, b as small as it may be, walked in cycles until it lands inside (Black and Rogaway 2002,
/// method 3). The steps add instead of xor, so that odd permutations are as likely as even ones. Two keys
/// give two unrelated permutations.
class Permutation {
 public:
  Permutation(std::uint64_t count, std::uint64_t key);
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Where `index` < count() goes.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t index) const;
  /// Which index goes to `position` < count().
  [[nodiscard]] std::uint64_t inverse(std::uint64_t position) const;

 private:
  // Of few numbers each step can choose little, so more are needed until every permutation is equally likely.
  static constexpr std::uint64_t kFewNumbers = 64;
  static constexpr std::size_t kStepsOfFew = 32;
  static constexpr std::size_t kSteps = 10;
  [[nodiscard]] std::uint64_t apply_steps(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t undo_steps(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t high_shift(std::uint64_t low, std::uint64_t step_key) const;

  std::uint64_t count_;
  std::size_t step_count_;
  std::uint32_t low_bits_;    // a = 2^low_bits_
  std::uint64_t low_mask_;    // a - 1
  std::uint64_t high_count_;  // b
  std::array<std::uint64_t, kStepsOfFew> step_keys_;
};

/// The chunks of a source, in its own order: all of `chunk_samples` samples but some. Grows with the
/// exceptions only.
class ChunkGrid {
 public:
  /// `sample_counts`: of each chunk. Throws bad_data for a chunk of none, or when the sum takes more than 64
  /// bits.
  explicit ChunkGrid(std::span<const std::uint64_t> sample_counts);
  [[nodiscard]] std::uint64_t chunk_count() const { return chunk_count_; }
  [[nodiscard]] std::uint64_t sample_count() const { return sample_count_; }
  [[nodiscard]] std::uint64_t chunk_samples() const { return chunk_samples_; }  ///< of most chunks
  /// Samples of a typical chunk: of most, or where most differ, as where chunks are cut by bytes, the mean.
  [[nodiscard]] std::uint64_t typical_samples() const;
  /// The first sample of a chunk; sample_count() for chunk chunk_count().
  [[nodiscard]] std::uint64_t first_sample(std::uint64_t chunk) const;
  [[nodiscard]] std::uint64_t sample_count_of(std::uint64_t chunk) const;
  struct Location {
    std::uint64_t chunk = 0;
    std::uint64_t in_chunk = 0;
    bool operator==(const Location&) const = default;
  };
  /// Locates a sample < sample_count().
  [[nodiscard]] Location find(std::uint64_t sample) const;
  /// The same chunks in another order: its chunk s is this one's visited(s).
  [[nodiscard]] ChunkGrid reordered(const Permutation& visited) const;
  /// The sum of n · (n - 1) over the chunks' sample counts n: ordered pairs of samples from one chunk.
  [[nodiscard]] double pairs_in_chunks() const;

 private:
  struct Exception {
    std::uint64_t chunk;
    std::uint64_t sample_count;
    std::uint64_t first_sample;
    [[nodiscard]] std::uint64_t end_sample() const { return first_sample + sample_count; }
  };
  void place_exceptions();

  std::uint64_t chunk_count_ = 0;
  std::uint64_t sample_count_ = 0;
  std::uint64_t chunk_samples_ = 0;
  std::vector<Exception> exceptions_;  // ascending
};

struct OrderSpec {
  Shuffle shuffle = Shuffle::none;
  std::uint64_t seed = 0;
  std::uint32_t window_chunks = 64;  ///< at least 1
  bool operator==(const OrderSpec&) const = default;
};

/// The order of one epoch. A position is a number in [0, sample_count). Chunks are visited in slots: slot s
/// holds chunk chunk_at(s); Shuffle::none and window need them one after the other. Any thread may ask.
class EpochOrder {
 public:
  EpochOrder(const ChunkGrid& grid, const OrderSpec& spec, std::uint64_t epoch);
  /// A window's permutation and chunks, kept by a caller that asks for position after position, over
  /// any epochs and seeds of one source.
  class Window {
   public:
    Window() = default;

   private:
    friend class EpochOrder;
    std::uint64_t window_seed_ = 0;  // of the order that entered it
    std::uint64_t first_position_ = 0;
    std::uint64_t end_position_ = 0;
    std::uint64_t first_slot_ = 0;
    Permutation positions_{0, 0};
    std::vector<std::uint64_t> chunks_;  // of its slots; none where there are many
  };
  /// The sample at a position. With a window, positions near the last one cost less.
  [[nodiscard]] ChunkGrid::Location operator()(std::uint64_t position, Window& window) const;
  [[nodiscard]] ChunkGrid::Location operator()(std::uint64_t position) const;
  /// The chunk that is visited as number `slot` (none, window; global has no slots, and gives `slot`).
  [[nodiscard]] std::uint64_t chunk_at(std::uint64_t slot) const;
  /// The slot that visits a chunk.
  [[nodiscard]] std::uint64_t slot_of(std::uint64_t chunk) const;
  /// The slots [first, end) that the positions [first, end) need, end ≤ sample_count: whole windows; with
  /// global all chunks. Both ends grow with the positions.
  struct Slots {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    bool operator==(const Slots&) const = default;
  };
  [[nodiscard]] Slots slots_of(std::uint64_t first_position, std::uint64_t end_position) const;

 private:
  [[nodiscard]] std::uint64_t window_end(std::uint64_t first_slot) const;
  [[nodiscard]] std::uint64_t window_start(std::uint64_t slot) const { return slot - slot % window_chunks_; }
  void enter_window(std::uint64_t position, Window& window) const;
  void list_chunks(Window& window) const;
  [[nodiscard]] ChunkGrid::Location find_outside_windows(std::uint64_t position) const;
  [[nodiscard]] ChunkGrid::Location find_in(const Window& window, std::uint64_t position) const;

  Shuffle shuffle_;
  std::uint64_t window_chunks_;
  std::uint64_t window_seed_;
  Permutation shuffled_;  // of the samples (global) or of the chunks (window)
  ChunkGrid slots_;       // the chunks in the order of their visits
};

/// Returns how well an order mixes. Exact where all chunks have as many samples, or one window holds all.
[[nodiscard]] MixingInfo mixing_of(const ChunkGrid& grid, const OrderSpec& spec);

}  // namespace chunkhit
