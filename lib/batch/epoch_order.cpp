#include "batch/epoch_order.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "base/random.h"
#include "batch/sampler.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {
constexpr std::uint64_t kKeyStride = 0x9e3779b97f4a7c15u;  // SplitMix64's
}

Permutation::Permutation(std::uint64_t count, std::uint64_t key)
    : count_(count),
      step_count_(count <= kFewNumbers ? kStepsOfFew : kSteps),
      low_bits_(count == 0 ? 0 : static_cast<std::uint32_t>(std::bit_width(count - 1) + 1) / 2),
      low_mask_((std::uint64_t{1} << low_bits_) - 1),
      high_count_(count == 0 ? 1 : ((count - 1) >> low_bits_) + 1),
      step_keys_() {
  const std::uint64_t start = mix_bits(key);
  for (std::size_t step = 0; step < step_count_; ++step)
    step_keys_[step] = mix_bits(start + kKeyStride * (step + 1));
}

/// Cycle walking: the Feistel network permutes a slightly larger range; numbers outside are permuted again.
std::uint64_t Permutation::operator()(std::uint64_t index) const {
  do index = apply_steps(index);
  while (index >= count_);
  return index;
}

std::uint64_t Permutation::inverse(std::uint64_t position) const {
  do position = undo_steps(position);
  while (position >= count_);
  return position;
}

/// An unbalanced Feistel network of two halves: each step adds a hash of one half to the other, modulo its
/// range.
std::uint64_t Permutation::apply_steps(std::uint64_t number) const {
  std::uint64_t low = number & low_mask_;
  std::uint64_t high = number >> low_bits_;
  for (std::size_t step = 0; step < step_count_; step += 2) {
    low = (low + mix_bits(step_keys_[step] ^ high)) & low_mask_;
    high += high_shift(low, step_keys_[step + 1]);
    high -= high >= high_count_ ? high_count_ : 0;
  }
  return high << low_bits_ | low;
}

std::uint64_t Permutation::undo_steps(std::uint64_t number) const {
  std::uint64_t low = number & low_mask_;
  std::uint64_t high = number >> low_bits_;
  for (std::size_t step = step_count_; step > 0; step -= 2) {
    const std::uint64_t shift = high_shift(low, step_keys_[step - 1]);
    high += high < shift ? high_count_ - shift : std::uint64_t{0} - shift;
    low = (low - mix_bits(step_keys_[step - 2] ^ high)) & low_mask_;
  }
  return high << low_bits_ | low;
}

/// Maps a hash to [0, high_count) by multiplying, without the bias and cost of a modulo.
std::uint64_t Permutation::high_shift(std::uint64_t low, std::uint64_t step_key) const {
  return static_cast<std::uint64_t>(
      (static_cast<unsigned __int128>(mix_bits(step_key ^ low)) * high_count_) >> 64);
}

namespace {

/// Sums the samples; throws bad_data for an empty chunk or an overflow.
std::uint64_t sum_of(std::span<const std::uint64_t> sample_counts, bool may_be_empty) {
  std::uint64_t sum = 0;
  for (std::size_t chunk = 0; chunk < sample_counts.size(); ++chunk) {
    if (sample_counts[chunk] == 0 && !may_be_empty)
      throw Error(ErrorCode::bad_data, "chunk " + std::to_string(chunk) + ": has no samples");
    if (__builtin_add_overflow(sum, sample_counts[chunk], &sum))
      throw Error(ErrorCode::bad_data, "chunk " + std::to_string(chunk) + ": more than 2^64 samples");
  }
  return sum;
}

// Returns the most frequent value but 0, the smallest one of several.
std::uint64_t max_frequent(std::span<const std::uint64_t> values) {
  std::vector<std::uint64_t> sorted(values.begin(), values.end());
  std::erase(sorted, std::uint64_t{0});
  std::sort(sorted.begin(), sorted.end());
  std::uint64_t winner = 0;
  std::ptrdiff_t most = 0;
  for (auto first = sorted.begin(); first != sorted.end();) {
    const auto end = std::upper_bound(first, sorted.end(), *first);
    if (end - first > most) {
      most = end - first;
      winner = *first;
    }
    first = end;
  }
  return winner;
}

}  // namespace

/// Keeps only the chunks whose size differs from the usual one: typically the last of each part.
ChunkGrid::ChunkGrid(std::span<const std::uint64_t> sample_counts, bool may_be_empty)
    : chunk_count_(sample_counts.size()),
      sample_count_(sum_of(sample_counts, may_be_empty)),
      chunk_samples_(max_frequent(sample_counts)) {
  for (std::size_t chunk = 0; chunk < sample_counts.size(); ++chunk)
    if (sample_counts[chunk] != chunk_samples_) exceptions_.push_back({chunk, sample_counts[chunk], 0});
  place_exceptions();
}

std::uint64_t ChunkGrid::typical_samples() const {
  if (2 * exceptions_.size() <= chunk_count_) return chunk_samples_;
  return std::max<std::uint64_t>(1, sample_count_ / chunk_count_);
}

void ChunkGrid::place_exceptions() {
  std::uint64_t next_chunk = 0;
  std::uint64_t next_sample = 0;
  for (Exception& exception : exceptions_) {
    exception.first_sample = next_sample + (exception.chunk - next_chunk) * chunk_samples_;
    next_chunk = exception.chunk + 1;
    next_sample = exception.end_sample();
  }
}

std::uint64_t ChunkGrid::first_sample(std::uint64_t chunk) const {
  const auto after =
      std::partition_point(exceptions_.begin(), exceptions_.end(),
                           [&](const Exception& exception) { return exception.chunk < chunk; });
  if (after == exceptions_.begin()) return chunk * chunk_samples_;
  const Exception& before = *std::prev(after);
  return before.end_sample() + (chunk - before.chunk - 1) * chunk_samples_;
}

std::uint64_t ChunkGrid::sample_count_of(std::uint64_t chunk) const {
  const auto found =
      std::partition_point(exceptions_.begin(), exceptions_.end(),
                           [&](const Exception& exception) { return exception.chunk < chunk; });
  return found != exceptions_.end() && found->chunk == chunk ? found->sample_count : chunk_samples_;
}

ChunkGrid::Location ChunkGrid::find(std::uint64_t sample) const {
  const auto after =
      std::partition_point(exceptions_.begin(), exceptions_.end(),
                           [&](const Exception& exception) { return exception.first_sample <= sample; });
  if (after == exceptions_.begin()) return {sample / chunk_samples_, sample % chunk_samples_};
  const Exception& before = *std::prev(after);
  if (sample < before.end_sample()) return {before.chunk, sample - before.first_sample};
  const std::uint64_t rest = sample - before.end_sample();
  return {before.chunk + 1 + rest / chunk_samples_, rest % chunk_samples_};
}

/// Returns the grid with chunks in the order visited, so that positions map to visits.
ChunkGrid ChunkGrid::reordered(const Permutation& visited) const {
  ChunkGrid other = *this;
  for (Exception& exception : other.exceptions_) exception.chunk = visited.inverse(exception.chunk);
  std::sort(other.exceptions_.begin(), other.exceptions_.end(),
            [](const Exception& a, const Exception& b) { return a.chunk < b.chunk; });
  other.place_exceptions();
  return other;
}

double ChunkGrid::pairs_in_chunks() const {
  const auto pairs = [](std::uint64_t count) {
    return static_cast<double>(count) * (static_cast<double>(count) - 1);
  };
  double sum = static_cast<double>(chunk_count_ - exceptions_.size()) * pairs(chunk_samples_);
  for (const Exception& exception : exceptions_) sum += pairs(exception.sample_count);
  return sum;
}

namespace {
// Listing more chunks would delay the first samples of a window too long.
constexpr std::uint64_t kMaxListedChunks = 4096;
}  // namespace

EpochOrder::EpochOrder(const ChunkGrid& grid, const OrderSpec& spec, std::uint64_t epoch)
    : shuffle_(spec.shuffle),
      window_chunks_(spec.window_chunks),
      window_seed_(random_bits(spec.seed, Purpose::window_order, epoch)),
      window_id_(window_seed_),
      shuffled_(spec.shuffle == Shuffle::window ? grid.chunk_count() : grid.sample_count(),
                random_bits(spec.seed, Purpose::epoch_order, epoch)),
      slots_(std::make_shared<const ChunkGrid>(spec.shuffle == Shuffle::window ? grid.reordered(shuffled_)
                                                                               : grid)),
      span_{0, grid.sample_count()},
      first_slot_(0),
      end_slot_(grid.chunk_count()) {}

EpochOrder::EpochOrder(std::shared_ptr<const EpochSamples> samples, const OrderSpec& spec,
                       std::uint64_t epoch)
    : EpochOrder(samples->grid(), spec, epoch) {
  samples_ = std::move(samples);
}

/// The windows of the first stream have the keys that those of an epoch without streams have.
EpochOrder EpochOrder::stream(const StreamOf& stream) const {
  EpochOrder one = *this;
  const std::uint64_t samples = slots_->sample_count();
  one.window_chunks_ = (window_chunks_ - 1) / stream.count + 1;
  if (stream.number > 0) one.window_seed_ = random_bits(window_seed_, Purpose::stream_order, stream.number);
  one.window_id_ = random_bits(one.window_seed_, Purpose::stream_order, stream.count);
  one.span_ = {stream.first_of(samples), stream.end_of(samples)};
  one.first_slot_ = one.span_.first < samples ? slots_->find(one.span_.first).chunk : slots_->chunk_count();
  one.end_slot_ = one.position_count() > 0 ? slots_->find(one.span_.end - 1).chunk + 1 : one.first_slot_;
  return one;
}

DrawnSample EpochOrder::operator()(std::uint64_t position, Window& window) const {
  const std::uint64_t listed = span_.first + position;
  if (shuffle_ != Shuffle::window) return find_outside_windows(listed);
  // Unsigned: the subtraction wraps, so that one comparison checks both bounds.
  const bool inside = listed - window.first_position_ < window.end_position_ - window.first_position_;
  if (!inside || window.window_id_ != window_id_) {
    enter_window(listed, window);
    list_chunks(window);
  }
  return find_in(window, listed);
}

DrawnSample EpochOrder::operator()(std::uint64_t position) const {
  const std::uint64_t listed = span_.first + position;
  if (shuffle_ != Shuffle::window) return find_outside_windows(listed);
  Window window;
  enter_window(listed, window);
  return find_in(window, listed);
}

DrawnSample EpochOrder::drawn(std::uint64_t visit, std::uint64_t at) const {
  return samples_ ? samples_->find(visit, at) : DrawnSample{visit, at, 0};
}

DrawnSample EpochOrder::find_outside_windows(std::uint64_t listed) const {
  const ChunkGrid::Location found = slots_->find(shuffle_ == Shuffle::none ? listed : shuffled_(listed));
  return drawn(found.chunk, found.in_chunk);
}

DrawnSample EpochOrder::find_in(const Window& window, std::uint64_t listed) const {
  const std::uint64_t unmixed = window.first_position_ + window.positions_(listed - window.first_position_);
  const ChunkGrid::Location found = slots_->find(unmixed);
  return drawn(
      window.chunks_.empty() ? shuffled_(found.chunk) : window.chunks_[found.chunk - window.first_slot_],
      found.in_chunk);
}

std::uint64_t EpochOrder::chunk_at(std::uint64_t slot) const {
  const std::uint64_t visit = shuffle_ == Shuffle::window ? shuffled_(slot) : slot;
  return samples_ ? samples_->chunk(visit) : visit;
}

EpochOrder::Slots EpochOrder::slots_of(std::uint64_t first_position, std::uint64_t end_position) const {
  if (shuffle_ == Shuffle::global) return {0, slots_->chunk_count()};
  if (first_position >= span_.end - span_.first) return {end_slot_, end_slot_};
  const std::uint64_t first_visit = slots_->find(span_.first + first_position).chunk;
  const std::uint64_t first = shuffle_ == Shuffle::window ? window_start(first_visit) : first_visit;
  if (first_position >= end_position) return {first, first};
  const std::uint64_t last = slots_->find(span_.first + end_position - 1).chunk;
  return {first, shuffle_ == Shuffle::window ? window_end(window_start(last)) : last + 1};
}

void EpochOrder::for_each_slot(const Visit& visit) const {
  for (std::uint64_t slot = first_slot_; slot < end_slot_; ++slot) {
    const Positions listed = listed_positions_of(slot);
    if (listed.first == listed.end) continue;
    visit({listed.first - span_.first, listed.end - span_.first}, chunk_at(slot));
  }
}

EpochOrder::Positions EpochOrder::listed_positions_of(std::uint64_t slot) const {
  const std::uint64_t first = shuffle_ == Shuffle::window ? window_start(slot) : slot;
  const std::uint64_t end = shuffle_ == Shuffle::window ? window_end(first) : slot + 1;
  return {std::max(span_.first, slots_->first_sample(first)), std::min(span_.end, slots_->first_sample(end))};
}

std::uint64_t EpochOrder::window_end(std::uint64_t first_slot) const {
  return std::min(first_slot + window_chunks_, end_slot_);
}

void EpochOrder::enter_window(std::uint64_t listed, Window& window) const {
  const std::uint64_t first_slot = window_start(slots_->find(listed).chunk);
  const Positions positions = listed_positions_of(first_slot);
  window.window_id_ = window_id_;
  window.first_slot_ = first_slot;
  window.first_position_ = positions.first;
  window.end_position_ = positions.end;
  window.positions_ = Permutation(
      positions.end - positions.first,
      random_bits(window_seed_, Purpose::window_order, (first_slot - first_slot_) / window_chunks_));
}

void EpochOrder::list_chunks(Window& window) const {
  window.chunks_.clear();
  const std::uint64_t end = window_end(window.first_slot_);
  if (end - window.first_slot_ > kMaxListedChunks) return;
  for (std::uint64_t slot = window.first_slot_; slot < end; ++slot) window.chunks_.push_back(shuffled_(slot));
}

MixingInfo mixing_of(const ChunkGrid& grid, const OrderSpec& spec) {
  MixingInfo info;
  info.chunks = grid.chunk_count();
  info.chunks_in_window = spec.shuffle == Shuffle::none ? std::min<std::uint64_t>(1, info.chunks)
                          : spec.shuffle == Shuffle::global
                              ? info.chunks
                              : std::min<std::uint64_t>(spec.window_chunks, info.chunks);
  info.samples_in_window = info.chunks_in_window == info.chunks
                               ? grid.sample_count()
                               : info.chunks_in_window * grid.typical_samples();
  if (grid.sample_count() < 2) return info;
  const auto samples = static_cast<double>(grid.sample_count());
  const auto chunks = static_cast<double>(info.chunks);
  // Read in sequence, only the last sample of a chunk is followed by one of another chunk. More chunks than
  // samples have some without any.
  const double unmixed = std::max(0.0, (samples - chunks) / (samples - 1));
  // In a window of n samples a position's successor is any other sample alike: Σ c (c - 1) / n such pairs for
  // chunks of c.
  const std::uint64_t windows = (info.chunks + info.chunks_in_window - 1) / info.chunks_in_window;
  const double mixed = static_cast<double>(windows) * grid.pairs_in_chunks() / samples / (samples - 1);
  info.same_chunk_neighbors = info.chunks_in_window == 1 ? unmixed : std::min(mixed, unmixed);
  return info;
}

}  // namespace chunkhit
