// Which cache keeps samples, and how much memory it may take.
#pragma once

#include <cstdint>
#include <string>

#include "cache/arena_chunks.h"

namespace chunkhit {

/// What a reader wants of memory.
struct CacheSpec {
  Cache cache = Cache::automatic;
  std::uint64_t cache_bytes = 0;      ///< 0: half of what the process may still take
  const char* limit = "cache_bytes";  ///< the option that sets these bytes, for messages
  std::uint64_t chunks_needed = 1;    ///< decoded chunks that the order needs at a time
  std::uint64_t threads = 1;          ///< that read and decode, each in some room of its own
  bool in_order = true;               ///< chunks are used one after the other, and not again in an epoch
  bool keeps_images = false;          ///< images of their own sizes may stay decoded
  bool checks = true;                 ///< hashes are compared
  bool allows_unchecked = false;  ///< rather no hashes than an error, where memory is too small for chunks
  bool reads_runs = false;        ///< samples are copied as they are, in the order of the file
  bool shares = false;            ///< the processes of this machine share what is kept of all chunks
};

/// What it gets.
struct CachePlan {
  Cache cache = Cache::none;  ///< of chunks; not automatic
  Cache reported =
      Cache::none;  ///< of samples: of images of their own sizes decoded where all pixels are kept
  std::uint64_t image_bytes = 0;      ///< for the pixels of images of their own sizes
  std::uint64_t own_image_bytes = 0;  ///< the same where processes cannot share them
  std::size_t chunks_ahead = 1;       ///< decoded chunks that may be there at a time
  std::size_t kept_chunks = 0;        ///< up to so many, those stay that nobody has asked for
  std::size_t max_asked = 0;          ///< stored chunks that may be on their way: max_asked_chunks
  bool reads_samples = false;         ///< raw samples are read one by one, and take no memory
  bool is_unchecked = false;     ///< they have no hashes of their own, and memory is too small for chunks
  ChunkArena arena;              ///< for `cache`
  bool arena_is_shared = false;  ///< the processes of this machine have one `arena`
  std::string notice;            ///< says why it is not shared that was to be
};

/// Chooses; throws usage, saying what to change, when cache_bytes is too little for what is wanted.
[[nodiscard]] CachePlan plan_cache(const ChunkSet& chunks, const CacheSpec& spec);

}  // namespace chunkhit
