// Times the photo codec's arithmetic without zstd on one thread, beside memcpy of as many bytes; "GB/s" is
// of 10^9 bytes of samples. The aim is 3 GB/s for restore, the step that unfilters. usage: photo_codec_bench
// [--benchmark_filter=restore]; the arguments in a row's name are side / channels / layout.
#include <benchmark/benchmark.h>

#include <cstring>

#include "base/random.h"
#include "codec/photo_predictor.h"

namespace chunkhit {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

// As many whole samples as fit a chunk; the arithmetic takes as long for noise as for photos.
ByteBuffer chunk_of(const SampleShape& shape) {
  ByteBuffer bytes(kChunkBytes / shape.byte_count() * shape.byte_count());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(mix_bits(i));
  return bytes;
}

SampleShape shape_of(const benchmark::State& state) {
  return {static_cast<std::uint32_t>(state.range(0)), static_cast<std::uint32_t>(state.range(0)),
          static_cast<std::uint32_t>(state.range(1)), static_cast<Layout>(state.range(2))};
}

template <class Pass>
void time_pass(benchmark::State& state, Pass pass) {
  const SampleShape shape = shape_of(state);
  const ByteBuffer from = chunk_of(shape);
  ByteBuffer to(from.size());
  for (auto _ : state) {
    pass(from, shape, to);
    benchmark::ClobberMemory();
  }
  state.counters["GB/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(from.size()) / 1e9,
                         benchmark::Counter::kIsRate);
}

void restore(benchmark::State& state) { time_pass(state, restore_photo); }
void predict(benchmark::State& state) { time_pass(state, predict_photo); }
void copy(benchmark::State& state) {
  time_pass(state, [](Bytes from, const SampleShape&, MutableBytes to) {
    std::memcpy(to.data(), from.data(), from.size());
  });
}

// Side, channels, layout.
void shapes(benchmark::internal::Benchmark* bench) {
  for (const int side : {64, 224}) bench->Args({side, 3, 0})->Args({side, 3, 1});
  bench->Args({28, 1, 0})->Args({224, 4, 0});
}

BENCHMARK(restore)->Apply(shapes);
BENCHMARK(predict)->Apply(shapes);
BENCHMARK(copy)->Args({64, 3, 0});

}  // namespace
}  // namespace chunkhit

BENCHMARK_MAIN();
