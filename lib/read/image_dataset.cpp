#include <cstring>

#include "chunkhit/dataset.h"
#include "chunkhit/image_loader.h"
#include "chunkhit/pack_info.h"
#include "read/image_source.h"
#include "read/sample_reader.h"

namespace chunkhit {

struct ImageDataset::Impl {
  Impl(const std::vector<std::string>& paths, const ImageDatasetOptions& options)
      : source(paths, {options.images, options.labels}, options.check_external),
        reader(source.chunks(), options) {}

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

void ImageDataset::read(std::span<const std::uint64_t> samples, std::span<std::uint8_t> out) const {
  const std::uint64_t sample_bytes = impl_->source.chunks().sample().byte_count();
  if (out.size() != samples.size() * sample_bytes)
    throw Error(ErrorCode::usage, "read: out has " + std::to_string(out.size()) + " bytes, expected " +
                                      std::to_string(samples.size() * sample_bytes));
  for (const std::uint64_t sample : samples) require_below("read: sample", sample, size());
  ByteBuffer room;
  impl_->reader.visit(samples, [&](std::size_t at, ChunkGrid::Location location, const std::uint8_t* chunk) {
    std::memcpy(out.data() + at * sample_bytes, impl_->reader.image(location, chunk, room), sample_bytes);
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

}  // namespace chunkhit
