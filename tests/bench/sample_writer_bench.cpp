// Times writing batches of samples beside memcpy and a bare streaming write of as many bytes. Run by hand.
#include <benchmark/benchmark.h>

#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "augment/sample_writer.h"
#include "base/random.h"

namespace chunkhit {
namespace {

// Far larger than the caches, so that writes reach the memory as those of a ring of batches do.
constexpr std::size_t kBatchBytes = std::size_t{256} << 20;

// Each thread's own memory; touched before it is timed.
struct Buffers {
  ByteBuffer stored, out;
  Buffers(std::size_t stored_bytes, std::size_t out_bytes) : stored(stored_bytes), out(out_bytes) {
    for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<std::uint8_t>(mix_bits(i));
    std::memset(out.data(), 1, out.size());
  }
};

void time_writer(benchmark::State& state, const SampleFormat& format) {
  const SampleWriter writer(format);
  const std::size_t stored_bytes = format.stored.byte_count(), bytes = writer.sample_bytes();
  const std::size_t count = kBatchBytes / static_cast<std::size_t>(state.threads()) / bytes;
  Buffers buffers(count * stored_bytes, count * bytes);
  for (auto _ : state) {
    for (std::size_t i = 0; i < count; ++i)
      writer.write(&buffers.stored[i * stored_bytes], {7, 0, i, 0}, &buffers.out[i * bytes]);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * count * bytes));
}

SampleFormat format_of(const benchmark::State& state) {
  SampleFormat format;
  const auto side = static_cast<std::uint32_t>(state.range(0));
  format.stored = {side, side, 3, Layout::nhwc};
  format.augment.flip_horizontal = static_cast<double>(state.range(1)) / 100;
  format.layout = static_cast<Layout>(state.range(2));
  format.normalize = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  return format;
}

void write_u8(benchmark::State& state) { time_writer(state, format_of(state)); }

void write_f32(benchmark::State& state) {
  SampleFormat format = format_of(state);
  format.dtype = Dtype::float32;
  time_writer(state, format);
}

void crop_f32(benchmark::State& state) {
  SampleFormat format = format_of(state);
  format.dtype = Dtype::float32;
  format.augment.crop_height = format.augment.crop_width = format.stored.width - 8;
  format.augment.random_crop = true;
  time_writer(state, format);
}

void copy(benchmark::State& state) {
  const std::size_t bytes = 64 * 64 * 3,
                    count = kBatchBytes / static_cast<std::size_t>(state.threads()) / bytes;
  Buffers buffers(count * bytes, count * bytes);
  for (auto _ : state) {
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(&buffers.out[i * bytes], &buffers.stored[i * bytes], bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * count * bytes));
}

// Writes past the caches where the compiler can say so.
void stream_bytes(ByteBuffer& out) {
#if defined(__SSE2__)
  const __m128i value = _mm_set1_epi8(3);
  for (std::size_t i = 0; i < out.size(); i += sizeof value)
    _mm_stream_si128(reinterpret_cast<__m128i*>(&out[i]), value);
  _mm_sfence();
#else
  std::memset(out.data(), 3, out.size());
#endif
}

void stream(benchmark::State& state) {
  Buffers buffers(0, kBatchBytes / static_cast<std::size_t>(state.threads()));
  for (auto _ : state) {
    stream_bytes(buffers.out);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * buffers.out.size()));
}

// Side, percent flipped, layout (stored nhwc); threads.
void cases(benchmark::internal::Benchmark* bench) {
  for (const int side : {64, 224})
    for (const int flips : {0, 50, 100})
      for (const int layout : {0, 1}) bench->Args({side, flips, layout});
  bench->ThreadRange(1, 2)->UseRealTime();
}

BENCHMARK(copy)->ThreadRange(1, 2)->UseRealTime();
BENCHMARK(stream)->ThreadRange(1, 2)->UseRealTime();
BENCHMARK(write_u8)->Apply(cases);
BENCHMARK(write_f32)->Apply(cases);
BENCHMARK(crop_f32)->Apply(cases);

}  // namespace
}  // namespace chunkhit

BENCHMARK_MAIN();
