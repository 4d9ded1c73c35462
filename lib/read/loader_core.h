// A loader without its kind of batches: the ring, the reader that fills it, and what a caller asks of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/resources.h"
#include "batch/loader_order.h"
#include "chunkhit/image_loader.h"
#include "chunkhit/loader.h"
#include "chunkhit/pack_info.h"
#include "chunkhit/sparse_loader.h"
#include "read/batch_ring.h"
#include "read/epoch_reader.h"
#include "read/image_source.h"
#include "read/reader_spec.h"
#include "read/sparse_source.h"

namespace chunkhit {

/// Resolves a loader's sampler and mixture, from names of classes, labels and files to numbers of samples.
/// Throws usage, naming the field and the entry, where options contradict each other or do not fit the
/// source; bad_data for a CSV that cannot be read.
[[nodiscard]] SamplingSpec sampling_spec(const ImageLoaderOptions& options, const ImageSource& source);
[[nodiscard]] SamplingSpec sampling_spec(const SparseLoaderOptions& options, const SparseSource& source);

/// A ring of batches and its reader, whatever memory a batch has.
template <class Batch>
class BatchCore {
 public:
  virtual ~BatchCore() = default;
  [[nodiscard]] virtual EpochReader& reader() = 0;
  [[nodiscard]] virtual const Batch* next() = 0;
  [[nodiscard]] virtual std::shared_ptr<const Batch> retain() const = 0;
  [[nodiscard]] virtual LoaderStats stats() const = 0;
  virtual void reset_stats() = 0;
};

/// The one whose batches lie in a `Buffer` each.
template <class Buffer>
class LoaderCore final : public BatchCore<typename BatchRing<Buffer>::Batch> {
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
  [[nodiscard]] EpochReader& reader() override { return reader_; }
  [[nodiscard]] const Batch* next() override {
    const std::optional<std::size_t> slot = reader_.next();
    return slot ? &ring_[*slot].batch : nullptr;
  }
  [[nodiscard]] std::shared_ptr<const Batch> retain() const override { return ring_.retain(); }
  [[nodiscard]] LoaderStats stats() const override {
    LoaderStats stats = reader_.stats();
    stats.retained_batches = ring_.kept_count();
    return stats;
  }
  void reset_stats() override {
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

/// What a loader holds; the core, whose threads use all else, is the last member of what implements it.
template <class Batch>
struct Loader<Batch>::Impl {
  virtual ~Impl() = default;
  [[nodiscard]] virtual BatchCore<Batch>& batches() = 0;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  [[nodiscard]] virtual const PackInfo& info() const = 0;
  /// Adds what the core does not count.
  virtual void add_to(LoaderStats&) const {}
  [[nodiscard]] EpochReader& reader() { return batches().reader(); }
};

template <class Batch>
Loader<Batch>::Loader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
template <class Batch>
Loader<Batch>::Loader(Loader&&) noexcept = default;
template <class Batch>
Loader<Batch>& Loader<Batch>::operator=(Loader&& other) noexcept {
  release();
  impl_ = std::move(other.impl_);
  return *this;
}
template <class Batch>
Loader<Batch>::~Loader() {
  release();
}
/// Forgets the loader in a forked child, which has none of its threads: there is nothing to wait for, and
/// nothing that may be freed.
template <class Batch>
void Loader<Batch>::release() {
  if (impl_ && impl_->reader().is_forked()) static_cast<void>(impl_.release());
}

template <class Batch>
typename Loader<Batch>::Epoch Loader<Batch>::epoch(std::uint64_t epoch) {
  impl_->reader().begin(epoch);
  return Epoch(*this);
}
template <class Batch>
const Batch* Loader<Batch>::next() {
  return impl_->batches().next();
}
template <class Batch>
bool Loader<Batch>::wait_for(std::chrono::milliseconds timeout) {
  return impl_->reader().wait_for(timeout);
}
template <class Batch>
std::shared_ptr<const Batch> Loader<Batch>::retain() const {
  return impl_->batches().retain();
}
template <class Batch>
std::uint64_t Loader<Batch>::size() const {
  return impl_->size();
}
template <class Batch>
std::uint64_t Loader<Batch>::epoch_samples() const {
  return impl_->reader().epoch_samples();
}
template <class Batch>
std::uint64_t Loader<Batch>::batch_count() const {
  return impl_->reader().batch_count();
}
template <class Batch>
const PackInfo& Loader<Batch>::info() const {
  return impl_->info();
}
template <class Batch>
MixingInfo Loader<Batch>::mixing() const {
  return impl_->reader().mixing();
}
template <class Batch>
LoaderStats Loader<Batch>::stats() const {
  LoaderStats stats = impl_->batches().stats();
  impl_->add_to(stats);
  return stats;
}
template <class Batch>
void Loader<Batch>::reset_stats() {
  impl_->batches().reset_stats();
}
template <class Batch>
std::string Loader<Batch>::state() const {
  return impl_->reader().state();
}
template <class Batch>
void Loader<Batch>::restore(const std::string& state) {
  impl_->reader().restore(state);
}

}  // namespace chunkhit
