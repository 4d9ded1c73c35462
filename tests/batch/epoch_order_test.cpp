#include "batch/epoch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "batch/loader_order.h"

namespace chunkhit {
namespace {

using Counts = std::vector<std::uint64_t>;

constexpr Shuffle kShuffles[] = {Shuffle::none, Shuffle::window, Shuffle::global};

const std::vector<Counts>& grids() {
  static const std::vector<Counts> all{
      {1},          {7},          {1, 1, 1, 1},          Counts(40, 5),
      {5, 5, 5, 2}, {2, 5, 5, 5}, {5, 5, 1, 5, 9, 5, 5}, {3, 1, 4, 1, 5, 9, 2, 6}};
  return all;
}

Counts samples_of(const ChunkGrid& grid, const EpochOrder& order) {
  Counts samples;
  EpochOrder::Window window;
  for (std::uint64_t position = 0; position < grid.sample_count(); ++position) {
    const DrawnSample found = order(position, window);
    samples.push_back(grid.first_sample(found.chunk) + found.in_chunk);
  }
  return samples;
}

Counts samples_of(const Counts& counts, const OrderSpec& spec, std::uint64_t epoch = 0) {
  const ChunkGrid grid(counts);
  return samples_of(grid, EpochOrder(grid, spec, epoch));
}

TEST(EpochOrder, UsesEverySampleOnce) {
  for (const Counts& counts : grids())
    for (const Shuffle shuffle : kShuffles)
      for (const std::uint32_t window_chunks : {1u, 2u, 3u, 64u}) {
        Counts samples = samples_of(counts, {shuffle, 5, window_chunks}, 3);
        std::sort(samples.begin(), samples.end());
        Counts expected(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
        std::iota(expected.begin(), expected.end(), 0u);
        ASSERT_EQ(samples, expected) << window_chunks;
      }
}

TEST(EpochOrder, OfNoneIsTheSourcesOrder) {
  const Counts samples = samples_of({3, 1, 4, 1, 5}, {Shuffle::none, 5, 2}, 3);
  EXPECT_TRUE(std::is_sorted(samples.begin(), samples.end()));
}

TEST(EpochOrder, ChangesWithSeedAndEpoch) {
  for (const Shuffle shuffle : {Shuffle::window, Shuffle::global}) {
    const Counts first = samples_of(Counts(40, 5), {shuffle, 5, 4}, 0);
    EXPECT_EQ(samples_of(Counts(40, 5), {shuffle, 5, 4}, 0), first);
    EXPECT_NE(samples_of(Counts(40, 5), {shuffle, 5, 4}, 1), first);
    EXPECT_NE(samples_of(Counts(40, 5), {shuffle, 6, 4}, 0), first);
  }
}

// The order of an epoch is a format: these are for ever. Expected: tests/batch/order_test.py's arithmetic.
TEST(EpochOrder, KeepsItsOrder) {
  const Counts counts{3, 3, 2, 3};
  EXPECT_EQ(samples_of(counts, {Shuffle::window, 7, 2}, 0), (Counts{0, 1, 10, 9, 2, 8, 3, 4, 7, 5, 6}));
  EXPECT_EQ(samples_of(counts, {Shuffle::window, 7, 2}, 1), (Counts{5, 3, 9, 8, 10, 4, 6, 1, 7, 2, 0}));
  EXPECT_EQ(samples_of(counts, {Shuffle::global, 7, 2}, 0), (Counts{4, 1, 2, 0, 3, 9, 5, 7, 6, 8, 10}));
}

TEST(EpochOrder, GivesTheSameWithAndWithoutARememberedWindow) {
  const ChunkGrid grid(Counts{5, 5, 1, 5, 9, 5, 5});
  const EpochOrder order(grid, {Shuffle::window, 1, 2}, 0);
  EpochOrder::Window window;
  for (std::uint64_t step = 0; step < grid.sample_count(); ++step) {
    const std::uint64_t position = step * 11 % grid.sample_count();
    ASSERT_EQ(order(position, window), order(position)) << position;
  }
}

TEST(EpochOrder, NoticesAWindowOfAnotherEpochOrSeed) {
  const ChunkGrid grid(Counts{5, 5, 1, 5, 9, 5, 5});
  EpochOrder::Window window;
  for (std::uint64_t step = 0; step < 30; ++step) {
    const EpochOrder order(grid, {Shuffle::window, step % 2, 7}, step % 3);
    ASSERT_EQ(order(step, window), order(step)) << step;
  }
}

// Windows of so many chunks are not listed.
TEST(EpochOrder, GivesTheSameInAWindowOfThousandsOfChunks) {
  for (const std::uint64_t chunk_count : {4'096u, 4'097u}) {
    const ChunkGrid grid(Counts(chunk_count, 2));
    const EpochOrder order(grid, {Shuffle::window, 1, 1'000'000}, 0);
    EpochOrder::Window window;
    for (std::uint64_t position = 0; position < grid.sample_count(); ++position)
      ASSERT_EQ(order(position, window), order(position)) << position;
  }
}

TEST(EpochOrder, NeedsTheSlotsItNamesAndNoOthers) {
  for (const Counts& counts : grids())
    for (const Shuffle shuffle : {Shuffle::none, Shuffle::window})
      for (const std::uint32_t window_chunks : {1u, 3u}) {
        const ChunkGrid grid(counts);
        const EpochOrder order(grid, {shuffle, 5, window_chunks}, 2);
        std::uint64_t min_end = 0;
        for (std::uint64_t position = 0; position < grid.sample_count(); ++position) {
          const EpochOrder::Slots slots = order.slots_of(position, position + 1);
          std::set<std::uint64_t> chunks;
          for (std::uint64_t slot = slots.first; slot < slots.end; ++slot)
            chunks.insert(order.chunk_at(slot));
          ASSERT_EQ(chunks.size(), slots.end - slots.first);
          ASSERT_TRUE(chunks.contains(order(position).chunk));
          ASSERT_LE(chunks.size(), shuffle == Shuffle::none ? 1 : window_chunks);
          ASSERT_LE(min_end, slots.end);
          min_end = slots.end;
        }
        EXPECT_EQ(order.slots_of(0, grid.sample_count()), (EpochOrder::Slots{0, grid.chunk_count()}));
      }
}

TEST(StreamedOrder, NeedsTheSlotsItNames) {
  for (const Counts& counts : grids())
    for (const Shuffle shuffle : {Shuffle::none, Shuffle::window})
      for (const std::uint64_t own : {1, 2, 3}) {
        const ChunkGrid grid(counts);
        const LoaderOrder order(grid, {shuffle, 5, 4}, {});
        const RankStreams streams{{6, 2}, 2, own};
        const auto epoch = order.epoch(2, streams);
        const StreamGrid division(grid.sample_count(), streams.all);
        PositionOrder::Window window;
        std::uint64_t min_end = 0, found = 0;
        for (std::uint64_t position = 0; position < grid.sample_count(); ++position) {
          const std::uint64_t stream = division.find(position).stream;
          if (stream < streams.first || stream >= streams.first + own) continue;
          const PositionOrder::Slots slots = epoch->slots_of(position, position + 1);
          std::set<std::uint64_t> chunks;
          for (std::uint64_t slot = slots.first; slot < slots.end; ++slot)
            chunks.insert(epoch->chunk_at(slot));
          ASSERT_TRUE(chunks.contains((*epoch)(position, window).chunk)) << position;
          ASSERT_LE(min_end, slots.end);
          min_end = slots.end;
          ++found;
        }
        EXPECT_GT(found + 6, own * (grid.sample_count() / 6));
        EXPECT_EQ(epoch->slots_of(grid.sample_count(), grid.sample_count()).first,
                  epoch->slots_of(0, grid.sample_count()).end);
      }
}

TEST(EpochOrder, OfNoPlacesNeedsNoSlots) {
  const ChunkGrid grid(Counts(10, 5));
  const EpochOrder order(grid, {Shuffle::window, 5, 4}, 0);
  EXPECT_EQ(order.slots_of(25, 25), (EpochOrder::Slots{4, 4}));
  EXPECT_EQ(order.slots_of(50, 50), (EpochOrder::Slots{10, 10}));
  const ChunkGrid nothing{Counts{}};
  EXPECT_EQ(EpochOrder(nothing, {Shuffle::window, 5, 4}, 0).slots_of(0, 0), (EpochOrder::Slots{0, 0}));
}

TEST(EpochOrder, FinishesAWindowBeforeTheNextBegins) {
  const ChunkGrid grid(Counts{5, 5, 1, 5, 9, 5, 5});
  const EpochOrder order(grid, {Shuffle::window, 3, 3}, 0);
  std::uint64_t position = 0;
  for (std::uint64_t first_slot = 0; first_slot < grid.chunk_count(); first_slot += 3) {
    std::multiset<std::uint64_t> expected;
    std::multiset<std::uint64_t> found;
    for (std::uint64_t slot = first_slot; slot < std::min<std::uint64_t>(first_slot + 3, 7); ++slot)
      for (std::uint64_t i = 0; i < grid.sample_count_of(order.chunk_at(slot)); ++i)
        expected.insert(order.chunk_at(slot));
    for (std::size_t i = 0; i < expected.size(); ++i) found.insert(order(position++).chunk);
    EXPECT_EQ(found, expected) << first_slot;
  }
}

// Four threads with one order between them; ThreadSanitizer watches in the tsan preset.
TEST(EpochOrder, GivesEveryThreadTheSame) {
  const ChunkGrid grid(Counts(50, 7));
  const EpochOrder order(grid, {Shuffle::window, 3, 8}, 0);
  const Counts expected = samples_of(grid, order);
  std::vector<Counts> found(4);
  {
    std::vector<std::jthread> threads;
    for (Counts& samples : found) threads.emplace_back([&] { samples = samples_of(grid, order); });
  }
  for (const Counts& samples : found) EXPECT_EQ(samples, expected);
}

/// The share of neighbours from one chunk, over epochs.
double simulated(const Counts& counts, const OrderSpec& spec, std::uint64_t epochs) {
  const ChunkGrid grid(counts);
  std::uint64_t same = 0;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const Counts samples = samples_of(grid, EpochOrder(grid, spec, epoch));
    for (std::size_t i = 1; i < samples.size(); ++i)
      same += grid.find(samples[i - 1]).chunk == grid.find(samples[i]).chunk ? 1 : 0;
  }
  return static_cast<double>(same) / static_cast<double>(epochs * (grid.sample_count() - 1));
}

TEST(Mixing, IsWhatASimulationFinds) {
  for (const Counts& counts : {Counts(32, 20), Counts{20, 20, 20, 20, 20, 20, 20, 20, 20, 11}})
    for (const Shuffle shuffle : kShuffles)
      for (const std::uint32_t window_chunks : {1u, 4u, 7u, 64u}) {
        const OrderSpec spec{shuffle, 1, window_chunks};
        EXPECT_NEAR(mixing_of(ChunkGrid(counts), spec).same_chunk_neighbors, simulated(counts, spec, 600),
                    0.003)
            << counts.size() << " " << static_cast<int>(shuffle) << " " << window_chunks;
      }
}

TEST(Mixing, TellsWhatAWindowHolds) {
  const MixingInfo some = mixing_of(ChunkGrid(Counts(32, 20)), {Shuffle::window, 1, 5});
  EXPECT_EQ(some.chunks, 32u);
  EXPECT_EQ(some.chunks_in_window, 5u);
  EXPECT_EQ(some.samples_in_window, 100u);
  const MixingInfo all = mixing_of(ChunkGrid(Counts{20, 20, 7}), {Shuffle::window, 1, 64});
  EXPECT_EQ(all.chunks_in_window, 3u);
  EXPECT_EQ(all.samples_in_window, 47u);
  EXPECT_EQ(mixing_of(ChunkGrid(Counts{1}), {Shuffle::none, 1, 64}).same_chunk_neighbors, 0);
  EXPECT_EQ(mixing_of(ChunkGrid(Counts{}), {Shuffle::window, 1, 64}).samples_in_window, 0u);
}

}  // namespace
}  // namespace chunkhit
