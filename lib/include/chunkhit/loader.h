// Options, statistics and the range of batches that all loaders share.
#pragma once

#include <chunkhit/error.h>
#include <chunkhit/pack_info.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chunkhit {

/// Order of the samples in an epoch.
enum class Shuffle {
  none,    ///< packing order
  window,  ///< permutes chunks, and samples within windows of chunks: reads each chunk once per epoch
  global,  ///< permutes all samples; for data in memory or stored uncompressed
};

/// Values of a column at some samples, users or items, in their order: the list of its type is filled.
struct ColumnValues {
  ColumnType type = ColumnType::int64;
  std::vector<std::int64_t> integers;
  std::vector<double> numbers;          ///< NaN: missing
  std::vector<std::string_view> texts;  ///< UTF-8, views of the reader's memory
};

/// How samples are cached.
enum class Cache {
  automatic,   ///< the first of decoded, compressed, none that fits cache_bytes
               ///< images of their own sizes: compressed, and decoded for as many images as fit
  decoded,     ///< all samples in memory, ready to copy
  compressed,  ///< the stored bytes in memory, decompressed on use
  none,        ///< reads the files in every epoch; uncompressed samples one by one, as a rule
};

/// Whether bytes are compared with their hash each time they are read from a file, by the chunk or by the
/// sample. What was compared stays trusted in the memory of the loader.
enum class CheckHashes { always, never };

/// What damage does: it fails the epoch with an Error, or is skipped and counted. Skipping leaves out a
/// damaged chunk, or where samples are read one by one, a damaged sample and those that share its hash. It
/// makes affected batches smaller, even with drop_last, and drops empty ones. A part that is missing or
/// truncated when a loader opens it is an Error with both.
enum class OnCorrupt { fail, skip };

/// Samples that cannot be divided evenly among the ranks: pad uses some of them twice, drop leaves them out.
enum class RankRemainder { pad, drop };

/// Value of the options `threads` and `prefetch`: the loader chooses while it runs, by its statistics.
inline constexpr std::uint32_t kAutomatic = ~std::uint32_t{0};

/// Samples that a loader uses. At most one field is set; none: all samples.
struct SubsetSpec {
  /// Sample numbers, in any order, each below size() and no number twice.
  std::optional<std::vector<std::uint64_t>> samples{};
  std::vector<std::string>
      classes{};  ///< names of classes, of images with class labels; an id where it has no name
  /// Least and greatest label, both included: class ids of images, or the number of samples with one label.
  std::optional<std::array<double, 2>> label_range{};
  /// Path of a CSV with a header. Its column `sample` has sample numbers; where there is none, the column
  /// `file` has names of files as `pack-info --list` writes them, of which a pack of images records one per
  /// sample.
  std::string csv{};
};

/// Weight of each sample of a class.
struct ClassWeight {
  std::string name;  ///< name of a class, or its id where it has no name
  double weight = 1;
};

/// Which samples an epoch has, and how often: by default each one of the subset once. With weights an epoch
/// is `epoch_samples` draws. At most one of weights, class_weights and balanced is set. Weights are finite
/// and at least 0, and some are above 0; a sample of weight 0 is not drawn. schemas/order.md has the draws,
/// and lib/python/samplers.md what they cost.
struct SamplerSpec {
  SubsetSpec subset{};
  std::vector<double> weights{};             ///< (size(),): weight of each sample of the source
  std::vector<ClassWeight> class_weights{};  ///< of all classes that the subset has samples of
  bool balanced = false;                     ///< each class as often: weights of 1 / samples of the class
  /// With replacement a sample of share w of all weights comes floor(n · w) - 1 to ceil(n · w) + 1 times in
  /// an epoch of n draws, n · w expected. Without replacement a sample comes at most once, and is drawn with
  /// the probabilities of torch.multinomial(replacement=False); weights then require epoch_samples.
  bool replacement = true;
  /// Samples of an epoch; 0: as many as the subset has. Without replacement at most as many as have a weight.
  /// Of a mixture: samples of all sources in an epoch; 0: as many as all subsets have.
  std::uint64_t epoch_samples = 0;
};

/// How exactly a mixture keeps its shares.
enum class MixtureShares {
  /// In every prefix of an epoch, and so in every batch: to within one sample of each source. With data
  /// echoing, in the batches of a block together.
  batch,
  epoch,  ///< in every 4096 samples of an epoch; within them samples of all sources are shuffled
};

/// Sources that are mixed instead of concatenated: each gives its share of an epoch in its own order. A
/// source that gives more samples than it has begins its next own epoch; one that gives fewer continues in
/// the loader's next epoch where it stopped.
struct MixtureSpec {
  /// One per path, above 0; shares are weights divided by their sum. Empty: sources are concatenated.
  std::vector<double> weights{};
  MixtureShares shares = MixtureShares::batch;
};

/// Allocator of the batches' memory, e.g. pinned memory. Called by the loader's constructor and destructor,
/// by `next` after a batch was retained and where automatic prefetch prepares more batches; the last owner of
/// a batch releases its memory.
struct BatchAllocator {
  std::function<void*(std::size_t bytes)> allocate;  ///< returns memory aligned to at least 64 bytes
  std::function<void(void* memory, std::size_t bytes)> release;
};

/// Statistics since the loader was made or reset_stats was called. Times are in seconds; the times of worker
/// threads are summed over the threads. lib/statistics.md explains each field.
struct LoaderStats {
  double seconds = 0;           ///< wait_seconds + step_seconds; pauses between epochs do not count
  double wait_seconds = 0;      ///< time the caller waited for batches
  double step_seconds = 0;      ///< time the caller used batches
  double fetch_seconds = 0;     ///< time spent reading stored bytes and comparing hashes
  double decode_seconds = 0;    ///< time spent decompressing
  double assemble_seconds = 0;  ///< time spent copying, augmenting and converting into batches
  double idle_seconds = 0;      ///< time worker threads had nothing to do: all prefetched batches were ready
  /// Time a transform of whole batches took, and time it waited for the loader's batches: chunkhit.torch
  /// counts them, in Python. Both are 0 where there is no transform.
  double transform_seconds = 0;
  double transform_wait_seconds = 0;
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t batch_bytes = 0;     ///< bytes of pixels returned in batches
  std::uint64_t stored_bytes = 0;    ///< bytes fetched, as stored
  std::uint64_t chunk_hits = 0;      ///< times a batch found its chunk loaded
  std::uint64_t chunk_misses = 0;    ///< times a batch had to wait for its chunk
  std::uint64_t chunk_fetches = 0;   ///< chunks read and decompressed
  std::uint64_t shared_chunks = 0;   ///< chunks that other processes of this machine had read or decompressed
  std::uint64_t corrupt_chunks = 0;  ///< chunks skipped by OnCorrupt::skip
  std::uint64_t corrupt_samples = 0;
  std::uint64_t remote_bytes = 0;      ///< bytes fetched from servers, of stored_bytes
  std::uint64_t disk_chunks = 0;       ///< chunks of remote packs that were fetched from cache_dir
  std::uint64_t retained_batches = 0;  ///< batches retained by the caller; each took new or returned memory
  std::uint64_t decoded_images =
      0;  ///< images of their own sizes whose pixels are kept once they are decoded
  Cache cache = Cache::none;
  std::uint32_t threads = 0;          ///< worker threads that are active now
  std::uint32_t prefetch = 0;         ///< batches that are prepared in advance now
  std::uint32_t transform_ahead = 0;  ///< batches that a thread transforms in advance; 0: when asked for
  /// What automatic threads and prefetch tried, and why, up to the last 64 tries; reset_stats keeps it.
  std::vector<std::string> tuning{};
  bool has_settled = false;  ///< automatic threads and prefetch have nothing left to try
  /// Likely mistakes in the choice of data, e.g. a validation pack normalized by its own statistics.
  std::vector<std::string> notices{};
  /// Returns the statistics since `earlier`, which the same loader gave before, e.g. of an epoch; all of them
  /// if it was reset meanwhile.
  [[nodiscard]] CHUNKHIT_API LoaderStats since(const LoaderStats& earlier) const;
  [[nodiscard]] double wait_fraction() const { return seconds > 0 ? wait_seconds / seconds : 0; }
  /// Returns whether training waits for data, which stage is the bottleneck, and how to fix it.
  [[nodiscard]] CHUNKHIT_API std::string verdict() const;
};
CHUNKHIT_API std::ostream& operator<<(std::ostream& out, const LoaderStats& stats);

/// How well an order mixes the samples of all ranks together, and what a sampler costs. Of windows a rank has
/// its streams' part.
struct MixingInfo {
  std::uint64_t chunks = 0;             ///< chunks of the source
  std::uint64_t chunks_in_window = 0;   ///< chunks of each window but the last
  std::uint64_t samples_in_window = 0;  ///< samples of each window but the last
  double same_chunk_neighbors = 0;      ///< expected share of neighbors from the same chunk, 0..1
  std::uint64_t epoch_samples = 0;      ///< samples of an epoch of all ranks
  double distinct_samples = 0;          ///< expected number of different samples among them
  /// Visits of chunks in epoch 0: Shuffle::none and window read a chunk once a visit. A sampler visits only
  /// chunks that it has samples of; Shuffle::global needs a visited chunk once a sample.
  std::uint64_t chunk_visits = 0;
  double samples_per_visit = 0;  ///< samples that are used of a visited chunk, on average
};

/// A range over the batches that are left of a loader's epoch; to be iterated once.
template <class Loader, class Batch>
class EpochRange {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = const Batch*;
    using reference = const Batch&;
    Iterator() = default;
    explicit Iterator(Loader& loader) : loader_(&loader), batch_(loader.next()) {}
    const Batch& operator*() const { return *batch_; }
    const Batch* operator->() const { return batch_; }
    Iterator& operator++() {
      batch_ = loader_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return batch_ == nullptr; }

   private:
    Loader* loader_ = nullptr;
    const Batch* batch_ = nullptr;
  };

  explicit EpochRange(Loader& loader) : loader_(&loader) {}
  [[nodiscard]] Iterator begin() const { return Iterator(*loader_); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  Loader* loader_;
};

/// Loads batches, epoch by epoch: what ImageLoader and SparseLoader share. One thread at a time may use a
/// loader; its own worker threads read ahead, also across the end of an epoch. A forked child must make its
/// own loader.
///
/// Files are read, not mapped. A file that was truncated or overwritten is an Error of bad_data (or is
/// handled by OnCorrupt) when it is read again; a bad sector is an Error of bad_data, unreachable storage one
/// of try_again. If there are more files than half of the process' descriptor limit, each read opens its
/// file, and files must not be moved.
///
/// Damaged external HDF5 files can crash the HDF5 library. Where the command pack-verify is installed (beside
/// the library or the program, or on PATH), it is executed to open such a file first: a file that it crashes
/// over is an Error of bad_data. The process is never forked. Where chunks of such a file split samples
/// (schemas/images-hdf5.md), the loader's threads read it through the HDF5 library, one thread at a time.
template <class Batch>
class CHUNKHIT_API Loader {
 public:
  using Epoch = EpochRange<Loader, Batch>;

  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();

  /// Returns the batches of an epoch, from the first one or from a restored position. Iterate it once.
  [[nodiscard]] Epoch epoch(std::uint64_t epoch);
  /// Returns the next batch of the current epoch (at first: epoch 0, or the restored one), or null at its
  /// end. Throws bad_data for a corrupt chunk, and again until `epoch` is called, which restarts the epoch
  /// (or resumes at the restored position) and retries failed reads; `state` then returns the position before
  /// the failed batch. Chunks that OnCorrupt::skip skipped stay skipped.
  [[nodiscard]] const Batch* next();
  /// Waits up to `timeout` for the next batch; returns whether `next` would return at once. Lets the caller
  /// handle signals meanwhile. Invalidates the last batch, as `next` does.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds timeout);
  /// Shares ownership of the current batch, which stays valid and unchanged as long as the result, even after
  /// the loader. The loader continues with other memory of its allocator. Null before and after an epoch.
  [[nodiscard]] std::shared_ptr<const Batch> retain() const;

  [[nodiscard]] std::uint64_t size() const;           ///< samples or rows of the source; of pairs ratings
  [[nodiscard]] std::uint64_t epoch_samples() const;  ///< samples or rows of an epoch, of all ranks
  [[nodiscard]] std::uint64_t batch_count() const;    ///< batches of this rank per epoch
  [[nodiscard]] const PackInfo& info() const;         ///< the first source, with the classes of all
  [[nodiscard]] MixingInfo mixing() const;
  [[nodiscard]] LoaderStats stats() const;
  void reset_stats();

  /// Returns the position after the current batch as one line of JSON.
  [[nodiscard]] std::string state() const;
  /// Resumes from a `state()`: epoch(e) of the state's epoch gives exactly the remaining batches, for any
  /// number of threads; any other epoch throws usage while some remain. With another world_size, batch_size,
  /// echo, rank_remainder or drop_last it gives all remaining samples, provided that all ranks stopped after
  /// the same batch (with echo: at the end of a block). Throws usage, naming the field, if the state is
  /// invalid or belongs to another source, seed, order or augmentation.
  void restore(const std::string& state);

 protected:
  struct CHUNKHIT_HIDDEN Impl;
  explicit Loader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;

 private:
  void release();
};

}  // namespace chunkhit
