// The orders of a loader's epochs: of one source, or of a mixture of sources.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "batch/epoch_order.h"
#include "batch/mixture.h"
#include "batch/source_order.h"
#include "chunkhit/loader.h"

namespace chunkhit {

/// Which samples an epoch has: by default all of a source, each once.
struct SamplingSpec {
  std::optional<DrawSpec> draws{};
  std::optional<MixtureShape> mixture{};
};

/// Makes the order of each epoch. Any thread may ask.
class LoaderOrder {
 public:
  /// `grid`: the chunks of all sources; must outlive this. Throws usage, naming the field, where a sampler or
  /// a mixture has too few samples.
  LoaderOrder(const ChunkGrid& grid, const OrderSpec& spec, const SamplingSpec& sampling);
  [[nodiscard]] const OrderSpec& spec() const { return spec_; }
  /// Positions of an epoch, the same in each.
  [[nodiscard]] std::uint64_t position_count() const;
  [[nodiscard]] std::unique_ptr<const PositionOrder> epoch(std::uint64_t epoch) const;
  /// Whether making an epoch takes time that grows with the sources.
  [[nodiscard]] bool makes_epochs() const { return mixture_ || source_->makes_epochs(); }
  /// Distinguishes what a sampler or a mixture has from what others have; nothing where each sample comes
  /// once.
  [[nodiscard]] std::optional<std::uint64_t> sampler_id() const;
  /// About the most chunks that `positions` positions need at a time.
  [[nodiscard]] std::uint64_t chunks_needed(std::uint64_t positions) const;
  [[nodiscard]] MixingInfo mixing() const;
  /// Null where samples are of one source.
  [[nodiscard]] const Mixture* mixture() const { return mixture_ ? &*mixture_ : nullptr; }

 private:
  OrderSpec spec_;
  std::optional<SourceOrder> source_;  // one of the two
  std::optional<Mixture> mixture_;
};

}  // namespace chunkhit
