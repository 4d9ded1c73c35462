// Once every buffer has been used, a loader neither allocates nor touches new pages, however many batches it
// gives. A program of its own, because it counts what the whole program allocates.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "chunkhit/image_loader.h"
#include "chunkhit/sparse_loader.h"
#include "known_matrices.h"
#include "known_parts.h"
#include "temporary_folder.h"

namespace {

std::atomic<std::uint64_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = nullptr;
  if (::posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) != 0) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The forms for arrays, and those that do not throw, end in these.
void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace chunkhit {
namespace {

constexpr std::uint64_t kSteadySamples = 2000;
constexpr std::uint64_t kBatchSize = 32;
constexpr std::uint64_t kSteadyEpochs = 8;
// A new epoch makes its plan: the order's exceptions, its position in the queue of plans.
constexpr std::uint64_t kMaxAllocationsAnEpoch = 8;

std::string write_steady_part(const TemporaryFolder& folder, const std::string& name,
                              const std::string& filter) {
  const Container& kind = container(name);
  PartSpec spec = known_spec({32, 32, 3, Layout::nhwc}, filter);
  spec.chunk_samples = 20;
  const std::string path = folder.path("part-" + filter + std::string(kind.extension));
  write_known_part(kind, path, spec, kSteadySamples);
  return path;
}

/// A caller's allocator that counts.
struct CountedMemory {
  std::uint64_t given = 0;
  std::uint64_t returned = 0;
  BatchAllocator allocator() {
    return {[this](std::size_t bytes) {
              ++given;
              return std::aligned_alloc(64, round_up(bytes, 64));
            },
            [this](void* memory, std::size_t) {
              ++returned;
              std::free(memory);
            }};
  }
};

std::uint64_t page_faults() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<std::uint64_t>(used.ru_minflt + used.ru_majflt);
}

/// Reads an epoch.
template <class Loader>
std::uint64_t batches_in(Loader& loader, std::uint64_t epoch) {
  std::uint64_t batches = 0;
  for (const auto& batch : loader.epoch(epoch)) batches += batch.epoch == epoch ? 1 : 0;
  return batches;
}

/// Reads two epochs, so slowly that the threads get as far ahead as they ever may and every buffer is used.
template <class Loader>
void warm_up(Loader& loader) {
  for (const std::uint64_t epoch : {0, 1})
    for (const auto& batch : loader.epoch(epoch)) {
      if (batch.index % 16 != 0) continue;
      for (std::uint64_t fetched = ~std::uint64_t{0}; fetched != loader.stats().chunk_fetches;) {
        fetched = loader.stats().chunk_fetches;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
}

template <class Loader, class Options>
void expect_steady_loader(const std::string& path, Options options) {
  CountedMemory memory;
  options.batch_size = kBatchSize;
  options.seed = 7;
  options.threads = 2;
  options.allocator = memory.allocator();
  Loader loader(path, options);
  warm_up(loader);
  const std::uint64_t given = memory.given, allocated = allocations, problems = page_faults();
  std::uint64_t batches = 0;
  for (std::uint64_t epoch = 2; epoch < 2 + kSteadyEpochs; ++epoch) batches += batches_in(loader, epoch);
  const std::uint64_t new_problems = page_faults() - problems, new_allocations = allocations - allocated;
  ASSERT_GE(batches, 50 * kSteadyEpochs);
  EXPECT_EQ(memory.given, given);
  EXPECT_EQ(memory.returned, 0u);
  EXPECT_LE(new_allocations, kSteadyEpochs * kMaxAllocationsAnEpoch) << batches << " batches";
  // Not 0: the system itself unmaps pages to see whether they are used, or to join them to huge ones. A batch
  // of fresh memory would cost 24 problems.
  EXPECT_LT(new_problems, batches / 10) << batches << " batches";
}

void expect_steady(const std::string& path, const ImageLoaderOptions& options) {
  expect_steady_loader<ImageLoader>(path, options);
}

TEST(SteadyState, OfRawSamplesInMemoryInGlobalOrderAllocatesNothing) {
  const TemporaryFolder folder;
  expect_steady(write_steady_part(folder, "hdf5", "none"),
                {.shuffle = Shuffle::global, .cache = Cache::decoded});
}

TEST(SteadyState, OfARawFileInWindowsAllocatesNothing) {
  const TemporaryFolder folder;
  expect_steady(write_steady_part(folder, "hdf5", "none"),
                {.shuffle = Shuffle::window, .window_chunks = 8, .cache = Cache::none});
}

TEST(SteadyState, OfPhotoShardsAllocatesNothing) {
  const TemporaryFolder folder;
  const std::string path = write_steady_part(folder, "shard", "photo");
  for (const Shuffle shuffle : {Shuffle::window, Shuffle::none})
    expect_steady(path, {.shuffle = shuffle, .window_chunks = 8, .cache = Cache::none});
}

TEST(SteadyState, OfCompressedSamplesInGlobalOrderAllocatesNothing) {
  const TemporaryFolder folder;
  expect_steady(
      write_steady_part(folder, "shard", "zstd"),
      {.shuffle = Shuffle::global, .cache = Cache::compressed, .cache_bytes = 7 << 20, .prefetch = 2});
}

TEST(SteadyState, OfNormalisedPlanesAllocatesNothing) {
  const TemporaryFolder folder;
  expect_steady(write_steady_part(folder, "hdf5", "deflate"), {.shuffle = Shuffle::window,
                                                               .window_chunks = 8,
                                                               .augment = {.flip_horizontal = 0.5},
                                                               .dtype = Dtype::float32,
                                                               .layout = Layout::nchw,
                                                               .cache = Cache::none});
}

TEST(SteadyState, OfEchoedBatchesAllocatesNothing) {
  const TemporaryFolder folder;
  expect_steady(write_steady_part(folder, "shard", "photo"),
                {.shuffle = Shuffle::window, .window_chunks = 8, .echo = 2, .cache = Cache::none});
}

TEST(SteadyState, OfRowsOfMatricesAllocatesNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.path("rows.zst");
  write_known_matrices(path, known_matrix_spec(known_shape(ValueType::u8, 2), "zstd"), 60 * kBatchSize);
  for (const SparseFormat format : {SparseFormat::dense_f32, SparseFormat::dense_u8, SparseFormat::csr})
    for (const Cache cache : {Cache::decoded, Cache::none})
      expect_steady_loader<SparseLoader>(
          path, SparseLoaderOptions{.shuffle = cache == Cache::decoded ? Shuffle::global : Shuffle::window,
                                    .window_chunks = 8,
                                    .format = format,
                                    .cache = cache});
}

}  // namespace
}  // namespace chunkhit
