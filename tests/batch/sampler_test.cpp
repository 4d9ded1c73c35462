// Draws of a sampler: counts within their bounds, and chances as the weights ask for.
#include "batch/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "batch/mixture.h"

namespace chunkhit {
namespace {

using Counts = std::vector<std::uint64_t>;

/// The samples of an epoch.
Counts samples_of(const ChunkGrid& grid, const EpochSamples& samples) {
  Counts found;
  for (std::uint64_t visit = 0; visit < samples.grid().chunk_count(); ++visit)
    for (std::uint64_t at = 0; at < samples.grid().sample_count_of(visit); ++at) {
      const DrawnSample drawn = samples.find(visit, at);
      found.push_back(grid.first_sample(drawn.chunk) + drawn.in_chunk);
    }
  return found;
}

const ChunkGrid kGrid(Counts{7, 7, 3, 7, 1});  // 25 samples

std::vector<double> uneven_weights() {
  std::vector<double> weights(25);
  for (std::size_t sample = 0; sample < weights.size(); ++sample)
    weights[sample] = sample % 6 == 5 ? 0 : std::exp(static_cast<double>(sample % 7));
  return weights;
}

TEST(Draws, ComeAsOftenAsTheirWeightAsksGiveOrTakeOne) {
  const std::vector<double> weights = uneven_weights();
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (const std::uint64_t draws : {1, 10, 25, 1000}) {
    const Sampler sampler(kGrid, {.weights = weights, .draws = true, .epoch_samples = draws}, 5);
    for (std::uint64_t epoch = 0; epoch < 50; ++epoch) {
      const Counts samples = samples_of(kGrid, *sampler.epoch(epoch));
      ASSERT_EQ(samples.size(), draws);
      ASSERT_TRUE(std::ranges::is_sorted(samples));
      for (std::uint64_t sample = 0; sample < weights.size(); ++sample) {
        const double expected = static_cast<double>(draws) * weights[sample] / sum;
        const auto count = static_cast<double>(std::ranges::count(samples, sample));
        EXPECT_GE(count, std::floor(expected) - 1) << sample;
        EXPECT_LE(count, weights[sample] == 0 ? 0 : std::ceil(expected) + 1) << sample;
      }
    }
  }
}

/// Sum of (found - expected)² / expected.
double chi_square(const Counts& found, const std::vector<double>& expected) {
  double sum = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    if (expected[i] > 0) sum += std::pow(static_cast<double>(found[i]) - expected[i], 2) / expected[i];
  return sum;
}

TEST(Draws, OfOneAnEpochHaveTheChancesOfTheirWeights) {
  const std::vector<double> weights = uneven_weights();
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  constexpr std::uint64_t kEpochs = 100'000;
  for (const bool replacement : {true, false}) {
    const Sampler sampler(
        kGrid, {.weights = weights, .draws = true, .replacement = replacement, .epoch_samples = 1}, 11);
    Counts counts(weights.size());
    for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch)
      for (const std::uint64_t sample : samples_of(kGrid, *sampler.epoch(epoch))) ++counts[sample];
    std::vector<double> expected(weights.size());
    for (std::size_t sample = 0; sample < weights.size(); ++sample)
      expected[sample] = kEpochs * weights[sample] / sum;
    // 20 degrees of freedom: 45.3 is exceeded once in a thousand times.
    EXPECT_LT(chi_square(counts, expected), 45.3) << replacement;
  }
}

TEST(Draws, WithoutReplacementHaveTheChancesOfDrawingOneAfterTheOther) {
  // Of weights 1, 2, 3 without replacement: pairs (a, b) in either order.
  const ChunkGrid grid(Counts{2, 1});
  const Sampler sampler(grid, {.weights = {1, 2, 3}, .draws = true, .replacement = false, .epoch_samples = 2},
                        3);
  constexpr std::uint64_t kEpochs = 60'000;
  Counts without(3);  // how often each one is left out
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const Counts samples = samples_of(grid, *sampler.epoch(epoch));
    ASSERT_EQ(samples.size(), 2u);
    ++without[3 - samples[0] - samples[1]];
  }
  const auto pair = [](double a, double b) { return a / 6 * b / (6 - a) + b / 6 * a / (6 - b); };
  const std::vector<double> expected{kEpochs * pair(2, 3), kEpochs * pair(1, 3), kEpochs * pair(1, 2)};
  EXPECT_LT(chi_square(without, expected), 13.8);  // 2 degrees of freedom, once in a thousand times
}

TEST(Draws, ExpectAsManyDifferentSamplesAsTheyHave) {
  const Sampler sampler(kGrid, {.weights = uneven_weights(), .draws = true, .epoch_samples = 25}, 5);
  double sum = 0;
  for (std::uint64_t epoch = 0; epoch < 2000; ++epoch) {
    Counts samples = samples_of(kGrid, *sampler.epoch(epoch));
    samples.erase(std::unique(samples.begin(), samples.end()), samples.end());
    sum += static_cast<double>(samples.size());
  }
  EXPECT_NEAR(sampler.distinct_samples(), sum / 2000, 0.1);
}

TEST(ShareSequence, HasItsSharesInEveryPrefixToWithinOne) {
  for (const std::vector<double>& weights : std::vector<std::vector<double>>{{0.7, 0.3},
                                                                             {1, 1, 1},
                                                                             {5},
                                                                             {0.6, 0.2, 0.1, 0.1},
                                                                             {100, 1, 1, 1, 1, 1},
                                                                             {3.14159, 2.71828, 0.001}}) {
    std::vector<MixtureShape::Source> sources;
    for (const double weight : weights) sources.push_back({"a", 0, 1, weight});
    const ShareSequence sequence(sources);
    const double period = static_cast<double>(
        std::accumulate(sequence.shares().begin(), sequence.shares().end(), std::uint64_t{0}));
    Counts counts(weights.size());
    for (std::uint64_t position = 0; position < 200'000; ++position) {
      const ShareSequence::Use use = sequence[position];
      ASSERT_EQ(use.number, counts[use.source]);
      ASSERT_EQ(sequence.position(use.source, use.number), position);
      ASSERT_EQ(sequence.count_before(use.source, position), counts[use.source]);
      ++counts[use.source];
      for (std::size_t source = 0; source < weights.size(); ++source)
        ASSERT_LT(std::abs(static_cast<double>(counts[source]) -
                           static_cast<double>(position + 1) *
                               static_cast<double>(sequence.shares()[source]) / period),
                  1.0);
    }
  }
}

TEST(Mixture, NeededMoreChunksInLaterEpochsThanItsFirstOne) {
  const ChunkGrid grid(std::vector<std::uint64_t>(23, 7));
  const OrderSpec spec{.shuffle = Shuffle::window, .seed = 3, .window_chunks = 3};
  const MixtureShape shape{
      {{"a", 0, 11, 0.5}, {"b", 11, 5, 0.3}, {"c", 16, 7, 0.2}}, MixtureShares::batch, 50};
  const Mixture mixture(grid, spec, shape, std::nullopt);
  std::uint64_t most = 0;
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch)
    most = std::max(most, MixedOrder(mixture, epoch).slots_needed(10));
  EXPECT_GT(most, MixedOrder(mixture, 0).slots_needed(10));
  EXPECT_EQ(mixture.chunks_needed(10), most);
}

TEST(ShareSequence, TakesTheLeastCommonDenominator) {
  const auto shares = [](const std::vector<double>& weights) {
    std::vector<MixtureShape::Source> sources;
    for (const double weight : weights) sources.push_back({"a", 0, 1, weight});
    return ShareSequence(sources).shares();
  };
  EXPECT_EQ(shares({0.7, 0.3}), (Counts{7, 3}));
  EXPECT_EQ(shares({1, 1, 1}), (Counts{1, 1, 1}));
  EXPECT_EQ(shares({0.123456, 0.876544}), (Counts{1929, 13696}));
  const Counts odd = shares({std::sqrt(2.0), std::sqrt(3.0), 1e-3});
  EXPECT_EQ(std::accumulate(odd.begin(), odd.end(), std::uint64_t{0}), 65'536u);
}

}  // namespace
}  // namespace chunkhit
