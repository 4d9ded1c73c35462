// The orders of one source's epochs: of all of its samples, or of those of a sampler.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "batch/epoch_order.h"
#include "batch/sampler.h"
#include "chunkhit/loader.h"

namespace chunkhit {

/// Makes the order of each epoch of a source. Any thread may ask.
class SourceOrder {
 public:
  /// `grid`: the source's chunks; must outlive this. Throws usage, naming the field, where a sampler has too
  /// few samples.
  SourceOrder(const ChunkGrid& grid, const OrderSpec& spec, const std::optional<DrawSpec>& draws);
  [[nodiscard]] const OrderSpec& spec() const { return spec_; }
  /// Positions of an epoch, the same in each.
  [[nodiscard]] std::uint64_t position_count() const;
  [[nodiscard]] std::unique_ptr<const EpochOrder> epoch(std::uint64_t epoch) const;
  /// Whether making an epoch takes time that grows with the source.
  [[nodiscard]] bool makes_epochs() const { return sampler_ && sampler_->makes_epochs(); }
  /// Distinguishes what a sampler draws from what other ones draw; nothing where each sample comes once.
  [[nodiscard]] std::optional<std::uint64_t> sampler_id() const;
  /// The most chunks, or about that many where a sampler has some samples of each, that `positions` positions
  /// of each of `own` streams, of `streams`, need at a time.
  [[nodiscard]] std::uint64_t chunks_needed(std::uint64_t positions, std::uint64_t streams = 1,
                                            std::uint64_t own = 1) const;
  [[nodiscard]] MixingInfo mixing() const;

 private:
  [[nodiscard]] const ChunkGrid& visits() const;

  const ChunkGrid& grid_;
  OrderSpec spec_;
  std::optional<Sampler> sampler_;
  std::shared_ptr<const EpochSamples> first_;  // of the sampler's epoch 0
};

}  // namespace chunkhit
