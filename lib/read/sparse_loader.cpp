#include <cmath>
#include <utility>

#include "base/memory.h"
#include "chunkhit/sparse.h"
#include "read/epoch_reader.h"
#include "read/sparse_batch_maker.h"
#include "read/sparse_source.h"

namespace chunkhit {
namespace {

/// Rows of a batch are put side by side in their order: all of their chunks are held together.
EpochReaderSpec reader_spec(const SparseLoaderOptions& options) {
  require_option(std::isfinite(options.scale) && options.scale != 0, "scale: must be finite and not 0");
  EpochReaderSpec spec = epoch_reader_spec(options);
  spec.holds_all = true;
  return spec;
}

const char* form_name(SparseAs as) {
  switch (as) {
    case SparseAs::dense_f32:
      return "dense_f32";
    case SparseAs::dense_f16:
      return "dense_f16";
    case SparseAs::dense_u8:
      return "dense_u8";
    case SparseAs::csr:
      break;
  }
  return "csr";
}

}  // namespace

void SparseMatrix::require(SparseAs as) const {
  if (as_ == as) return;
  throw Error(ErrorCode::usage, std::string("batches are ") + form_name(as_) + ", not " + form_name(as) +
                                    ": make the loader with .as = SparseAs::" + form_name(as));
}

std::span<const float> SparseMatrix::dense_f32() const {
  require(SparseAs::dense_f32);
  return {reinterpret_cast<const float*>(memory_), row_count_ * column_count_};
}

std::span<const std::uint16_t> SparseMatrix::dense_f16() const {
  require(SparseAs::dense_f16);
  return {reinterpret_cast<const std::uint16_t*>(memory_), row_count_ * column_count_};
}

std::span<const std::uint8_t> SparseMatrix::dense_u8() const {
  require(SparseAs::dense_u8);
  return {memory_, row_count_ * column_count_};
}

template <class Cell>
std::span<Cell> SparseMatrix::writable_cells(SparseAs as) const {
  require(as);
  if (was_written_ != nullptr) *was_written_ = true;
  return {reinterpret_cast<Cell*>(memory_), row_count_ * column_count_};
}

std::span<float> SparseMatrix::writable_dense_f32() const {
  return writable_cells<float>(SparseAs::dense_f32);
}

std::span<std::uint16_t> SparseMatrix::writable_dense_f16() const {
  return writable_cells<std::uint16_t>(SparseAs::dense_f16);
}

std::span<std::uint8_t> SparseMatrix::writable_dense_u8() const {
  return writable_cells<std::uint8_t>(SparseAs::dense_u8);
}

const CsrBatch& SparseMatrix::csr() const {
  require(SparseAs::csr);
  return csr_;
}

struct SparseLoader::Impl {
  Impl(const std::vector<std::string>& paths, const SparseLoaderOptions& options, const EpochReaderSpec& spec)
      : source(paths, options.check_hashes, options.memory_bytes),
        format(sparse_format(options, source)),
        ring(ring_size(spec.threads, spec.prefetch),
             [this, allocator = options.allocator, size = spec.batches.batch_size,
              slots = ring_size(spec.threads, spec.prefetch)] {
               return with_memory(no_memory_text(slots, sparse_buffer_bytes(format, source, size)),
                                  [&] { return make_sparse_buffer(format, source, allocator, size); });
             }),
        reader(source.chunks(), spec) {
    reader.set_maker([this] {
      return std::make_unique<SparseBatchMaker>(
          SparseBatchContext{source, reader.grid(), reader.cache(), format, ring, reader.batch_chunks()});
    });
  }

  SparseSource source;
  SparseFormat format;
  SlotRing<SparseBuffer> ring;
  EpochReader reader;  // last: its threads use all above
};

SparseLoader::SparseLoader(const std::string& path, const SparseLoaderOptions& options)
    : SparseLoader(std::vector{path}, options) {}

SparseLoader::SparseLoader(const std::vector<std::string>& paths, const SparseLoaderOptions& options)
    : impl_(with_memory(kNoMemory,
                        [&] { return std::make_unique<Impl>(paths, options, reader_spec(options)); })) {}

SparseLoader::SparseLoader(SparseLoader&&) noexcept = default;
SparseLoader& SparseLoader::operator=(SparseLoader&& other) noexcept {
  release();
  impl_ = std::move(other.impl_);
  return *this;
}

// The threads of a loader are not in a forked child: there is nothing to wait for, and nothing that may be
// freed.
void SparseLoader::release() {
  if (impl_ && impl_->reader.is_forked()) static_cast<void>(impl_.release());
}

SparseLoader::~SparseLoader() { release(); }

SparseLoader::Epoch SparseLoader::epoch(std::uint64_t epoch) {
  impl_->ring.take_back();
  impl_->reader.begin(epoch);
  return Epoch(*this);
}

bool SparseLoader::wait(std::chrono::milliseconds at_most) {
  impl_->ring.take_back();
  impl_->ring.hand_out(std::nullopt);
  return impl_->reader.wait(at_most);
}

const SparseBatch* SparseLoader::next() {
  impl_->ring.take_back();
  const std::optional<std::size_t> slot = impl_->reader.next();
  impl_->ring.hand_out(slot);
  return slot ? &impl_->ring[*slot].batch : nullptr;
}

std::shared_ptr<const SparseBatch> SparseLoader::keep() const {
  const std::shared_ptr<SparseBuffer> buffer = impl_->ring.keep();
  return buffer ? std::shared_ptr<const SparseBatch>(buffer, &buffer->batch) : nullptr;
}

std::uint64_t SparseLoader::size() const { return impl_->source.size(); }
std::uint64_t SparseLoader::column_count() const { return impl_->source.matrix().column_count; }
std::uint64_t SparseLoader::batch_count() const { return impl_->reader.batch_count(); }
bool SparseLoader::has_held_out() const { return impl_->format.matrix_count > 1; }
double SparseLoader::value_scale() const { return impl_->source.matrix().scale; }
const PackInfo& SparseLoader::info() const { return impl_->source.info(); }
std::string_view SparseLoader::row_id(std::uint64_t row) const { return impl_->source.row_id(row); }
std::string_view SparseLoader::column_id(std::uint64_t column) const {
  return impl_->source.column_id(column);
}
SparseIds SparseLoader::row_ids() const { return impl_->source.row_ids().all(); }
SparseIds SparseLoader::column_ids() const { return impl_->source.column_ids().all(); }
std::optional<std::uint64_t> SparseLoader::row_of(std::string_view id) const {
  return impl_->source.row_ids().find(id);
}
std::optional<std::uint64_t> SparseLoader::column_of(std::string_view id) const {
  return impl_->source.column_ids().find(id);
}
std::span<const std::uint64_t> SparseLoader::item_counts() const { return impl_->source.item_counts(); }
MixingInfo SparseLoader::mixing() const { return impl_->reader.mixing(); }
LoaderStats SparseLoader::stats() const {
  LoaderStats stats = impl_->reader.stats();
  stats.kept_batches = impl_->ring.kept_count();
  return stats;
}

void SparseLoader::reset_stats() {
  impl_->reader.reset_stats();
  impl_->ring.reset_kept_count();
}

std::string SparseLoader::state() const { return impl_->reader.state(); }
void SparseLoader::restore(const std::string& state) { impl_->reader.restore(state); }

}  // namespace chunkhit
