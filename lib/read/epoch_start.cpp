#include "read/epoch_start.h"

namespace chunkhit {

EpochBatches batches_of(const LoaderOrder& order, const BatchSpec& batches, const EpochStart& start,
                        const Streams& streams) {
  const bool has_streams = start.streams.value_or(streams).count > 1;
  return {order.position_count(),
          batches,
          order.spec().seed,
          start.epoch,
          start.first_position,
          has_streams ? nullptr : order.mixture(),
          has_streams};
}

/// Where blocks of all ranks are turns of all streams, a rank has its own streams; else it may need any.
RankStreams streams_of(const BatchSpec& batches, const EpochStart& start, const Streams& streams) {
  const Streams all = start.streams.value_or(streams);
  using Wide = unsigned __int128;
  const Wide block = static_cast<Wide>(batches.batch_size) * batches.echo * batches.world_size;
  const Wide turn = static_cast<Wide>(all.count) * all.unit;
  const bool are_own =
      all.count % batches.world_size == 0 && block == turn && start.first_position % turn == 0;
  if (!are_own) return {all, 0, all.count};
  const std::uint64_t own = all.count / batches.world_size;
  return {all, batches.rank * own, own};
}

}  // namespace chunkhit
