// Random access to the samples of a source: what the datasets of images and of matrices share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "base/resources.h"
#include "base/throw_error.h"
#include "batch/epoch_order.h"
#include "cache/chunk_cache.h"
#include "read/cache_plan.h"

namespace chunkhit {

/// Message if there is no memory even for a source's index.
inline constexpr const char* kNoDatasetMemory =
    "opening it needs more memory than can be had: lower cache_bytes";

/// Throws usage, "label: sample 7 of 5", where a number is too large.
inline void require_below(const std::string& what, std::uint64_t number, std::uint64_t count) {
  if (number >= count) throw_usage(what + " " + std::to_string(number) + " of " + std::to_string(count));
}

/// Indices of `numbers` in ascending order of the numbers.
[[nodiscard]] inline std::vector<std::size_t> ascending_order(std::span<const std::uint64_t> numbers) {
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t at) { return numbers[at]; });
  return order;
}

/// Fetches the chunks of the samples that are asked for. Any thread may call anything. Memory is shared, as
/// each worker of a DataLoader has a dataset.
class SampleReader {
 public:
  /// Takes cache, cache_bytes and check_hashes from a dataset's options.
  template <class Options>
  SampleReader(const ChunkSet& chunks, const Options& options)
      : grid_(chunks.sample_counts()),
        plan_(plan_cache(chunks, {.cache = options.cache,
                                  .cache_bytes = options.cache_bytes,
                                  .chunks_needed = 1,
                                  .in_order = false,
                                  .checks = options.check_hashes != CheckHashes::never,
                                  .shares = true})),
        cache_(make_chunk_cache(chunks,
                                {plan_.cache,
                                 options.check_hashes,
                                 OnCorrupt::fail,
                                 plan_.kept_chunks,
                                 1,
                                 plan_.reads_samples,
                                 {options.cache_dir, options.cache_disk_bytes, plan_.max_asked}},
                                std::move(plan_.arena))) {}

  /// Calls use(at, location, chunk) for each of `samples`, samples[at], in the order of chunks, so that each
  /// chunk is asked for once; `chunk` is what a ChunkCache::Pin holds.
  template <class Use>
  void visit(std::span<const std::uint64_t> samples, const Use& use) {
    ByteBuffer stored, room;
    std::vector<std::uint64_t> wanted;
    const std::vector<std::size_t> order = ascending_order(samples);
    std::size_t asked = 0;  // of `order`: their chunks were asked for
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      for (asked = std::max(asked, begin); asked < order.size() && cache_->can_ask(); ++asked)
        cache_->ask(grid_.find(samples[order[asked]]).chunk);
      const std::uint64_t chunk = grid_.find(samples[order[begin]]).chunk;
      wanted.clear();
      for (end = begin; end < order.size(); ++end) {
        const ChunkGrid::Location location = grid_.find(samples[order[end]]);
        if (location.chunk != chunk) break;
        wanted.push_back(location.in_chunk);
      }
      const ChunkCache::Pin pin =
          with_memory("read: a chunk needs more memory than can be had: lower cache_bytes",
                      [&] { return cache_->acquire_some(chunk, wanted, stored, room); });
      for (std::size_t i = begin; i < end; ++i)
        use(order[i], ChunkGrid::Location{chunk, wanted[i - begin]}, pin.held());
    }
  }
  /// The pixels of an image at a location that `visit` gave, as ChunkCache::sample.
  [[nodiscard]] const std::uint8_t* image(ChunkGrid::Location location, HeldChunk chunk, ByteBuffer& room) {
    return cache_->sample(location.chunk, location.in_chunk, chunk, room);
  }

 private:
  ChunkGrid grid_;
  CachePlan plan_;
  std::unique_ptr<ChunkCache> cache_;
};

}  // namespace chunkhit
