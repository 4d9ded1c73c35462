#include "read/reader_spec.h"

#include <optional>

#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

/// Lowers automatic threads and prefetch to what so many slots of a ring are enough for.
void lower_to_slots(EpochReaderSpec& spec, std::uint64_t slots) {
  const std::uint64_t ahead = slots - 1;
  const std::uint64_t slices = (spec.batches.batch_size - 1) / spec.slice_samples + 1;
  if (spec.tunes_prefetch) {
    spec.max_prefetch = static_cast<std::uint32_t>(std::min<std::uint64_t>(spec.max_prefetch, ahead));
    spec.prefetch = std::min(spec.prefetch, spec.max_prefetch);
  }
  if (spec.tunes_threads) {
    spec.max_threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(spec.max_threads, ahead * slices));
    spec.threads = std::min(spec.threads, spec.max_threads);
  }
}

CacheSpec cache_spec(const EpochReaderSpec& spec, std::uint64_t chunk_count, std::uint64_t in_order,
                     std::uint32_t threads) {
  return {.cache = spec.cache,
          .cache_bytes = spec.cache_bytes,
          .limit = spec.limit,
          .chunks_needed = chunks_needed(spec, chunk_count, in_order, threads),
          .threads = threads,
          .in_order = spec.order.shuffle != Shuffle::global,
          .keeps_images = true,
          .checks = spec.check_hashes != CheckHashes::never,
          .allows_unchecked = true,
          .reads_runs = spec.copies && spec.order.shuffle == Shuffle::none,
          .shares = shares_memory(spec)};
}

/// Whether a plan keeps as much in memory as another one, a tenth aside.
bool is_as_good(const CachePlan& plan, const CachePlan& other) {
  return plan.cache == other.cache && plan.reported == other.reported &&
         plan.reads_samples == other.reads_samples && 10 * plan.image_bytes >= 9 * other.image_bytes &&
         10 * plan.kept_chunks >= 9 * other.kept_chunks;
}

/// Plans for so many threads; nothing where there is too little memory for them, and fewer may do.
std::optional<CachePlan> plan_for(const ChunkSet& chunks, std::uint64_t in_order, const EpochReaderSpec& spec,
                                  std::uint32_t threads) {
  try {
    return plan_cache(chunks, cache_spec(spec, chunks.chunk_count(), in_order, threads));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage || threads == 1 || !spec.tunes_threads) throw;
    return std::nullopt;
  }
}

}  // namespace

bool shares_memory(const EpochReaderSpec& spec) {
  return spec.batches.world_size > 1 || local_processes() > 1;
}

void require_option(bool holds, const char* what) {
  if (!holds) throw_usage(what);
}

Streams checked_streams(Shuffle shuffle, std::uint32_t streams, const BatchSpec& batches) {
  if (shuffle == Shuffle::global || streams == 1 || (streams == 0 && batches.world_size > kMaxStreams))
    return {};
  const std::uint64_t count = streams == 0 ? batches.world_size : streams;
  if (count > kMaxStreams)
    throw_usage("`streams`: " + std::to_string(count) + ", expected at most " + std::to_string(kMaxStreams));
  if (count % batches.world_size != 0)
    throw_usage("`streams`: " + std::to_string(count) + ", expected a multiple of world_size " +
                std::to_string(batches.world_size) + ", 0 for as many, or 1");
  const std::uint64_t own = count / batches.world_size, block = batches.batch_size * batches.echo;
  if (block % own != 0)
    throw_usage("`streams`: " + std::to_string(own) + " for each of " + std::to_string(batches.world_size) +
                " ranks, expected a divisor of " + std::to_string(block) +
                ", batch_size times echo: each stream gives as many samples");
  return {count, block / own};
}

EpochReaderSpec within_memory(EpochReaderSpec spec, double batch_bytes) {
  const double each = std::max(1.0, batch_bytes);
  constexpr double kMaxSlots = 4097;
  if (spec.tunes_threads || spec.tunes_prefetch) {
    const double share = spec.memory_bytes != 0 ? static_cast<double>(spec.memory_bytes) / 4
                                                : static_cast<double>(memory_share()) / 8;
    lower_to_slots(spec, static_cast<std::uint64_t>(std::clamp(share / each, 2.0, kMaxSlots)));
  }
  if (spec.memory_bytes == 0) return spec;
  const std::size_t slots = ring_size(spec, spec.max_threads, spec.max_prefetch);
  const double batches = static_cast<double>(slots) * each;
  const double given = static_cast<double>(spec.memory_bytes);
  const std::string held = count_text(slots, "batch") + " of " + bytes_text(each) + " each";
  if (batches >= given)
    throw_usage("memory_bytes: " + held + " are held, " + bytes_text(given) +
                " are given: give more, or lower batch_size, prefetch or threads");
  if (batches + static_cast<double>(spec.cache_bytes) > given)
    throw_usage("cache_bytes: " + bytes_text(static_cast<double>(spec.cache_bytes)) + " and " + held +
                " are more than memory_bytes, " + bytes_text(given) + ": lower cache_bytes, or give more");
  if (spec.cache_bytes == 0) {
    spec.cache_bytes = static_cast<std::uint64_t>(given - batches);
    spec.limit = "memory_bytes";
  }
  return spec;
}

std::uint64_t chunks_in_order(const EpochReaderSpec& spec, const LoaderOrder& order) {
  const BatchSpec& batches = spec.batches;
  if (spec.order.shuffle == Shuffle::global) return 0;
  return order.chunks_needed(batches.batch_size * batches.world_size * batches.echo,
                             streams_of(batches, {}, spec.streams));
}

std::uint64_t chunks_needed(const EpochReaderSpec& spec, std::uint64_t chunk_count, std::uint64_t in_order,
                            std::uint32_t threads) {
  if (spec.order.shuffle != Shuffle::global) return in_order;
  const std::uint64_t of_batch = spec.holds_all ? std::min(chunk_count, spec.batches.batch_size) : 1;
  return std::min(chunk_count, of_batch * threads);
}

CachePlan plan_reader(const ChunkSet& chunks, std::uint64_t in_order, EpochReaderSpec& spec) {
  std::optional<CachePlan> first = plan_for(chunks, in_order, spec, spec.threads);
  for (; !first; first = plan_for(chunks, in_order, spec, spec.threads)) spec.threads /= 2;
  for (; spec.max_threads > spec.threads; spec.max_threads = std::max(spec.threads, spec.max_threads / 2))
    if (auto plan = plan_for(chunks, in_order, spec, spec.max_threads); plan && is_as_good(*plan, *first))
      return *std::move(plan);
  return *std::move(first);
}

}  // namespace chunkhit
