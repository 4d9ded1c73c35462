#include "batch/epoch_order.h"

#include <algorithm>

#include "base/random.h"

namespace chunkhit {
namespace {
// Listing more would take longer than the first samples of the window may wait.
constexpr std::uint64_t kMaxListedChunks = 4096;
}  // namespace

EpochOrder::EpochOrder(const ChunkGrid& grid, const OrderSpec& spec, std::uint64_t epoch)
    : shuffle_(spec.shuffle),
      window_chunks_(spec.window_chunks),
      window_seed_(random_bits(spec.seed, Purpose::window_order, epoch)),
      shuffled_(spec.shuffle == Shuffle::window ? grid.chunk_count() : grid.sample_count(),
                random_bits(spec.seed, Purpose::epoch_order, epoch)),
      slots_(spec.shuffle == Shuffle::window ? grid.reordered(shuffled_) : grid) {}

ChunkGrid::Place EpochOrder::operator()(std::uint64_t place, Window& window) const {
  if (shuffle_ != Shuffle::window) return find_outside_windows(place);
  // Unsigned, so that one comparison sees both sides.
  const bool inside = place - window.first_place_ < window.end_place_ - window.first_place_;
  if (!inside || window.window_seed_ != window_seed_) {
    enter_window(place, window);
    list_chunks(window);
  }
  return find_in(window, place);
}

ChunkGrid::Place EpochOrder::operator()(std::uint64_t place) const {
  if (shuffle_ != Shuffle::window) return find_outside_windows(place);
  Window window;
  enter_window(place, window);
  return find_in(window, place);
}

ChunkGrid::Place EpochOrder::find_outside_windows(std::uint64_t place) const {
  return slots_.find(shuffle_ == Shuffle::none ? place : shuffled_(place));
}

ChunkGrid::Place EpochOrder::find_in(const Window& window, std::uint64_t place) const {
  const std::uint64_t unmixed = window.first_place_ + window.places_(place - window.first_place_);
  const ChunkGrid::Place found = slots_.find(unmixed);
  return {window.chunks_.empty() ? shuffled_(found.chunk) : window.chunks_[found.chunk - window.first_slot_],
          found.in_chunk};
}

std::uint64_t EpochOrder::chunk_at(std::uint64_t slot) const {
  return shuffle_ == Shuffle::window ? shuffled_(slot) : slot;
}

EpochOrder::Slots EpochOrder::slots_of(std::uint64_t first_place, std::uint64_t end_place) const {
  if (shuffle_ == Shuffle::global) return {0, slots_.chunk_count()};
  if (first_place >= slots_.sample_count()) return {slots_.chunk_count(), slots_.chunk_count()};
  const std::uint64_t place_slot = slots_.find(first_place).chunk;
  const std::uint64_t first = shuffle_ == Shuffle::window ? window_start(place_slot) : place_slot;
  if (first_place >= end_place) return {first, first};
  const std::uint64_t last = slots_.find(end_place - 1).chunk;
  return {first, shuffle_ == Shuffle::window ? window_end(window_start(last)) : last + 1};
}

std::uint64_t EpochOrder::window_end(std::uint64_t first_slot) const {
  return std::min(first_slot + window_chunks_, slots_.chunk_count());
}

void EpochOrder::enter_window(std::uint64_t place, Window& window) const {
  const std::uint64_t first_slot = window_start(slots_.find(place).chunk);
  window.window_seed_ = window_seed_;
  window.first_slot_ = first_slot;
  window.first_place_ = slots_.first_sample(first_slot);
  window.end_place_ = slots_.first_sample(window_end(first_slot));
  window.places_ = Permutation(window.end_place_ - window.first_place_,
                               random_bits(window_seed_, Purpose::window_order, first_slot / window_chunks_));
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
                               : info.chunks_in_window * grid.chunk_samples();
  if (grid.sample_count() < 2) return info;
  const auto samples = static_cast<double>(grid.sample_count());
  const auto chunks = static_cast<double>(info.chunks);
  // Chunk after chunk, only a chunk's last sample has a neighbour from another one.
  const double unmixed = (samples - chunks) / (samples - 1);
  // In a window of n samples a place's successor is any other sample alike: Σ c (c - 1) / n such pairs for
  // chunks of c.
  const std::uint64_t windows = (info.chunks + info.chunks_in_window - 1) / info.chunks_in_window;
  const double mixed = static_cast<double>(windows) * grid.pairs_in_chunks() / samples / (samples - 1);
  info.same_chunk_neighbors = info.chunks_in_window == 1 ? unmixed : std::min(mixed, unmixed);
  return info;
}

}  // namespace chunkhit
