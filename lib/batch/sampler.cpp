#include "batch/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "base/exact_math.h"
#include "base/hash.h"
#include "base/random.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

/// Weights as whole numbers whose sum is near 2^62: exact sums make the draws the same on every machine.
std::vector<std::uint64_t> sums_of_whole_weights(const std::vector<double>& weights) {
  constexpr int kBits = 62;
  int exponent = 0;
  static_cast<void>(std::frexp(std::accumulate(weights.begin(), weights.end(), 0.0), &exponent));
  std::vector<std::uint64_t> sums{0};
  sums.reserve(weights.size() + 1);
  for (const double weight : weights) {
    const auto whole = static_cast<std::uint64_t>(std::floor(std::ldexp(weight, kBits - exponent)));
    sums.push_back(sums.back() + (weight > 0 ? std::max<std::uint64_t>(whole, 1) : 0));
  }
  return sums;
}

std::uint64_t hash_of(const std::vector<std::uint64_t>& numbers) {
  return xxh3(
      {reinterpret_cast<const std::uint8_t*>(numbers.data()), numbers.size() * sizeof(std::uint64_t)});
}

}  // namespace

WeightedDraws::WeightedDraws(const std::vector<double>& weights, std::uint64_t draw_count)
    : draw_count_(draw_count), ends_(sums_of_whole_weights(weights)), part_(ends_.back() / draw_count) {}

std::uint64_t WeightedDraws::point(std::uint64_t draw, std::uint64_t draw_seed) const {
  return draw * part_ + random_below(part_, draw_seed, Purpose::draw, draw);
}

std::uint64_t WeightedDraws::count_before(std::uint64_t sample, std::uint64_t draw_seed) const {
  const std::uint64_t draw = ends_[sample] / part_;
  if (draw >= draw_count_) return draw_count_;
  return draw + (point(draw, draw_seed) < ends_[sample] ? 1 : 0);
}

std::uint64_t WeightedDraws::sample(std::uint64_t draw, std::uint64_t draw_seed, std::uint64_t first,
                                    std::uint64_t end) const {
  const auto begin = ends_.begin() + static_cast<std::ptrdiff_t>(first) + 1;
  const auto last = ends_.begin() + static_cast<std::ptrdiff_t>(end) + 1;
  return static_cast<std::uint64_t>(std::upper_bound(begin, last, point(draw, draw_seed)) - ends_.begin()) -
         1;
}

/// A sample is missed by each part that it overlaps with the probability of what it leaves of it.
double WeightedDraws::distinct_samples() const {
  const auto part = static_cast<double>(part_);
  double distinct = 0;
  for (std::size_t sample = 0; sample + 1 < ends_.size(); ++sample) {
    const double begin = static_cast<double>(ends_[sample]) / part;
    const double end = static_cast<double>(ends_[sample + 1]) / part;
    if (begin == end) continue;
    const double first = std::floor(begin), last = std::ceil(end) - 1;
    const double missed = first == last      ? 1 - (end - begin)
                          : last - first > 1 ? 0
                                             : (begin - first) * (1 - (end - last));
    distinct += 1 - missed;
  }
  return distinct;
}

EpochSamples::EpochSamples(const ChunkGrid& source, const std::vector<std::uint64_t>& samples) {
  in_chunk_.reserve(samples.size());
  for (const std::uint64_t sample : samples) {
    if (visits_.empty() || sample >= visits_.back().end_sample) {
      const std::uint64_t chunk = source.find(sample).chunk;
      visits_.push_back(
          {chunk, in_chunk_.size(), source.first_sample(chunk), source.first_sample(chunk + 1)});
    }
    in_chunk_.push_back(static_cast<std::uint32_t>(sample - visits_.back().first_sample));
  }
  make_grid(samples.size());
}

EpochSamples::EpochSamples(const ChunkGrid& source, std::shared_ptr<const WeightedDraws> draws,
                           std::uint64_t draw_seed)
    : draws_(std::move(draws)), draw_seed_(draw_seed) {
  std::uint64_t first = 0;
  std::uint64_t first_sample = 0;
  for (std::uint64_t chunk = 0; chunk < source.chunk_count(); ++chunk) {
    const std::uint64_t end_sample = source.first_sample(chunk + 1);
    const std::uint64_t end = draws_->count_before(end_sample, draw_seed_);
    if (end > first) visits_.push_back({chunk, first, first_sample, end_sample});
    first = end;
    first_sample = end_sample;
  }
  make_grid(first);
}

void EpochSamples::make_grid(std::uint64_t sample_count) {
  std::vector<std::uint64_t> counts;
  counts.reserve(visits_.size());
  for (std::size_t visit = 0; visit < visits_.size(); ++visit)
    counts.push_back((visit + 1 < visits_.size() ? visits_[visit + 1].first : sample_count) -
                     visits_[visit].first);
  grid_.emplace(counts);
}

DrawnSample EpochSamples::find(std::uint64_t visit, std::uint64_t at) const {
  const Visit& found = visits_[visit];
  if (!draws_) return {found.chunk, in_chunk_[found.first + at], 0};
  const std::uint64_t draw = found.first + at;
  const std::uint64_t sample = draws_->sample(draw, draw_seed_, found.first_sample, found.end_sample);
  return {found.chunk, sample - found.first_sample, draw - draws_->count_before(sample, draw_seed_)};
}

namespace {

/// More draws would leave too few of the weights' bits to each.
constexpr std::uint64_t kMaxDraws = std::uint64_t{1} << 40;

/// The weights of all samples of the source, 0 outside the subset.
std::vector<double> weights_in_subset(const ChunkGrid& source, const DrawSpec& spec) {
  const auto weight = [&](std::uint64_t sample) { return spec.weights.empty() ? 1.0 : spec.weights[sample]; };
  std::vector<double> weights(source.sample_count(), 0.0);
  if (spec.subset)
    for (const std::uint64_t sample : *spec.subset) weights[sample] = weight(sample);
  else
    for (std::uint64_t sample = 0; sample < weights.size(); ++sample) weights[sample] = weight(sample);
  return weights;
}

void check_weights(const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (sum == 0) throw Error(ErrorCode::usage, "sampler: all samples have weight 0, expected one above 0");
  if (!std::isfinite(sum))
    throw Error(ErrorCode::usage, "sampler: the sum of the weights is above 1.8e308; divide them all");
}

/// Throws usage for an epoch of more samples than the draws can be.
void check_count(std::uint64_t epoch_samples, const std::vector<double>& weights, bool replacement) {
  const auto refuse = [&](std::uint64_t limit, const std::string& what) {
    if (epoch_samples <= limit) return;
    throw Error(ErrorCode::usage, "epoch_samples: " + std::to_string(epoch_samples) + ", expected at most " +
                                      std::to_string(limit) + what);
  };
  refuse(kMaxDraws, "");
  if (replacement) return;
  const auto positive = std::ranges::count_if(weights, [](double weight) { return weight > 0; });
  refuse(static_cast<std::uint64_t>(positive), ", the samples that have a weight: replacement is false");
}

}  // namespace

Sampler::Sampler(const ChunkGrid& source, const DrawSpec& spec, std::uint64_t seed)
    : source_(source), seed_(seed), replacement_(spec.replacement) {
  const std::uint64_t candidates = spec.subset ? spec.subset->size() : source.sample_count();
  epoch_samples_ = spec.epoch_samples == 0 || !spec.draws ? candidates : spec.epoch_samples;
  std::vector<std::uint64_t> drawn_from{spec.draws, spec.draws && replacement_, epoch_samples_};
  if (spec.draws) {
    const std::vector<double> weights = weights_in_subset(source, spec);
    check_weights(weights);
    check_count(epoch_samples_, weights, replacement_);
    draws_ = std::make_shared<const WeightedDraws>(weights, epoch_samples_);
    for (std::uint64_t sample = 0; sample < weights.size(); ++sample)
      drawn_from.push_back(draws_->weight(sample));
    first_ = make_epoch(0);
  } else {
    first_ = std::make_shared<const EpochSamples>(source, *spec.subset);
    drawn_from.insert(drawn_from.end(), spec.subset->begin(), spec.subset->end());
  }
  id_ = hash_of(drawn_from);
}

std::shared_ptr<const EpochSamples> Sampler::epoch(std::uint64_t epoch) const {
  return epoch == 0 || !draws_ ? first_ : make_epoch(epoch);
}

std::shared_ptr<const EpochSamples> Sampler::make_epoch(std::uint64_t epoch) const {
  if (!replacement_)
    return std::make_shared<const EpochSamples>(source_, choose(random_bits(seed_, Purpose::choice, epoch)));
  return std::make_shared<const EpochSamples>(source_, draws_, random_bits(seed_, Purpose::draw, epoch));
}

/// Chooses the samples with the smallest keys, which are exponentially distributed with their weights as
/// rates (Efraimidis and Spirakis 2006).
std::vector<std::uint64_t> Sampler::choose(std::uint64_t choice_seed) const {
  const std::uint64_t count = source_.sample_count();
  std::vector<double> keys(count, std::numeric_limits<double>::infinity());
  for (std::uint64_t sample = 0; sample < count; ++sample) {
    const std::uint64_t weight = draws_->weight(sample);
    if (weight == 0) continue;
    const std::uint64_t bits = random_bits(choice_seed, Purpose::choice, sample) >> 11;
    keys[sample] = -log_of(static_cast<double>(bits + 1) * 0x1p-53) / static_cast<double>(weight);
  }
  std::vector<double> sorted = keys;
  const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(epoch_samples_ - 1);
  std::nth_element(sorted.begin(), last, sorted.end());
  const double limit = *last;
  // Of equal keys the first samples are chosen.
  auto of_limit = epoch_samples_ - static_cast<std::uint64_t>(std::count_if(
                                       sorted.begin(), last, [&](double key) { return key < limit; }));
  std::vector<std::uint64_t> chosen;
  chosen.reserve(epoch_samples_);
  for (std::uint64_t sample = 0; sample < count; ++sample) {
    if (keys[sample] > limit || (keys[sample] == limit && of_limit == 0)) continue;
    if (keys[sample] == limit) --of_limit;
    chosen.push_back(sample);
  }
  return chosen;
}

double Sampler::distinct_samples() const {
  return draws_ && replacement_ ? draws_->distinct_samples() : static_cast<double>(epoch_samples_);
}

}  // namespace chunkhit
