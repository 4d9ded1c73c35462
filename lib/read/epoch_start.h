// Where an epoch is begun, and what a rank has of it.
#pragma once

#include <cstdint>
#include <optional>

#include "batch/epoch_batches.h"
#include "batch/loader_order.h"

namespace chunkhit {

/// Where an epoch is begun.
struct EpochStart {
  std::uint64_t epoch = 0;
  std::uint64_t first_position = 0;  ///< all before were used by all ranks
  std::uint64_t first_batch = 0;     ///< of those that begin at first_position
  std::optional<Streams> streams{};  ///< of the loader that began the epoch; nothing: of the spec
};

/// The batches of a rank in an epoch that is begun, and the streams that have their samples.
[[nodiscard]] EpochBatches batches_of(const LoaderOrder& order, const BatchSpec& batches,
                                      const EpochStart& start, const Streams& streams);
[[nodiscard]] RankStreams streams_of(const BatchSpec& batches, const EpochStart& start,
                                     const Streams& streams);

}  // namespace chunkhit
