#include "batch/chunk_grid.h"

#include <algorithm>
#include <string>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

std::uint64_t sum_of(std::span<const std::uint64_t> sample_counts) {
  std::uint64_t sum = 0;
  for (std::size_t chunk = 0; chunk < sample_counts.size(); ++chunk) {
    if (sample_counts[chunk] == 0)
      throw Error(ErrorCode::bad_data, "chunk " + std::to_string(chunk) + ": has no samples");
    if (__builtin_add_overflow(sum, sample_counts[chunk], &sum))
      throw Error(ErrorCode::bad_data, "chunk " + std::to_string(chunk) + ": more than 2^64 samples");
  }
  return sum;
}

// The value that comes most often; the smallest of several.
std::uint64_t max_frequent(std::span<const std::uint64_t> values) {
  std::vector<std::uint64_t> sorted(values.begin(), values.end());
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

ChunkGrid::ChunkGrid(std::span<const std::uint64_t> sample_counts)
    : chunk_count_(sample_counts.size()),
      sample_count_(sum_of(sample_counts)),
      chunk_samples_(max_frequent(sample_counts)) {
  for (std::size_t chunk = 0; chunk < sample_counts.size(); ++chunk)
    if (sample_counts[chunk] != chunk_samples_) exceptions_.push_back({chunk, sample_counts[chunk], 0});
  place_exceptions();
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

ChunkGrid::Place ChunkGrid::find(std::uint64_t sample) const {
  const auto after =
      std::partition_point(exceptions_.begin(), exceptions_.end(),
                           [&](const Exception& exception) { return exception.first_sample <= sample; });
  if (after == exceptions_.begin()) return {sample / chunk_samples_, sample % chunk_samples_};
  const Exception& before = *std::prev(after);
  if (sample < before.end_sample()) return {before.chunk, sample - before.first_sample};
  const std::uint64_t rest = sample - before.end_sample();
  return {before.chunk + 1 + rest / chunk_samples_, rest % chunk_samples_};
}

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

}  // namespace chunkhit
