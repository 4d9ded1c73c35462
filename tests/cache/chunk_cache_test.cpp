// What a chunk cache reads, compares and keeps.
#include "cache/chunk_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chunkhit/error.h"
#include "read/cache_plan.h"
#include "support/changed_reads.h"
#include "support/known_parts.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

// Samples of 1,200 bytes have a hash each; chunks of four of them.
constexpr SampleShape kShape{20, 20, 3, Layout::nhwc};
constexpr std::uint64_t kAll = 23, kBytes = 1200;

ChunkSet chunks_of(const TemporaryFolder& folder, const std::string& kind, const std::string& codec,
                   bool is_old = false) {
  const std::string path = folder.path(kind + codec + (is_old ? "-old" : ""));
  write_known_part(container(kind), path, known_spec(kShape, codec), kAll, is_old);
  std::vector<std::unique_ptr<ChunkReader>> parts;
  parts.push_back(open_part(path));
  return ChunkSet(std::move(parts));
}

/// Reads all samples of a chunk; returns the indices of those that are right. The others were left out.
std::vector<std::uint64_t> read_chunk(ChunkCache& cache, const ChunkSet& chunks, std::size_t chunk) {
  ByteBuffer scratch, room;
  std::vector<std::uint64_t> right;
  const ChunkCache::Pin pin = cache.acquire(chunk, scratch);
  if (pin.held().held == Held::left_out) return right;
  const StoredChunk& stored = chunks.stored(chunks.find(chunk));
  for (std::uint64_t i = 0; i < stored.sample_count; ++i) {
    const std::uint8_t* const found = cache.sample(chunk, i, pin.held(), room);
    const ByteBuffer expected = known_samples(kShape, stored.first_sample + i, 1);
    if (found == nullptr) continue;
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found)) << "chunk " << chunk << ", sample " << i;
    right.push_back(i);
  }
  return right;
}

std::string error_of(ChunkCache& cache, const ChunkSet& chunks, std::size_t chunk) {
  try {
    read_chunk(cache, chunks, chunk);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    return error.what();
  }
  return "";
}

std::uint64_t fetches_of_two_passes(const ChunkSet& chunks, const ChunkCacheSpec& spec) {
  const std::unique_ptr<ChunkCache> cache =
      make_chunk_cache(chunks, spec, make_arena(chunks, spec.cache, true, false));
  for (int pass = 0; pass < 2; ++pass)
    for (std::size_t chunk = 0; chunk < chunks.chunk_count(); ++chunk)
      EXPECT_FALSE(read_chunk(*cache, chunks, chunk).empty());
  return cache->stats().fetches;
}

TEST(ChunkCache, FetchesAChunkAgainOnlyWhereItDidNotStay) {
  const TemporaryFolder folder;
  for (const auto& [kind, codec] : {std::pair{"hdf5", "none"}, {"hdf5", "deflate"}, {"shard", "none"}}) {
    const ChunkSet chunks = chunks_of(folder, kind, codec);
    const std::size_t count = chunks.chunk_count();
    EXPECT_EQ(fetches_of_two_passes(chunks, {.cache = Cache::decoded}), count);
    EXPECT_EQ(fetches_of_two_passes(chunks, {.cache = Cache::none, .kept_chunks = count}), count);
    EXPECT_EQ(fetches_of_two_passes(chunks, {.cache = Cache::none}), 2 * count);
    EXPECT_EQ(fetches_of_two_passes(chunks, {.cache = Cache::compressed}), 2 * count) << "decoded again";
  }
  const ChunkSet raw = chunks_of(folder, "hdf5", "none");
  EXPECT_EQ(fetches_of_two_passes(raw, {.reads_samples = true}), 0u) << "samples are read, no chunks";
}

// Chunk 2 is read, another byte of it is given from then on, and it is read again.
TEST(ChunkCache, ComparesWhatItReadsFromAFileAndTrustsItsMemory) {
  const TemporaryFolder folder;
  struct Case {
    ChunkCacheSpec spec;
    bool notices;
  };
  for (const bool is_old : {false, true}) {
    const ChunkSet chunks = chunks_of(folder, "hdf5", "none", is_old);
    const std::uint64_t at = chunks.stored({0, 2}).offset + kBytes + 7;
    for (const Case& each : {Case{{.cache = Cache::decoded}, false},
                             {{.cache = Cache::compressed}, false},
                             {{.cache = Cache::none, .kept_chunks = 9}, false},
                             {{.cache = Cache::none}, true}}) {
      const std::unique_ptr<ChunkCache> cache =
          make_chunk_cache(chunks, each.spec, make_arena(chunks, each.spec.cache, true, false));
      EXPECT_EQ(error_of(*cache, chunks, 2), "");
      const ChangedReads changed(at);
      EXPECT_EQ(error_of(*cache, chunks, 2).empty(), !each.notices) << static_cast<int>(each.spec.cache);
    }
  }
}

TEST(ChunkCache, NamesTheSampleThatDiffers) {
  const TemporaryFolder folder;
  const ChunkSet chunks = chunks_of(folder, "hdf5", "none");
  for (const bool reads_samples : {false, true}) {
    const std::unique_ptr<ChunkCache> cache = make_chunk_cache(chunks, {.reads_samples = reads_samples});
    const ChangedReads changed(chunks.stored({0, 2}).offset + kBytes + 7);
    const std::string error = error_of(*cache, chunks, 2);
    EXPECT_NE(error.find("hdf5none: chunk 2 (samples 8-11): sample 9: checksum "), std::string::npos)
        << error;
  }
}

TEST(ChunkCache, LeavesOutOneSampleWhereSamplesAreReadOneByOne) {
  const TemporaryFolder folder;
  const ChunkSet chunks = chunks_of(folder, "hdf5", "none");
  using Indices = std::vector<std::uint64_t>;
  for (const bool reads_samples : {false, true}) {
    const std::unique_ptr<ChunkCache> cache =
        make_chunk_cache(chunks, {.on_corrupt = OnCorrupt::skip, .reads_samples = reads_samples});
    const ChangedReads changed(chunks.stored({0, 2}).offset + kBytes + 7);
    for (int again = 0; again < 2; ++again)
      EXPECT_EQ(read_chunk(*cache, chunks, 2), reads_samples ? Indices({0, 2, 3}) : Indices());
    EXPECT_EQ(read_chunk(*cache, chunks, 3), Indices({0, 1, 2, 3}));
    EXPECT_EQ(cache->stats().corrupt_chunks, 1u);
  }
}

// Two of three are in a run with the one that differs.
TEST(ChunkCache, LeavesOutOneSampleOfThoseThatAreReadAtOnce) {
  const TemporaryFolder folder;
  const ChunkSet chunks = chunks_of(folder, "hdf5", "none");
  const std::unique_ptr<ChunkCache> cache =
      make_chunk_cache(chunks, {.on_corrupt = OnCorrupt::skip, .reads_samples = true});
  ByteBuffer out(3 * kBytes);
  std::vector<ChunkCache::SampleRead> reads;
  for (const std::uint64_t i : {0, 1, 2}) reads.push_back({1, i, out.data() + i * kBytes});
  const ChangedReads changed(chunks.stored({0, 1}).offset + kBytes);
  cache->read_samples(reads);
  EXPECT_NE(reads[0].out, nullptr);
  EXPECT_EQ(reads[1].out, nullptr);
  EXPECT_NE(reads[2].out, nullptr);
  const ByteBuffer expected = known_samples(kShape, 6, 1);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), reads[2].out));
}

TEST(ChunkCache, ReadsWholeChunksWhereEachReadWaitsForStorage) {
  const TemporaryFolder folder;
  const CacheSpec spec{.cache = Cache::none, .cache_bytes = 4 * 4 * kBytes, .reads_runs = true};
  EXPECT_TRUE(plan_cache(chunks_of(folder, "hdf5", "none"), spec).reads_samples);
  tells_of_page_cache = false;
  EXPECT_FALSE(plan_cache(chunks_of(folder, "hdf5", "none"), spec).reads_samples);
  tells_of_page_cache = true;
}

TEST(ChunkCache, CountsDamageAgainAfterAReset) {
  const TemporaryFolder folder;
  const ChunkSet chunks = chunks_of(folder, "hdf5", "none");
  const std::unique_ptr<ChunkCache> cache =
      make_chunk_cache(chunks, {.on_corrupt = OnCorrupt::skip, .reads_samples = true});
  const ChangedReads changed(chunks.stored({0, 1}).offset);
  for (int pass = 0; pass < 2; ++pass) {
    read_chunk(*cache, chunks, 1);
    EXPECT_EQ(cache->stats().corrupt_chunks, 1);
    cache->reset_stats();
  }
}

TEST(ChunkCache, ComparesNothingWhereItIsToldSo) {
  const TemporaryFolder folder;
  const ChunkSet chunks = chunks_of(folder, "hdf5", "none");
  for (const bool reads_samples : {false, true}) {
    const std::unique_ptr<ChunkCache> cache =
        make_chunk_cache(chunks, {.check_hashes = CheckHashes::never, .reads_samples = reads_samples});
    const ChangedReads changed(chunks.stored({0, 2}).offset + kBytes + 7);
    ByteBuffer scratch, room;
    const ChunkCache::Pin pin = cache->acquire(2, scratch);
    const ByteBuffer expected = known_samples(kShape, 9, 1);
    const std::uint8_t* const found = cache->sample(2, 1, pin.held(), room);
    EXPECT_NE(found[7], expected[7]);
  }
}

}  // namespace
}  // namespace chunkhit
