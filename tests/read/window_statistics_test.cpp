// How windows mix, measured in the order that a loader gives, against what the loader tells and what theory
// says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "chunkhit/image_loader.h"
#include "loaded_batches.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kSeeds = 10;
constexpr std::uint64_t kEpochsOfASeed = 10;
// Of normally distributed errors one in 10^6 is larger; seeds are fixed, so that a test passes always or
// never.
constexpr double kDeviations = 5;

struct Geometry {
  std::uint64_t samples;
  std::uint64_t chunk_samples;
  std::uint32_t window_chunks;
};

const std::vector<Geometry> kGeometries{{1200, 10, 4}, {1200, 10, 30}, {1200, 4, 64}, {1000, 25, 10},
                                        {997, 10, 8},  {600, 1, 16},   {640, 40, 4},  {300, 100, 3}};

std::string write_geometry(const TemporaryFolder& folder, const Geometry& geometry) {
  PartSpec spec = known_spec({1, 1, 1, Layout::nhwc}, "none");
  spec.chunk_samples = geometry.chunk_samples;
  const std::string path = folder.path("part.zst");
  std::filesystem::remove(path);
  write_known_part(container("shard"), path, spec, geometry.samples);
  return path;
}

ImageLoader loader_of(const std::string& path, const Geometry& geometry, std::uint64_t seed) {
  return ImageLoader(path, {.batch_size = 50,
                            .shuffle = Shuffle::window,
                            .seed = seed,
                            .window_chunks = geometry.window_chunks,
                            .threads = 1});
}

/// The chunks of the samples of an epoch, in its order.
std::vector<std::uint64_t> chunks_of_epoch(ImageLoader& loader, const Geometry& geometry,
                                           std::uint64_t epoch) {
  std::vector<std::uint64_t> chunks;
  for (const ImageBatch& batch : loader.epoch(epoch))
    for (const std::uint64_t sample : batch.samples) chunks.push_back(sample / geometry.chunk_samples);
  return chunks;
}

double share_of_same_neighbors(const std::vector<std::uint64_t>& chunks) {
  std::uint64_t same = 0;
  for (std::size_t i = 1; i < chunks.size(); ++i) same += chunks[i] == chunks[i - 1] ? 1 : 0;
  return static_cast<double>(same) / static_cast<double>(chunks.size() - 1);
}

// The mean over seeds and epochs lies within kDeviations of its own standard error of what the loader tells,
// plus one pair of neighbours an epoch for a last chunk or window that is not full, which mixing() leaves
// out.
TEST(WindowStatistics, NeighboursComeFromOneChunkAsOftenAsTheLoaderTells) {
  const TemporaryFolder folder;
  for (const Geometry& geometry : kGeometries) {
    const std::string path = write_geometry(folder, geometry);
    std::vector<double> shares;
    double told = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      ImageLoader loader = loader_of(path, geometry, seed);
      told = loader.mixing().same_chunk_neighbors;
      for (std::uint64_t epoch = 0; epoch < kEpochsOfASeed; ++epoch)
        shares.push_back(share_of_same_neighbors(chunks_of_epoch(loader, geometry, epoch)));
    }
    const auto count = static_cast<double>(shares.size());
    double mean = 0, squares = 0;
    for (const double share : shares) mean += share / count;
    for (const double share : shares) squares += (share - mean) * (share - mean) / (count - 1);
    const double rank_remainder = geometry.samples % geometry.chunk_samples == 0 ? 0 : 1;
    const double bound = kDeviations * std::sqrt(squares / count) +
                         rank_remainder / static_cast<double>(geometry.samples - 1) + 1e-9;
    EXPECT_NEAR(mean, told, bound) << geometry.samples << " samples in chunks of " << geometry.chunk_samples
                                   << ", windows of " << geometry.window_chunks;
    EXPECT_LT(bound, 0.02) << "a bound that says nothing";
  }
}

// In a window of W chunks of n samples, each gives its successor from the same chunk with (n - 1) / (W n -
// 1).
TEST(WindowStatistics, TheLoaderTellsWhatTheorySays) {
  const TemporaryFolder folder;
  for (const Geometry& geometry : kGeometries) {
    const std::uint64_t chunks = (geometry.samples + geometry.chunk_samples - 1) / geometry.chunk_samples;
    if (geometry.samples % geometry.chunk_samples != 0 || chunks % geometry.window_chunks != 0) continue;
    const MixingInfo mixing = loader_of(write_geometry(folder, geometry), geometry, 0).mixing();
    const auto n = static_cast<double>(geometry.chunk_samples),
               w = static_cast<double>(geometry.window_chunks);
    const auto windows = static_cast<double>(chunks) / w, all = static_cast<double>(geometry.samples);
    // Between windows no neighbours are from one chunk.
    const double expected = (n - 1) / (w * n - 1) * (all - windows) / (all - 1);
    EXPECT_NEAR(mixing.same_chunk_neighbors, expected, 1e-12) << geometry.samples;
    EXPECT_EQ(mixing.chunks, chunks);
  }
}

TEST(WindowStatistics, EveryWindowHoldsAsManyBlocksAndSamplesAsTheLoaderTells) {
  const TemporaryFolder folder;
  for (const Geometry& geometry : kGeometries) {
    const std::string path = write_geometry(folder, geometry);
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      ImageLoader loader = loader_of(path, geometry, seed);
      const MixingInfo mixing = loader.mixing();
      const std::vector<std::uint64_t> chunks = chunks_of_epoch(loader, geometry, seed);
      std::set<std::uint64_t> before;
      // Windows up to the one that the chunk that is not full makes shorter.
      for (std::size_t begin = 0; begin + mixing.samples_in_window <= chunks.size();
           begin += mixing.samples_in_window) {
        const auto first = chunks.begin() + static_cast<std::ptrdiff_t>(begin);
        const std::set<std::uint64_t> window(first,
                                             first + static_cast<std::ptrdiff_t>(mixing.samples_in_window));
        if (geometry.samples % geometry.chunk_samples != 0 &&
            window.contains(geometry.samples / geometry.chunk_samples))
          break;
        ASSERT_EQ(window.size(), mixing.chunks_in_window) << geometry.samples << " seed " << seed;
        for (const std::uint64_t chunk : window) ASSERT_TRUE(before.insert(chunk).second) << chunk;
      }
    }
  }
}

// Chi-squared over which chunks share a window with chunk 0: windows are drawn anew each epoch.
TEST(WindowStatistics, ChunksMeetAllOthersAlikeOften) {
  const TemporaryFolder folder;
  const Geometry geometry{80, 2, 10};
  constexpr std::uint64_t kEpochs = 400;
  const std::string path = write_geometry(folder, geometry);
  ImageLoader loader = loader_of(path, geometry, 3);
  std::map<std::uint64_t, double> met;
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<std::uint64_t> chunks = chunks_of_epoch(loader, geometry, epoch);
    const auto at = std::find(chunks.begin(), chunks.end(), 0u) - chunks.begin();
    const auto begin = chunks.begin() + at / 20 * 20;
    for (const std::uint64_t chunk : std::set<std::uint64_t>(begin, begin + 20)) met[chunk] += 1;
  }
  ASSERT_EQ(met[0], kEpochs);
  // 39 others, nine of them in a window.
  const double expected = kEpochs * 9.0 / 39, variance = expected * (1 - 9.0 / 39);
  double chi_squared = 0;
  for (std::uint64_t chunk = 1; chunk < 40; ++chunk)
    chi_squared += (met[chunk] - expected) * (met[chunk] - expected) / variance;
  // 38 degrees of freedom: mean 38, deviation 8.7.
  EXPECT_LT(chi_squared, 38 + kDeviations * 8.7);
}

}  // namespace
}  // namespace chunkhit
