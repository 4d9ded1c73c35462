// Batches of samples that are always ready: the header that training code includes.
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

/// The order of an epoch.
enum class Shuffle {
  none,    ///< as packed
  window,  ///< chunks permuted, samples permuted within windows of chunks: each chunk is read once an epoch
  global,  ///< any sample may follow any other; for what is in memory, or stored raw
};

/// How samples are cached.
enum class Cache {
  automatic,   ///< the first of decoded, compressed, none that fits cache_bytes
  decoded,     ///< all samples in memory, ready to copy
  compressed,  ///< the stored bytes in memory, decompressed on use
  none,  ///< read from the files in every epoch, ahead of use. Samples that are stored raw are read one by
         ///< one in order global, and where cache_bytes is too little for the chunks of a window
};

/// What a batch's pixels are.
enum class Dtype { uint8, float32 };

/// When the stored hash of a chunk is compared with its bytes. Where samples are read one by one, the bytes
/// of their chunk in the file stand for theirs.
enum class CheckHashes {
  first_use,  ///< each time that the chunk is read from its file: with cache none in each epoch; where
              ///< samples are read one by one, before the first and whenever the file's size or times changed
  always,  ///< also each time that bytes are used which stayed in memory, or samples that are read one by one
  never,
};

/// What a damaged chunk does: ends the epoch with an Error, or is left out and counted. Batches lack what is
/// left out, whatever drop_last says; one of which nothing is left is passed over.
enum class OnCorrupt { fail, skip };

/// What happens with samples that cannot be shared out evenly among the ranks: some are used twice, or left
/// out.
enum class RankRemainder { pad, drop };

/// Random and fixed changes of the images, made while they are copied into the batch; the same for any
/// number of threads.
struct AugmentSpec {
  double flip_horizontal = 0;      ///< the share of images that are mirrored, 0..1
  std::uint32_t crop_height = 0;   ///< 0: no crop
  std::uint32_t crop_width = 0;    ///< 0: no crop
  bool random_crop = false;        ///< the crop's place is random; else it is in the centre
  std::uint32_t crop_padding = 0;  ///< zeros around the image before a crop, pixels a side
  bool operator==(const AugmentSpec&) const = default;
};

/// How batches become f32: (x / 255 - mean) / std per channel, as torchvision's ToTensor and Normalize do,
/// bit for bit. Empty: those of `normalize_like`, else those that the pack shares with its split, else its
/// own.
struct NormalizeSpec {
  std::vector<float> mean{};  ///< 0..1
  std::vector<float> std{};
};

/// Memory for the batches' pixels, from the caller (pinned, say). Called from the loader's constructor and
/// destructor, and where a batch is kept; released by who lets go of it last.
struct BatchAllocator {
  std::function<void*(std::size_t bytes)> allocate;  ///< at least 64-byte aligned
  std::function<void(void* memory, std::size_t bytes)> release;
};

struct ImageLoaderOptions {
  std::size_t batch_size = 256;
  Shuffle shuffle = Shuffle::none;
  std::uint64_t seed = 0;
  std::uint32_t window_chunks = 64;  ///< of Shuffle::window; part of the order
  std::uint32_t rank = 0;            ///< which of world_size readers this is
  std::uint32_t world_size = 1;
  RankRemainder rank_remainder = RankRemainder::pad;
  bool drop_last = false;  ///< leave out a last batch that is not full
  std::uint32_t echo = 1;  ///< how often each fetched block of echo · batch_size samples is used
  AugmentSpec augment{};
  Dtype dtype = Dtype::uint8;
  NormalizeSpec normalize{};  ///< of Dtype::float32 only
  /// A pack, the training one say, whose mean and std normalise this one; of Dtype::float32 only.
  std::string normalize_like{};
  std::optional<Layout> layout{};  ///< of the batches; as stored where it is not set
  Cache cache = Cache::automatic;
  std::uint64_t cache_bytes = 0;  ///< for chunks; 0: half of what the process may still take
  std::uint32_t threads = 0;      ///< 0: all allowed CPUs
  std::uint32_t prefetch = 4;     ///< batches made ahead
  CheckHashes check_hashes = CheckHashes::first_use;
  OnCorrupt on_corrupt = OnCorrupt::fail;
  BatchAllocator allocator{};
  std::string images = "images";  ///< the dataset of an HDF5 file that no pack-images wrote
  /// Its labels; not set: "labels" next to the images, which must exist; empty: none are read, all are -1.
  std::optional<std::string> labels{};
};

/// The shape of a batch's pixels.
struct BatchShape {
  std::size_t batch = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 0;
  Layout layout = Layout::nhwc;  ///< (batch, height, width, channels), or (batch, channels, height, width)
  bool operator==(const BatchShape&) const = default;
};

/// A batch; all spans are valid until the next one is asked for.
struct ImageBatch {
  std::span<const std::uint8_t> pixels;    ///< Dtype::uint8
  std::span<const float> values;           ///< Dtype::float32
  std::span<const std::int64_t> labels;    ///< ids in info().classes, -1: none; empty where they are numbers
  std::span<const float> label_values;     ///< (batch, columns) where labels are numbers
  std::span<const std::uint64_t> samples;  ///< which samples of the source these are
  BatchShape shape;
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;  ///< in the epoch, of this rank
};

/// Who waited for whom since the loader was made, or since reset_stats. Times in seconds; busy times are
/// summed over the threads. lib/README.md explains each and the verdict.
struct LoaderStats {
  double seconds = 0;           ///< waiting and busy; pauses between epochs are left out
  double wait_seconds = 0;      ///< the caller waited for a batch
  double step_seconds = 0;      ///< the caller was busy with a batch
  double fetch_seconds = 0;     ///< reading stored bytes, also of single samples, and checking hashes
  double decode_seconds = 0;    ///< decompressing them
  double assemble_seconds = 0;  ///< copying, augmenting and converting into batches
  double idle_seconds = 0;      ///< threads had nothing to do: batches waited for the caller
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t batch_bytes = 0;     ///< pixels that were handed out
  std::uint64_t stored_bytes = 0;    ///< fetched
  std::uint64_t chunk_hits = 0;      ///< a batch needed a chunk that was there
  std::uint64_t chunk_misses = 0;    ///< a batch had to wait for its chunk
  std::uint64_t chunk_fetches = 0;   ///< chunks read and decompressed
  std::uint64_t corrupt_chunks = 0;  ///< left out by OnCorrupt::skip
  std::uint64_t corrupt_samples = 0;
  std::uint64_t retained_batches =
      0;  ///< whose memory the caller kept: each took new memory, or returned one
  Cache cache = Cache::none;
  std::uint32_t threads = 0;
  /// What may be wrong with the data as it is asked for: a pack that is normalised by its own statistics.
  std::vector<std::string> notices{};
  [[nodiscard]] double wait_fraction() const { return seconds > 0 ? wait_seconds / seconds : 0; }
  /// Whether training waits for data, which stage is to blame, and what to change.
  [[nodiscard]] CHUNKHIT_API std::string verdict() const;
};
CHUNKHIT_API std::ostream& operator<<(std::ostream& out, const LoaderStats& stats);

/// How well a windowed order mixes.
struct MixingInfo {
  std::uint64_t chunks = 0;
  std::uint64_t chunks_in_window = 0;   ///< of each window but the last
  std::uint64_t samples_in_window = 0;  ///< of each window but the last
  double same_chunk_neighbors =
      0;  ///< expected share of neighbours in the order that come from one chunk, 0..1
};

/// Gives the batches of one epoch after the other. Files are read, never mapped: one that is shortened or
/// written to meanwhile is an Error of bad_data (or what OnCorrupt says) when it is read again, and a bad
/// sector one of try_again. Files that are more than half of the descriptors that the process may have are
/// opened for each read, and must not be moved. One thread at a time may use it; it has threads of its own,
/// which read ahead across the end of an epoch. A forked child must make its own. External HDF5 files, which
/// crash the HDF5 library when they are damaged, are opened by a forked child of this process: that takes
/// longer the more memory the process holds (0.2 s with 3 GB of small pages) and runs its pthread_atfork
/// handlers; where an MPI library does not bear a fork, make loaders of such files before MPI_Init.
class CHUNKHIT_API ImageLoader {
 public:
  using Epoch = EpochRange<ImageLoader, ImageBatch>;

  /// Opens a pack (its folder or manifest), a single part, or another HDF5 file with a uint8 array (N, ...);
  /// several are read as one, in this order. Their classes are joined by name: the first one's ids stay,
  /// names that it lacks follow, and `info().classes` lists all. Throws bad_data when one is damaged, their
  /// shapes differ, or only some of them have names of classes, usage when the options make no sense,
  /// try_again (as later calls, too) where memory or threads cannot be had.
  explicit ImageLoader(const std::string& path, const ImageLoaderOptions& options = {});
  explicit ImageLoader(const std::vector<std::string>& paths, const ImageLoaderOptions& options = {});
  ImageLoader(ImageLoader&&) noexcept;
  ImageLoader& operator=(ImageLoader&&) noexcept;
  ~ImageLoader();

  /// The batches of an epoch, from its first, or from where `restore` left it. To be iterated once.
  [[nodiscard]] Epoch epoch(std::uint64_t epoch);
  /// The next batch of the epoch that was begun last (without one: of epoch 0, or where `restore` left it),
  /// or nothing at its end. Throws bad_data for a damaged chunk, and the same again until `epoch` is called:
  /// that begins the epoch anew (or goes on where `restore` says; `state` is that of the batch that could not
  /// be made) and reads again what could not be read. Chunks that OnCorrupt::skip left out stay left out.
  [[nodiscard]] const ImageBatch* next();
  /// Waits at most so long until `next` need not; returns whether, so that a caller can look after something
  /// else meanwhile (signals, say). Ends the last batch's validity, as `next` does.
  [[nodiscard]] bool wait(std::chrono::milliseconds at_most);
  /// Keeps the batch that was handed out last, unchanged, as long as the result lives, also beyond the
  /// loader; the loader goes on with other memory from its allocator. Nothing at an epoch's begin or end.
  [[nodiscard]] std::shared_ptr<const ImageBatch> keep() const;

  [[nodiscard]] std::uint64_t size() const;         ///< samples of the source
  [[nodiscard]] std::uint64_t batch_count() const;  ///< of a whole epoch of this rank
  [[nodiscard]] BatchShape batch_shape() const;     ///< of a full batch
  [[nodiscard]] const PackInfo& info() const;       ///< of the first source, with the classes of all
  [[nodiscard]] MixingInfo mixing() const;
  [[nodiscard]] LoaderStats stats() const;
  void reset_stats();

  /// Where reading stands, after the batch that was handed out last, as one line of JSON.
  [[nodiscard]] std::string state() const;
  /// Goes on there: epoch(e) of the state's epoch gives exactly the batches that were left, for any number of
  /// threads; another epoch(e) throws usage while any are left. With another world_size, batch_size, echo,
  /// rank_remainder or drop_last, all samples that were left, where every rank stopped after the same batch
  /// (with echo: at the end of a block). Throws usage, naming the field, when the state belongs to another
  /// source, seed, order or augment, or is none that `state` gives.
  void restore(const std::string& state);

 private:
  struct CHUNKHIT_HIDDEN Impl;
  void release();
  std::unique_ptr<Impl> impl_;
};

struct ImageDatasetOptions {
  Cache cache = Cache::automatic;
  std::uint64_t cache_bytes = 0;  ///< for chunks; 0: half of what the process may still take
  CheckHashes check_hashes = CheckHashes::first_use;
  std::string images = "images";  ///< as in ImageLoaderOptions
  std::optional<std::string> labels{};
};

/// Random access to the samples of a source. Any thread may read. Several sources are read as one, their
/// classes joined by name, as ImageLoader does.
class CHUNKHIT_API ImageDataset {
 public:
  explicit ImageDataset(const std::string& path, const ImageDatasetOptions& options = {});
  explicit ImageDataset(const std::vector<std::string>& paths, const ImageDatasetOptions& options = {});
  ImageDataset(ImageDataset&&) noexcept;
  ImageDataset& operator=(ImageDataset&&) noexcept;
  ~ImageDataset();

  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] const PackInfo& info() const;     ///< of the first source, with the classes of all
  [[nodiscard]] BatchShape sample_shape() const;  ///< of a batch of one, as stored
  /// Copies samples, as stored, one after the other; `out` has their bytes. Throws usage for an index ≥
  /// size(), bad_data for a damaged chunk.
  void read(std::span<const std::uint64_t> samples, std::span<std::uint8_t> out) const;
  /// A sample's class id, or -1; its numbers where labels are numbers.
  [[nodiscard]] std::int64_t label(std::uint64_t sample) const;
  [[nodiscard]] std::span<const float> label_values(std::uint64_t sample) const;

 private:
  struct CHUNKHIT_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chunkhit
