// What a pipeline asks servers and their cache on disk for.
#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "read/batch_pipeline.h"

namespace chunkhit {

/// Tells servers and the disk what is needed next; where that fails, so does what is needed, in its place.
void BatchPipeline::prepare_remote(const Work& work) {
  if (!cache_.is_remote()) return;
  try {
    if (work.begins_epoch) begin_visits(*work.plan);
    ask_ahead(work);
  } catch (...) {
  }
}

/// Asks servers for the chunk that is to be loaded, and for those that are loaded after it.
void BatchPipeline::ask_ahead(const Work& work) {
  if (work.loads) cache_.read_ahead(work.chunk);
  if (!spec_.loads_ahead) return ask_for_batches(work);
  while (work.loads && cache_.can_read_ahead()) {
    std::uint64_t chunk = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::ranges::find_if(plans_, [](const auto& each) {
        return std::max(each->next_asked, each->next_slot) < each->end_slot;
      });
      if (found == plans_.end()) return;
      Plan& plan = **found;
      plan.next_asked = std::max(plan.next_asked, plan.next_slot);
      if (plan.next_asked >= plan.next_slot + spec_.remote_chunks_ahead) return;
      chunk = plan.order->chunk_at(plan.next_asked++);
    }
    cache_.read_ahead(chunk);
  }
}

/// Asks servers for the chunks of the batches that follow one, in an order without slots.
void BatchPipeline::ask_for_batches(const Work& work) {
  constexpr std::uint64_t kBatchesAhead = 2;
  if (!work.loads && work.begin > 0) return;
  const Plan& plan = *work.plan;
  PositionOrder::Window window;
  const std::uint64_t first = work.loads ? 0 : work.batch + 1;
  const std::uint64_t end = std::min(plan.batches.batch_count(), first + kBatchesAhead);
  for (std::uint64_t batch = first; batch < end; ++batch) {
    const EpochBatches::Batch next = plan.batches.batch(batch);
    for (std::uint64_t at = 0; at < next.size && cache_.can_read_ahead(); ++at)
      cache_.read_ahead((*plan.order)(plan.batches.position(next, at), window).chunk);
  }
}

/// Tells the cache when the next epoch needs which chunk first.
void BatchPipeline::begin_visits(const Plan& plan) {
  const auto next = order_.epoch(plan.epoch + 1);
  std::vector<std::uint64_t> visits(cache_.chunk_count(), ~std::uint64_t{0});
  for (std::uint64_t slot = next->slots_of(0, plan.position_count).end; slot > 0; --slot)
    visits[next->chunk_at(slot - 1)] = slot - 1;
  cache_.begin_epoch([visits = std::move(visits)](std::uint64_t chunk) { return visits[chunk]; });
}

}  // namespace chunkhit
