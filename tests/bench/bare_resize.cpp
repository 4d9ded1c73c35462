// The limit of a loader of raw pixels: the resized crops alone, of images that are in memory.
// usage: bare_resize PACK EPOCHS THREADS ; PACK is of images of their own sizes; prints the CPU us an image.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>
#include <thread>
#include <vector>

#include "augment/random_crop.h"
#include "base/bytes.h"
#include "base/random.h"
#include "chunkhit/dataset.h"
#include "transform/resample.h"

namespace chunkhit {
namespace {

constexpr std::uint32_t kSide = 224;
constexpr std::size_t kChannels = 3;
constexpr std::size_t kBatch = 32;

struct Photo {
  BatchShape shape;
  ByteBuffer pixels;
};

std::vector<Photo> read_photos(const ImageDataset& dataset) {
  std::vector<Photo> photos(dataset.size());
  for (std::uint64_t sample = 0; sample < dataset.size(); ++sample) {
    Photo& photo = photos[sample];
    photo.shape = dataset.sample_shape(sample);
    photo.pixels.resize(std::size_t{photo.shape.height} * photo.shape.width * kChannels);
    dataset.read(std::span(&sample, 1), photo.pixels);
  }
  return photos;
}

AugmentSpec crop_and_flip() {
  AugmentSpec augment;
  augment.flip_horizontal = 0.5;
  augment.resized_crop.height = augment.resized_crop.width = kSide;
  return augment;
}

/// Each thread takes every `threads`-th use.
void resize(const std::vector<Photo>& photos, std::uint64_t first, std::uint64_t uses,
            std::uint64_t threads) {
  const ResizedCrop resized_crop(crop_and_flip());
  constexpr std::size_t kRowBytes = kSide * kChannels, kSampleBytes = kRowBytes * kSide;
  ByteBuffer batch(kBatch * kSampleBytes);
  Resampler resampler;
  for (std::uint64_t use = first; use < uses; use += threads) {
    const Photo& photo = photos[mix_bits(use) % photos.size()];
    const auto [box, request] = resized_crop(photo.shape.height, photo.shape.width, {7, 0, use, 0});
    const std::size_t row_bytes = std::size_t{photo.shape.width} * kChannels;
    const Rect part = source_region(request);
    const std::uint8_t* const pixels =
        &photo.pixels[(box.y + part.y) * row_bytes + (box.x + part.x) * kChannels];
    resampler.resample(request, {pixels, part.width, part.height, kChannels, row_bytes},
                       &batch[use / threads % kBatch * kSampleBytes], kRowBytes);
  }
}

void run(const char* pack, std::uint64_t epochs, std::uint64_t thread_count) {
  const std::vector<Photo> photos = read_photos(ImageDataset(pack));
  const std::uint64_t uses = epochs * photos.size();
  const std::clock_t begin = std::clock();
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t thread = 0; thread < thread_count; ++thread)
      threads.emplace_back([&, thread] { resize(photos, thread, uses, thread_count); });
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::printf("%.2f\n", seconds / static_cast<double>(uses) * 1e6);
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  chunkhit::run(argv[1], std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10));
}
