#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/throw_error.h"
#include "chunkhit/dataset.h"
#include "chunkhit/image_loader.h"
#include "chunkhit/pack_info.h"
#include "read/image_source.h"
#include "read/sample_reader.h"
#include "read/sized_images.h"

namespace chunkhit {

namespace {

void check_room(const std::string& call, std::span<const std::uint8_t> out, std::size_t expected) {
  if (out.size() != expected)
    throw_usage(call + ": out has " + std::to_string(out.size()) + " bytes, expected " +
                std::to_string(expected));
}

}  // namespace

struct ImageDataset::Impl {
  Impl(const std::vector<std::string>& paths, const ImageDatasetOptions& options)
      : source(paths, {options.images, options.labels}), reader(source.chunks(), options) {}
  /// Calls use(at, sample) for the bytes of each of `samples`, samples[at], which have one shape.
  template <class Use>
  void visit_samples(std::span<const std::uint64_t> samples, const Use& use) {
    ByteBuffer room;
    reader.visit(samples, [&](std::size_t at, ChunkGrid::Location location, const std::uint8_t* chunk) {
      use(at, reader.image(location, chunk, room));
    });
  }
  /// Calls use(at, image) for each of `samples`, samples[at], of images of their own sizes.
  template <class Use>
  void visit_sized(std::span<const std::uint64_t> samples, const Use& use);
  void read_sized(std::span<const std::uint64_t> samples, std::span<const std::size_t> offsets,
                  std::uint8_t* out);

  ImageSource source;
  SampleReader reader;
};

ImageDataset::ImageDataset(const std::string& path, const ImageDatasetOptions& options)
    : ImageDataset(std::vector{path}, options) {}

ImageDataset::ImageDataset(const std::vector<std::string>& paths, const ImageDatasetOptions& options)
    : impl_(with_memory(kNoDatasetMemory, [&] { return std::make_unique<Impl>(paths, options); })) {}

ImageDataset::ImageDataset(ImageDataset&&) noexcept = default;
ImageDataset& ImageDataset::operator=(ImageDataset&&) noexcept = default;
ImageDataset::~ImageDataset() = default;

std::uint64_t ImageDataset::size() const { return impl_->source.size(); }
const PackInfo& ImageDataset::info() const { return impl_->source.info(); }

BatchShape ImageDataset::sample_shape() const {
  const SampleShape& sample = impl_->source.chunks().sample();
  return {1, sample.height, sample.width, sample.channels, sample.layout};
}

BatchShape ImageDataset::sample_shape(std::uint64_t sample) const {
  require_below("sample_shape: sample", sample, size());
  const ChunkSet& chunks = impl_->source.chunks();
  BatchShape shape = sample_shape();
  if (!chunks.own_sizes()) return shape;
  const ChunkSet::SampleLocation location = chunks.find_sample(sample);
  const StoredImage image = stored_image(chunks.parts()[location.part]->samples().sizes, location.sample);
  shape.height = image.upright_height();
  shape.width = image.upright_width();
  return shape;
}

template <class Use>
void ImageDataset::Impl::visit_sized(std::span<const std::uint64_t> samples, const Use& use) {
  const ChunkSet& chunks = source.chunks();
  ByteBuffer room;
  reader.visit(samples, [&](std::size_t at, ChunkGrid::Location location, const std::uint8_t* chunk) {
    const ChunkSet::SampleLocation sample = chunks.find_sample(samples[at]);
    const ChunkReader& part = *chunks.parts()[sample.part];
    const std::uint8_t* const frame = reader.image(location, chunk, room);
    try {
      use(at, stored_image(part.samples().sizes, sample.sample, frame));
    } catch (const ImageError& error) {
      throw_bad_data(part.path() + ": sample " + std::to_string(sample.sample) + ": " + error.reason());
    }
  });
}

/// Reads images of their own sizes; `offsets` of each in `out`.
void ImageDataset::Impl::read_sized(std::span<const std::uint64_t> samples,
                                    std::span<const std::size_t> offsets, std::uint8_t* out) {
  SizedImageDecoder decoder;
  visit_sized(samples, [&](std::size_t at, const StoredImage& image) {
    decoder.decode_whole(image, source.chunks().sample().channels, out + offsets[at]);
  });
}

void ImageDataset::read(std::span<const std::uint64_t> samples, std::span<std::uint8_t> out) const {
  for (const std::uint64_t sample : samples) require_below("read: sample", sample, size());
  std::vector<std::size_t> offsets{0};
  for (const std::uint64_t sample : samples) {
    const BatchShape shape = sample_shape(sample);
    offsets.push_back(offsets.back() + std::size_t{shape.height} * shape.width * shape.channels);
  }
  check_room("read", out, offsets.back());
  if (impl_->source.chunks().own_sizes()) return impl_->read_sized(samples, offsets, out.data());
  const std::uint64_t bytes = impl_->source.chunks().sample().pixel_bytes();
  impl_->visit_samples(samples, [&](std::size_t at, const std::uint8_t* sample) {
    std::memcpy(out.data() + at * bytes, sample, bytes);
  });
}

void ImageDataset::read_masks(std::span<const std::uint64_t> samples, std::span<std::uint8_t> out) const {
  const ChunkSet& chunks = impl_->source.chunks();
  if (!chunks.sample().has_mask) throw_usage("read_masks: the samples have no masks");
  std::vector<std::size_t> offsets{0};
  for (const std::uint64_t sample : samples) {
    const BatchShape shape = sample_shape(sample);
    offsets.push_back(offsets.back() + std::size_t{shape.height} * shape.width);
  }
  check_room("read_masks", out, offsets.back());
  if (chunks.own_sizes()) {
    SizedImageDecoder decoder;
    return impl_->visit_sized(samples, [&](std::size_t at, const StoredImage& image) {
      const ImageView mask = decoder.decode_mask(image);
      std::copy_n(mask.pixels, mask.row_bytes * mask.height, out.data() + offsets[at]);
    });
  }
  impl_->visit_samples(samples, [&](std::size_t at, const std::uint8_t* sample) {
    std::memcpy(out.data() + offsets[at], sample + chunks.sample().pixel_bytes(),
                chunks.sample().mask_bytes());
  });
}

std::int64_t ImageDataset::label(std::uint64_t sample) const {
  require_below("label: sample", sample, size());
  return impl_->source.label(sample);
}

std::span<const float> ImageDataset::label_values(std::uint64_t sample) const {
  require_below("label_values: sample", sample, size());
  return impl_->source.label_values(sample);
}

std::string_view ImageDataset::key(std::uint64_t sample) const { return impl_->source.key(sample); }

ColumnValues ImageDataset::column(std::string_view name, std::span<const std::uint64_t> samples) const {
  return impl_->source.column(name, samples);
}

StoredJpeg ImageDataset::stored_jpeg(std::uint64_t sample) const {
  require_below("stored_jpeg: sample", sample, size());
  const ChunkSet& chunks = impl_->source.chunks();
  if (!chunks.own_sizes()) return {};
  const ChunkSet::SampleLocation location = chunks.find_sample(sample);
  const ImageSizes& sizes = chunks.parts()[location.part]->samples().sizes;
  if (stored_image(sizes, location.sample).kind != PayloadKind::jpeg) return {};
  StoredJpeg jpeg;
  impl_->visit_sized({&sample, 1}, [&](std::size_t, const StoredImage& image) {
    ByteBuffer room;
    const Bytes payload = image_payload(image, room);
    jpeg = {{payload.begin(), payload.end()}, image.orientation};
  });
  return jpeg;
}

}  // namespace chunkhit
