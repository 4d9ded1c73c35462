// Sources that are mixed: which one each position of an epoch is of. A format: schemas/order.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batch/epoch_order.h"
#include "batch/sampler.h"
#include "batch/source_order.h"
#include "batch/visit_list.h"
#include "chunkhit/loader.h"

namespace chunkhit {

/// What is mixed: chunks of all sources, one source after the other.
struct MixtureShape {
  struct Source {
    std::string path;               ///< for messages
    std::uint64_t first_chunk = 0;  ///< of all
    std::uint64_t chunk_count = 0;
    double weight = 1;
  };
  std::vector<Source> sources;
  MixtureShares shares = MixtureShares::batch;
  std::uint64_t epoch_samples = 0;  ///< 0: as many as an own epoch of each source has together
};

/// A sequence of sources that has each one's share in every prefix, to within one.
class ShareSequence {
 public:
  /// Throws usage where a weight is not above 0 and finite, or a share too small.
  explicit ShareSequence(const std::vector<MixtureShape::Source>& sources);
  struct Use {
    std::size_t source = 0;
    std::uint64_t number = 0;  ///< of the source's uses, from 0
  };
  [[nodiscard]] Use operator[](std::uint64_t position) const;
  /// How many of the first `position_count` positions are of a source.
  [[nodiscard]] std::uint64_t count_before(std::size_t source, std::uint64_t position_count) const;
  /// The position of a source's use.
  [[nodiscard]] std::uint64_t position(std::size_t source, std::uint64_t use) const;
  /// Shares as whole numbers; the sequence repeats after their sum.
  [[nodiscard]] const std::vector<std::uint64_t>& shares() const { return shares_; }
  [[nodiscard]] std::uint64_t period() const { return entries_.size(); }

 private:
  std::vector<std::uint64_t> shares_;
  struct Entry {
    std::uint32_t source;
    std::uint32_t number;
  };
  std::vector<Entry> entries_;                         // one period
  std::vector<std::vector<std::uint32_t>> positions_;  // in it, of each source
};

/// Sources with shares. Any thread may ask.
class Mixture {
 public:
  /// `grid`: chunks of all sources. `draws`: a sampler of them, whose epoch_samples do not count. Throws
  /// usage, naming the source, where it has no samples, or would be used more than 65,536 times an epoch.
  Mixture(const ChunkGrid& grid, const OrderSpec& spec, const MixtureShape& shape,
          const std::optional<DrawSpec>& draws);
  [[nodiscard]] std::uint64_t position_count() const { return position_count_; }
  [[nodiscard]] std::uint64_t id() const;
  /// The most chunks that `positions` positions of a stream need.
  [[nodiscard]] std::uint64_t chunks_needed(std::uint64_t positions, const StreamOf& stream = {}) const;
  [[nodiscard]] MixingInfo mixing() const;
  struct RareSample {
    std::size_t source = 0;
    std::uint64_t use = 0;     ///< of the source's uses, from 0
    std::uint64_t offset = 0;  ///< positions before it
  };
  /// Of the sources that have a sample in these positions of an epoch, the one with the smallest share, the
  /// first of equal ones, and its first sample there, before positions are shuffled.
  [[nodiscard]] RareSample rarest(std::uint64_t epoch, std::uint64_t first_position,
                                  std::uint64_t position_count) const;

 private:
  friend class MixedOrder;
  struct Source {
    Source(ChunkGrid own_chunks, std::uint64_t first, const OrderSpec& spec,
           const std::optional<DrawSpec>& draws)
        : chunks(std::move(own_chunks)), first_chunk(first), order(chunks, spec, draws) {}
    ChunkGrid chunks;
    std::uint64_t first_chunk;
    SourceOrder order;
  };
  OrderSpec spec_;
  MixtureShares shares_;
  ShareSequence sequence_;
  std::vector<std::unique_ptr<Source>> sources_;  // whose orders refer to their chunks
  std::vector<std::size_t> by_share_;             // their numbers
  std::uint64_t position_count_ = 0;
};

/// One epoch of a mixture, or of a stream of it: it takes the entries of the sequence behind those of the
/// epochs before.
class MixedOrder final : public PositionOrder {
 public:
  /// Own epochs of the sources, by the source's number and the epoch.
  using OwnOrders = std::map<std::pair<std::size_t, std::uint64_t>, std::unique_ptr<const EpochOrder>>;
  /// `shared`: what streams of one epoch have in common, which each adds to.
  MixedOrder(const Mixture& mixture, std::uint64_t epoch, const StreamOf& stream = {},
             OwnOrders* shared = nullptr);
  [[nodiscard]] DrawnSample operator()(std::uint64_t position, Window& window) const override;
  [[nodiscard]] std::uint64_t chunk_at(std::uint64_t slot) const override { return visits_.chunk_at(slot); }
  [[nodiscard]] Slots slots_of(std::uint64_t first_position, std::uint64_t end_position) const override;
  void for_each_slot(const Visit& visit) const override { visits_.for_each(visit); }
  /// The most slots that any `positions` positions need.
  [[nodiscard]] std::uint64_t slots_needed(std::uint64_t positions) const {
    return visits_.slots_needed(positions);
  }
  [[nodiscard]] std::uint64_t slot_count() const { return visits_.size(); }

 private:
  struct OwnEpochs {
    std::uint64_t samples = 0;    // of one, in the stream
    std::uint64_t shift = 0;      // from uses in the sequence to those of the stream
    std::uint64_t first_use = 0;  // of the mixture's epoch, among all uses of the source in the stream
    std::uint64_t end_use = 0;
    std::uint64_t first_epoch = 0;   // that it is in
    std::uint64_t first_repeat = 0;  // own epoch from which repeats of a sample are counted
    StreamOf repeats{};              // that have the same samples
    std::vector<EpochOrder> orders;
  };
  [[nodiscard]] OwnEpochs own_epochs(std::size_t source, const StreamOf& stream, OwnOrders& own_orders) const;
  [[nodiscard]] std::uint64_t unshuffled(std::uint64_t position, Window& window) const;
  void list_visits(std::size_t source);
  void add_visit(std::size_t source, const Positions& uses, std::uint64_t chunk);

  const Mixture& mixture_;
  std::uint64_t position_count_;
  std::uint64_t first_entry_;  // of the sequence, in this epoch
  std::uint64_t block_seed_;
  std::vector<OwnEpochs> own_epochs_;  // of each source
  VisitList visits_;
};

}  // namespace chunkhit
