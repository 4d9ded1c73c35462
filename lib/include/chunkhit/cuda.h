// Loaders for CUDA programs: batches in device memory, copied and converted ahead of their use. Header-only:
// compile with nvcc, C++20, and link chunkhit::chunkhit.
#pragma once

#include <chunkhit/cuda_kernels.h>
#include <chunkhit/cuda_memory.h>
#include <chunkhit/image_loader.h>
#include <chunkhit/pack_info.h>
#include <chunkhit/sparse_loader.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace chunkhit::cuda {

/// Type of an image batch's pixels on the device.
enum class DeviceDtype { uint8, float16, bfloat16, float32 };

/// Batch of images; pointers are the device's, except `host`. Valid on the caller's stream for all that the
/// stream has when the next batch is asked for. Memory may be written.
struct DeviceImageBatch {
  void* pixels = nullptr;         ///< `shape` of `dtype`
  std::uint8_t* masks = nullptr;  ///< (batch, height, width) class ids, changed as the images, or null
  DeviceDtype dtype = DeviceDtype::float32;
  BatchShape shape{};
  std::int64_t* labels = nullptr;    ///< class ids; null for float labels
  float* label_values = nullptr;     ///< (batch, label columns); null for class ids
  std::uint64_t* samples = nullptr;  ///< indices of the samples in the source
  const ImageBatch* host = nullptr;  ///< the batch as the loader gave it: stored bytes, labels, index
};

/// Mean and std per channel by which a loader's batches are normalized, chosen as by ImageLoader; checked.
[[nodiscard]] inline NormalizeSpec normalization(const ImageLoaderOptions& options, const PackInfo& own) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw Error(ErrorCode::usage, what);
  };
  NormalizeSpec spec = options.normalize;
  auto& [mean, std] = spec;
  require(mean.empty() == std.empty(), "normalize: mean goes with std, both or neither");
  require(options.normalize_like.empty() || mean.empty(),
          "normalize_like: excludes normalize, which gives mean and std themselves");
  if (mean.empty()) {
    const PackInfo info = options.normalize_like.empty() ? own : read_pack_info(options.normalize_like);
    require(!info.is_matrix(),
            "normalize_like: has no mean and std of images; expected a pack of pack-images");
    const ImagesInfo& images = info.images();
    const SharedStats stats = images.normalize.value_or(SharedStats{"", images.mean, images.std});
    mean.assign(stats.mean.begin(), stats.mean.end());
    std.assign(stats.std.begin(), stats.std.end());
  }
  require(!mean.empty(),
          "normalize: the source has no mean and std of its own; give mean and std, of pixels 0 to 1");
  const std::size_t channels = own.images().channels;
  require(mean.size() == channels && std.size() == channels, "normalize: expected a value for each channel");
  for (std::size_t c = 0; c < channels; ++c) {
    require(std::isfinite(mean[c]) && std::isfinite(std[c]), "normalize: must be finite");
    require(mean[c] <= 1, "normalize.mean: is above 1, but pixels are 0 to 1 there");
    require(std[c] != 0, "normalize.std: must not be 0");
  }
  return spec;
}

/// Loads images into device memory. Batches, order and state are those of an ImageLoader with the same
/// options, bit for bit. The device flips, turns, crops, normalizes and arranges. Threads of the CPU resize;
/// what is resized they flip, turn and crop, too. So they do where samples come again in an epoch: data
/// echoing, weights, mixtures. The GPU that is current when it is made must be current in all calls.
class DeviceImageLoader {
 public:
  using Epoch = EpochRange<DeviceImageLoader, DeviceImageBatch>;

  /// Opens packs as ImageLoader does. `dtype` replaces the options' dtype, which must be uint8; batches are
  /// made in pinned memory unless the options have an allocator. Throws as ImageLoader, and try_again if the
  /// device has no memory left.
  explicit DeviceImageLoader(const std::vector<std::string>& paths, const ImageLoaderOptions& options = {},
                             DeviceDtype dtype = DeviceDtype::float32, const DeviceOptions& device = {})
      : options_(options),
        dtype_(dtype),
        feed_(ImageLoader(paths, host_options(options, dtype)), device,
              [this](const ImageBatch& host, cudaStream_t stream, Made& made) { copy(host, stream, made); }) {
    for (const SampleField& field : feed_.loader().info().images().fields)
      if (field.name != "mask")
        throw Error(ErrorCode::usage,
                    "DeviceImageLoader: the pack has the field " + field.name + ", which ImageLoader gives");
    stored_ = feed_.loader().batch_shape();
    if (augments_on_device(options_)) augment_ = options_.augment;
    shape_ = written_shape();
    if (dtype == DeviceDtype::uint8) return;
    const NormalizeSpec spec = normalization(options_, feed_.loader().info());
    std::vector<float> constants = spec.mean;
    constants.insert(constants.end(), spec.std.begin(), spec.std.end());
    auto* const copied = constants_.reserve<float>(constants.size());
    check(cudaMemcpy(copied, constants.data(), constants.size() * sizeof(float), cudaMemcpyHostToDevice),
          "cudaMemcpy");
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");  // the feed's stream does not wait for it
  }
  explicit DeviceImageLoader(const std::string& path, const ImageLoaderOptions& options = {},
                             DeviceDtype dtype = DeviceDtype::float32, const DeviceOptions& device = {})
      : DeviceImageLoader(std::vector{path}, options, dtype, device) {}
  DeviceImageLoader(const DeviceImageLoader&) = delete;
  DeviceImageLoader& operator=(const DeviceImageLoader&) = delete;

  /// Returns the batches of an epoch, as ImageLoader::epoch.
  [[nodiscard]] Epoch epoch(std::uint64_t epoch) {
    feed_.epoch(epoch);
    return Epoch(*this);
  }
  /// Returns the next batch, or null at the end of the epoch. It is ready for all that the caller's stream
  /// gets from now on. Throws as ImageLoader::next; a batch that was ready before is not lost.
  [[nodiscard]] const DeviceImageBatch* next() {
    const Made* const made = feed_.next();
    return made == nullptr ? nullptr : &made->batch;
  }
  [[nodiscard]] BatchShape batch_shape() const { return shape_; }  ///< shape of a full batch
  [[nodiscard]] std::string state() const { return feed_.state(); }
  /// Resumes from a `state()` of a loader with the same options, as ImageLoader::restore.
  void restore(const std::string& state) { feed_.restore(state); }
  /// The loader that makes the batches: its info, number of batches, statistics. Where training waits for
  /// data, its `step_seconds` lack a part.
  [[nodiscard]] const ImageLoader& loader() const { return feed_.loader(); }

 private:
  struct Made {
    DeviceImageBatch batch;
    DeviceMemory stored, pixels, stored_masks, masks, labels, label_values, samples, crops;
  };

  /// Whether a batch's epoch and samples say which random changes its images get: a sample that comes again
  /// in an epoch gets others.
  static bool augments_on_device(const ImageLoaderOptions& options) {
    const AugmentSpec& augment = options.augment;
    const SamplerSpec& sampler = options.sampler;
    const bool repeats = options.echo != 1 || !sampler.weights.empty() || !sampler.class_weights.empty() ||
                         sampler.balanced || sampler.epoch_samples != 0 || !options.mixture.weights.empty();
    return !repeats && augment.resize_short == 0 && augment.resized_crop.height == 0 &&
           augment.resized_crop.width == 0;
  }

  static ImageLoaderOptions host_options(ImageLoaderOptions options, DeviceDtype dtype) {
    if (options.dtype != Dtype::uint8)
      throw Error(ErrorCode::usage, "dtype: batches on the device have the type of the DeviceDtype");
    if (dtype != DeviceDtype::uint8) {
      options.normalize = {};
      options.normalize_like.clear();
    }
    if (augments_on_device(options)) options.applies_augment = false;
    options.layout.reset();  // as stored
    if (!options.allocator.allocate && !options.allocator.release) options.allocator = pinned_allocator();
    return options;
  }

  /// Checks flip and crop as ImageLoader does.
  [[nodiscard]] BatchShape written_shape() const {
    const auto require = [](bool holds, const char* what) {
      if (!holds) throw Error(ErrorCode::usage, std::string("augment.") + what);
    };
    const AugmentSpec& spec = augment_;
    const bool crops = spec.crop_height != 0;
    require(spec.flip_horizontal >= 0 && spec.flip_horizontal <= 1, "flip_horizontal: must be from 0 to 1");
    require(spec.flip_vertical >= 0 && spec.flip_vertical <= 1, "flip_vertical: must be from 0 to 1");
    require(crops == (spec.crop_width != 0), "crop_height: goes with crop_width, both or neither");
    require(crops || !spec.random_crop, "random_crop: needs crop_height and crop_width");
    require(crops || spec.crop_padding == 0, "crop_padding: needs crop_height and crop_width");
    require(spec.crop_padding <= 1u << 24, "crop_padding: must be at most 16777216");
    require(spec.crop_height <= stored_.height + std::uint64_t{2} * spec.crop_padding,
            "crop_height: is more than the image and its padding have");
    require(spec.crop_width <= stored_.width + std::uint64_t{2} * spec.crop_padding,
            "crop_width: is more than the image and its padding have");
    BatchShape shape = stored_;
    if (crops) shape.height = spec.crop_height;
    if (crops) shape.width = spec.crop_width;
    require(!spec.quarter_turns || shape.height == shape.width, "quarter_turns: needs square samples");
    shape.layout = options_.layout.value_or(stored_.layout);
    return shape;
  }

  void copy(const ImageBatch& host, cudaStream_t stream, Made& made) {
    DeviceImageBatch& batch = made.batch;
    batch.host = &host;
    batch.dtype = dtype_;
    batch.shape = shape_;
    batch.shape.batch = host.shape.batch;
    batch.samples = made.samples.copy(host.samples, stream);
    batch.labels = host.are_numbers() ? nullptr : made.labels.copy(host.labels(), stream);
    batch.label_values = host.are_numbers() ? made.label_values.copy(host.label_values(), stream) : nullptr;
    switch (dtype_) {
      case DeviceDtype::uint8:
        return convert<std::uint8_t>(host, stream, made);
      case DeviceDtype::float16:
        return convert<__half>(host, stream, made);
      case DeviceDtype::bfloat16:
        return convert<__nv_bfloat16>(host, stream, made);
      case DeviceDtype::float32:
        return convert<float>(host, stream, made);
    }
  }

  template <class Value>
  void convert(const ImageBatch& host, cudaStream_t stream, Made& made) {
    DeviceImageBatch& batch = made.batch;
    Crop* crops = nullptr;
    if (augment_ != AugmentSpec()) {
      crops = made.crops.reserve<Crop>(batch.shape.batch);
      const SampleUse use{options_.seed, host.epoch};
      choose_crops(batch.samples, batch.shape.batch, host.shape, augment_, use, crops, stream);
    }
    copy_masks(host, crops, stream, made);
    if (dtype_ == DeviceDtype::uint8 && crops == nullptr && shape_ == stored_) {
      batch.pixels = made.pixels.copy(host.pixels(), stream);
      return;
    }
    ImageConversion<Value> images{made.stored.copy(host.pixels(), stream), host.shape};
    images.shape = batch.shape;
    images.written = made.pixels.reserve<Value>(batch.shape.batch * image_values(batch.shape));
    images.crops = crops;
    images.mean = constants_.reserve<float>(1);
    images.std = images.mean + stored_.channels;
    convert_images(images, stream);
    batch.pixels = images.written;
  }

  /// A mask is a gray image, which gets its image's crop and flip.
  void copy_masks(const ImageBatch& host, const Crop* crops, cudaStream_t stream, Made& made) const {
    made.batch.masks = nullptr;
    if (host.fields.empty()) return;
    const std::span<const std::uint8_t> pixels = host.fields.front().pixels();
    if (crops == nullptr) {
      made.batch.masks = made.masks.copy(pixels, stream);
      return;
    }
    const auto gray = [](BatchShape shape) {
      shape.channels = 1;
      shape.layout = Layout::nhwc;
      return shape;
    };
    ImageConversion<std::uint8_t> masks{made.stored_masks.copy(pixels, stream), gray(host.shape)};
    masks.shape = gray(made.batch.shape);
    masks.written = made.masks.reserve<std::uint8_t>(masks.shape.batch * image_values(masks.shape));
    masks.crops = crops;
    masks.padding = options_.mask_padding;
    convert_images(masks, stream);
    made.batch.masks = masks.written;
  }

  ImageLoaderOptions options_;
  DeviceDtype dtype_;
  AugmentSpec augment_{};  // what the device does of it
  BatchShape stored_{}, shape_{};
  DeviceMemory constants_;  // mean and std of each channel
  DeviceFeed<ImageLoader, ImageBatch, Made> feed_;
};

/// Matrix of a batch of rows; pointers are the device's.
struct DeviceMatrix {
  std::size_t row_count = 0;
  std::size_t column_count = 0;
  std::size_t nnz = 0;
  std::int32_t* indptr = nullptr;   ///< CSR, also beside dense cells
  std::int32_t* indices = nullptr;  ///< columns, ascending within a row
  float* values = nullptr;
  std::int64_t* times = nullptr;  ///< of the entries; null if the pack does not keep them
  void* cells = nullptr;  ///< (row_count, column_count) of float or __half; null for SparseFormat::csr
};

/// Batch of rows; pointers are the device's, except `host`. Valid as DeviceImageBatch.
struct DeviceSparseBatch {
  DeviceMatrix x;
  DeviceMatrix held_out;              ///< no rows without held-out ratings
  std::uint64_t* rows = nullptr;      ///< indices of the rows in the source
  float* labels = nullptr;            ///< (rows, label columns); null without labels
  const SparseBatch* host = nullptr;  ///< the batch as the loader gave it, CSR
};

/// Loads rows into device memory: entries are copied as CSR, dense formats are filled there. Batches, order
/// and state are those of a SparseLoader with the same options. The GPU that is current when it is made must
/// be current in all calls.
class DeviceSparseLoader {
 public:
  using Epoch = EpochRange<DeviceSparseLoader, DeviceSparseBatch>;

  /// Opens packs as SparseLoader does. The options' format is csr, dense_f32 or dense_f16; batches are made
  /// in pinned memory unless the options have an allocator.
  explicit DeviceSparseLoader(const std::vector<std::string>& paths, const SparseLoaderOptions& options = {},
                              const DeviceOptions& device = {})
      : format_(options.format),
        feed_(
            SparseLoader(paths, host_options(options)), device,
            [this](const SparseBatch& host, cudaStream_t stream, Made& made) { copy(host, stream, made); }) {
    if (format_ != SparseFormat::csr && loader().info().matrix().has_repeats)
      throw Error(
          ErrorCode::usage,
          "format: items repeat in the pack's rows, which are not added up on a device; expected csr");
  }
  explicit DeviceSparseLoader(const std::string& path, const SparseLoaderOptions& options = {},
                              const DeviceOptions& device = {})
      : DeviceSparseLoader(std::vector{path}, options, device) {}
  DeviceSparseLoader(const DeviceSparseLoader&) = delete;
  DeviceSparseLoader& operator=(const DeviceSparseLoader&) = delete;

  /// Returns the batches of an epoch, as SparseLoader::epoch.
  [[nodiscard]] Epoch epoch(std::uint64_t epoch) {
    feed_.epoch(epoch);
    return Epoch(*this);
  }
  /// Returns the next batch, or null at the end of the epoch, as DeviceImageLoader::next. Throws usage for a
  /// value that dense_f16 cannot hold.
  [[nodiscard]] const DeviceSparseBatch* next() {
    const Made* const made = feed_.next();
    return made == nullptr ? nullptr : &made->batch;
  }
  [[nodiscard]] std::string state() const { return feed_.state(); }
  /// Resumes from a `state()`, as SparseLoader::restore.
  void restore(const std::string& state) { feed_.restore(state); }
  /// The loader that makes the batches: its info, statistics, number of batches, ids.
  [[nodiscard]] const SparseLoader& loader() const { return feed_.loader(); }

 private:
  struct MatrixMemory {
    DeviceMemory block, cells;
  };
  struct Made {
    DeviceSparseBatch batch;
    MatrixMemory x, held_out;
    DeviceMemory rows, labels;
  };

  static SparseLoaderOptions host_options(SparseLoaderOptions options) {
    if (options.format == SparseFormat::dense_u8)
      throw Error(ErrorCode::usage,
                  "format: dense_u8 is not made on a device; expected csr, dense_f32 or dense_f16");
    options.times = options.times && options.format == SparseFormat::csr;
    options.format = SparseFormat::csr;
    if (!options.allocator.allocate && !options.allocator.release) options.allocator = pinned_allocator();
    return options;
  }

  void copy(const SparseBatch& host, cudaStream_t stream, Made& made) const {
    made.batch.host = &host;
    made.batch.rows = made.rows.copy(host.rows, stream);
    made.batch.labels = host.labels.empty() ? nullptr : made.labels.copy(host.labels, stream);
    made.batch.x = copy_matrix(host, made.x, stream);
    made.batch.held_out =
        host.held_out.row_count() == 0 ? DeviceMatrix{} : copy_matrix(host.held_out, made.held_out, stream);
  }

  DeviceMatrix copy_matrix(const SparseMatrix& host, MatrixMemory& memory, cudaStream_t stream) const {
    const CsrBatch& csr = host.csr();
    if (format_ == SparseFormat::dense_f16) check_halves(csr.values);
    std::uint8_t* const block = memory.block.copy(csr.block, stream);
    const auto offset_of = [&](const void* array) {
      return static_cast<const std::uint8_t*>(array) - csr.block.data();
    };
    DeviceMatrix matrix{host.row_count(), host.column_count(), host.nnz()};
    matrix.indptr = reinterpret_cast<std::int32_t*>(block + offset_of(csr.indptr.data()));
    matrix.indices = reinterpret_cast<std::int32_t*>(block + offset_of(csr.indices.data()));
    matrix.values = reinterpret_cast<float*>(block + offset_of(csr.values.data()));
    if (!csr.times.empty())
      matrix.times = reinterpret_cast<std::int64_t*>(block + offset_of(csr.times.data()));
    if (format_ == SparseFormat::dense_f32) matrix.cells = fill<float>(matrix, memory, stream);
    if (format_ == SparseFormat::dense_f16) matrix.cells = fill<__half>(matrix, memory, stream);
    return matrix;
  }

  static void check_halves(std::span<const float> values) {
    const float overflow = 65520;  // numbers from here on become infinite as halves
    if (std::any_of(values.begin(), values.end(), [=](float value) { return std::abs(value) >= overflow; }))
      throw Error(ErrorCode::usage,
                  "format: dense_f16 holds numbers up to 65504, the values go beyond; take dense_f32, or a "
                  "smaller scale");
  }

  template <class Value>
  static Value* fill(const DeviceMatrix& matrix, MatrixMemory& memory, cudaStream_t stream) {
    auto* const cells = memory.cells.reserve<Value>(matrix.row_count * matrix.column_count);
    convert_csr(CsrConversion<Value>{matrix.indptr, matrix.indices, matrix.values, matrix.row_count,
                                     matrix.column_count, cells},
                stream);
    return cells;
  }

  SparseFormat format_;
  DeviceFeed<SparseLoader, SparseBatch, Made> feed_;
};

}  // namespace chunkhit::cuda
