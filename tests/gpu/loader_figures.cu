// Batches a second from a pack to the GPU. Usage: loader_figures PACK REPEATS; the pack is read REPEATS times
// an epoch, as if it were that much larger. A step does nothing: what is timed is loading.
#include <chunkhit/cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "checks.h"
#include "timing.h"

namespace {

namespace cuda = chunkhit::cuda;
using cuda::DeviceDtype;
using Clock = std::chrono::steady_clock;

constexpr int kEpochs = 5;  // after one that fills the caches

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void print_row(const std::string& what, std::uint64_t samples, double seconds) {
  std::printf("| %s | %.0f | %.0f |\n", what.c_str(), static_cast<double>(samples) / seconds,
              static_cast<double>(samples) / seconds / 256);
}

chunkhit::ImageLoaderOptions loader_options() {
  chunkhit::ImageLoaderOptions options{.batch_size = 256, .shuffle = chunkhit::Shuffle::window, .seed = 7};
  options.layout = chunkhit::Layout::nchw;
  options.on_corrupt = chunkhit::OnCorrupt::fail;
  return options;
}

void time_device_loader(const std::string& what, const std::vector<std::string>& packs, bool is_augmented,
                        DeviceDtype dtype) {
  const cuda::Stream stream;
  chunkhit::ImageLoaderOptions options = loader_options();
  if (dtype != DeviceDtype::uint8) options.normalize = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  if (is_augmented)
    options.augment = {.flip_horizontal = 0.5,
                       .crop_height = 224,
                       .crop_width = 224,
                       .random_crop = true,
                       .crop_padding = 16};
  cuda::DeviceImageLoader loader(packs, options, dtype, {stream.get(), 3});
  Clock::time_point begin{};
  for (int epoch = 0; epoch <= kEpochs; ++epoch) {
    if (epoch == 1) begin = Clock::now();
    for (const cuda::DeviceImageBatch& batch : loader.epoch(static_cast<std::uint64_t>(epoch)))
      static_cast<void>(batch);
    stream.synchronize();
  }
  print_row(what, kEpochs * loader.loader().size(), seconds_since(begin));
}

void time_host_loader(const std::string& what, const std::vector<std::string>& packs) {
  chunkhit::ImageLoader loader(packs, loader_options());
  Clock::time_point begin{};
  for (int epoch = 0; epoch <= kEpochs; ++epoch) {
    if (epoch == 1) begin = Clock::now();
    for (const chunkhit::ImageBatch& batch : loader.epoch(static_cast<std::uint64_t>(epoch)))
      static_cast<void>(batch);
  }
  print_row(what, kEpochs * loader.size(), seconds_since(begin));
}

void print_figures(const std::string& pack, std::size_t repeats) {
  const std::vector<std::string> packs(repeats, pack);
  gpu_tests::print_gpu();
  std::printf("| batches of 256×224×224×3 | images/s | batches/s |\n|---|---|---|\n");
  time_host_loader("ImageLoader, u8, CPU alone", packs);
  time_device_loader("DeviceImageLoader, u8", packs, false, DeviceDtype::uint8);
  time_device_loader("f32, normalized", packs, false, DeviceDtype::float32);
  time_device_loader("f16, normalized", packs, false, DeviceDtype::float16);
  time_device_loader("f16, flipped, randomly cropped", packs, true, DeviceDtype::float16);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: loader_figures PACK REPEATS\n");
    return 2;
  }
  if (!gpu_tests::has_gpu()) return 0;
  try {
    print_figures(arguments[1], std::strtoull(arguments[2], nullptr, 10));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
