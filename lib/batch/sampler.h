// Which samples an epoch has: a subset, draws with weights, or a choice. A format: schemas/order.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "batch/epoch_order.h"

namespace chunkhit {

/// What a sampler draws from.
struct DrawSpec {
  std::optional<std::vector<std::uint64_t>> subset{};  ///< sample numbers, ascending; nothing: all samples
  std::vector<double> weights{};                       ///< of each sample of the source; empty: equal ones
  bool draws = false;                                  ///< false: each sample of the subset once an epoch
  bool replacement = true;                             ///< of draws
  std::uint64_t epoch_samples = 0;                     ///< 0: as many as the subset has
};

/// Cumulated weights of a source's samples, and the draws of an epoch: draw k is the sample at a random point
/// of the k-th of epoch_samples equal parts of all weights, so later draws are later samples.
class WeightedDraws {
 public:
  /// `weights`: of each sample, not negative, one of them above 0.
  WeightedDraws(const std::vector<double>& weights, std::uint64_t draw_count);
  [[nodiscard]] std::uint64_t draw_count() const { return draw_count_; }
  [[nodiscard]] std::uint64_t weight(std::uint64_t sample) const { return ends_[sample + 1] - ends_[sample]; }
  /// How many draws of the epoch with this seed come before a sample.
  [[nodiscard]] std::uint64_t count_before(std::uint64_t sample, std::uint64_t draw_seed) const;
  /// The sample of draw `draw` among [first, end), which has it.
  [[nodiscard]] std::uint64_t sample(std::uint64_t draw, std::uint64_t draw_seed, std::uint64_t first,
                                     std::uint64_t end) const;
  /// Expected number of different samples in an epoch.
  [[nodiscard]] double distinct_samples() const;

 private:
  [[nodiscard]] std::uint64_t point(std::uint64_t draw, std::uint64_t draw_seed) const;

  std::uint64_t draw_count_;
  std::vector<std::uint64_t> ends_;  // sums of the weights before each sample, and of all
  std::uint64_t part_;               // of the sum, that a draw is from
};

/// The samples of one epoch, by chunk: visit v is to a chunk that has some of them. Any thread may ask.
class EpochSamples {
 public:
  /// Each of `samples`, ascending, once.
  EpochSamples(const ChunkGrid& source, const std::vector<std::uint64_t>& samples);
  /// The draws of an epoch.
  EpochSamples(const ChunkGrid& source, std::shared_ptr<const WeightedDraws> draws, std::uint64_t draw_seed);
  /// The visits and how many samples each has.
  [[nodiscard]] const ChunkGrid& grid() const { return *grid_; }
  [[nodiscard]] std::uint64_t chunk(std::uint64_t visit) const { return visits_[visit].chunk; }
  /// The sample that a visit has as number `at`.
  [[nodiscard]] DrawnSample find(std::uint64_t visit, std::uint64_t at) const;

 private:
  struct Visit {
    std::uint64_t chunk;
    std::uint64_t first;         // of all samples of the epoch
    std::uint64_t first_sample;  // of the chunk, in the source
    std::uint64_t end_sample;
  };
  void make_grid(std::uint64_t sample_count);

  std::vector<Visit> visits_;
  std::vector<std::uint32_t> in_chunk_;  // of each sample, where they are listed
  std::shared_ptr<const WeightedDraws> draws_;
  std::uint64_t draw_seed_ = 0;
  std::optional<ChunkGrid> grid_;
};

/// Gives each epoch its samples. Any thread may ask.
class Sampler {
 public:
  /// `source`: the chunks that samples are numbered by; must outlive this. The spec's samples are below their
  /// count, and its weights as many and not negative. Throws usage, naming the field, where all weights are 0
  /// or an epoch would have too many samples.
  Sampler(const ChunkGrid& source, const DrawSpec& spec, std::uint64_t seed);
  /// Samples of an epoch.
  [[nodiscard]] std::uint64_t epoch_samples() const { return epoch_samples_; }
  /// Distinguishes what the sampler draws from what other ones draw.
  [[nodiscard]] std::uint64_t id() const { return id_; }
  /// Takes time that grows with the chunks, and without replacement with the samples; none for a subset.
  [[nodiscard]] std::shared_ptr<const EpochSamples> epoch(std::uint64_t epoch) const;
  /// Whether each epoch takes time for its own samples.
  [[nodiscard]] bool makes_epochs() const { return draws_ != nullptr; }
  /// Expected number of different samples in an epoch.
  [[nodiscard]] double distinct_samples() const;

 private:
  [[nodiscard]] std::shared_ptr<const EpochSamples> make_epoch(std::uint64_t epoch) const;
  [[nodiscard]] std::vector<std::uint64_t> choose(std::uint64_t choice_seed) const;

  const ChunkGrid& source_;
  std::uint64_t seed_;
  std::uint64_t epoch_samples_ = 0;
  std::uint64_t id_ = 0;
  bool replacement_ = true;
  std::shared_ptr<const WeightedDraws> draws_;  // null: each sample of a subset once
  std::shared_ptr<const EpochSamples> first_;   // of epoch 0, or of all where they are the same
};

}  // namespace chunkhit
