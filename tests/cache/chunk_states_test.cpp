// The states of a chunk in a cache: absent, loading, ready, idle, damaged; asked for, shared, in its file.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/chunk_cache.h"
#include "chunkhit/error.h"
#include "range_server.h"
#include "support/known_parts.h"
#include "support/shared_processes.h"

namespace chunkhit {
namespace {

// Chunks of 300 KB, of which some samples may be read.
constexpr SampleShape kShape{160, 160, 3, Layout::nhwc};
constexpr std::uint64_t kSampleBytes = 160 * 160 * 3, kInChunk = kKnownChunkSamples;
constexpr std::size_t kChunks = 6;
constexpr std::array kCaches{Cache::decoded, Cache::compressed, Cache::none};
const std::string kAdvice = "; pack-verify shows what else is damaged";

/// Storage whose reads are counted; a test holds those of a chunk back, or lets them fail.
class Storage {
 public:
  /// Chunks whose samples have their number in each byte.
  [[nodiscard]] ChunkSet chunks(const TemporaryFolder& folder) {
    PartContents contents{.spec = known_spec(kShape, "none"), .splits_chunks = true};
    for (std::uint64_t chunk = 0; chunk < kChunks; ++chunk)
      contents.chunks.push_back({.stored_bytes = kInChunk * kSampleBytes,
                                 .raw_bytes = kInChunk * kSampleBytes,
                                 .first_sample = chunk * kInChunk,
                                 .sample_count = kInChunk,
                                 .filtered = false});
    contents.read_rows = [this](std::uint64_t first, MutableBytes out) { read(first, out); };
    std::vector<std::unique_ptr<ChunkReader>> parts;
    parts.push_back(std::make_unique<ChunkReader>(InputFile(folder.write("part", "")), std::move(contents)));
    return ChunkSet(std::move(parts));
  }
  void hold(std::size_t chunk) {
    set([&] { held_ = chunk; });
  }
  void release() {
    set([&] { held_ = kChunks; });
  }
  void fail(std::size_t chunk, ErrorCode code) {
    set([&] { failing_ = chunk, code_ = code; });
  }
  void mend() {
    set([&] { failing_ = kChunks; });
  }
  [[nodiscard]] int reads(std::size_t chunk) {
    const std::lock_guard lock(mutex_);
    return reads_[chunk];
  }

 private:
  template <class Set>
  void set(const Set& change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }
  void read(std::uint64_t first, MutableBytes out) {
    const std::size_t chunk = first / kInChunk;
    std::unique_lock lock(mutex_);
    ++reads_[chunk];
    changed_.notify_all();
    changed_.wait(lock, [&] { return held_ != chunk; });
    if (failing_ == chunk) throw Error(code_, "no such bytes");
    for (std::uint64_t i = 0; i < kInChunk; ++i)
      std::fill_n(out.data() + i * kSampleBytes, kSampleBytes, static_cast<std::uint8_t>(first + i));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<int, kChunks> reads_{};
  std::size_t held_ = kChunks, failing_ = kChunks;  // kChunks: none
  ErrorCode code_ = ErrorCode::bad_data;
};

/// What a thread got of a chunk.
struct Got {
  bool hit = false;
  bool left_out = false;
  bool in_room = false;
  std::string error = {};
  bool operator==(const Got&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Got& got) {
    return out << (got.hit ? "hit " : "miss ") << (got.left_out ? "left out " : "")
               << (got.in_room ? "in room " : "") << got.error;
  }
};
const Got kHit{.hit = true}, kMiss{}, kLeftOut{.left_out = true},
    kStillLeftOut{.hit = true, .left_out = true};

/// A cache, and a thread that uses it.
class Used {
 public:
  Used(const ChunkSet& chunks, const ChunkCacheSpec& spec, bool shares = false)
      : cache_(make_chunk_cache(chunks, spec, make_arena(chunks, spec.cache, true, shares))) {}
  ChunkCache* operator->() { return cache_.get(); }
  [[nodiscard]] ChunkCache::Pin pin(std::size_t chunk) {
    ByteBuffer scratch;
    return cache_->acquire(chunk, scratch);
  }
  Got acquire(std::size_t chunk) {
    return got(chunk, 0, [&](ByteBuffer& scratch, ByteBuffer&) { return cache_->acquire(chunk, scratch); });
  }
  Got acquire_some(std::size_t chunk, std::uint64_t wanted) {
    return got(chunk, wanted, [&](ByteBuffer& scratch, ByteBuffer& room) {
      return cache_->acquire_some(chunk, {&wanted, 1}, scratch, room);
    });
  }
  [[nodiscard]] bool is_right(std::size_t chunk, std::uint64_t in_chunk, const ChunkCache::Pin& pin) {
    ByteBuffer room;
    const std::uint8_t* const found = cache_->sample(chunk, in_chunk, pin.held(), room);
    return std::all_of(found, found + kSampleBytes,
                       [&](std::uint8_t byte) { return byte == chunk * kInChunk + in_chunk; });
  }

 private:
  template <class Acquire>
  Got got(std::size_t chunk, std::uint64_t in_chunk, const Acquire& acquire) {
    ByteBuffer scratch, room;
    try {
      const ChunkCache::Pin pin = acquire(scratch, room);
      const bool is_left_out = pin.held().held == Held::left_out;
      EXPECT_TRUE(is_left_out || is_right(chunk, in_chunk, pin)) << "chunk " << chunk;
      return {pin.hit(), is_left_out, pin.held().held == Held::room};
    } catch (const Error& error) {
      return {.error = error.what()};
    }
  }
  std::unique_ptr<ChunkCache> cache_;
};

class ChunkStates : public SharedArena {
 protected:
  Storage storage_;
  TemporaryFolder part_;
  ChunkSet chunks_ = storage_.chunks(part_);
};

TEST_F(ChunkStates, AnAbsentChunkIsReadyOnceItIsLoaded) {
  for (const Cache cache : kCaches) {
    const int before = storage_.reads(0);
    Used used(chunks_, {.cache = cache, .kept_chunks = kChunks});
    EXPECT_EQ(used.acquire(0), kMiss);
    EXPECT_EQ(used.acquire(0), kHit);
    EXPECT_EQ(used.acquire(5), kMiss);
    EXPECT_EQ(storage_.reads(0) - before, 1);
    EXPECT_EQ(used->stats().fetches, 2u);
  }
}

TEST_F(ChunkStates, TheLongestIdleChunkIsEvicted) {
  for (const Cache cache : {Cache::compressed, Cache::none}) {
    const int before = storage_.reads(1);
    Used used(chunks_, {.cache = cache, .kept_chunks = 2});
    for (const std::size_t chunk : {0, 1}) EXPECT_EQ(used.acquire(chunk), kMiss);
    EXPECT_EQ(used.acquire(0), kHit);
    EXPECT_EQ(used.acquire(2), kMiss);  // evicts 1
    for (const std::size_t chunk : {2, 0}) EXPECT_EQ(used.acquire(chunk), kHit);
    EXPECT_EQ(used.acquire(1), kMiss);  // evicts 2
    for (const std::size_t chunk : {0, 1}) EXPECT_EQ(used.acquire(chunk), kHit);
    EXPECT_EQ(used.acquire(2), kMiss);
    EXPECT_EQ(used->stats().fetches, 5u);
    EXPECT_EQ(storage_.reads(1) - before, cache == Cache::none ? 2 : 1) << "stored bytes stay in memory";
  }
}

TEST_F(ChunkStates, NoChunkIsEvictedWhereAllStay) {
  Used used(chunks_, {.cache = Cache::decoded});
  for (const Got& expected : {kMiss, kHit})
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) EXPECT_EQ(used.acquire(chunk), expected);
}

TEST_F(ChunkStates, APinnedChunkStays) {
  for (const Cache cache : kCaches) {
    Used used(chunks_, {.cache = cache});
    ChunkCache::Pin pin = used.pin(0);
    for (const std::size_t chunk : {1, 2, 3}) EXPECT_EQ(used.acquire(chunk), kMiss);
    EXPECT_TRUE(used.is_right(0, 3, pin));
    EXPECT_EQ(used.acquire(0), kHit);
    ChunkCache::Pin other = used.pin(0);
    pin = {};  // the other one holds it still
    EXPECT_EQ(used.acquire(0), kHit);
    other = {};
    EXPECT_EQ(used.acquire(0), cache == Cache::decoded ? kHit : kMiss);
  }
}

// It was listed as idle still, and evicted while it was read.
TEST_F(ChunkStates, AnIdleChunkThatIsPinnedAgainStays) {
  for (const Cache cache : {Cache::compressed, Cache::none}) {
    Used used(chunks_, {.cache = cache, .kept_chunks = 1});
    EXPECT_EQ(used.acquire(0), kMiss);
    const ChunkCache::Pin pin = used.pin(0);
    EXPECT_TRUE(pin.hit());
    for (const std::size_t chunk : {1, 2}) EXPECT_EQ(used.acquire(chunk), kMiss);
    EXPECT_TRUE(used.is_right(0, 3, pin));
    EXPECT_EQ(used.acquire(0), kHit);
  }
}

TEST_F(ChunkStates, AWantedChunkStaysUntilItIsUnwantedAsOften) {
  for (const Cache cache : {Cache::compressed, Cache::none}) {
    Used used(chunks_, {.cache = cache, .kept_chunks = 1});
    used->want(3);
    used->want(3);
    EXPECT_EQ(used.acquire(3), kMiss);
    for (int times = 0; times < 2; ++times) {
      for (const std::size_t chunk : {4, 5}) EXPECT_EQ(used.acquire(chunk), kMiss);
      EXPECT_EQ(used.acquire(3), kHit);
      used->unwant(3);
    }
    EXPECT_EQ(used.acquire(3), kHit) << "idle, and the only one";
    EXPECT_EQ(used.acquire(4), kMiss);
    EXPECT_EQ(used.acquire(3), kMiss) << "evicted";
    used->want(2);  // before it is there
    used->unwant(2);
    EXPECT_EQ(used.acquire(2), kMiss);
  }
}

// Without waiting, the second thread would read the chunk, too.
TEST_F(ChunkStates, ASecondThreadWaitsForALoad) {
  for (const Cache cache : kCaches) {
    const int before = storage_.reads(0);
    Used used(chunks_, {.cache = cache, .kept_chunks = kChunks});
    storage_.hold(0);
    std::thread loading([&] { EXPECT_EQ(used.acquire(0), kMiss); });
    while (storage_.reads(0) == before) std::this_thread::yield();
    std::thread waiting([&] { EXPECT_EQ(used.acquire(0).error, ""); });
    EXPECT_EQ(used.acquire(1), kMiss) << "others are loaded meanwhile";
    storage_.release();
    loading.join();
    waiting.join();
    EXPECT_EQ(storage_.reads(0) - before, 1);
    EXPECT_EQ(used.acquire(0), kHit);
  }
}

TEST_F(ChunkStates, AThreadThatWaitedForAFailedLoadLoads) {
  for (const Cache cache : kCaches)
    for (const OnCorrupt on_corrupt : {OnCorrupt::fail, OnCorrupt::skip}) {
      const int before = storage_.reads(0);
      Used used(chunks_, {.cache = cache, .on_corrupt = on_corrupt});
      storage_.hold(0);
      storage_.fail(0, ErrorCode::bad_data);
      Got first, second;
      std::thread loading([&] { first = used.acquire(0); });
      while (storage_.reads(0) == before) std::this_thread::yield();
      std::thread waiting([&] { second = used.acquire(0); });
      storage_.release();
      loading.join();
      waiting.join();
      storage_.mend();
      const bool skips = on_corrupt == OnCorrupt::skip;
      EXPECT_EQ(first.left_out && second.left_out, skips);
      EXPECT_EQ(first.error.empty() && second.error.empty(), skips);
      EXPECT_EQ(storage_.reads(0) - before, skips ? 1 : 2);
      EXPECT_EQ(used->stats().corrupt_chunks, skips ? 1u : 0u);
    }
}

TEST_F(ChunkStates, ADamagedChunkFailsUntilItIsWhole) {
  for (const Cache cache : kCaches) {
    Used used(chunks_, {.cache = cache, .kept_chunks = kChunks});
    storage_.fail(2, ErrorCode::bad_data);
    const std::string error = chunks_.parts()[0]->location(2) + ": no such bytes" + kAdvice;
    for (int times = 0; times < 2; ++times) EXPECT_EQ(used.acquire(2), Got{.error = error});
    storage_.mend();
    EXPECT_EQ(used.acquire(2), kMiss);
    EXPECT_EQ(used.acquire(2), kHit);
    EXPECT_EQ(used->stats().corrupt_chunks, 0u);
    EXPECT_EQ(used->stats().fetches, 1u);
  }
}

TEST_F(ChunkStates, ADamagedChunkIsLeftOutForGoodWhereItIsSkipped) {
  for (const Cache cache : kCaches) {
    Used used(chunks_, {.cache = cache, .on_corrupt = OnCorrupt::skip, .kept_chunks = 1});
    const int before = storage_.reads(2);
    storage_.fail(2, ErrorCode::bad_data);
    EXPECT_EQ(used.acquire(2), kLeftOut);
    storage_.mend();
    EXPECT_EQ(used.acquire(2), kStillLeftOut);
    EXPECT_EQ(storage_.reads(2) - before, 1);
    EXPECT_EQ(used->stats().corrupt_chunks, 1u);
    for (const std::size_t chunk : {3, 4}) EXPECT_EQ(used.acquire(chunk), kMiss) << "its memory is free";
    used->reset_stats();
    EXPECT_EQ(used.acquire(2), kStillLeftOut);
  }
}

TEST_F(ChunkStates, StorageThatDoesNotAnswerIsNoDamage) {
  for (const Cache cache : kCaches) {
    Used used(chunks_, {.cache = cache, .on_corrupt = OnCorrupt::skip, .kept_chunks = kChunks});
    storage_.fail(2, ErrorCode::try_again);
    EXPECT_EQ(used.acquire(2), Got{.error = chunks_.parts()[0]->location(2) + ": no such bytes"});
    storage_.mend();
    EXPECT_EQ(used.acquire(2), kMiss);
    EXPECT_EQ(used->stats().corrupt_chunks, 0u);
  }
}

TEST_F(ChunkStates, AChunkIsLoadedAfterSomeSamplesOfItWereRead) {
  for (const Cache cache : kCaches) {
    Used used(chunks_, {.cache = cache, .kept_chunks = kChunks});
    ASSERT_TRUE(used->reads_some());
    EXPECT_EQ(used.acquire_some(0, 2), Got{.in_room = true});
    EXPECT_EQ(used.acquire_some(0, 3), kMiss);
    EXPECT_EQ(used.acquire_some(0, 1), kHit);
    EXPECT_EQ(used.acquire_some(1, 0), Got{.in_room = true});
    EXPECT_EQ(used.acquire(1), kMiss) << "some samples leave it absent";
    EXPECT_EQ(used.acquire_some(1, 3), kHit);
    used->want(2);
    EXPECT_EQ(used.acquire_some(2, 0), kMiss) << "others of it are expected";
    used->unwant(2);
    EXPECT_EQ(used->stats().fetches, 5u);
  }
}

TEST_F(ChunkStates, SomeSamplesOfADamagedChunkFailOrAreLeftOut) {
  for (const Cache cache : kCaches) {
    storage_.fail(0, ErrorCode::bad_data);
    Used skips(chunks_, {.cache = cache, .on_corrupt = OnCorrupt::skip, .kept_chunks = kChunks});
    EXPECT_EQ(skips.acquire_some(0, 2), kLeftOut);
    EXPECT_EQ(skips.acquire_some(0, 2), kStillLeftOut);
    EXPECT_EQ(skips->stats().corrupt_chunks, 1u);
    Used fails(chunks_, {.cache = cache, .kept_chunks = kChunks});
    EXPECT_TRUE(fails.acquire_some(0, 2).error.ends_with(kAdvice));
    storage_.mend();
    EXPECT_EQ(fails.acquire_some(0, 2), kMiss);
  }
}

// Of a shared arena, what one cache has asked for is there for the other, which does not read it.
TEST_F(ChunkStates, AnAskedChunkIsFilledForOthers) {
  for (const Cache cache : {Cache::decoded, Cache::compressed}) {
    Used asks(chunks_, {.cache = cache}, true), other(chunks_, {.cache = cache}, true);
    const int before = storage_.reads(4);
    storage_.hold(4);
    asks->ask(4);
    asks->ask(4);
    other->ask(4);  // no process asks for it twice
    std::thread waiting([&] { EXPECT_EQ(other.acquire(4).error, ""); });
    while (storage_.reads(4) == before) std::this_thread::yield();
    storage_.release();
    waiting.join();
    EXPECT_EQ(other->stats().shared_chunks, 1u);
    EXPECT_EQ(asks.acquire(4), cache == Cache::decoded ? kHit : kMiss);
    EXPECT_EQ(asks->stats().shared_chunks, 0u);
    EXPECT_EQ(storage_.reads(4) - before, 1);
  }
}

TEST_F(ChunkStates, AForgottenChunkIsFilledByWhoeverNeedsIt) {
  for (const Cache cache : {Cache::decoded, Cache::compressed})
    for (const bool ends : {false, true}) {
      auto asks = std::make_unique<Used>(chunks_, ChunkCacheSpec{.cache = cache}, true);
      Used other(chunks_, {.cache = cache}, true);
      const int before = storage_.reads(0);
      storage_.hold(0);
      for (const std::size_t chunk : {0, 1, 2}) (*asks)->ask(chunk);
      while (storage_.reads(0) == before) std::this_thread::yield();
      std::thread ending;
      if (ends)
        ending = std::thread([&] { asks.reset(); });
      else
        (*asks)->forget_asked();
      // Filling of 1 has not begun, and does not while 0 is held.
      EXPECT_EQ(other.acquire(1), kMiss);
      EXPECT_EQ(other->stats().shared_chunks, 0u);
      storage_.release();
      EXPECT_EQ(other.acquire(0).error, "");
      EXPECT_EQ(other->stats().shared_chunks, 1u) << "what has begun is filled";
      if (ends) ending.join();
    }
}

TEST_F(ChunkStates, AChunkIsReadToOwnMemoryWhereAStoppedProcessFillsIt) {
  for (const Cache cache : {Cache::decoded, Cache::compressed}) {
    const int before = storage_.reads(1);
    const pid_t child = start_child([&] {
      static ChunkArena own;
      own = make_arena(chunks_, cache, true, true);
      return own.claim(1) == ChunkArena::Claim::own;
    });
    Used used(chunks_, {.cache = cache, .kept_chunks = kChunks}, true);
    ::kill(child, SIGSTOP);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
    storage_.fail(1, ErrorCode::bad_data);
    EXPECT_NE(used.acquire(1).error, "");
    storage_.mend();
    EXPECT_EQ(used.acquire(1), kMiss);
    EXPECT_EQ(used.acquire(1), kHit);
    kill_child(child);
    EXPECT_EQ(storage_.reads(1) - before, 2);
    Used other(chunks_, {.cache = cache}, true);
    EXPECT_EQ(other.acquire(1), kMiss) << "nobody has filled it";
    EXPECT_EQ(other->stats().shared_chunks, 0u);
    EXPECT_EQ(used.acquire(1), kHit);
    EXPECT_EQ(used.acquire(2), kMiss);
    EXPECT_EQ(other.acquire(2), cache == Cache::decoded ? kHit : kMiss);
    EXPECT_EQ(other->stats().shared_chunks, 1u);
  }
}

/// A raw part of known pixels.
ChunkSet raw_chunks(const TemporaryFolder& folder, const RangeServer* server = nullptr) {
  const std::string path = folder.path("raw");
  write_known_part(container("hdf5"), path, known_spec(kShape, "none"), kChunks * kInChunk);
  std::vector<std::unique_ptr<ChunkReader>> parts;
  parts.push_back(open_part(server == nullptr ? path : server->url("raw")));
  return ChunkSet(std::move(parts));
}

bool is_known(const std::uint8_t* found, std::uint64_t sample) {
  const ByteBuffer expected = known_samples(kShape, sample, 1);
  return std::equal(expected.begin(), expected.end(), found);
}

TEST_F(ChunkStates, SomeSamplesOfARawChunkStayInTheFile) {
  const ChunkSet chunks = raw_chunks(part_);
  const std::uint64_t wanted = 1;
  for (const Cache cache : {Cache::decoded, Cache::none})
    for (const bool reads_samples : {false, true}) {
      if (reads_samples && cache != Cache::none) continue;
      const ChunkCacheSpec spec{.cache = cache, .kept_chunks = kChunks, .reads_samples = reads_samples};
      Used opened(chunks, spec);
      ByteBuffer scratch, room;
      for (const bool is_first : {true, false}) {
        const ChunkCache::Pin pin = opened->acquire_some(2, {&wanted, 1}, scratch, room);
        EXPECT_EQ(pin.held().held == Held::file, is_first || reads_samples);
        EXPECT_EQ(pin.holds_memory(), !is_first && cache == Cache::none && !reads_samples);
        EXPECT_EQ(pin.hit(), reads_samples);
        EXPECT_TRUE(is_known(opened->sample(2, wanted, pin.held(), room), 2 * kInChunk + wanted));
      }
      const ChunkCache::Pin pin = opened->acquire(2, scratch);
      EXPECT_TRUE(pin.hit());
      EXPECT_EQ(opened->stats().fetches, reads_samples ? 0u : 1u);
    }
}

// Chunks come and go in the memory that they arrived in, which is used again.
TEST_F(ChunkStates, AReceivedChunkGivesItsMemoryBack) {
  const RangeServer server(part_.path());
  const ChunkSet chunks = raw_chunks(part_, &server);
  Used used(chunks, {.cache = Cache::none, .kept_chunks = 1, .prepared = {.max_asked = 2}});
  EXPECT_TRUE(used->can_ask());
  std::set<const std::uint8_t*> memory;
  ByteBuffer scratch, room;
  for (int pass = 0; pass < 3; ++pass)
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
      if (chunk % 2 == 0) used->ask(chunk);
      const ChunkCache::Pin pin = used->acquire(chunk, scratch);
      EXPECT_FALSE(pin.hit());
      EXPECT_TRUE(is_known(used->sample(chunk, 3, pin.held(), room), chunk * kInChunk + 3));
      memory.insert(pin.samples());
      EXPECT_TRUE(used->acquire(chunk, scratch).hit());
    }
  EXPECT_LE(memory.size(), 3u);
  EXPECT_EQ(scratch.size(), 0u) << "copied";
  EXPECT_EQ(used->stats().prepared.remote_bytes, 3 * kChunks * kInChunk * kSampleBytes);
  used->ask(0);
  EXPECT_TRUE(used->forget_asked());
  EXPECT_FALSE(used->acquire(0, scratch).hit());
}

}  // namespace
}  // namespace chunkhit
