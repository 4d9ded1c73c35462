#include "batch/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "base/random.h"
#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kMaxPeriod = 65'536;      // of a sequence
constexpr std::uint64_t kMaxOwnEpochs = 65'536;   // of a source, in an epoch
constexpr std::uint64_t kBlockPositions = 4'096;  // that are shuffled with MixtureShares::epoch

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::usage, "mixture: " + path + ": " + what);
}

std::vector<double> shares_of(const std::vector<MixtureShape::Source>& sources) {
  double sum = 0;
  for (const MixtureShape::Source& each : sources) {
    if (!(each.weight > 0) || !std::isfinite(each.weight))
      refuse(each.path, "weight " + std::to_string(each.weight) + ", expected a finite number above 0");
    sum += each.weight;
  }
  if (!std::isfinite(sum))
    throw Error(ErrorCode::usage, "mixture: the sum of the weights is above 1.8e308; divide them all");
  std::vector<double> shares(sources.size());
  std::ranges::transform(sources, shares.begin(), [=](const auto& each) { return each.weight / sum; });
  return shares;
}

/// Whole numbers nearest to period · share; empty where one of them is farther off than 1e-6.
std::vector<std::uint64_t> whole_shares(const std::vector<double>& shares, std::uint64_t period) {
  std::vector<std::uint64_t> whole;
  std::uint64_t sum = 0;
  for (const double share : shares) {
    const double exact = share * static_cast<double>(period), rounded = std::floor(exact + 0.5);
    if (rounded < 1 || std::abs(exact - rounded) > 1e-6) return {};
    sum += whole.emplace_back(static_cast<std::uint64_t>(rounded));
  }
  return sum == period ? whole : std::vector<std::uint64_t>{};
}

/// Rounds down, and gives what is left to the largest remainders.
std::vector<std::uint64_t> nearest_shares(const std::vector<double>& shares) {
  std::vector<std::uint64_t> whole;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::uint64_t left = kMaxPeriod;
  for (std::size_t source = 0; source < shares.size(); ++source) {
    const double exact = shares[source] * static_cast<double>(kMaxPeriod), down = std::floor(exact);
    left -= whole.emplace_back(static_cast<std::uint64_t>(down));
    remainders.emplace_back(down - exact, source);
  }
  std::ranges::sort(remainders);
  for (std::uint64_t i = 0; i < left; ++i) ++whole[remainders[i].second];
  return whole;
}

std::vector<std::uint64_t> find_shares(const std::vector<MixtureShape::Source>& sources) {
  const std::vector<double> shares = shares_of(sources);
  for (std::uint64_t period = sources.size(); period <= kMaxPeriod; ++period)
    if (std::vector<std::uint64_t> whole = whole_shares(shares, period); !whole.empty()) return whole;
  std::vector<std::uint64_t> whole = nearest_shares(shares);
  for (std::size_t source = 0; source < sources.size(); ++source)
    if (whole[source] == 0)
      refuse(sources[source].path,
             "share " + std::to_string(shares[source]) + ", expected at least 1 / 65536");
  return whole;
}

}  // namespace

/// Gives each position to the source that may have it and must have its next one first: earliest deadline
/// first, which meets all deadlines (Liu and Layland 1973), so no share is ever off by one.
ShareSequence::ShareSequence(const std::vector<MixtureShape::Source>& sources)
    : shares_(find_shares(sources)), positions_(sources.size()) {
  const std::uint64_t period = std::accumulate(shares_.begin(), shares_.end(), std::uint64_t{0});
  std::vector<std::uint64_t> used(shares_.size());
  for (std::uint64_t position = 0; position < period; ++position) {
    std::size_t next = shares_.size();
    std::uint64_t first_deadline = 0;
    for (std::size_t source = 0; source < shares_.size(); ++source) {
      if (used[source] * period / shares_[source] > position) continue;
      const std::uint64_t deadline = ((used[source] + 1) * period - 1) / shares_[source] + 1;
      if (next < shares_.size() && deadline >= first_deadline) continue;
      next = source;
      first_deadline = deadline;
    }
    positions_[next].push_back(static_cast<std::uint32_t>(position));
    entries_.push_back({static_cast<std::uint32_t>(next), static_cast<std::uint32_t>(used[next]++)});
  }
}

ShareSequence::Use ShareSequence::operator[](std::uint64_t position) const {
  const Entry& entry = entries_[position % entries_.size()];
  return {entry.source, position / entries_.size() * shares_[entry.source] + entry.number};
}

std::uint64_t ShareSequence::count_before(std::size_t source, std::uint64_t position_count) const {
  const std::vector<std::uint32_t>& positions = positions_[source];
  const auto before = std::ranges::lower_bound(positions, position_count % entries_.size());
  return position_count / entries_.size() * shares_[source] +
         static_cast<std::uint64_t>(before - positions.begin());
}

std::uint64_t ShareSequence::position(std::size_t source, std::uint64_t use) const {
  return use / shares_[source] * entries_.size() + positions_[source][use % shares_[source]];
}

namespace {

/// The chunks of one source.
ChunkGrid own_chunks(const ChunkGrid& all, const MixtureShape::Source& source) {
  if (source.chunk_count == 0) refuse(source.path, "has no samples, expected at least 1");
  std::vector<std::uint64_t> counts;
  counts.reserve(source.chunk_count);
  for (std::uint64_t chunk = 0; chunk < source.chunk_count; ++chunk)
    counts.push_back(all.sample_count_of(source.first_chunk + chunk));
  return ChunkGrid(counts);
}

/// What a sampler of all sources draws from one of them.
std::optional<DrawSpec> own_draws(const std::optional<DrawSpec>& all, const ChunkGrid& grid,
                                  const MixtureShape::Source& source) {
  if (!all) return std::nullopt;
  const std::uint64_t first = grid.first_sample(source.first_chunk);
  const std::uint64_t end = grid.first_sample(source.first_chunk + source.chunk_count);
  DrawSpec own{.draws = !all->weights.empty(), .replacement = all->replacement};
  if (all->subset) {
    own.subset.emplace();
    for (const std::uint64_t sample : *all->subset)
      if (sample >= first && sample < end) own.subset->push_back(sample - first);
    if (own.subset->empty()) refuse(source.path, "has no samples of the subset, expected at least 1");
  }
  if (!own.draws) return own.subset ? std::optional(own) : std::nullopt;
  own.weights.assign(all->weights.begin() + static_cast<std::ptrdiff_t>(first),
                     all->weights.begin() + static_cast<std::ptrdiff_t>(end));
  if (std::ranges::none_of(own.weights, [](double weight) { return weight > 0; }))
    refuse(source.path, "all of its samples have weight 0, expected one above 0");
  return own;
}

}  // namespace

Mixture::Mixture(const ChunkGrid& grid, const OrderSpec& spec, const MixtureShape& shape,
                 const std::optional<DrawSpec>& draws)
    : spec_(spec), shares_(shape.shares), sequence_(shape.sources), position_count_(shape.epoch_samples) {
  std::uint64_t samples = 0;
  for (const MixtureShape::Source& each : shape.sources) {
    OrderSpec own = spec;
    own.seed = random_bits(spec.seed, Purpose::mixture, sources_.size());
    sources_.push_back(std::make_unique<Source>(own_chunks(grid, each), each.first_chunk, own,
                                                own_draws(draws, grid, each)));
    samples += sources_.back()->order.position_count();
  }
  by_share_.resize(sources_.size());
  std::iota(by_share_.begin(), by_share_.end(), std::size_t{0});
  std::ranges::stable_sort(by_share_, {}, [this](std::size_t source) { return sequence_.shares()[source]; });
  if (position_count_ == 0) position_count_ = samples;
  for (std::size_t source = 0; source < sources_.size(); ++source) {
    const std::uint64_t uses = sequence_.count_before(source, position_count_);
    const std::uint64_t own = sources_[source]->order.position_count();
    if (uses / own > kMaxOwnEpochs)
      refuse(shape.sources[source].path,
             "its " + count_text(own, "sample") + (own == 1 ? " gives " : " give ") + std::to_string(uses) +
                 " of an epoch, expected at most " + std::to_string(kMaxOwnEpochs * own));
  }
}

std::uint64_t Mixture::id() const {
  std::vector<std::uint64_t> mixed{static_cast<std::uint64_t>(shares_), position_count_};
  for (std::size_t source = 0; source < sources_.size(); ++source) {
    const Source& each = *sources_[source];
    mixed.insert(mixed.end(), {sequence_.shares()[source], each.first_chunk, each.chunks.chunk_count(),
                               each.order.sampler_id().value_or(0)});
  }
  return xxh3({reinterpret_cast<const std::uint8_t*>(mixed.data()), mixed.size() * sizeof(std::uint64_t)});
}

/// Of the first epochs, which begin at other windows of each source, and of those in which a source with a
/// small share comes first.
std::uint64_t Mixture::chunks_needed(std::uint64_t positions, const StreamOf& stream) const {
  constexpr std::uint64_t kEpochs = 8;
  std::uint64_t needed = 0;
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch)
    needed = std::max(needed, MixedOrder(*this, epoch, stream).slots_needed(positions));
  for (std::size_t source = 0; source < sources_.size(); ++source)
    if (const std::uint64_t epoch = sequence_.position(source, 0) / position_count_; epoch > 0)
      needed = std::max(needed, MixedOrder(*this, epoch, stream).slots_needed(positions));
  return needed;
}

Mixture::RareSample Mixture::rarest(std::uint64_t epoch, std::uint64_t first_position,
                                    std::uint64_t position_count) const {
  const std::uint64_t first_entry = epoch * position_count_ + first_position;
  for (const std::size_t source : by_share_) {
    const std::uint64_t use = sequence_.count_before(source, first_entry);
    const std::uint64_t offset = sequence_.position(source, use) - first_entry;
    if (offset < position_count) return {source, use, offset};
  }
  return {};  // of no positions
}

MixingInfo Mixture::mixing() const {
  MixingInfo info;
  info.epoch_samples = position_count_;
  const std::vector<std::uint64_t>& whole = sequence_.shares();
  const auto period = static_cast<double>(sequence_.period());
  for (std::size_t source = 0; source < sources_.size(); ++source) {
    const MixingInfo own = sources_[source]->order.mixing();
    const double share = static_cast<double>(whole[source]) / period;
    const double uses = share * static_cast<double>(position_count_);
    info.chunks += own.chunks;
    info.chunks_in_window += own.chunks_in_window;
    info.samples_in_window += own.samples_in_window;
    info.same_chunk_neighbors += share * share * own.same_chunk_neighbors;
    info.distinct_samples +=
        own.distinct_samples * std::min(1.0, uses / static_cast<double>(own.epoch_samples));
    info.chunk_visits += own.chunk_visits;
  }
  if (spec_.shuffle != Shuffle::global) info.chunk_visits = MixedOrder(*this, 0).slot_count();
  info.samples_per_visit = static_cast<double>(position_count_) /
                           static_cast<double>(std::max<std::uint64_t>(1, info.chunk_visits));
  return info;
}

/// Streams begin at other entries of the sequence, so that a source with a small share does not come in all
/// of them at the same time.
MixedOrder::MixedOrder(const Mixture& mixture, std::uint64_t epoch, const StreamOf& stream,
                       OwnOrders* const shared)
    : mixture_(mixture),
      position_count_(stream.end_of(mixture.position_count_) - stream.first_of(mixture.position_count_)),
      first_entry_(stream.first_of(mixture.sequence_.period()) + epoch * position_count_),
      block_seed_(random_bits(mixture.spec_.seed, Purpose::window_order, epoch)) {
  if (stream.number > 0) block_seed_ = random_bits(block_seed_, Purpose::stream_order, stream.number);
  OwnOrders own_orders;
  for (std::size_t source = 0; source < mixture.sources_.size(); ++source) {
    own_epochs_.push_back(own_epochs(source, stream, shared != nullptr ? *shared : own_orders));
    if (mixture.spec_.shuffle != Shuffle::global) list_visits(source);
  }
  visits_.sort();
}

/// A stream goes through its share of each own epoch of a source; where a source has fewer samples than there
/// are streams, through all of them, and each stream begins elsewhere.
MixedOrder::OwnEpochs MixedOrder::own_epochs(std::size_t source, const StreamOf& stream,
                                             OwnOrders& own_orders) const {
  const ShareSequence& sequence = mixture_.sequence_;
  const SourceOrder& order = mixture_.sources_[source]->order;
  const std::uint64_t all = order.position_count();
  const bool is_divided = all >= stream.count;
  OwnEpochs own;
  own.samples = is_divided ? stream.end_of(all) - stream.first_of(all) : all;
  own.shift = (is_divided ? 0 : stream.first_of(all)) -
              sequence.count_before(source, stream.first_of(sequence.period()));
  own.first_use = sequence.count_before(source, first_entry_) + own.shift;
  own.end_use = sequence.count_before(source, first_entry_ + position_count_) + own.shift;
  own.first_epoch = own.first_use / own.samples;
  for (std::uint64_t each = own.first_epoch; each * own.samples < own.end_use; ++each) {
    auto& of_source = own_orders[{source, each}];
    if (of_source == nullptr) of_source = order.epoch(each);
    own.orders.push_back(is_divided && stream.count > 1 ? of_source->stream(stream) : *of_source);
  }
  if (stream.count == 1) own.first_repeat = own.first_epoch;
  if (!is_divided) own.repeats = stream;
  return own;
}

void MixedOrder::list_visits(std::size_t source) {
  const OwnEpochs& own = own_epochs_[source];
  for (std::size_t epoch = 0; epoch < own.orders.size(); ++epoch) {
    const std::uint64_t before = (own.first_epoch + epoch) * own.samples;
    own.orders[epoch].for_each_slot([&](const Positions& needed, std::uint64_t chunk) {
      add_visit(source, {before + needed.first, before + needed.end}, chunk);
    });
  }
}

/// Adds the visit of a chunk that some uses of the source need, of those over all epochs; only those that
/// this epoch has count, and none may be left.
void MixedOrder::add_visit(std::size_t source, const Positions& uses, std::uint64_t chunk) {
  const OwnEpochs& own = own_epochs_[source];
  const std::uint64_t first = std::max(uses.first, own.first_use), end = std::min(uses.end, own.end_use);
  if (first >= end) return;
  const auto position = [&](std::uint64_t use) {
    return mixture_.sequence_.position(source, use - own.shift) - first_entry_;
  };
  Positions needed{position(first), position(end - 1) + 1};
  if (mixture_.shares_ == MixtureShares::epoch) {
    needed.first -= needed.first % kBlockPositions;
    needed.end =
        std::min((needed.end - 1) / kBlockPositions * kBlockPositions + kBlockPositions, position_count_);
  }
  visits_.add(needed, mixture_.sources_[source]->first_chunk + chunk);
}

/// The position before the positions of its block were shuffled.
std::uint64_t MixedOrder::unshuffled(std::uint64_t position, Window& window) const {
  if (mixture_.shares_ == MixtureShares::batch) return position;
  const bool inside = position - window.first_position_ < window.end_position_ - window.first_position_;
  if (!inside || window.window_id_ != block_seed_) {
    window.window_id_ = block_seed_;
    window.first_position_ = position - position % kBlockPositions;
    window.end_position_ = std::min(window.first_position_ + kBlockPositions, position_count_);
    window.positions_ =
        Permutation(window.end_position_ - window.first_position_,
                    random_bits(block_seed_, Purpose::window_order, position / kBlockPositions));
  }
  return window.first_position_ + window.positions_(position - window.first_position_);
}

DrawnSample MixedOrder::operator()(std::uint64_t position, Window& window) const {
  const ShareSequence::Use found = mixture_.sequence_[first_entry_ + unshuffled(position, window)];
  const OwnEpochs& own = own_epochs_[found.source];
  const std::uint64_t use = found.number + own.shift, epoch = use / own.samples;
  if (window.sources_.size() != own_epochs_.size()) window.sources_.resize(own_epochs_.size());
  DrawnSample sample = own.orders[epoch - own.first_epoch](use % own.samples, window.sources_[found.source]);
  sample.chunk += mixture_.sources_[found.source]->first_chunk;
  sample.repeat += ((epoch - own.first_repeat) * own.repeats.count + own.repeats.number) << 32;
  return sample;
}

PositionOrder::Slots MixedOrder::slots_of(std::uint64_t first_position, std::uint64_t end_position) const {
  if (mixture_.spec_.shuffle == Shuffle::global) return {0, 0};
  return visits_.slots_of(first_position, end_position);
}

}  // namespace chunkhit
