// The batches of an epoch, and the chunks that they need, in the order in which a pipeline takes them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "batch/epoch_batches.h"
#include "batch/loader_order.h"
#include "read/epoch_start.h"

namespace chunkhit {

struct PipelineSpec {
  BatchSpec batches;
  std::uint32_t max_threads = 1;
  bool loads_ahead = true;  ///< chunks are asked for before a batch needs them; not in a global order
  /// A batch's chunks stay once they are loaded, though nothing asks for them ahead: all threads then load
  /// those of the very first batch before one of them makes it.
  bool keeps_chunks = false;
  std::uint64_t slice_samples = ~std::uint64_t{0};  ///< of a batch, that a thread makes at a time
  Streams streams{};
  const ChunkGrid* grid = nullptr;  ///< chunks of which it has no samples are not loaded; null: all have some
};

/// An epoch that is being made; its chunks are visited in slots.
struct EpochPlan {
  EpochPlan(const LoaderOrder& of_loader, const PipelineSpec& spec, const EpochStart& start);
  [[nodiscard]] PositionOrder::Slots slots_of(std::uint64_t batch) const;
  [[nodiscard]] bool has_batches() const { return next_batch < batches.batch_count(); }
  [[nodiscard]] std::vector<std::uint64_t> chunks_of(std::uint64_t batch) const;
  void list_first_chunks();
  [[nodiscard]] bool has_samples(std::uint64_t slot) const;
  void skip_empty_slots();
  std::uint64_t epoch;
  std::uint64_t position_count;
  std::unique_ptr<const PositionOrder> order;
  EpochBatches batches;
  const ChunkGrid* grid;                    // of PipelineSpec
  std::uint64_t next_batch;                 // to be given out
  std::uint64_t next_slot;                  // to be loaded, of a chunk with samples
  bool is_begun = false;                    // a chunk of it was taken to be loaded
  std::uint64_t next_asked = 0;             // slot to be asked for ahead
  std::uint64_t first_slot;                 // still wanted
  std::uint64_t end_slot;                   // of all batches
  std::vector<std::uint64_t> first_chunks;  // to be loaded before any batch is made
};

}  // namespace chunkhit
