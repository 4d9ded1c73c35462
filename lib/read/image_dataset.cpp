#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/memory.h"
#include "batch/chunk_grid.h"
#include "cache/chunk_cache.h"
#include "chunkhit/reader.h"
#include "read/image_source.h"
#include "read/residency.h"

namespace chunkhit {

struct ImageDataset::Impl {
  Impl(const std::vector<std::string>& paths, const ImageDatasetOptions& options)
      : source(paths, {options.images, options.labels}),
        grid(source.chunks().sample_counts()),
        plan(plan_residency(source.chunks(), {.residency = options.residency,
                                              .memory_bytes = options.memory_bytes,
                                              .chunks_needed = 1,
                                              .in_order = false})),
        cache(source.chunks(), {plan.residency, options.check_hashes, OnCorrupt::fail, plan.kept_chunks, 1,
                                plan.reads_samples}) {}

  ImageSource source;
  ChunkGrid grid;
  ResidencyPlan plan;
  ChunkCache cache;
};

ImageDataset::ImageDataset(const std::string& path, const ImageDatasetOptions& options)
    : ImageDataset(std::vector{path}, options) {}

ImageDataset::ImageDataset(const std::vector<std::string>& paths, const ImageDatasetOptions& options)
    : impl_(with_memory("opening it needs more memory than can be had: lower memory_bytes",
                        [&] { return std::make_unique<Impl>(paths, options); })) {}

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
  for (const std::uint64_t sample : samples)
    if (sample >= size())
      throw Error(ErrorCode::usage,
                  "read: sample " + std::to_string(sample) + " of " + std::to_string(size()));
  // In the order of chunks, so that each is asked for once.
  std::vector<std::size_t> by_sample(samples.size());
  std::iota(by_sample.begin(), by_sample.end(), std::size_t{0});
  std::sort(by_sample.begin(), by_sample.end(),
            [&](std::size_t a, std::size_t b) { return samples[a] < samples[b]; });
  ByteBuffer stored;
  ChunkCache::Pin pin;
  std::uint64_t pinned = impl_->grid.chunk_count();
  for (const std::size_t at : by_sample) {
    const ChunkGrid::Place place = impl_->grid.find(samples[at]);
    if (place.chunk != pinned)
      pin = with_memory("read: a chunk needs more memory than can be had: lower memory_bytes",
                        [&] { return impl_->cache.acquire(place.chunk, stored); });
    pinned = place.chunk;
    const std::uint8_t* const pixels =
        impl_->cache.sample(place.chunk, place.in_chunk, pin.samples(), stored);
    std::memcpy(out.data() + at * sample_bytes, pixels, sample_bytes);
  }
}

std::int64_t ImageDataset::label(std::uint64_t sample) const {
  if (sample >= size())
    throw Error(ErrorCode::usage,
                "label: sample " + std::to_string(sample) + " of " + std::to_string(size()));
  return impl_->source.label(sample);
}

std::span<const float> ImageDataset::label_values(std::uint64_t sample) const {
  if (sample >= size())
    throw Error(ErrorCode::usage,
                "label_values: sample " + std::to_string(sample) + " of " + std::to_string(size()));
  return impl_->source.label_values(sample);
}

}  // namespace chunkhit
