// Times random resized crops of raw images beside memcpy of the rows that they are of. Run by hand; CPU time.
#include <benchmark/benchmark.h>
#include <hwy/targets.h>

#include <cstdlib>
#include <cstring>

#include "augment/sample_writer.h"
#include "base/random.h"

namespace chunkhit {
namespace {

constexpr SampleShape kImage{375, 500, 3, Layout::nhwc};
constexpr std::uint64_t kUses = 1024;

/// `count` images: 1 stays in the second cache, 512 are 288 MB and come from memory.
ByteBuffer images(std::size_t count) {
  ByteBuffer pixels(count * kImage.byte_count());
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(mix_bits(i));
  return pixels;
}

AugmentSpec crop_of(std::uint32_t side) {
  AugmentSpec augment;
  augment.flip_horizontal = 0.5;
  augment.resized_crop.height = augment.resized_crop.width = side;
  return augment;
}

void time_writer(benchmark::State& state, const SampleFormat& format) {
  const SampleWriter writer(format);
  const auto count = static_cast<std::uint64_t>(state.range(0));
  const ByteBuffer stored = images(count);
  ByteBuffer out(writer.sample_bytes());
  std::uint64_t use = 0;
  for (auto _ : state) {
    writer.write(&stored[use % count * kImage.byte_count()], {7, 0, use % kUses, 0}, out.data());
    benchmark::ClobberMemory();
    ++use;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(use));
}

void resized_crop(benchmark::State& state) {
  time_writer(state, {kImage, crop_of(224), Dtype::uint8, Layout::nhwc, {}});
}

void resized_crop_112(benchmark::State& state) {
  time_writer(state, {kImage, crop_of(112), Dtype::uint8, Layout::nhwc, {}});
}

void resized_crop_f32(benchmark::State& state) {
  time_writer(state, {kImage,
                      crop_of(224),
                      Dtype::float32,
                      Layout::nchw,
                      {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}}});
}

void evaluation_crop(benchmark::State& state) {
  AugmentSpec augment;
  augment.resize_short = 256;
  augment.crop_height = augment.crop_width = 224;
  time_writer(state, {kImage, augment, Dtype::uint8, Layout::nhwc, {}});
}

void copy_of_the_rows(benchmark::State& state) {
  const ResizedCrop crop(crop_of(224));
  const auto count = static_cast<std::uint64_t>(state.range(0));
  const ByteBuffer stored = images(count);
  ByteBuffer out(kImage.byte_count());
  std::uint64_t use = 0;
  for (auto _ : state) {
    const std::uint8_t* const image = &stored[use % count * kImage.byte_count()];
    const Rect box = crop(kImage.height, kImage.width, {7, 0, use % kUses, 0}).box;
    for (std::size_t y = 0; y < box.height; ++y)
      std::memcpy(&out[y * box.width * 3], image + ((box.y + y) * kImage.width + box.x) * 3,
                  std::size_t{box.width} * 3);
    benchmark::ClobberMemory();
    ++use;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(use));
}

BENCHMARK(copy_of_the_rows)->Arg(1)->Arg(512);
BENCHMARK(resized_crop)->Arg(1)->Arg(512);
BENCHMARK(resized_crop_f32)->Arg(512);
BENCHMARK(resized_crop_112)->Arg(512);
BENCHMARK(evaluation_crop)->Arg(512);

}  // namespace
}  // namespace chunkhit

/// DISABLED_TARGETS: Highway's bits of instruction sets that are not to be used; 0x180 leaves AVX2.
int main(int argc, char** argv) {
  if (const char* const bits = std::getenv("DISABLED_TARGETS"))
    hwy::DisableTargets(std::strtoll(bits, nullptr, 0));
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
