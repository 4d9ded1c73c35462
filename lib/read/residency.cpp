#include "read/residency.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/memory.h"
#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr long kXfsMagic = 0x58465342;
constexpr long kZfsMagic = 0x2fc12fc1;

bool is_local_file(const std::string& path) {
  constexpr std::array<long, 7> kLocal{EXT4_SUPER_MAGIC, kXfsMagic,        BTRFS_SUPER_MAGIC,    kZfsMagic,
                                       TMPFS_MAGIC,      F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC};
  struct statfs system {};
  return ::statfs(path.c_str(), &system) == 0 &&
         std::ranges::find(kLocal, static_cast<long>(system.f_type)) != kLocal.end();
}

[[noreturn]] void refuse(const char* what, std::uint64_t needed, std::uint64_t given, const char* change) {
  throw Error(ErrorCode::usage, "memory_bytes: " + std::string(what) + " needs " +
                                    bytes_text(static_cast<double>(needed)) + ", " +
                                    bytes_text(static_cast<double>(given)) + " are given: " + change);
}

/// What all threads need while they decode: a chunk's stored bytes, and where a filter works in two steps, as
/// many as it has raw.
std::uint64_t room_of_threads(const ChunkSet& chunks, std::uint64_t threads) {
  return chunks.is_raw() ? 0 : threads * (chunks.most_stored_bytes() + chunks.most_chunk_bytes());
}

/// Whether the files lie on file systems of this machine.
bool is_local(const ChunkSet& chunks) {
  return std::ranges::all_of(chunks.parts(), [](const auto& part) { return is_local_file(part->path()); });
}

Residency choose(const ChunkSet& chunks, const ResidencySpec& spec, std::uint64_t memory, std::uint64_t room,
                 std::uint64_t needed) {
  // The system keeps the pages: a copy of them saves little of the time, and takes as much memory again.
  if (spec.in_order && chunks.is_raw() && needed <= memory && is_local(chunks)) return Residency::stream;
  if (chunks.decoded_bytes() + room <= memory) return Residency::decoded;
  if (!chunks.is_raw() && chunks.stored_bytes() + needed <= memory) return Residency::compressed;
  return Residency::stream;
}

}  // namespace

ResidencyPlan plan_residency(const ChunkSet& chunks, const ResidencySpec& spec) {
  const std::uint64_t memory = spec.memory_bytes != 0 ? spec.memory_bytes : available_memory() / 2;
  const std::uint64_t chunk_bytes = std::max<std::uint64_t>(1, chunks.most_chunk_bytes());
  const std::uint64_t room = room_of_threads(chunks, spec.threads);
  const std::uint64_t needed = spec.chunks_needed * chunk_bytes + room;
  ResidencyPlan plan;
  plan.residency =
      spec.residency == Residency::automatic ? choose(chunks, spec, memory, room, needed) : spec.residency;
  if (plan.residency == Residency::decoded) {
    if (chunks.decoded_bytes() + room > memory)
      refuse("residency decoded", chunks.decoded_bytes() + room, memory,
             "give more, or take residency stream");
    plan.chunks_ahead = 2 * spec.chunks_needed;
    return plan;
  }
  std::uint64_t left = memory;
  if (plan.residency == Residency::compressed) {
    if (chunks.stored_bytes() + needed > memory)
      refuse("residency compressed", chunks.stored_bytes() + needed, memory,
             "give more, or take residency stream");
    left -= chunks.stored_bytes();
  }
  plan.reads_samples =
      plan.residency == Residency::stream && chunks.is_raw() && (!spec.in_order || needed > left);
  if (!plan.reads_samples && needed > left)
    refuse("this order", needed, left,
           "give more, or take a smaller window_chunks (order window) or batch_size");
  const std::uint64_t fitting = plan.reads_samples ? 2 * spec.chunks_needed : (left - room) / chunk_bytes;
  plan.chunks_ahead =
      static_cast<std::size_t>(std::clamp(fitting, spec.chunks_needed, 2 * spec.chunks_needed));
  if (!spec.in_order && !plan.reads_samples) plan.kept_chunks = static_cast<std::size_t>(fitting);
  return plan;
}

}  // namespace chunkhit
