#include "read/batch_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {
namespace {

constexpr std::size_t kHugePageBytes = 2 << 20;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kLineBytes = 64;

/// Rounds to huge pages from 2 MiB on, to 4 KiB pages below.
std::size_t page_bytes(std::size_t bytes) {
  return round_up(bytes, bytes < kHugePageBytes ? kPageBytes : kHugePageBytes);
}

/// Maps pages of their own, because malloc may keep freed memory instead of returning it to the system.
void* allocate_pages(std::size_t bytes) {
  const std::size_t size = page_bytes(bytes);
  const std::size_t extra = size < kHugePageBytes ? 0 : kHugePageBytes;
  void* const all = ::mmap(nullptr, size + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  if (extra == 0) return all;
  auto* const begin = static_cast<std::uint8_t*>(all);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  // One huge page too many was mapped: both ends are trimmed so that the rest begins on a huge page.
  const std::size_t before = round_up(address, kHugePageBytes) - address;
  if (before > 0) ::munmap(begin, before);
  if (before < extra) ::munmap(begin + before + size, extra - before);
  ::madvise(begin + before, size, MADV_HUGEPAGE);
  return begin + before;
}

}  // namespace

BatchMemory::BatchMemory(const BatchAllocator& allocator, std::size_t bytes)
    : allocator_(allocator), bytes_(std::max<std::size_t>(bytes, 1)) {
  data_ =
      static_cast<std::uint8_t*>(allocator_.allocate ? allocator_.allocate(bytes_) : allocate_pages(bytes_));
  if (data_ == nullptr) throw std::bad_alloc();
  if (reinterpret_cast<std::uintptr_t>(data_) % kLineBytes != 0)
    throw_usage("allocator: gave memory that is not aligned to 64 bytes");
}

BatchMemory::BatchMemory(BatchMemory&& other) noexcept
    : allocator_(std::move(other.allocator_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_) {}

std::string no_memory_text(std::size_t slots, double slot_bytes) {
  return "batches: " + std::to_string(slots) + " of " + bytes_text(slot_bytes) +
         " each are held, which is more memory than can be had: lower `batch_size`, `prefetch` or `threads`";
}

BatchMemory::~BatchMemory() {
  if (data_ == nullptr) return;
  if (allocator_.allocate)
    allocator_.release(data_, bytes_);
  else
    ::munmap(data_, page_bytes(bytes_));
}

void BatchCounts::add(const BatchCounts& other) {
  assemble_seconds += other.assemble_seconds;
  decode_seconds += other.decode_seconds;
  page_seconds += other.page_seconds;
  read_bytes += other.read_bytes;
  chunk_hits += other.chunk_hits;
  chunk_misses += other.chunk_misses;
}

// Reserves memory for the largest slice, so that no later one allocates.
BatchSamples::BatchSamples(const ChunkSet& chunks, const ChunkGrid& grid, ChunkCache& cache,
                           const BatchChunksSpec& spec)
    : grid_(grid), cache_(cache), spec_(spec) {
  samples_.reserve(spec.sorts_batch ? spec.batch_size : spec.slice_samples);
  pins_.reserve(std::min<std::uint64_t>(spec.slice_samples, chunks.chunk_count()));
  wanted_.reserve(spec.slice_samples);
  if (!spec.by_chunk) held_.resize(chunks.chunk_count());
}

/// Finds chunk and index of each sample of a slice. By chunk means sorted by chunk: a chunk is then held once
/// and its samples are copied together.
void BatchSamples::find(const BatchTask& task, const EpochBatches::Batch& batch) {
  samples_.clear();
  const bool sorts_batch = spec_.by_chunk && (spec_.sorts_batch || task.sorts_batch);
  const std::uint64_t begin = sorts_batch ? 0 : task.begin;
  const std::uint64_t end = sorts_batch ? batch.size : task.end;
  for (std::uint64_t at = begin; at < end; ++at) {
    const DrawnSample found = task.order(task.batches.position(batch, at), window_);
    samples_.push_back({found.chunk, found.in_chunk, found.repeat, static_cast<std::uint32_t>(at)});
  }
  if (!spec_.by_chunk) return;
  std::sort(samples_.begin(), samples_.end(), [](const Sample& a, const Sample& b) {
    if (a.chunk != b.chunk) return a.chunk < b.chunk;
    return a.in_chunk != b.in_chunk ? a.in_chunk < b.in_chunk : a.at < b.at;
  });
  if (!sorts_batch) return;
  samples_.resize(task.end);
  samples_.erase(samples_.begin(), samples_.begin() + static_cast<std::ptrdiff_t>(task.begin));
}

HeldChunk BatchSamples::acquire(std::uint64_t chunk, BatchCounts& counts, ByteBuffer& stored) {
  pins_.push_back(cache_.acquire(chunk, stored));
  ++(pins_.back().hit() ? counts.chunk_hits : counts.chunk_misses);
  return pins_.back().held();
}

/// Gives the chunk of the samples from `begin` on that are in one chunk.
HeldChunk BatchSamples::acquire_run(std::size_t begin, BatchCounts& counts, ByteBuffer& stored) {
  const std::uint64_t chunk = samples_[begin].chunk;
  if (!cache_.reads_some()) return acquire(chunk, counts, stored);
  wanted_.clear();
  for (std::size_t i = begin; i < samples_.size() && samples_[i].chunk == chunk; ++i)
    wanted_.push_back(samples_[i].in_chunk);
  pins_.push_back(cache_.acquire_some(chunk, wanted_, stored, room_));
  ++(pins_.back().hit() ? counts.chunk_hits : counts.chunk_misses);
  return pins_.back().held();
}

/// `held_` remembers by batch number which chunks are already held, so that it needs no clearing.
void BatchSamples::hold_all(BatchCounts& counts, ByteBuffer& stored) {
  ++batch_;
  for (Sample& sample : samples_) {
    LastHeld& held = held_[sample.chunk];
    if (held.batch != batch_) held = {batch_, acquire(sample.chunk, counts, stored)};
    sample.hold(held.chunk);
  }
}

std::size_t BatchSamples::hold(std::size_t begin, BatchCounts& counts, ByteBuffer& stored) {
  pins_.clear();
  if (!spec_.by_chunk) {
    hold_all(counts, stored);
    return samples_.size();
  }
  HeldChunk held;
  bool is_full = false;
  for (std::size_t i = begin; i < samples_.size(); ++i) {
    Sample& sample = samples_[i];
    if (i == begin || sample.chunk != samples_[i - 1].chunk) {
      if (is_full) return i;
      held = acquire_run(i, counts, stored);
      is_full = (!spec_.holds_all && pins_.back().holds_memory()) || held.held == Held::room;
    }
    sample.hold(held);
  }
  return samples_.size();
}

std::uint64_t BatchSamples::leave_out_corrupt() {
  const auto is_left_out = [](const Sample& each) { return each.held == Held::left_out; };
  if (std::none_of(samples_.begin(), samples_.end(), is_left_out)) return 0;
  const std::uint64_t count = std::erase_if(samples_, is_left_out);
  std::sort(samples_.begin(), samples_.end(), [](const Sample& a, const Sample& b) { return a.at < b.at; });
  return count;
}

void BatchSamples::close_gaps() {
  for (std::uint32_t at = 0; at < samples_.size(); ++at) samples_[at].at = at;
}

namespace {

/// Whether nobody else has a buffer; what its last holder read was read before.
bool is_free(const std::shared_ptr<void>& buffer) {
  if (buffer.use_count() != 1) return false;
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

}  // namespace

BatchSlots::BatchSlots(std::size_t count, std::size_t max_count,
                       std::function<std::shared_ptr<void>()> make_buffer)
    : make_buffer_(std::move(make_buffer)), slots_(max_count) {
  grow(count);
}

void BatchSlots::grow(std::size_t count) {
  for (; size_ < count; ++size_) slots_[size_].buffer = make_buffer_();
}

void BatchSlots::restart() {
  static_cast<void>(take_back());
  for (Slot& slot : slots_) slot.state = {};
}

bool BatchSlots::take_back() {
  if (!handed_out_) return false;
  std::shared_ptr<void>& buffer = slots_[*handed_out_].buffer;
  if (!is_free(buffer)) {
    // Without memory for another buffer the slot stays handed out, and the next call tries again.
    std::shared_ptr<void> other = take_returned();
    kept_.push_back(buffer);
    buffer = std::move(other);
    ++kept_count_;
  }
  handed_out_.reset();
  return true;
}

/// Takes back a buffer that is no longer retained, or makes a new one.
std::shared_ptr<void> BatchSlots::take_returned() {
  for (std::shared_ptr<void>& each : kept_) {
    if (!is_free(each)) continue;
    std::swap(each, kept_.back());
    std::shared_ptr<void> returned = std::move(kept_.back());
    kept_.pop_back();
    return returned;
  }
  return make_buffer_();
}

}  // namespace chunkhit
