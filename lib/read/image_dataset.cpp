#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/dataset.h"
#include "chunkhit/image_loader.h"
#include "chunkhit/pack_info.h"
#include "decode/image_decoder.h"
#include "read/image_source.h"
#include "read/sample_reader.h"
#include "read/stored_images.h"

namespace chunkhit {

struct ImageDataset::Impl {
  Impl(const std::vector<std::string>& paths, const ImageDatasetOptions& options)
      : source(paths, {options.images, options.labels}),
        images(image_reader(source.chunks())),
        reader(source.chunks(), options) {}
  /// Calls use(at, location, stored) for the stored bytes of each of `samples`, samples[at].
  template <class Use>
  void visit(std::span<const std::uint64_t> samples, const Use& use) {
    const ChunkSet& chunks = source.chunks();
    ByteBuffer room;
    reader.visit(samples, [&](std::size_t at, ChunkGrid::Location location, HeldChunk chunk) {
      const ChunkSet::SampleLocation sample = chunks.find_sample(samples[at]);
      try {
        use(at, sample, reader.image(location, chunk, room));
      } catch (const ImageError& error) {
        throw_bad_data(chunks.parts()[sample.part]->path() + ": sample " + std::to_string(sample.sample) +
                       ": " + error.reason());
      }
    });
  }
  /// Where each of `samples` begins in an array of bytes_of(shape) a sample, and the array's end. `out` must
  /// be of that size.
  template <class BytesOf>
  [[nodiscard]] std::vector<std::size_t> offsets(const std::string& call,
                                                 std::span<const std::uint64_t> samples,
                                                 std::span<const std::uint8_t> out,
                                                 const BytesOf& bytes_of) const {
    const std::string what = call + ": sample";
    std::vector<std::size_t> offsets{0};
    for (const std::uint64_t sample : samples) {
      require_below(what, sample, source.size());
      offsets.push_back(offsets.back() + bytes_of(images->shape(source.chunks().find_sample(sample))));
    }
    if (out.size() != offsets.back())
      throw_usage(call + ": out has " + std::to_string(out.size()) + " bytes, expected " +
                  std::to_string(offsets.back()));
    return offsets;
  }

  void read_field(std::string_view name, std::span<const std::uint64_t> samples,
                  std::span<std::uint8_t> out) {
    const std::vector<SampleField>& fields = source.chunks().sample().pairs;
    const std::size_t field = source.chunks().sample().find(name);
    if (field == fields.size())
      throw_usage("read_field: the samples have no field '" + std::string(name) + "', but " +
                  (fields.empty() ? "images alone" : joined(fields, ", ", &SampleField::name)));
    const std::unique_ptr<ImageReader> reading = image_reader(source.chunks());
    const auto bytes_of = [role = fields[field].role](const auto& shape) {
      return shape.shape_of(role).byte_count();
    };
    const std::vector<std::size_t> begins = offsets("read_field", samples, out, bytes_of);
    visit(samples, [&](std::size_t at, ChunkSet::SampleLocation location, const std::uint8_t* stored) {
      reading->read_field(location, stored, field, out.data() + begins[at]);
    });
  }

  ImageSource source;
  std::unique_ptr<const ImageReader> images;  // for shapes; reading takes one for itself
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
  const SampleShape shape = impl_->images->shape(chunks.find_sample(sample));
  return {1, shape.height, shape.width, shape.channels, shape.layout};
}

void ImageDataset::read(std::span<const std::uint64_t> samples, std::span<std::uint8_t> out) const {
  const std::unique_ptr<ImageReader> images = image_reader(impl_->source.chunks());
  const std::vector<std::size_t> offsets =
      impl_->offsets("read", samples, out, [](const auto& shape) { return shape.pixel_bytes(); });
  impl_->visit(samples, [&](std::size_t at, ChunkSet::SampleLocation location, const std::uint8_t* stored) {
    images->read(location, stored, out.data() + offsets[at]);
  });
}

void ImageDataset::read_field(std::string_view name, std::span<const std::uint64_t> samples,
                              std::span<std::uint8_t> out) const {
  impl_->read_field(name, samples, out);
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
  StoredJpeg jpeg;
  if (!impl_->images->is_jpeg(chunks.find_sample(sample))) return jpeg;
  impl_->visit({&sample, 1}, [&](std::size_t, ChunkSet::SampleLocation location, const std::uint8_t* stored) {
    jpeg = impl_->images->jpeg(location, stored);
  });
  return jpeg;
}

}  // namespace chunkhit
