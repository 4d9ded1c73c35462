// Caches the decoded chunks that will be used next; eviction follows the known order of the epoch.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "cache/chunk_arena.h"
#include "cache/chunk_buffers.h"
#include "cache/chunk_filler.h"
#include "cache/chunk_set.h"
#include "cache/prepared_chunks.h"
#include "chunkhit/loader.h"

namespace chunkhit {

struct ChunkCacheSpec {
  Cache cache = Cache::none;  ///< not automatic
  CheckHashes check_hashes = CheckHashes::always;
  OnCorrupt on_corrupt = OnCorrupt::fail;
  std::size_t kept_chunks = 0;   ///< up to so many decoded chunks, those stay that nobody has asked for
  std::size_t chunks_ahead = 1;  ///< decoded chunks that may be wanted at a time, as a rule
  /// Cache::none where all parts are raw: chunks take no memory, samples are read one by one.
  bool reads_samples = false;
  PreparedChunksSpec prepared = {};
};

/// What the cache has done. Times in seconds, summed over threads.
struct ChunkCacheStats {
  std::uint64_t fetches = 0;
  std::uint64_t shared_chunks = 0;  ///< chunks that other processes have put into memory
  std::uint64_t stored_bytes = 0;
  std::uint64_t corrupt_chunks = 0;
  double fetch_seconds = 0;
  double decode_seconds = 0;
  PreparedStats prepared;
};

/// What of a source stays in memory.
enum class Kept : std::uint8_t {
  decoded,  ///< chunks as Cache::decoded keeps them
  stored,   ///< stored bytes of chunks
  pixels,   ///< of images of their own sizes
};

/// Tells such memory of processes that share it from other memory; nothing where it cannot be shared.
/// `checks`: whether bytes are compared with their hashes.
[[nodiscard]] std::optional<std::uint64_t> arena_id(const ChunkSet& chunks, Kept kept, bool checks);

/// Memory in which all chunks stay, as `cache` keeps them; none where they come and go. `checks`, `shares`:
/// see arena_id. Throws as ChunkArena.
[[nodiscard]] ChunkArena make_arena(const ChunkSet& chunks, Cache cache, bool checks, bool shares);

/// Gives the samples of chunks. Any thread may call anything. Bytes are compared with their hashes each time
/// they are read from a file, whole chunks as samples, and never again in the memory of this class.
class ChunkCache {
 public:
  /// `arena`: make_arena for the same cache.
  ChunkCache(const ChunkSet& chunks, const ChunkCacheSpec& spec, ChunkArena arena = {});
  ChunkCache(const ChunkCache&) = delete;
  ChunkCache& operator=(const ChunkCache&) = delete;
  ~ChunkCache();

  /// Pins a chunk: its samples stay at their address until the pin is destroyed.
  class Pin {
   public:
    Pin() = default;
    /// `cache`: notified at the end; null for samples that stay anyway.
    Pin(ChunkCache* cache, std::size_t chunk, const std::uint8_t* samples, bool hit)
        : cache_(cache), chunk_(chunk), samples_(samples), hit_(hit) {}
    Pin(Pin&& other) noexcept { *this = std::move(other); }
    Pin& operator=(Pin&& other) noexcept {
      std::swap(cache_, other.cache_);
      std::swap(chunk_, other.chunk_);
      std::swap(samples_, other.samples_);
      std::swap(hit_, other.hit_);
      return *this;
    }
    ~Pin() {
      if (cache_ != nullptr) cache_->unpin(chunk_);
    }
    /// The chunk's samples one after the other, for `sample`; null where OnCorrupt::skip leaves the chunk
    /// out.
    [[nodiscard]] const std::uint8_t* samples() const { return samples_; }
    /// Whether the samples would not be in memory without this.
    [[nodiscard]] bool holds_memory() const { return cache_ != nullptr && samples_ != &kInFile; }
    /// Whether nobody had to wait for it.
    [[nodiscard]] bool hit() const { return hit_; }

   private:
    friend class ChunkCache;
    ChunkCache* cache_ = nullptr;
    std::size_t chunk_ = 0;
    const std::uint8_t* samples_ = nullptr;
    bool hit_ = false;
  };

  [[nodiscard]] std::size_t chunk_count() const { return entries_.size(); }
  /// Asks for a chunk that is not in memory and will be wanted soon. The others are as PreparedChunks.
  void ask(std::size_t chunk);
  [[nodiscard]] bool can_ask() const { return prepared_->can_ask(); }
  [[nodiscard]] std::size_t max_asked() const { return spec_.prepared.max_asked; }
  bool forget_asked();
  [[nodiscard]] bool keeps_on_disk() const { return prepared_->keeps_on_disk(); }
  void begin_epoch(NextVisit next_visit) { prepared_->begin_epoch(std::move(next_visit)); }
  /// Keeps a chunk, once it is there, until as many `unwant` were called.
  void want(std::size_t chunk);
  void unwant(std::size_t chunk);
  /// Gives a chunk, reading and decoding it where it is not there; `scratch` is for its stored bytes. Where
  /// samples are read one by one, the system is asked for it instead. Throws bad_data naming the location
  /// when it is damaged.
  [[nodiscard]] Pin acquire(std::size_t chunk, ByteBuffer& scratch);
  /// Gives a chunk for its samples `wanted`, ascending. Where it is not there and few of its samples are
  /// wanted, of which others are not expected soon, only these are read and decoded, to `room`: the pin's
  /// samples are there then, until `room` is used again. Throws as `acquire`.
  [[nodiscard]] Pin acquire_some(std::size_t chunk, std::span<const std::uint64_t> wanted,
                                 ByteBuffer& scratch, ByteBuffer& room);
  /// Whether that may be less work than `acquire`, of most chunks.
  [[nodiscard]] bool reads_some() const { return reads_some_; }
  /// The bytes of an image (ChunkSet::sample_bytes); `held` is what a Pin of its chunk gave. Reads it into
  /// `room` where samples are read one by one, and compares its hash. Null where OnCorrupt::skip leaves it
  /// out, with others that share its hash; throws as `acquire`.
  [[nodiscard]] const std::uint8_t* sample(std::size_t chunk, std::uint64_t in_chunk,
                                           const std::uint8_t* held, ByteBuffer& room);

  /// An image that is read to `out`, null where it is left out.
  struct SampleRead {
    std::size_t chunk;
    std::uint64_t in_chunk;
    std::uint8_t* out;
  };
  /// The same of many at once, where samples are read one by one and lie `sample_step` bytes apart.
  void read_samples(std::span<SampleRead> samples);

  /// Whether chunks take no memory, and samples are read one by one: of all, or of one that a Pin holds.
  [[nodiscard]] bool reads_samples() const { return spec_.reads_samples; }
  [[nodiscard]] static bool is_in_file(const std::uint8_t* held) { return held == &kInFile; }

  [[nodiscard]] bool skips_corrupt() const { return spec_.on_corrupt == OnCorrupt::skip; }
  [[nodiscard]] ChunkCacheStats stats() const;
  /// Says why memory is not shared with other processes that was to be; else empty.
  void reset_stats();

 private:
  // A marker address for samples that are read one by one from the file.
  static constexpr std::uint8_t kInFile = 0;

  enum class State : std::uint8_t { absent, loading, ready, corrupt };
  struct Entry {
    std::atomic<State> state{State::absent};  // ready where samples are read one by one: asked for
    std::atomic<bool> was_used{false};        // where samples are read one by one
    bool is_damaged = false;                  // counted as such
    bool is_idle = false;
    std::uint32_t wanted = 0;
    std::uint32_t pins = 0;
    std::uint64_t last_use = 0;             // of which only some samples were read: a number of uses_
    std::uint8_t* decoded = nullptr;        // where chunks come and go, or `arena_` was stuck
    bool is_received = false;               // `decoded` is the memory that it arrived in
    std::atomic<bool> was_in_arena{false};  // found there, or put there
    std::atomic<pid_t> reserved_by{0};      // in `arena_`, by `ask` of this process
    std::list<std::size_t>::iterator idle;  // valid where is_idle
  };

  [[nodiscard]] std::uint8_t* address(std::size_t chunk) const;
  [[nodiscard]] bool begin_loading(Entry& entry, std::unique_lock<std::mutex>& lock);
  void read(std::size_t chunk, ChunkSet::Location location, ByteBuffer& scratch);
  void load(std::size_t chunk, ChunkSet::Location location, ByteBuffer& scratch);
  [[nodiscard]] bool checks(const ChunkReader& part) const;
  [[nodiscard]] Bytes fetch(std::size_t chunk, ChunkSet::Location location, ByteBuffer& scratch);
  [[nodiscard]] MutableBytes target(std::size_t chunk, ChunkSet::Location location, ByteBuffer& scratch);
  [[nodiscard]] ChunkArena::Claim claim(std::size_t chunk);
  template <class Fill>
  [[nodiscard]] bool fill_in_arena(std::size_t chunk, const Fill& fill);
  [[nodiscard]] MutableBytes stored_in_arena(std::size_t chunk, ChunkSet::Location location) const;
  [[nodiscard]] bool fill_stored(std::size_t chunk, ChunkSet::Location location);
  [[nodiscard]] bool fill_decoded(std::size_t chunk, ChunkSet::Location location, ByteBuffer& scratch);
  void ask_reserved(std::size_t chunk);
  void give_up_asked();
  void fill_asked(std::size_t chunk);
  [[nodiscard]] bool read_from_file(std::size_t chunk, std::uint64_t first, std::uint64_t offset,
                                    MutableBytes out);
  void count_damaged(Entry& entry);
  void decode(std::size_t chunk, ChunkSet::Location location, Bytes stored);
  void decode_images(std::size_t chunk, ChunkSet::Location location, Bytes stored);
  void restore(ChunkSet::Location location, Bytes stored, MutableBytes raw,
               std::span<const std::uint64_t> wanted = {}) const;
  void decode_matrices(std::size_t chunk, ChunkSet::Location location, Bytes stored);
  void load_now(std::size_t chunk, ChunkSet::Location location, ByteBuffer& scratch);
  [[nodiscard]] bool can_read_some(ChunkSet::Location location) const;
  [[nodiscard]] bool begin_reading_some(std::size_t chunk);
  void read_some(std::size_t chunk, ChunkSet::Location location, std::span<const std::uint64_t> wanted,
                 ByteBuffer& scratch, ByteBuffer& room);
  void count_fetch(std::uint64_t stored_bytes, double fetch_seconds, double decode_seconds);
  [[nodiscard]] bool leaves_out(const Error& error) const;
  [[noreturn]] static void throw_with_advice(const Error& error);
  void take_buffer(Entry& entry);
  void keep(Entry& entry, PreparedChunk arrived);
  void give_back(Entry& entry);
  void let_idle_go(std::size_t max_decoded);
  void end_loading(std::size_t chunk, State state);
  void unpin(std::size_t chunk);
  void settle(std::size_t chunk);
  void release(Entry& entry);

  const ChunkSet& chunks_;
  ChunkCacheSpec spec_;
  bool reads_some_ = false;
  ChunkArena arena_;  // Cache::decoded: all samples; Cache::compressed: stored bytes
  std::vector<Entry> entries_;
  mutable std::mutex mutex_;  // guards all but `state` of entries, which may be read without it
  std::condition_variable changed_;
  std::uint64_t uses_ = 0;        // of chunks of which only some samples were wanted
  std::list<std::size_t> idle_;   // the longest unused first
  std::list<std::size_t> spare_;  // nodes for `idle_`: a chunk that comes and goes allocates nothing
  ChunkBuffers buffers_;
  std::size_t decoded_count_ = 0;  // entries with `decoded`
  std::unique_ptr<PreparedChunks> prepared_;
  ChunkCacheStats stats_;
  std::unique_ptr<ChunkFiller> filler_;  // of `arena_`, where it is shared; made for the first chunk
  pid_t filler_process_ = 0;
  std::atomic<std::uint32_t> interrupts_{0};  // of waiting for other processes
};

}  // namespace chunkhit
