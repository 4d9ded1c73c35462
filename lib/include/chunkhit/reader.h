// Image loaders and datasets for training code.
#pragma once

#include <chunkhit/epoch_range.h>
#include <chunkhit/error.h>
#include <chunkhit/export.h>
#include <chunkhit/layout.h>
#include <chunkhit/pack.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace chunkhit {

/// Order of the samples in an epoch.
enum class Shuffle {
  none,    ///< packing order
  window,  ///< permutes chunks, and samples within windows of chunks: reads each chunk once per epoch
  global,  ///< permutes all samples; for data in memory or stored uncompressed
};

/// How samples are cached.
enum class Cache {
  automatic,   ///< the first of decoded, compressed, none that fits cache_bytes
  decoded,     ///< all samples in memory, ready to copy
  compressed,  ///< the stored bytes in memory, decompressed on use
  none,  ///< reads the files in every epoch, ahead of use. Uncompressed samples are read one by one in order
         ///< global, and where cache_bytes is too small for the chunks of a window
};

/// Type of a batch's pixels.
enum class Dtype { uint8, float32 };

/// When the stored hash of a chunk is compared with its bytes. Where samples are read one by one, their whole
/// chunk is hashed.
enum class CheckHashes {
  first_use,  ///< whenever the chunk is read from its file: with Cache::none in every epoch; where samples
              ///< are read one by one, before the first one and after the file's size or times changed
  always,     ///< also whenever bytes that stayed in memory, or single samples, are used
  never,
};

/// What a corrupt chunk does: it fails the epoch with an Error, or is skipped and counted. Skipping makes
/// affected batches smaller, even with drop_last, and drops empty ones.
enum class OnCorrupt { fail, skip };

/// Samples that cannot be divided evenly among the ranks: pad uses some of them twice, drop leaves them out.
enum class RankRemainder { pad, drop };

/// Augmentation of images while they are copied into a batch; the same for any number of threads.
struct AugmentSpec {
  double flip_horizontal = 0;      ///< probability of mirroring an image, 0..1
  std::uint32_t crop_height = 0;   ///< pixels; 0: no crop
  std::uint32_t crop_width = 0;    ///< pixels; 0: no crop
  bool random_crop = false;        ///< crop at a random position instead of the center
  std::uint32_t crop_padding = 0;  ///< zero padding on each side before the crop, pixels
  bool operator==(const AugmentSpec&) const = default;
};

/// Normalization of float32 batches: (x / 255 - mean) / std per channel, bit for bit as torchvision's
/// ToTensor and Normalize. If empty, the statistics come from `normalize_like`, else from the pack's split,
/// else from the pack itself.
struct NormalizeSpec {
  std::vector<float> mean{};  ///< per channel, 0..1
  std::vector<float> std{};   ///< per channel, 0..1
};

/// Allocator of the batches' memory, e.g. pinned memory. Called by the loader's constructor and destructor,
/// and after a batch was retained; the last owner of a batch releases its memory.
struct BatchAllocator {
  std::function<void*(std::size_t bytes)> allocate;  ///< returns memory aligned to at least 64 bytes
  std::function<void(void* memory, std::size_t bytes)> release;
};

struct ImageLoaderOptions {
  std::size_t batch_size = 256;
  Shuffle shuffle = Shuffle::none;
  std::uint64_t seed = 0;
  std::uint32_t window_chunks = 64;  ///< chunks per window of Shuffle::window; part of the order
  std::uint32_t rank = 0;            ///< 0..world_size - 1
  std::uint32_t world_size = 1;
  RankRemainder rank_remainder = RankRemainder::pad;
  bool drop_last = false;  ///< drop the last batch if it is not full
  std::uint32_t echo = 1;  ///< data echoing: uses of each fetched block of echo · batch_size samples
  AugmentSpec augment{};
  Dtype dtype = Dtype::uint8;
  NormalizeSpec normalize{};  ///< requires Dtype::float32
  /// Pack whose mean and std normalize this one, e.g. the training pack; requires Dtype::float32.
  std::string normalize_like{};
  std::optional<Layout> layout{};  ///< layout of the batches; not set: as stored
  Cache cache = Cache::automatic;
  std::uint64_t cache_bytes = 0;  ///< memory for chunks; 0: half of the memory available to the process
  std::uint32_t threads = 0;      ///< worker threads; 0: all available CPUs
  std::uint32_t prefetch = 4;     ///< batches prepared in advance
  CheckHashes check_hashes = CheckHashes::first_use;
  OnCorrupt on_corrupt = OnCorrupt::fail;
  BatchAllocator allocator{};
  std::string images = "images";  ///< image dataset of an external HDF5 file
  /// Label dataset of an external HDF5 file. Not set: "labels" next to the images, which must exist; empty:
  /// no labels are read, and all are -1.
  std::optional<std::string> labels{};
};

/// Shape of a batch's pixels.
struct BatchShape {
  std::size_t batch = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 0;
  Layout layout = Layout::nhwc;  ///< (batch, height, width, channels) or (batch, channels, height, width)
  bool operator==(const BatchShape&) const = default;
};

/// Batch of images. All spans are valid until the next batch is requested.
struct ImageBatch {
  std::span<const std::uint8_t> pixels;    ///< filled for Dtype::uint8
  std::span<const float> values;           ///< filled for Dtype::float32
  std::span<const std::int64_t> labels;    ///< class ids of info().classes, -1: none; empty for float labels
  std::span<const float> label_values;     ///< (batch, label columns), filled for float labels
  std::span<const std::uint64_t> samples;  ///< indices of the samples in the source
  BatchShape shape;
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;  ///< index of the batch in this rank's epoch
};

/// Statistics since the loader was made or reset_stats was called. Times are in seconds; the times of worker
/// threads are summed over the threads. lib/README.md explains each field and the verdict.
struct LoaderStats {
  double seconds = 0;           ///< wait_seconds + step_seconds; pauses between epochs do not count
  double wait_seconds = 0;      ///< time the caller waited for batches
  double step_seconds = 0;      ///< time the caller used batches
  double fetch_seconds = 0;     ///< time spent reading stored bytes and comparing hashes
  double decode_seconds = 0;    ///< time spent decompressing
  double assemble_seconds = 0;  ///< time spent copying, augmenting and converting into batches
  double idle_seconds = 0;      ///< time worker threads had nothing to do: all prefetched batches were ready
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t batch_bytes = 0;     ///< bytes of pixels returned in batches
  std::uint64_t stored_bytes = 0;    ///< bytes fetched, as stored
  std::uint64_t chunk_hits = 0;      ///< times a batch found its chunk loaded
  std::uint64_t chunk_misses = 0;    ///< times a batch had to wait for its chunk
  std::uint64_t chunk_fetches = 0;   ///< chunks read and decompressed
  std::uint64_t corrupt_chunks = 0;  ///< chunks skipped by OnCorrupt::skip
  std::uint64_t corrupt_samples = 0;
  std::uint64_t retained_batches = 0;  ///< batches retained by the caller; each took new or returned memory
  Cache cache = Cache::none;
  std::uint32_t threads = 0;
  /// Likely mistakes in the choice of data, e.g. a validation pack normalized by its own statistics.
  std::vector<std::string> notices{};
  [[nodiscard]] double wait_fraction() const { return seconds > 0 ? wait_seconds / seconds : 0; }
  /// Returns whether training waits for data, which stage is the bottleneck, and how to fix it.
  [[nodiscard]] CHUNKHIT_API std::string verdict() const;
};
CHUNKHIT_API std::ostream& operator<<(std::ostream& out, const LoaderStats& stats);

/// How well Shuffle::window mixes samples.
struct MixingInfo {
  std::uint64_t chunks = 0;
  std::uint64_t chunks_in_window = 0;   ///< chunks of each window but the last
  std::uint64_t samples_in_window = 0;  ///< samples of each window but the last
  double same_chunk_neighbors = 0;      ///< expected share of neighbors from the same chunk, 0..1
};

/// Loads batches of images, epoch by epoch. One thread at a time may use a loader; its own worker threads
/// read ahead, also across the end of an epoch. A forked child must make its own loader.
///
/// Files are read, not mapped. A file that was truncated or overwritten is an Error of bad_data (or is
/// handled by OnCorrupt) when it is read again; a bad sector is an Error of bad_data, unreachable storage one
/// of try_again. If there are more files than half of the process' descriptor limit, each read opens its
/// file, and files must not be moved.
///
/// External HDF5 files are opened in a forked child, because damaged ones can crash the HDF5 library. The
/// fork takes longer the more memory the process holds (0.2 s with 3 GB of small pages) and runs its
/// pthread_atfork handlers; with an MPI library that does not support fork, make loaders of such files before
/// MPI_Init.
class CHUNKHIT_API ImageLoader {
 public:
  using Epoch = EpochRange<ImageLoader, ImageBatch>;

  /// Opens a pack (its folder or manifest), a single part, or an external HDF5 file with a uint8 array
  /// (N, ...). Several paths are concatenated. Their classes are joined by name: ids of the first path stay,
  /// new names are appended, and `info().classes` lists all. Throws bad_data if a source is damaged, shapes
  /// differ, or only some sources have class names; usage if options contradict each other; try_again (as all
  /// other calls) if memory or threads are not available.
  explicit ImageLoader(const std::string& path, const ImageLoaderOptions& options = {});
  explicit ImageLoader(const std::vector<std::string>& paths, const ImageLoaderOptions& options = {});
  ImageLoader(ImageLoader&&) noexcept;
  ImageLoader& operator=(ImageLoader&&) noexcept;
  ~ImageLoader();

  /// Returns the batches of an epoch, from the first one or from a restored position. Iterate it once.
  [[nodiscard]] Epoch epoch(std::uint64_t epoch);
  /// Returns the next batch of the current epoch (at first: epoch 0, or the restored one), or null at its
  /// end. Throws bad_data for a corrupt chunk, and again until `epoch` is called, which restarts the epoch
  /// (or resumes at the restored position) and retries failed reads; `state` then returns the position before
  /// the failed batch. Chunks that OnCorrupt::skip skipped stay skipped.
  [[nodiscard]] const ImageBatch* next();
  /// Waits up to `at_most` for the next batch; returns whether `next` would return at once. Lets the caller
  /// handle signals meanwhile. Invalidates the last batch, as `next` does.
  [[nodiscard]] bool wait(std::chrono::milliseconds at_most);
  /// Shares ownership of the current batch, which stays valid and unchanged as long as the result, even after
  /// the loader. The loader continues with other memory of its allocator. Null before and after an epoch.
  [[nodiscard]] std::shared_ptr<const ImageBatch> keep() const;

  [[nodiscard]] std::uint64_t size() const;         ///< samples of the source
  [[nodiscard]] std::uint64_t batch_count() const;  ///< batches of this rank per epoch
  [[nodiscard]] BatchShape batch_shape() const;     ///< shape of a full batch
  [[nodiscard]] const PackInfo& info() const;       ///< the first source, with the classes of all
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

 private:
  struct CHUNKHIT_HIDDEN Impl;
  void release();
  std::unique_ptr<Impl> impl_;
};

struct ImageDatasetOptions {
  Cache cache = Cache::automatic;
  std::uint64_t cache_bytes = 0;  ///< memory for chunks; 0: half of the memory available to the process
  CheckHashes check_hashes = CheckHashes::first_use;
  std::string images = "images";        ///< image dataset of an external HDF5 file
  std::optional<std::string> labels{};  ///< its label dataset, as in ImageLoaderOptions
};

/// Random access to the samples of a source; thread-safe. Several sources are concatenated and their classes
/// joined by name, as by ImageLoader.
class CHUNKHIT_API ImageDataset {
 public:
  explicit ImageDataset(const std::string& path, const ImageDatasetOptions& options = {});
  explicit ImageDataset(const std::vector<std::string>& paths, const ImageDatasetOptions& options = {});
  ImageDataset(ImageDataset&&) noexcept;
  ImageDataset& operator=(ImageDataset&&) noexcept;
  ~ImageDataset();

  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] const PackInfo& info() const;     ///< the first source, with the classes of all
  [[nodiscard]] BatchShape sample_shape() const;  ///< shape of a batch of one sample, as stored
  /// Copies samples, as stored, one after the other into `out`, whose size is their bytes. Throws usage for
  /// an index ≥ size(), bad_data for a corrupt chunk.
  void read(std::span<const std::uint64_t> samples, std::span<std::uint8_t> out) const;
  /// Returns a sample's class id, or -1.
  [[nodiscard]] std::int64_t label(std::uint64_t sample) const;
  /// Returns a sample's float labels; empty if labels are class ids.
  [[nodiscard]] std::span<const float> label_values(std::uint64_t sample) const;

 private:
  struct CHUNKHIT_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chunkhit
