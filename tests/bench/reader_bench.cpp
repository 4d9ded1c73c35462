// The reader beside its limits, in one run: bare copies, bare reads of files, bare decompression, bare
// streaming writes, on as many threads. usage: reader_bench RAW_HDF5_PACK PHOTO_SHARD_PACK [ROUNDS]; prints
// medians of ROUNDS (5) interleaved rounds. The README's packs are of 64x64x3 and of 224x224x3, a run for
// each. The loader writes past the caches and memcpy does not, so that large samples come faster than their
// limit. reader_start_bench times the first batch, reader_step_bench a simulated training step;
// reader_memory_bench tells the memory.
#include <fcntl.h>
#include <hwy/highway.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/resources.h"
#include "batch/epoch_order.h"
#include "bench_clock.h"
#include "cache/chunk_buffers.h"
#include "chunkhit/dataset.h"
#include "chunkhit/image_loader.h"
#include "read/image_source.h"

namespace chunkhit {
namespace {

// Batches of each thread: together about as many as the loader holds, so that as much of them stays in the
// caches.
constexpr std::size_t kRing = 2;

void on_threads(const std::function<void(std::uint32_t thread)>& work) {
  std::vector<std::jthread> threads;
  for (std::uint32_t thread = 0; thread < allowed_cpus(); ++thread) threads.emplace_back(work, thread);
}

/// Samples per second of `make(first sample, entry of a ring, count)`, which makes a batch, on all threads.
template <class Make>
double batches_per_second(std::uint64_t samples, Make make) {
  std::atomic<std::uint64_t> next{0};
  const double seconds = seconds_of([&] {
    on_threads([&](std::uint32_t thread) {
      for (std::uint64_t first = next.fetch_add(kBenchBatch), turn = 0; first < samples;
           first = next.fetch_add(kBenchBatch), ++turn)
        make(first, thread * kRing + turn % kRing, std::min<std::uint64_t>(kBenchBatch, samples - first));
    });
  });
  return static_cast<double>(samples) / seconds;
}

/// All samples of a pack in memory, and buffers to copy batches to.
class BareMemory {
 public:
  explicit BareMemory(const std::string& pack)
      : dataset_(pack, {.cache = Cache::none}),
        sample_bytes_(dataset_.info().raw_bytes / dataset_.size()),
        samples_(MemoryMap::of_memory(dataset_.info().raw_bytes)) {
    std::vector<std::uint64_t> all(dataset_.size());
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    dataset_.read(all, {samples_.data(), samples_.size()});
    const Permutation shuffled(all.size(), mix_bits(7));
    for (const std::uint64_t position : all) order_.push_back(shuffled(position));
    for (std::uint32_t i = 0; i < allowed_cpus() * kRing; ++i)
      ring_.push_back(MemoryMap::of_memory(kBenchBatch * sample_bytes_ * sizeof(float)));
  }
  [[nodiscard]] double gather() const {
    return per_second([&](std::uint64_t position, std::uint8_t* out) {
      std::memcpy(out, samples_.data() + order_[position] * sample_bytes_, sample_bytes_);
    });
  }
  /// Writes as many floats as there are values, past the caches.
  [[nodiscard]] double stream_floats() const {
    const hwy::HWY_NAMESPACE::ScalableTag<float> tag;
    return per_second([&](std::uint64_t position, std::uint8_t* out) {
      auto* const floats =
          reinterpret_cast<float*>(out + (position % kBenchBatch) * sample_bytes_ * (sizeof(float) - 1));
      const auto value = hwy::HWY_NAMESPACE::Set(tag, static_cast<float>(position));
      for (std::size_t i = 0; i < sample_bytes_; i += hwy::HWY_NAMESPACE::Lanes(tag))
        hwy::HWY_NAMESPACE::Stream(value, tag, floats + i);
    });
  }

 private:
  /// Samples per second of `write`, batch by batch, on all threads.
  template <class Write>
  [[nodiscard]] double per_second(Write write) const {
    return batches_per_second(dataset_.size(),
                              [&](std::uint64_t first, std::size_t entry, std::size_t count) {
                                for (std::uint64_t i = 0; i < count; ++i)
                                  write(first + i, ring_[entry].data() + i * sample_bytes_);
                              });
  }

  ImageDataset dataset_;
  std::size_t sample_bytes_;
  MemoryMap samples_;
  std::vector<std::uint64_t> order_;
  std::vector<MemoryMap> ring_;
};

/// A pack's files, read from the page cache in pieces as large as its samples, which lie elsewhere in them.
class BareFiles {
 public:
  explicit BareFiles(const std::string& pack) {
    const ImageDataset dataset(pack, {.cache = Cache::none});
    sample_bytes_ = dataset.info().raw_bytes / dataset.size();
    for (const PackPart& part : dataset.info().parts) {
      files_.push_back(::open((pack + "/" + part.file).c_str(), O_RDONLY | O_CLOEXEC));
      if (files_.back() < 0) throw Error(ErrorCode::bad_data, pack + "/" + part.file + " cannot be opened");
      for (std::uint64_t at = 0; (at + 1) * sample_bytes_ <= part.bytes; ++at)
        places_.push_back({files_.back(), at * sample_bytes_});
    }
    const Permutation shuffled(places_.size(), mix_bits(7));
    for (std::uint64_t at = 0; at < places_.size(); ++at) shuffled_.push_back(places_[shuffled(at)]);
    for (std::uint32_t i = 0; i < allowed_cpus() * kRing; ++i)
      ring_.push_back(MemoryMap::of_memory(kBenchBatch * sample_bytes_));
  }
  BareFiles(const BareFiles&) = delete;
  BareFiles& operator=(const BareFiles&) = delete;
  ~BareFiles() {
    for (const int file : files_) ::close(file);
  }
  [[nodiscard]] double in_order() const { return read(places_); }
  [[nodiscard]] double shuffled() const { return read(shuffled_); }

 private:
  struct Place {
    int file;
    std::uint64_t offset;
  };
  [[nodiscard]] double read(const std::vector<Place>& places) const {
    return batches_per_second(places.size(), [&](std::uint64_t first, std::size_t entry, std::size_t count) {
      for (std::uint64_t i = 0; i < count;) {
        // One call for what lies together.
        std::uint64_t end = i + 1;
        const Place& place = places[first + i];
        while (end < count && places[first + end].file == place.file &&
               places[first + end].offset == place.offset + (end - i) * sample_bytes_)
          ++end;
        const std::size_t bytes = (end - i) * sample_bytes_;
        if (::pread(place.file, ring_[entry].data() + i * sample_bytes_, bytes,
                    static_cast<off_t>(place.offset)) != static_cast<ssize_t>(bytes))
          std::abort();
        i = end;
      }
    });
  }

  std::size_t sample_bytes_ = 0;
  std::vector<int> files_;
  std::vector<Place> places_, shuffled_;
  std::vector<MemoryMap> ring_;
};

/// Stored chunks in memory, decompressed and unfiltered by all threads.
class BareDecode {
 public:
  explicit BareDecode(const std::string& pack) : source_({pack}, {}) {
    stored_.resize(source_.chunks().chunk_count());
    for (std::size_t chunk = 0; chunk < stored_.size(); ++chunk) {
      const ChunkSet::Location position = source_.chunks().find(chunk);
      source_.chunks().part(position).fetch(position.chunk, stored_[chunk]);
    }
  }
  [[nodiscard]] double decode() const {
    std::atomic<std::size_t> next{0};
    const double seconds = seconds_of([&] {
      on_threads([&](std::uint32_t) {
        ByteBuffer raw(source_.chunks().max_chunk_bytes());
        for (std::size_t chunk = next++; chunk < stored_.size(); chunk = next++) {
          const ChunkSet::Location position = source_.chunks().find(chunk);
          decode_chunk(source_.chunks().part(position), position.chunk, stored_[chunk],
                       MutableBytes(raw).first(source_.chunks().stored(position).raw_bytes));
        }
      });
    });
    return static_cast<double>(source_.size()) / seconds;
  }

 private:
  ImageSource source_;
  std::vector<ByteBuffer> stored_;
};

/// Samples per second of epochs: the first, and those after it.
class Loading {
 public:
  Loading(const std::string& pack, ImageLoaderOptions options) : loader_(pack, std::move(options)) {
    touch_free_memory();
    first_ = epoch();
  }
  [[nodiscard]] double first() const { return first_; }
  [[nodiscard]] double epoch() {
    std::uint64_t samples = 0;
    const double seconds = seconds_of([&] {
      for (const ImageBatch& batch : loader_.epoch(epoch_)) samples += batch.samples.size();
    });
    ++epoch_;
    return static_cast<double>(samples) / seconds;
  }

 private:
  ImageLoader loader_;
  std::uint64_t epoch_ = 0;
  double first_ = 0;
};

struct Case {
  std::string name;
  std::string limit;  // what it is compared with; empty for a limit
  std::function<double()> run;
  double first = 0;
};

void print(const std::vector<Case>& cases, int rounds) {
  std::map<std::string, std::vector<double>> rates;
  for (int round = 0; round < rounds; ++round)
    for (const Case& each : cases) rates[each.name].push_back(each.run());
  for (const Case& each : cases) {
    const double rate = median(rates[each.name]);
    std::printf("%-34s %9.0f samples/s", each.name.c_str(), rate);
    if (!each.limit.empty())
      std::printf("  %.2f of %s", rate / median(rates[each.limit]), each.limit.c_str());
    if (each.first != 0)
      std::printf("; first epoch, which checks hashes: %.0f, %.2f of later ones", each.first,
                  each.first / rate);
    std::printf("\n");
  }
}

void run(const std::string& raw, const std::string& photo, int rounds) {
  const BareMemory memory(raw);
  const BareFiles files(raw);
  const BareDecode bare_decode(photo);
  Loading decoded(raw, {.batch_size = kBenchBatch, .shuffle = Shuffle::global, .cache = Cache::decoded});
  Loading window(raw, {.batch_size = kBenchBatch, .shuffle = Shuffle::window, .cache = Cache::none});
  Loading none(raw, {.batch_size = kBenchBatch, .cache = Cache::none});
  // A window that is smaller than the pack, whose chunks do not stay.
  Loading small_window(
      raw, {.batch_size = kBenchBatch, .shuffle = Shuffle::window, .window_chunks = 8, .cache = Cache::none});
  Loading global(raw, {.batch_size = kBenchBatch,
                       .shuffle = Shuffle::global,
                       .cache = Cache::none,
                       .cache_bytes = std::size_t{50} << 20});
  // What `automatic` chooses where memory suffices.
  Loading window_decoded(raw,
                         {.batch_size = kBenchBatch, .shuffle = Shuffle::window, .cache = Cache::decoded});
  Loading none_decoded(raw, {.batch_size = kBenchBatch, .cache = Cache::decoded});
  Loading floats(raw, {.batch_size = kBenchBatch,
                       .shuffle = Shuffle::global,
                       .augment = {.flip_horizontal = 0.5},
                       .dtype = Dtype::float32,
                       .layout = Layout::nchw,
                       .cache = Cache::decoded});
  Loading shards(photo, {.batch_size = kBenchBatch, .shuffle = Shuffle::window, .cache = Cache::none});
  const auto next_of = [](Loading& loading) { return [&loading] { return loading.epoch(); }; };
  print({{"bare gather", "", [&] { return memory.gather(); }},
         {"global, decoded", "bare gather", next_of(decoded), decoded.first()},
         {"window, decoded", "bare gather", next_of(window_decoded), window_decoded.first()},
         {"none, decoded", "bare gather", next_of(none_decoded), none_decoded.first()},
         {"bare pread, in order", "", [&] { return files.in_order(); }},
         {"none, stream", "bare pread, in order", next_of(none), none.first()},
         {"window, stream", "bare pread, in order", next_of(window), window.first()},
         {"window of 8 chunks, stream", "bare pread, in order", next_of(small_window), small_window.first()},
         {"bare pread, shuffled", "", [&] { return files.shuffled(); }},
         {"global, 50 MB, stream", "bare pread, shuffled", next_of(global), global.first()},
         {"bare streaming write", "", [&] { return memory.stream_floats(); }},
         {"f32 nchw, normalised, flipped", "bare streaming write", next_of(floats), floats.first()},
         {"bare decompression", "", [&] { return bare_decode.decode(); }},
         {"photo shards, window, stream", "bare decompression", next_of(shards), shards.first()}},
        rounds);
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  chunkhit::run(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 5);
}
