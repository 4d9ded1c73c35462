// A loader without its kind of batches: the ring, the reader that fills it, and what a caller asks of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/memory.h"
#include "read/batch_ring.h"
#include "read/epoch_reader.h"
#include "read/reader_spec.h"

namespace chunkhit {

/// What both loaders share; a `Buffer` holds a batch.
template <class Buffer>
class LoaderCore {
 public:
  using Batch = typename BatchRing<Buffer>::Batch;
  /// `sampling`: which samples an epoch has. `make_buffer` makes the memory of one batch, of
  /// about `buffer_bytes`.
  template <class MakeBuffer>
  LoaderCore(const ChunkSet& chunks, const EpochReaderSpec& spec, const SamplingSpec& sampling,
             double buffer_bytes, MakeBuffer make_buffer)
      : LoaderCore(chunks, Fitted{within_memory(spec, buffer_bytes)}, sampling, buffer_bytes,
                   std::move(make_buffer)) {}

  [[nodiscard]] const BatchRing<Buffer>& ring() const { return ring_; }
  [[nodiscard]] EpochReader& reader() { return reader_; }
  [[nodiscard]] const EpochReader& reader() const { return reader_; }
  [[nodiscard]] const Batch* next() {
    const std::optional<std::size_t> slot = reader_.next();
    return slot ? &ring_[*slot].batch : nullptr;
  }
  [[nodiscard]] std::shared_ptr<const Batch> retain() const { return ring_.retain(); }
  [[nodiscard]] LoaderStats stats() const {
    LoaderStats stats = reader_.stats();
    stats.retained_batches = ring_.kept_count();
    return stats;
  }
  void reset_stats() {
    reader_.reset_stats();
    ring_.reset_kept_count();
  }

 private:
  /// A spec that fits the memory.
  struct Fitted {
    EpochReaderSpec spec;
    [[nodiscard]] std::size_t slots() const { return ring_size(spec, spec.threads, spec.prefetch); }
    [[nodiscard]] std::size_t max_slots() const {
      return ring_size(spec, spec.max_threads, spec.max_prefetch);
    }
  };
  template <class MakeBuffer>
  LoaderCore(const ChunkSet& chunks, const Fitted& fitted, const SamplingSpec& sampling, double buffer_bytes,
             MakeBuffer make_buffer)
      : ring_(fitted.slots(), fitted.max_slots(),
              [make = std::move(make_buffer), buffer_bytes, count = fitted.slots()] {
                return with_memory(no_memory_text(count, buffer_bytes), make);
              }),
        reader_(chunks, fitted.spec, sampling, ring_) {}

  BatchRing<Buffer> ring_;
  EpochReader reader_;  // last: its threads fill the ring
};

/// Forgets a loader in a forked child, which has none of its threads: there is nothing to wait for, and
/// nothing that may be freed.
template <class Impl>
void release_if_forked(std::unique_ptr<Impl>& impl) {
  if (impl && impl->core.reader().is_forked()) static_cast<void>(impl.release());
}

}  // namespace chunkhit
