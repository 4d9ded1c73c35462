// The orders of a loader's epochs: of one source, or of a mixture of sources.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "batch/epoch_order.h"
#include "batch/mixture.h"
#include "batch/source_order.h"
#include "batch/streamed_order.h"
#include "chunkhit/loader.h"

namespace chunkhit {

/// Which samples an epoch has: by default all of a source, each once.
struct SamplingSpec {
  std::optional<DrawSpec> draws{};
  std::optional<MixtureShape> mixture{};
};

/// The streams that a rank reads, of those that an epoch is divided into.
struct RankStreams {
  Streams all{};
  std::uint64_t first = 0;
  std::uint64_t count = 1;
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
  /// An epoch, of which only the positions of a rank's streams are asked for.
  [[nodiscard]] std::unique_ptr<const PositionOrder> epoch(std::uint64_t epoch,
                                                           const RankStreams& streams = {}) const;
  /// Whether making an epoch takes time that grows with the sources.
  [[nodiscard]] bool makes_epochs(const Streams& streams) const {
    return mixture_ || streams.count > 1 || source_->makes_epochs();
  }
  /// Distinguishes what a sampler or a mixture has from what others have; nothing where each sample comes
  /// once.
  [[nodiscard]] std::optional<std::uint64_t> sampler_id() const;
  /// About the most chunks that a rank needs at a time, where all ranks use `positions` positions.
  [[nodiscard]] std::uint64_t chunks_needed(std::uint64_t positions, const RankStreams& streams = {}) const;
  [[nodiscard]] MixingInfo mixing() const;
  /// Null where samples are of one source.
  [[nodiscard]] const Mixture* mixture() const { return mixture_ ? &*mixture_ : nullptr; }

 private:
  [[nodiscard]] std::unique_ptr<const PositionOrder> streamed(std::uint64_t epoch,
                                                              const RankStreams& streams) const;

  OrderSpec spec_;
  std::optional<SourceOrder> source_;  // one of the two
  std::optional<Mixture> mixture_;
};

}  // namespace chunkhit
