// Gives the samples of chunks, whatever keeps them: decoded chunks, stored chunks, or files alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "cache/arena_chunks.h"
#include "cache/chunk_reads.h"
#include "cache/chunk_set.h"
#include "cache/prepared_chunks.h"

namespace chunkhit {

/// Where the samples of a chunk are.
enum class Held : std::uint8_t {
  left_out,  ///< nowhere: OnCorrupt::skip leaves the chunk out
  memory,    ///< in memory, one after the other
  room,      ///< the same in the caller's `room`, but only those that it wanted
  file,      ///< in their file, of which they are read one by one
};

/// The samples of a chunk, as a Pin holds them.
struct HeldChunk {
  Held held = Held::left_out;
  const std::uint8_t* samples = nullptr;  ///< address of the first one; null where they are not in memory
};

/// Gives the samples of chunks. Any thread may call anything. Bytes are compared with their hashes each time
/// they are read from a file, whole chunks as samples, and never again in the memory of this class.
class ChunkCache {
 public:
  ChunkCache(const ChunkCache&) = delete;
  ChunkCache& operator=(const ChunkCache&) = delete;
  virtual ~ChunkCache() = default;

  /// Pins a chunk: its samples stay at their address until the pin is destroyed.
  class Pin {
   public:
    Pin() = default;
    /// Pins nothing: the samples stay anyway.
    Pin(HeldChunk held, bool hit) : held_(held), hit_(hit) {}
    /// `cache`: its `unpin` is called at the end.
    Pin(ChunkCache& cache, std::size_t chunk, HeldChunk held, bool hit)
        : cache_(&cache), chunk_(chunk), held_(held), hit_(hit) {}
    Pin(Pin&& other) noexcept { *this = std::move(other); }
    Pin& operator=(Pin&& other) noexcept {
      std::swap(cache_, other.cache_);
      std::swap(chunk_, other.chunk_);
      std::swap(held_, other.held_);
      std::swap(hit_, other.hit_);
      return *this;
    }
    ~Pin() {
      if (cache_ != nullptr) cache_->unpin(chunk_);
    }
    /// Says what is held, once the chunk is loaded.
    void hold(HeldChunk held) { held_ = held; }
    [[nodiscard]] HeldChunk held() const { return held_; }  ///< for `sample`
    [[nodiscard]] const std::uint8_t* samples() const { return held_.samples; }
    /// Whether the samples would not be in memory without this.
    [[nodiscard]] bool holds_memory() const { return cache_ != nullptr; }
    /// Whether nobody had to wait for it.
    [[nodiscard]] bool hit() const { return hit_; }

   private:
    ChunkCache* cache_ = nullptr;
    std::size_t chunk_ = 0;
    HeldChunk held_;
    bool hit_ = false;
  };

  [[nodiscard]] std::size_t chunk_count() const { return reads_.chunks().chunk_count(); }
  /// Asks for a chunk that is not in memory and will be wanted soon. The others are as PreparedChunks.
  virtual void ask(std::size_t /*chunk*/) {}
  [[nodiscard]] bool can_ask() const { return reads_.prepared().can_ask(); }
  [[nodiscard]] std::size_t max_asked() const { return max_asked_; }
  virtual bool forget_asked() { return reads_.prepared().forget_asked(); }
  [[nodiscard]] bool keeps_on_disk() const { return reads_.prepared().keeps_on_disk(); }
  void begin_epoch(NextVisit next_visit) { reads_.prepared().begin_epoch(std::move(next_visit)); }
  /// Keeps a chunk, once it is there, until as many `unwant` were called.
  virtual void want(std::size_t /*chunk*/) {}
  virtual void unwant(std::size_t /*chunk*/) {}
  /// Gives a chunk, reading and decoding it where it is not there; `scratch` is for its stored bytes. Where
  /// samples are read one by one, the system is asked for it instead. Throws bad_data naming the location
  /// when it is damaged.
  [[nodiscard]] virtual Pin acquire(std::size_t chunk, ByteBuffer& scratch) = 0;
  /// Gives a chunk for its samples `wanted`, ascending. Where it is not there and few of its samples are
  /// wanted, of which others are not expected soon, only these are read and decoded, to `room`: they stay
  /// there until it is used again. Throws as `acquire`.
  [[nodiscard]] virtual Pin acquire_some(std::size_t chunk, std::span<const std::uint64_t> wanted,
                                         ByteBuffer& scratch, ByteBuffer& room) = 0;
  /// Whether that may be less work than `acquire`, of most chunks.
  [[nodiscard]] bool reads_some() const { return reads_some_; }
  /// The bytes of an image (ChunkSet::sample_bytes); `from` is what a Pin of its chunk holds. Reads it into
  /// `room` where samples are read one by one, and compares its hash. Null where OnCorrupt::skip leaves it
  /// out, with others that share its hash; throws as `acquire`.
  [[nodiscard]] const std::uint8_t* sample(std::size_t chunk, std::uint64_t in_chunk, HeldChunk from,
                                           ByteBuffer& room) {
    const std::uint64_t step = reads_.chunks().sample_step();
    if (from.held != Held::file && step != 0) return from.samples + in_chunk * step;
    return find_sample(chunk, in_chunk, from, room);
  }

  /// An image that is read to `out`, null where it is left out.
  struct SampleRead {
    std::size_t chunk;
    std::uint64_t in_chunk;
    std::uint8_t* out;
  };
  /// The same of many at once, of chunks in Held::file, whose samples lie `sample_step` bytes apart.
  void read_samples(std::span<SampleRead> samples);

  [[nodiscard]] bool skips_corrupt() const { return reads_.skips_corrupt(); }
  [[nodiscard]] ChunkCacheStats stats() const { return reads_.stats(); }
  void reset_stats() { reads_.reset_stats(); }

 protected:
  ChunkCache(const ChunkSet& chunks, const ChunkCacheSpec& spec)
      : reads_(chunks, spec), reads_some_(spec.reads_samples), max_asked_(spec.prepared.max_asked) {}

  ChunkReads reads_;
  bool reads_some_;

 private:
  /// Called by each Pin of a chunk at its end.
  virtual void unpin(std::size_t /*chunk*/) {}
  [[nodiscard]] const std::uint8_t* find_sample(std::size_t chunk, std::uint64_t in_chunk, HeldChunk from,
                                                ByteBuffer& room);

  std::size_t max_asked_;
};

/// `arena`: make_arena for the same cache.
[[nodiscard]] std::unique_ptr<ChunkCache> make_chunk_cache(const ChunkSet& chunks, const ChunkCacheSpec& spec,
                                                           ChunkArena arena = {});

}  // namespace chunkhit
