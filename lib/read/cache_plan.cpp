#include "read/cache_plan.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/resources.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "cache/shared_memory.h"
#include "read/sized_images.h"

namespace chunkhit {
namespace {

[[noreturn]] void refuse(const CacheSpec& spec, const char* what, std::uint64_t needed, std::uint64_t given,
                         const char* change) {
  throw_usage("`" + std::string(spec.limit) + "`: " + what + " needs " +
              bytes_text(static_cast<double>(needed)) + ", " + bytes_text(static_cast<double>(given)) +
              " are given: " + change);
}

/// Returns the memory that the threads need while decoding: a chunk's stored bytes each, and its raw bytes
/// once more for codecs of two steps.
std::uint64_t room_of_threads(const ChunkSet& chunks, std::uint64_t threads) {
  return chunks.is_raw() ? 0 : threads * (chunks.max_stored_bytes() + chunks.max_chunk_bytes());
}

std::uint64_t bytes_of(const ChunkSet& chunks, Kept kept) {
  switch (kept) {
    case Kept::decoded:
      return chunks.decoded_bytes();
    case Kept::stored:
      return chunks.stored_bytes();
    case Kept::pixels:
      return DecodedImages::bytes_of_all(chunks);
  }
  return 0;
}

constexpr std::array kAllKept{Kept::decoded, Kept::stored, Kept::pixels};

/// What a reader wants, and the processes that share it.
struct SharedSpec : CacheSpec {
  std::uint64_t processes = 1;
  /// By Kept: what they have taken already. So much is missing in what is available, not in what was given.
  std::array<std::uint64_t, kAllKept.size()> taken{};
  [[nodiscard]] std::uint64_t taken_bytes(Kept kept) const { return taken[static_cast<std::size_t>(kept)]; }
};

SharedSpec shared_spec(const ChunkSet& chunks, const CacheSpec& spec, bool shares) {
  SharedSpec shared{spec};
  shared.shares = shares;
  if (!shares) return shared;
  shared.processes = local_processes();
  if (spec.cache_bytes != 0) return shared;
  for (const Kept kept : kAllKept)
    if (const auto id = arena_id(chunks, kept, spec.checks))
      shared.taken[static_cast<std::size_t>(kept)] = SharedMemory::taken_bytes(*id);
  return shared;
}

/// What keeping them all takes of this process's memory: where it is shared, its share.
std::uint64_t share_of_kept(const ChunkSet& chunks, const SharedSpec& spec, Kept kept) {
  const std::uint64_t bytes = bytes_of(chunks, kept);
  return (bytes - std::min(bytes, spec.taken_bytes(kept))) / spec.processes;
}

/// Prefers decoded chunks, then compressed ones in memory, then none, by what fits.
Cache choose(const ChunkSet& chunks, const SharedSpec& spec, std::uint64_t memory, std::uint64_t room,
             std::uint64_t needed) {
  if (share_of_kept(chunks, spec, Kept::decoded) + room <= memory) return Cache::decoded;
  if (!chunks.is_raw() && share_of_kept(chunks, spec, Kept::stored) + needed <= memory)
    return Cache::compressed;
  return Cache::none;
}

/// Whether raw samples in an order of chunks are worth being read one by one: each costs a call of the
/// system, or each run of those that follow each other. Not where all chunks stay in memory from epoch to
/// epoch, nor where each call waits for the storage.
bool is_worth_reading(const ChunkSet& chunks, const CacheSpec& spec, bool all_stay) {
  constexpr std::uint64_t kMinBytes = 4096;
  return !all_stay && chunks.reads_ahead() &&
         (spec.reads_runs || chunks.stored_bytes() >= kMinBytes * chunks.sample_count());
}

/// `room`: what the threads need beside the chunks.
CachePlan plan_chunks(const ChunkSet& chunks, const SharedSpec& spec, std::uint64_t memory,
                      std::uint64_t room) {
  const std::uint64_t chunk_bytes = std::max<std::uint64_t>(1, chunks.max_chunk_bytes());
  const std::uint64_t needed = spec.chunks_needed * chunk_bytes + room;
  // The chunks that the order needs, as many for the batches after them, and one that each thread loads.
  const std::uint64_t max_ahead = 2 * spec.chunks_needed + spec.threads;
  CachePlan plan;
  plan.cache = spec.cache == Cache::automatic ? choose(chunks, spec, memory, room, needed) : spec.cache;
  if (plan.cache == Cache::decoded) {
    const std::uint64_t kept = share_of_kept(chunks, spec, Kept::decoded);
    if (kept + room > memory)
      refuse(spec, "cache decoded", kept + room, memory, "give more, or take `cache` none");
    plan.chunks_ahead = static_cast<std::size_t>(max_ahead);
    return plan;
  }
  std::uint64_t left = memory;
  if (plan.cache == Cache::compressed) {
    const std::uint64_t kept = share_of_kept(chunks, spec, Kept::stored);
    if (kept + needed > memory)
      refuse(spec, "cache compressed", kept + needed, memory, "give more, or take `cache` none");
    left -= kept;
  }
  const std::uint64_t fitting = needed > left ? 0 : (left - room) / chunk_bytes;
  const bool all_stay = std::min(fitting, max_ahead) >= chunks.chunk_count();
  const bool is_compared = !spec.checks || chunks.compares_samples();
  const bool is_wanted = is_compared
                             ? !spec.in_order || needed > left || is_worth_reading(chunks, spec, all_stay)
                             : spec.allows_unchecked && needed > left;
  plan.reads_samples =
      plan.cache == Cache::none && chunks.is_raw() && max_asked_chunks(chunks, memory) == 0 && is_wanted;
  plan.is_unchecked = plan.reads_samples && !is_compared;
  if (!plan.reads_samples && needed > left)
    refuse(spec, "this order", needed, left,
           "give more, or take a smaller `window_chunks` (order window) or `batch_size`");
  plan.chunks_ahead = static_cast<std::size_t>(
      plan.reads_samples ? max_ahead : std::clamp(fitting, spec.chunks_needed, max_ahead));
  if (!plan.reads_samples && (!spec.in_order || all_stay))
    plan.kept_chunks = static_cast<std::size_t>(fitting);
  return plan;
}

/// Of images of their own sizes, what is stored is kept first, then the pixels of as many as fit beside what
/// the threads need for decoding.
CachePlan plan_sized(const ChunkSet& chunks, const SharedSpec& spec, std::uint64_t memory) {
  const std::uint64_t decoding = decoding_bytes(chunks, spec.threads);
  if (decoding > memory)
    refuse(spec,
           spec.threads > 1 ? "decoding the largest images on all threads" : "decoding the largest image",
           decoding, memory, spec.threads > 1 ? "give more, or take fewer `threads`" : "give more");
  const std::uint64_t stored_bytes = share_of_kept(chunks, spec, Kept::decoded);
  const std::uint64_t pixels = share_of_kept(chunks, spec, Kept::pixels);
  if (spec.cache == Cache::compressed && stored_bytes + decoding > memory)
    refuse(spec, "cache compressed", stored_bytes + decoding, memory, "give more, or take `cache` none");
  if (spec.cache == Cache::decoded && spec.keeps_images && stored_bytes + decoding + pixels > memory)
    refuse(spec, "cache decoded", stored_bytes + decoding + pixels, memory,
           "give more, or take `cache` automatic, which keeps the pixels of as many images as fit");
  SharedSpec stored = spec;
  if (spec.cache == Cache::compressed) stored.cache = Cache::decoded;
  CachePlan plan = plan_chunks(chunks, stored, memory, decoding);
  plan.reported = plan.cache == Cache::decoded ? Cache::compressed : plan.cache;
  if (plan.cache != Cache::decoded || spec.cache == Cache::compressed || !spec.keeps_images) return plan;
  const std::uint64_t all = bytes_of(chunks, Kept::pixels),
                      left = memory - std::min(memory, decoding + stored_bytes);
  plan.own_image_bytes = std::min(all, left);
  plan.image_bytes = pixels <= left ? all : left * spec.processes + spec.taken_bytes(Kept::pixels);
  if (plan.image_bytes == all) plan.reported = Cache::decoded;
  return plan;
}

bool has_hashes(const ChunkSet& chunks) {
  return std::ranges::all_of(chunks.parts(), [](const auto& part) { return part->has_hashes(); });
}

CachePlan plan_shared(const ChunkSet& chunks, const CacheSpec& spec, bool shares) {
  SharedSpec wanted = shared_spec(chunks, spec, shares);
  std::uint64_t memory = spec.cache_bytes != 0 ? spec.cache_bytes : memory_share() / 2;
  const std::size_t max_asked = max_asked_chunks(chunks, memory);
  memory -= std::min(memory, max_asked * chunks.max_fetched_bytes());
  CachePlan plan;
  if (chunks.holds_own_sizes()) {
    plan = plan_sized(chunks, wanted, memory);
  } else {
    if (chunks.is_raw() && spec.cache == Cache::compressed) wanted.cache = Cache::decoded;  // the same bytes
    plan = plan_chunks(chunks, wanted, memory, room_of_threads(chunks, spec.threads));
    plan.reported = spec.cache == Cache::automatic ? plan.cache : spec.cache;
  }
  plan.max_asked = max_asked;
  plan.arena = make_arena(chunks, plan.cache, spec.checks, shares);
  plan.arena_is_shared = plan.arena.is_shared();
  return plan;
}

}  // namespace

CachePlan plan_cache(const ChunkSet& chunks, const CacheSpec& spec) {
  if (!spec.shares || !has_hashes(chunks)) return plan_shared(chunks, spec, false);
  static const std::string obstacle = SharedMemory::obstacle();
  std::string notice = obstacle;
  if (obstacle.empty()) {
    try {
      return plan_shared(chunks, spec, true);
    } catch (const NotShared& error) {
      notice = error.what();
    }
  }
  CachePlan plan = plan_shared(chunks, spec, false);
  if (plan.cache != Cache::none || obstacle.empty()) plan.notice = notice;
  return plan;
}

}  // namespace chunkhit
