#include "read/epoch_plan.h"

#include <algorithm>

namespace chunkhit {

EpochPlan::EpochPlan(const LoaderOrder& of_loader, const PipelineSpec& spec, const EpochStart& start)
    : epoch(start.epoch),
      position_count(of_loader.position_count()),
      order(of_loader.epoch(start.epoch, streams_of(spec.batches, start, spec.streams))),
      batches(batches_of(of_loader, spec.batches, start, spec.streams)),
      grid(spec.grid),
      next_batch(start.first_batch),
      next_slot(0),
      first_slot(0),
      end_slot(0) {
  if (!spec.loads_ahead || !has_batches()) return;
  next_slot = first_slot = slots_of(next_batch).first;
  end_slot = slots_of(batches.batch_count() - 1).end;
  skip_empty_slots();
}

/// Whether the chunk of a slot has samples: ratings, which a chunk of empty rows lacks.
bool EpochPlan::has_samples(std::uint64_t slot) const {
  return grid == nullptr || grid->sample_count_of(order->chunk_at(slot)) > 0;
}

void EpochPlan::skip_empty_slots() {
  while (next_slot < end_slot && !has_samples(next_slot)) ++next_slot;
}

/// The chunks of a batch's samples, in their order.
std::vector<std::uint64_t> EpochPlan::chunks_of(std::uint64_t batch) const {
  const EpochBatches::Batch wanted = batches.batch(batch);
  PositionOrder::Window window;
  std::vector<std::uint64_t> chunks(wanted.size);
  for (std::uint64_t at = 0; at < wanted.size; ++at)
    chunks[at] = (*order)(batches.position(wanted, at), window).chunk;
  return chunks;
}

/// Lists the chunks of the first batch: at the start of a global shuffle the threads load them together
/// instead of each waiting for its own.
void EpochPlan::list_first_chunks() {
  if (!has_batches()) return;
  first_chunks = chunks_of(next_batch);
  std::sort(first_chunks.begin(), first_chunks.end());
  first_chunks.erase(std::unique(first_chunks.begin(), first_chunks.end()), first_chunks.end());
}

// Positions past the end wrap to 0 (rank padding), and a rank may have none but one that comes twice; those
// few chunks are loaded when they are used.
PositionOrder::Slots EpochPlan::slots_of(std::uint64_t batch) const {
  const EpochBatches::Batch wanted = batches.batch(batch);
  if (wanted.first_position == wanted.end_position) return order->slots_of(position_count, position_count);
  return order->slots_of(std::min(wanted.first_position, position_count - 1),
                         std::min(wanted.end_position, position_count));
}

}  // namespace chunkhit
