// What all loaders are asked for, within the available memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/resources.h"
#include "batch/epoch_batches.h"
#include "batch/epoch_order.h"
#include "batch/loader_order.h"
#include "cache/chunk_set.h"
#include "chunkhit/loader.h"
#include "read/batch_pipeline.h"
#include "read/cache_plan.h"
#include "read/loader_fields.h"

namespace chunkhit {

/// The options that all loaders have in common.
struct EpochReaderSpec {
  OrderSpec order;
  BatchSpec batches;
  Streams streams{};
  Cache cache = Cache::automatic;
  std::uint64_t cache_bytes = 0;
  std::uint64_t memory_bytes = 0;     ///< for chunks and batches; 0: no limit beside cache_bytes
  const char* limit = "cache_bytes";  ///< the option that cache_bytes is from, for messages
  std::uint32_t threads = 1;          ///< at first
  std::uint32_t max_threads = 1;
  std::uint32_t prefetch = 4;  ///< at first
  std::uint32_t max_prefetch = 4;
  bool tunes_threads = false;  ///< threads are chosen while batches are used
  bool tunes_prefetch = false;
  std::string cache_dir = {};
  std::uint64_t cache_disk_bytes = 0;
  CheckHashes check_hashes = CheckHashes::always;
  OnCorrupt on_corrupt = OnCorrupt::fail;
  bool holds_all = false;  ///< a batch needs all of its chunks at a time, in any order
  std::uint64_t slice_samples = ~std::uint64_t{0};  ///< of a batch, that a thread makes at a time
  bool copies = false;                              ///< batches have the stored bytes of samples as they are
  std::vector<std::pair<std::string, double>> augment = {};  ///< what a state must have, too, to go on
};

/// How many batches are there at a time.
[[nodiscard]] inline std::size_t ring_size(const EpochReaderSpec& spec, std::uint32_t threads,
                                           std::uint32_t prefetch) {
  return ring_size(threads, prefetch, (spec.batches.batch_size - 1) / spec.slice_samples + 1);
}

// What automatic threads and prefetch begin with, and how far they go. Threads above the CPUs help where
// they wait for storage.
inline constexpr std::uint32_t kFirstPrefetch = 4;
inline constexpr std::uint32_t kMaxTunedPrefetch = 64;
[[nodiscard]] constexpr std::uint32_t max_tuned_threads(std::uint32_t cpus) {
  return std::clamp<std::uint32_t>(4 * cpus, 16, 4096);
}

/// Whether other processes of this machine are likely to read the same samples. One that is alone has memory
/// of its own, whose pages may be larger.
[[nodiscard]] bool shares_memory(const EpochReaderSpec& spec);

/// Throws usage with `what` unless `holds`.
void require_option(bool holds, const char* what);

/// How `streams` streams, 0: one a rank, divide an epoch of these batches; a global order has one. Throws
/// usage where ranks or batches do not divide alike.
[[nodiscard]] Streams checked_streams(Shuffle shuffle, std::uint32_t streams, const BatchSpec& batches);

/// Takes the spec from a loader's options; throws usage, naming the field, when they make no sense.
template <class Options>
[[nodiscard]] EpochReaderSpec epoch_reader_spec(const Options& options) {
  LimitCheck limits;
  show(options, limits);
  const std::string rank = "rank: expected less than world_size " + std::to_string(options.world_size) +
                           ", found " + std::to_string(options.rank);
  require_option(options.rank < options.world_size, rank.c_str());
  const bool tunes_threads = options.threads == kAutomatic, tunes_prefetch = options.prefetch == kAutomatic;
  require_option(options.cache_disk_bytes == 0 || !options.cache_dir.empty(),
                 "cache_disk_bytes: needs cache_dir, the folder for these bytes");
  require_option(!options.allocator.allocate == !options.allocator.release,
                 "allocator: must have both functions, or none");
  const std::uint32_t cpus = cpu_share();
  const std::uint32_t threads = tunes_threads || options.threads == 0 ? cpus : options.threads;
  const std::uint32_t prefetch = tunes_prefetch ? kFirstPrefetch : options.prefetch;
  const BatchSpec batches{options.batch_size,     options.rank,      options.world_size,
                          options.rank_remainder, options.drop_last, options.echo};
  return {.order = {options.shuffle, options.seed, options.window_chunks},
          .batches = batches,
          .streams = checked_streams(options.shuffle, options.streams, batches),
          .cache = options.cache,
          .cache_bytes = options.cache_bytes,
          .memory_bytes = options.memory_bytes,
          .threads = threads,
          .max_threads = tunes_threads ? max_tuned_threads(cpus) : threads,
          .prefetch = prefetch,
          .max_prefetch = tunes_prefetch ? kMaxTunedPrefetch : prefetch,
          .tunes_threads = tunes_threads,
          .tunes_prefetch = tunes_prefetch,
          .cache_dir = options.cache_dir,
          .cache_disk_bytes = options.cache_disk_bytes,
          .check_hashes = options.check_hashes,
          .on_corrupt = options.on_corrupt};
}

/// Lowers what automatic threads and prefetch may take, so that batches of `batch_bytes` fit into their share
/// of the memory, and sets cache_bytes to what memory_bytes leaves. Throws usage where the batches leave
/// less than that.
[[nodiscard]] EpochReaderSpec within_memory(EpochReaderSpec spec, double batch_bytes);

/// How many chunks a batch needs at a time in an order of chunks; 0 in a global one.
[[nodiscard]] std::uint64_t chunks_in_order(const EpochReaderSpec& spec, const LoaderOrder& order);

/// How many of `chunk_count` chunks may be needed at the same time; `in_order`: chunks_in_order.
[[nodiscard]] std::uint64_t chunks_needed(const EpochReaderSpec& spec, std::uint64_t chunk_count,
                                          std::uint64_t in_order, std::uint32_t threads);

/// Plans the cache. Lowers what automatic threads may take until the cache is as good as with the first
/// number of threads; throws usage where there is too little memory for one.
[[nodiscard]] CachePlan plan_reader(const ChunkSet& chunks, std::uint64_t in_order, EpochReaderSpec& spec);

}  // namespace chunkhit
