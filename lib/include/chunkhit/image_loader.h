// Loaders of images for training code.
#pragma once

#include <chunkhit/error.h>
#include <chunkhit/loader.h>
#include <chunkhit/pack_info.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chunkhit {

/// Type of a batch's pixels. The types of 16 bits have the values of float32, rounded to nearest, ties to
/// even.
enum class Dtype { uint8, float32, float16, bfloat16 };

/// Random resized crop: a random box of the image, resized. Distributed as torchvision's RandomResizedCrop;
/// schemas/order.md has the boxes.
struct ResizedCropSpec {
  std::uint32_t height = 0;             ///< of the result, pixels; 0: no resized crop
  std::uint32_t width = 0;              ///< of the result, pixels; 0: no resized crop
  std::array<double, 2> area{0.08, 1};  ///< least and greatest share of the image's area, above 0 and up to 1
  std::array<double, 2> aspect{3. / 4,
                               4. / 3};  ///< least and greatest width / height of the box, 0.001..1000
  bool operator==(const ResizedCropSpec&) const = default;
};

/// Augmentation of images while they are copied into a batch; the same for any number of threads. Resized
/// pixels equal Pillow's, and so those of torchvision on PIL images, bit for bit; alpha weighs colors.
struct AugmentSpec {
  double flip_horizontal = 0;     ///< probability of mirroring an image left to right, 0..1
  std::uint32_t crop_height = 0;  ///< pixels; 0: no crop
  std::uint32_t crop_width = 0;   ///< pixels; 0: no crop
  bool random_crop = false;       ///< crop at a random position instead of the center
  std::uint32_t crop_padding =
      0;  ///< zero padding on each side before the crop, pixels; not with resize_short
  /// Resize the short side to this before the crop, as torchvision's Resize, pixels; 0: no resizing. A crop
  /// that is larger than the resized image has zeros around it, unless it is a random one.
  std::uint32_t resize_short = 0;
  ResizedCropSpec resized_crop{};      ///< excludes crop_height, crop_width and resize_short
  Filter resample = Filter::bilinear;  ///< filter of resize_short and resized_crop
  double flip_vertical = 0;            ///< probability of mirroring an image top to bottom, 0..1
  /// Turn images by 0, 90, 180 or 270 degrees, each equally likely, after the flips. Samples must be square.
  bool quarter_turns = false;
  bool operator==(const AugmentSpec&) const = default;
};

/// Normalization of batches of floats: (x / 255 - mean) / std per channel, bit for bit as torchvision's
/// ToTensor and Normalize. If both are empty, the statistics come from `normalize_like`, else from the pack's
/// split, else from the pack itself.
struct NormalizeSpec {
  std::vector<float> mean{};  ///< per channel, of pixels scaled to 0..1, e.g. 0.485, 0.456, 0.406
  std::vector<float> std{};   ///< per channel, of pixels scaled to 0..1
};

struct ImageLoaderOptions {
  std::size_t batch_size = 256;
  Shuffle shuffle = Shuffle::none;
  std::uint64_t seed = 0;
  std::uint32_t window_chunks = 64;  ///< chunks per window of Shuffle::window; part of the order
  std::uint32_t rank = 0;            ///< 0..world_size - 1
  std::uint32_t world_size = 1;
  /// Streams that an epoch of Shuffle::none or window is divided into, each with its own chunks: 0 (one a
  /// rank), a multiple of world_size, or 1, in which every rank visits every chunk. A rank's streams give
  /// equal parts of batch_size · echo. Without echo, batches of all ranks together have the same samples for
  /// each world_size that divides it, where batch_size · world_size is the same.
  std::uint32_t streams = 0;
  RankRemainder rank_remainder = RankRemainder::pad;
  bool drop_last = false;  ///< drop the last batch if it is not full
  SamplerSpec sampler{};   ///< which samples an epoch has, and how often
  MixtureSpec mixture{};   ///< shares of the paths, where they are mixed instead of concatenated
  std::uint32_t echo = 1;  ///< data echoing: uses of each fetched block of echo · batch_size samples
  AugmentSpec augment{};
  /// False: batches have the samples as stored, and the caller augments them, e.g. on a GPU. States record
  /// `augment` either way.
  bool applies_augment = true;
  /// Class id of masks where `augment` pads, or crops beyond the image; images have zeros there.
  std::uint8_t mask_padding = 0;
  Dtype dtype = Dtype::uint8;
  NormalizeSpec normalize{};  ///< of batches of floats
  /// Pack whose mean and std normalize this one, e.g. the training pack; of batches of floats.
  std::string normalize_like{};
  std::optional<Layout> layout{};  ///< layout of the batches; not set: as stored
  Cache cache = Cache::automatic;
  std::uint64_t cache_bytes = 0;  ///< memory for chunks; 0: half of the memory available to the process
  /// Local folder that keeps chunks of remote packs (schemas/disk-cache.md), shared by the processes of a
  /// machine; empty: none.
  std::string cache_dir{};
  std::uint64_t cache_disk_bytes = 0;  ///< at most in cache_dir; 0: half of it and the free disk
  /// Memory for chunks, decoding and batches together; cache_bytes is what the batches leave of it, if it is
  /// not given. Automatic prefetch fills at most a quarter of it with batches. 0: no limit beside
  /// cache_bytes; automatic prefetch takes an eighth of the memory available to the process.
  std::uint64_t memory_bytes = 0;
  /// Worker threads; 0: all available CPUs, divided by LOCAL_WORLD_SIZE, which torchrun sets; kAutomatic:
  /// chosen while running.
  std::uint32_t threads = 0;
  std::uint32_t prefetch = 4;  ///< batches prepared in advance; kAutomatic: chosen while running
  CheckHashes check_hashes = CheckHashes::always;
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

/// The values of a batch's images, or of a field, in one type. Each function throws usage where the values
/// have another one.
class BatchValues {
 public:
  BatchValues() = default;
  BatchValues(std::span<const std::uint8_t> bytes, Dtype dtype) : bytes_(bytes), dtype_(dtype) {}
  [[nodiscard]] Dtype dtype() const { return dtype_; }
  [[nodiscard]] CHUNKHIT_API std::span<const std::uint8_t> pixels() const;  ///< Dtype::uint8
  [[nodiscard]] CHUNKHIT_API std::span<const float> values() const;         ///< Dtype::float32
  /// Dtype::float16 and Dtype::bfloat16, as bits.
  [[nodiscard]] CHUNKHIT_API std::span<const std::uint16_t> half_values() const;

 private:
  std::span<const std::uint8_t> bytes_;
  Dtype dtype_ = Dtype::uint8;
};

/// Labels of a batch: class ids, or numbers. Each function throws usage where they are the other.
class BatchLabels {
 public:
  BatchLabels() = default;
  explicit BatchLabels(std::span<const std::int64_t> ids) : ids_(ids) {}
  explicit BatchLabels(std::span<const float> values) : values_(values), are_numbers_(true) {}
  [[nodiscard]] bool are_numbers() const { return are_numbers_; }
  /// Class ids of info().classes, -1: none.
  [[nodiscard]] CHUNKHIT_API std::span<const std::int64_t> labels() const;
  /// Numbers (batch, label columns).
  [[nodiscard]] CHUNKHIT_API std::span<const float> label_values() const;

 private:
  std::span<const std::int64_t> ids_;
  std::span<const float> values_;
  bool are_numbers_ = false;
};

/// Field of a batch beside its images. Masks are class ids (batch, height, width) of Dtype::uint8; views have
/// the shape and type of the images.
struct BatchField : BatchValues {
  std::string_view name;
  FieldRole role = FieldRole::mask;
};

/// Batch of images, with their values and labels. All spans are valid until the next batch is requested.
struct ImageBatch : BatchValues, BatchLabels {
  std::span<const BatchField> fields;      ///< masks and views, in the order of info().images().fields
  std::span<const std::uint64_t> samples;  ///< indices of the samples in the source
  std::span<const std::uint64_t>
      uses;  ///< which use of a sample in its epoch each is: 0, or more where it repeats
  BatchShape shape;
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;  ///< index of the batch in this rank's epoch
  /// Returns a field by its name, such as "mask". Throws usage where there is none.
  [[nodiscard]] CHUNKHIT_API const BatchField& field(std::string_view name) const;
};

extern template class CHUNKHIT_API Loader<ImageBatch>;

/// Loads batches of images.
class CHUNKHIT_API ImageLoader : public Loader<ImageBatch> {
 public:
  /// Opens a pack (its folder or manifest), a single part, or an external HDF5 file with a uint8 array
  /// (N, ...). Packs and parts may be on a server: https://, http:// or s3:// (lib/remote-packs.md). Several
  /// paths are concatenated. Their classes are joined by name: ids of the first path stay, new names are
  /// appended, and `info().classes` lists all. Throws bad_data if a source is damaged, shapes differ, or only
  /// some sources have class names; usage if options contradict each other; try_again (as all other calls) if
  /// memory or threads are not available.
  explicit ImageLoader(const std::string& path, const ImageLoaderOptions& options = {});
  explicit ImageLoader(const std::vector<std::string>& paths, const ImageLoaderOptions& options = {});

  [[nodiscard]] BatchShape batch_shape() const;  ///< shape of a full batch
  /// Returns a sample's key, which is the name of its file in the input list; empty in external files. A view
  /// of the loader's memory. Throws usage for an index ≥ size().
  [[nodiscard]] std::string_view key(std::uint64_t sample) const;
  /// Returns the values of a column of info().images().columns at samples, such as those of a batch. Throws
  /// usage for an unknown column or an index ≥ size().
  [[nodiscard]] ColumnValues column(std::string_view name, std::span<const std::uint64_t> samples) const;

 private:
  struct CHUNKHIT_HIDDEN Images;
  [[nodiscard]] const Images& images() const;
};

}  // namespace chunkhit
