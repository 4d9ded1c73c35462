// Which sample comes at which position of an epoch, and how much that mixes: a function of (source, seed,
// epoch), the same for any number of threads and ranks. The order is a format: schemas/order.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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
  /// `sample_counts`: of each chunk. Throws bad_data for a chunk of none, unless `may_be_empty`, or when the
  /// sum takes more than 64 bits.
  explicit ChunkGrid(std::span<const std::uint64_t> sample_counts, bool may_be_empty = false);
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

class EpochSamples;

/// The location of a sample, and the uses of it in the same epoch that come before, where it is drawn more
/// than once.
struct DrawnSample {
  std::uint64_t chunk = 0;
  std::uint64_t in_chunk = 0;
  std::uint64_t repeat = 0;
  bool operator==(const DrawnSample&) const = default;
};

/// One of the streams that an epoch is divided into (schemas/order.md).
struct StreamOf {
  std::uint64_t number = 0;
  std::uint64_t count = 1;
  /// Where the stream's share of `size` things in a row begins: those of two streams differ by at most one.
  [[nodiscard]] std::uint64_t first_of(std::uint64_t size) const {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(size) * number / count);
  }
  [[nodiscard]] std::uint64_t end_of(std::uint64_t size) const {
    return StreamOf{number + 1, count}.first_of(size);
  }
};

struct OrderSpec {
  Shuffle shuffle = Shuffle::none;
  std::uint64_t seed = 0;
  std::uint32_t window_chunks = 64;  ///< at least 1
  bool operator==(const OrderSpec&) const = default;
};

/// The sample at each position of an epoch. A position is a number in [0, position_count). Chunks are visited
/// in slots: slot s holds chunk chunk_at(s); with Shuffle::none and window they are needed one after the
/// other. Any thread may ask.
class PositionOrder {
 public:
  virtual ~PositionOrder() = default;
  /// What a caller keeps that asks for position after position, over any epochs and seeds of one source: a
  /// window's permutation and chunks, or those of a mixture's sources.
  class Window;
  /// The sample at a position. Positions near the window's last one cost less.
  [[nodiscard]] virtual DrawnSample operator()(std::uint64_t position, Window& window) const = 0;
  /// The chunk that is visited as number `slot` (none, window; global has no slots, and gives any).
  [[nodiscard]] virtual std::uint64_t chunk_at(std::uint64_t slot) const = 0;
  /// The slots [first, end) that the positions [first, end) need, end ≤ position_count: whole windows; with
  /// global all chunks. Both ends grow with the positions.
  struct Slots {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    bool operator==(const Slots&) const = default;
  };
  [[nodiscard]] virtual Slots slots_of(std::uint64_t first_position, std::uint64_t end_position) const = 0;
  /// Calls `visit` with the positions that need each slot, and its chunk, slot after slot; not for a slot
  /// that none needs.
  struct Positions {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
  };
  using Visit = std::function<void(const Positions& positions, std::uint64_t chunk)>;
  virtual void for_each_slot(const Visit& visit) const = 0;

 protected:
  PositionOrder() = default;
  PositionOrder(const PositionOrder&) = default;
  PositionOrder(PositionOrder&&) = default;
  PositionOrder& operator=(const PositionOrder&) = default;
  PositionOrder& operator=(PositionOrder&&) = default;
};

class PositionOrder::Window {
 public:
  Window() = default;

 private:
  friend class EpochOrder;
  friend class MixedOrder;
  friend class StreamedOrder;
  std::uint64_t window_id_ = 0;  // of the order that entered it
  std::uint64_t first_position_ = 0;
  std::uint64_t end_position_ = 0;
  std::uint64_t first_slot_ = 0;
  Permutation positions_{0, 0};
  std::vector<std::uint64_t> chunks_;  // of its slots; none where there are many
  std::vector<Window> sources_;        // of a mixture, or of streams
};

/// The order of one epoch of a source, or of a stream of it. Slots are numbered as those of the epoch.
class EpochOrder final : public PositionOrder {
 public:
  /// All samples of a source.
  EpochOrder(const ChunkGrid& grid, const OrderSpec& spec, std::uint64_t epoch);
  /// Those that a sampler gives the epoch.
  EpochOrder(std::shared_ptr<const EpochSamples> samples, const OrderSpec& spec, std::uint64_t epoch);
  /// A stream of this epoch, which is not one itself.
  [[nodiscard]] EpochOrder stream(const StreamOf& stream) const;
  /// Samples of the stream, each once.
  [[nodiscard]] std::uint64_t position_count() const { return span_.end - span_.first; }
  [[nodiscard]] DrawnSample operator()(std::uint64_t position, Window& window) const override;
  [[nodiscard]] DrawnSample operator()(std::uint64_t position) const;
  [[nodiscard]] std::uint64_t chunk_at(std::uint64_t slot) const override;
  [[nodiscard]] Slots slots_of(std::uint64_t first_position, std::uint64_t end_position) const override;
  /// The positions of a slot are those of its window, with Shuffle::none of the chunk.
  void for_each_slot(const Visit& visit) const override;

 private:
  [[nodiscard]] Positions listed_positions_of(std::uint64_t slot) const;
  [[nodiscard]] std::uint64_t window_end(std::uint64_t first_slot) const;
  [[nodiscard]] std::uint64_t window_start(std::uint64_t slot) const {
    return slot - (slot - first_slot_) % window_chunks_;
  }
  void enter_window(std::uint64_t listed, Window& window) const;
  void list_chunks(Window& window) const;
  [[nodiscard]] DrawnSample find_outside_windows(std::uint64_t listed) const;
  [[nodiscard]] DrawnSample find_in(const Window& window, std::uint64_t listed) const;
  [[nodiscard]] DrawnSample drawn(std::uint64_t visit, std::uint64_t at) const;

  Shuffle shuffle_;
  std::uint64_t window_chunks_;
  std::uint64_t window_seed_;
  std::uint64_t window_id_;                 // differs from those of other epochs, seeds and streams
  Permutation shuffled_;                    // of the samples (global) or of the chunks (window)
  std::shared_ptr<const ChunkGrid> slots_;  // the chunks in the order of their visits
  Positions span_;                          // of the stream, in the list of the slots' samples
  std::uint64_t first_slot_;                // of the stream; it may share it with the one before
  std::uint64_t end_slot_;
  std::shared_ptr<const EpochSamples> samples_;  // of a sampler, whose visits are the chunks above; or null
};

/// Returns how well an order of all samples, or of one epoch's, mixes. Exact where all chunks have as many
/// samples, or one window holds all.
[[nodiscard]] MixingInfo mixing_of(const ChunkGrid& grid, const OrderSpec& spec);

}  // namespace chunkhit
