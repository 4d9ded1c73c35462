#include "chunkhit/image_loader.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>
#include <utility>

#include "base/resources.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/loader.h"
#include "chunkhit/pack_info.h"
#include "read/batch_ring.h"
#include "read/image_batch_assembler.h"
#include "read/image_source.h"
#include "read/loader_core.h"
#include "read/stored_images.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

/// Resizing takes so long that a thread alone would make a batch of 256 in 20 to 150 ms.
constexpr std::uint64_t kSliceSamples = 16;

bool resizes(const AugmentSpec& augment) {
  return augment.resized_crop.height != 0 || augment.resize_short != 0;
}

/// Lists the augmentation options that a state records: other ones would change the samples after a resume.
std::vector<std::pair<std::string, double>> augment_fields(const ImageLoaderOptions& options) {
  const AugmentSpec& augment = options.augment;
  std::vector<std::pair<std::string, double>> fields{{"flip_horizontal", augment.flip_horizontal},
                                                     {"crop_height", augment.crop_height},
                                                     {"crop_width", augment.crop_width},
                                                     {"random_crop", augment.random_crop ? 1 : 0},
                                                     {"crop_padding", augment.crop_padding}};
  if (augment.flip_vertical != 0) fields.emplace_back("flip_vertical", augment.flip_vertical);
  if (augment.quarter_turns) fields.emplace_back("quarter_turns", 1);
  const ResizedCropSpec& crop = augment.resized_crop;
  if (augment.resize_short != 0) fields.emplace_back("resize_short", augment.resize_short);
  if (options.mask_padding != 0) fields.emplace_back("mask_padding", options.mask_padding);
  if (resizes(augment)) fields.emplace_back("resample", static_cast<double>(augment.resample));
  if (crop.height == 0) return fields;
  fields.insert(fields.end(), {{"resized_crop.height", crop.height},
                               {"resized_crop.width", crop.width},
                               {"resized_crop.area[0]", crop.area[0]},
                               {"resized_crop.area[1]", crop.area[1]},
                               {"resized_crop.aspect[0]", crop.aspect[0]},
                               {"resized_crop.aspect[1]", crop.aspect[1]}});
  return fields;
}

/// Returns the mean and std that are used if the options give none.
SharedStats stats_to_normalize(const ImageLoaderOptions& options, const ImageSource& source) {
  const PackInfo info =
      options.normalize_like.empty() ? source.info() : read_pack_info(options.normalize_like);
  const auto* const images = std::get_if<ImagesInfo>(&info.contents);
  require_option(images != nullptr && (options.normalize_like.empty() || !images->mean.empty()),
                 ("normalize_like: " + options.normalize_like +
                  ": has no mean and std of images; expected a pack of pack-images")
                     .c_str());
  return images->normalize.value_or(SharedStats{"", images->mean, images->std});
}

/// Warns of normalization by a pack's own mean and std, which is wrong for validation data.
std::vector<std::string> normalize_notices(const ImageLoaderOptions& options, const ImageSource& source) {
  const bool is_given = !options.normalize.mean.empty() && !options.normalize.std.empty();
  if (options.dtype == Dtype::uint8 || is_given || !options.normalize_like.empty() ||
      source.info().images().normalize)
    return {};
  return {source.info().path +
          ": normalised by its own mean and std; for validation pass normalize_like=TRAIN_PACK"};
}

/// Says that samples have black borders: a crop beyond them, or beyond their short side, is no error.
std::vector<std::string> crop_notices(const ImageLoaderOptions& options, const ImageSource& source) {
  const AugmentSpec& augment = options.augment;
  const SampleShape& sample = source.chunks().sample();
  const bool is_resized = augment.resize_short != 0;
  const std::uint32_t height = is_resized ? augment.resize_short : sample.height;
  const std::uint32_t width = is_resized ? augment.resize_short : sample.width;
  const bool has_borders = is_resized ? std::min(augment.crop_height, augment.crop_width) > height
                                      : augment.crop_height > height || augment.crop_width > width;
  if (!options.applies_augment || !has_borders || augment.crop_padding != 0 ||
      (source.chunks().holds_own_sizes() && !is_resized))
    return {};
  const auto text = [](std::uint32_t high, std::uint32_t wide) {
    return std::to_string(high) + " x " + std::to_string(wide);
  };
  return {"augment: a crop of " + text(augment.crop_height, augment.crop_width) + " of " +
          (is_resized ? "images with a short side of " + std::to_string(height)
                      : "samples of " + text(height, width)) +
          " has black borders; give a smaller one, or pack larger samples"};
}

std::vector<std::string> notices_of(const ImageLoaderOptions& options, const ImageSource& source) {
  std::vector<std::string> notices = normalize_notices(options, source);
  std::ranges::move(crop_notices(options, source), std::back_inserter(notices));
  return notices;
}

/// Checks and completes the options: dtype, layout, mean and std of the samples in a batch.
SampleFormat sample_format(const ImageLoaderOptions& options, const ImageSource& source) {
  const bool normalizes = !options.normalize.mean.empty() || !options.normalize.std.empty();
  require_option(
      options.dtype != Dtype::uint8 || !normalizes,
      "normalize: is for dtype float32, float16 or bfloat16; uint8 batches have the pixels as they are");
  require_option(
      options.dtype != Dtype::uint8 || options.normalize_like.empty(),
      "normalize_like: is for dtype float32, float16 or bfloat16; uint8 batches have the pixels as they are");
  SampleFormat format{source.chunks().sample(),
                      options.applies_augment ? options.augment : AugmentSpec{},
                      options.dtype,
                      options.layout.value_or(source.chunks().sample().layout),
                      options.normalize,
                      options.mask_padding};
  if (options.dtype == Dtype::uint8) return format;
  require_option(
      options.normalize_like.empty() || (options.normalize.mean.empty() && options.normalize.std.empty()),
      "normalize_like: excludes normalize, which gives mean and std themselves");
  require_option(options.normalize.mean.empty() == options.normalize.std.empty(),
                 "normalize: mean goes with std, both or neither");
  const SharedStats stats = stats_to_normalize(options, source);
  auto& [mean, std] = format.normalize;
  if (mean.empty()) mean.assign(stats.mean.begin(), stats.mean.end());
  if (std.empty()) std.assign(stats.std.begin(), stats.std.end());
  require_option(!mean.empty() && !std.empty(),
                 "normalize: the source has no mean and std of its own; give mean and std, of pixels 0 to 1");
  require_option(
      std::ranges::none_of(mean, [](float value) { return value > 1; }),
      "normalize.mean: is above 1, but pixels are 0 to 1 there; divide mean and std of 0 to 255 by 255");
  return format;
}

std::size_t batch_bytes(const SampleWriter& writer, std::size_t batch_size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(batch_size, writer.sample_bytes(), &bytes)) throw std::bad_alloc();
  return bytes;
}

BatchBuffer make_buffer(const ImageSource& source, const ImageCopier& copier, const BatchAllocator& allocator,
                        std::size_t batch_size) {
  BatchBuffer buffer{
      BatchMemory(allocator, batch_bytes(copier.images(), batch_size)), {}, {}, {}, {}, {}, {}, {}, {}};
  for (std::size_t i = 0; i < copier.field_count(); ++i)
    buffer.fields.emplace_back(allocator, batch_bytes(copier.field(i), batch_size));
  buffer.samples.resize(batch_size);
  buffer.uses.resize(batch_size);
  buffer.left_out.resize(batch_size);
  if (source.label_columns() == 0)
    buffer.labels.resize(batch_size);
  else
    buffer.label_values.resize(batch_size * source.label_columns());
  return buffer;
}

EpochReaderSpec with_copies(EpochReaderSpec spec, const ImageCopier& copier) {
  spec.copies = copier.copies();
  return spec;
}

}  // namespace

template class Loader<ImageBatch>;

namespace {

template <class Value>
std::span<const Value> values_of(Bytes bytes, bool is_type, const char* function, Dtype dtype) {
  if (!is_type)
    throw_usage(std::string(function) + "(): the values are " + std::string(name_of(dtype)) + ": " +
                (dtype == Dtype::uint8     ? "pixels()"
                 : dtype == Dtype::float32 ? "values()"
                                           : "half_values()") +
                " gives them");
  return {reinterpret_cast<const Value*>(bytes.data()), bytes.size() / sizeof(Value)};
}

}  // namespace

std::span<const std::uint8_t> BatchValues::pixels() const {
  return values_of<std::uint8_t>(bytes_, dtype_ == Dtype::uint8, "pixels", dtype_);
}

std::span<const float> BatchValues::values() const {
  return values_of<float>(bytes_, dtype_ == Dtype::float32, "values", dtype_);
}

std::span<const std::uint16_t> BatchValues::half_values() const {
  const bool is_half = dtype_ == Dtype::float16 || dtype_ == Dtype::bfloat16;
  return values_of<std::uint16_t>(bytes_, is_half, "half_values", dtype_);
}

std::span<const std::int64_t> BatchLabels::labels() const {
  if (are_numbers_) throw_usage("labels(): the labels are numbers: label_values() gives them");
  return ids_;
}

std::span<const float> BatchLabels::label_values() const {
  if (!are_numbers_) throw_usage("label_values(): the labels are class ids: labels() gives them");
  return values_;
}

const BatchField& ImageBatch::field(std::string_view name) const {
  const auto found = std::ranges::find(fields, name, &BatchField::name);
  if (found == fields.end())
    throw_usage("field: '" + std::string(name) + "' is none of the batch's: " +
                (fields.empty() ? "the pack has images alone" : joined(fields, ", ", &BatchField::name)));
  return *found;
}

struct ImageLoader::Images final : Loader<ImageBatch>::Impl {
  Images(const std::vector<std::string>& paths, const ImageLoaderOptions& options,
         const EpochReaderSpec& spec)
      : source(paths, {options.images, options.labels}),
        copier(image_copier(source.chunks(), sample_format(options, source))),
        notices(notices_of(options, source)),
        core(source.chunks(), with_copies(spec, *copier), sampling_spec(options, source),
             static_cast<double>(spec.batches.batch_size) * static_cast<double>(copier->sample_bytes()),
             [this, allocator = options.allocator, size = spec.batches.batch_size] {
               return make_buffer(source, *copier, allocator, size);
             }) {
    copier->check();
    keep_pixels();
    core.reader().set_assembler([this] {
      EpochReader& reader = core.reader();
      return std::make_unique<ImageBatchAssembler>(
          ImageBatchContext{source, reader.grid(), reader.cache(), *copier, core.ring(),
                            reader.spec().order.seed, reader.spec().batches.echo, reader.batch_chunks()});
    });
  }

  void keep_pixels() {
    const auto keep = [this](std::uint64_t bytes, std::optional<std::uint64_t> arena) {
      decoded_images =
          with_memory("cache_bytes: the pixels of the images need more memory than can be had: lower it",
                      [&] { return copier->keep_pixels(bytes, arena); });
    };
    const EpochReader& reader = core.reader();
    try {
      keep(reader.image_bytes(), reader.image_arena());
    } catch (const NotShared& error) {
      notices.push_back(error.what());
      keep(reader.own_image_bytes(), std::nullopt);
    }
  }

  [[nodiscard]] BatchCore<ImageBatch>& batches() override { return core; }
  [[nodiscard]] std::uint64_t size() const override { return source.size(); }
  [[nodiscard]] const PackInfo& info() const override { return source.info(); }
  void add_to(LoaderStats& stats) const override {
    stats.notices.insert(stats.notices.begin(), notices.begin(), notices.end());
    stats.decoded_images = decoded_images;
  }

  ImageSource source;
  std::unique_ptr<ImageCopier> copier;
  std::uint64_t decoded_images = 0;  // whose pixels are kept
  std::vector<std::string> notices;
  LoaderCore<BatchBuffer> core;  // last: its threads use all above
};

ImageLoader::ImageLoader(const std::string& path, const ImageLoaderOptions& options)
    : ImageLoader(std::vector{path}, options) {}

ImageLoader::ImageLoader(const std::vector<std::string>& paths, const ImageLoaderOptions& options)
    : Loader(with_memory(kNoMemory, [&] {
        EpochReaderSpec spec = epoch_reader_spec(options);
        spec.augment = augment_fields(options);
        if (options.applies_augment && resizes(options.augment)) spec.slice_samples = kSliceSamples;
        return std::make_unique<Images>(paths, options, spec);
      })) {}

const ImageLoader::Images& ImageLoader::images() const { return static_cast<const Images&>(*impl_); }
std::string_view ImageLoader::key(std::uint64_t sample) const { return images().source.key(sample); }
ColumnValues ImageLoader::column(std::string_view name, std::span<const std::uint64_t> samples) const {
  return images().source.column(name, samples);
}
BatchShape ImageLoader::batch_shape() const {
  BatchShape shape = images().copier->images().shape();
  shape.batch = impl_->reader().spec().batches.batch_size;
  return shape;
}

}  // namespace chunkhit
