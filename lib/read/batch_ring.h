// The batches of a loader: its threads assemble them ahead in slots of memory, its caller has one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "batch/epoch_batches.h"
#include "batch/epoch_order.h"
#include "cache/chunk_cache.h"
#include "chunkhit/image_loader.h"
#include "chunkhit/loader.h"

namespace chunkhit {

/// Memory from the caller's allocator, or ours.
class BatchMemory {
 public:
  BatchMemory(const BatchAllocator& allocator, std::size_t bytes);
  BatchMemory(BatchMemory&& other) noexcept;
  BatchMemory& operator=(BatchMemory&&) = delete;
  ~BatchMemory();
  [[nodiscard]] std::uint8_t* data() const { return data_; }

 private:
  BatchAllocator allocator_;
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Says that there is no memory for a ring of so many batches.
[[nodiscard]] std::string no_memory_text(std::size_t slots, double slot_bytes);

/// A batch being made or waiting to be used.
struct BatchBuffer {
  BatchMemory pixels;
  std::vector<std::int64_t> labels;
  std::vector<float> label_values;
  std::vector<std::uint64_t> samples;
  std::vector<std::uint64_t> uses;     ///< SampleUse::pass of each
  std::vector<std::uint8_t> left_out;  ///< 1 for a sample that could not be read, by its position
  ImageBatch batch;                    ///< spans of the rest
  std::vector<BatchMemory> fields;     ///< of each field beside the images
  std::vector<BatchField> shown;       ///< spans of these
};

/// What making one slice of a batch took.
struct BatchCounts {
  double assemble_seconds = 0;   ///< without getting the chunks, and without decoding images
  double decode_seconds = 0;     ///< of images of their own sizes
  double page_seconds = 0;       ///< that copying waited for the system, where it reads samples one by one
  std::uint64_t read_bytes = 0;  ///< samples that were read one by one
  std::uint64_t chunk_hits = 0;
  std::uint64_t chunk_misses = 0;
  void add(const BatchCounts& other);
};

/// Which batch is to be made, and which slice of it: its samples [begin, end).
struct BatchTask {
  std::uint64_t epoch = 0;
  const PositionOrder& order;
  const EpochBatches& batches;
  std::uint64_t index = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  /// The slice is cut from all samples of the batch sorted by chunk, so that few slices need the same chunk.
  bool sorts_batch = false;
};

/// What became of it.
struct MadeBatch {
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;            ///< bytes handed out
  std::uint64_t corrupt_samples = 0;  ///< samples left out
};

/// Makes slices of batches in the slots of a ring; each thread has its own, because it keeps tables between
/// them.
class BatchAssembler {
 public:
  BatchAssembler() = default;
  BatchAssembler(const BatchAssembler&) = delete;
  BatchAssembler& operator=(const BatchAssembler&) = delete;
  virtual ~BatchAssembler() = default;
  /// Makes a slice of the batch in a slot; other threads make the other slices meanwhile. Throws bad_data for
  /// a damaged chunk.
  virtual void make(const BatchTask& task, std::size_t slot) = 0;
  /// Completes the batch once all of its slices are made; called by the thread that made the last one.
  [[nodiscard]] virtual MadeBatch complete(const BatchTask& task, std::size_t slot) = 0;
  [[nodiscard]] const BatchCounts& counts() const { return counts_; }  ///< of the last slice
  [[nodiscard]] ByteBuffer& stored() { return stored_; }               ///< scratch for stored bytes

 protected:
  BatchCounts counts_;
  ByteBuffer stored_;
};

/// How the chunks of a slice are held.
struct BatchChunksSpec {
  std::size_t slice_samples = 1;
  std::size_t batch_size = 1;
  /// The cache keeps a slice's chunks, or there is room for all of them; else no more than one is held at a
  /// time.
  bool holds_all = true;
  /// Samples of one chunk come side by side, which copying likes; else in the batch's order, with all held.
  bool by_chunk = true;
  /// Slices are cut from all samples of the batch sorted by chunk, so that few of them need the same chunk.
  bool sorts_batch = false;
};

/// The samples of a slice, and the chunks that hold them.
class BatchSamples {
 public:
  BatchSamples(const ChunkSet& chunks, const ChunkGrid& grid, ChunkCache& cache, const BatchChunksSpec& spec);
  struct Sample {
    std::uint64_t chunk;
    std::uint64_t in_chunk;
    std::uint64_t repeat;                   ///< uses of the sample in the epoch before this one, of a sampler
    std::uint32_t at;                       ///< position in the batch
    Held held = Held::left_out;             ///< where the chunk's samples are, while it is held
    const std::uint8_t* decoded = nullptr;  ///< their address, where they are in memory
    [[nodiscard]] HeldChunk from() const { return {held, decoded}; }
    void hold(HeldChunk from_pin) { held = from_pin.held, decoded = from_pin.samples; }
  };
  /// Finds the samples of a slice of a batch.
  void find(const BatchTask& task, const EpochBatches::Batch& batch);
  /// Acquires each chunk once. Releases the chunks that were held, and holds those of the samples from
  /// `begin` on; returns where the samples end whose chunks are held.
  [[nodiscard]] std::size_t hold(std::size_t begin, BatchCounts& counts, ByteBuffer& stored);
  void release() { pins_.clear(); }
  void leave_out(std::size_t index) { samples_[index].hold({}); }
  /// Leaves those out whose chunk is; the others are by their position in the batch then. Returns how many.
  [[nodiscard]] std::uint64_t leave_out_corrupt();
  /// Moves the samples behind those that were left out up: their positions in the batch are 0, 1, ... again.
  void close_gaps();
  [[nodiscard]] std::span<const Sample> all() const { return samples_; }
  /// The sample's number in the source.
  [[nodiscard]] std::uint64_t number(const Sample& sample) const {
    return grid_.first_sample(sample.chunk) + sample.in_chunk;
  }

 private:
  [[nodiscard]] HeldChunk acquire(std::uint64_t chunk, BatchCounts& counts, ByteBuffer& stored);
  [[nodiscard]] HeldChunk acquire_run(std::size_t begin, BatchCounts& counts, ByteBuffer& stored);
  void hold_all(BatchCounts& counts, ByteBuffer& stored);

  const ChunkGrid& grid_;
  ChunkCache& cache_;
  BatchChunksSpec spec_;
  PositionOrder::Window window_;
  std::vector<Sample> samples_;
  std::vector<ChunkCache::Pin> pins_;
  std::vector<std::uint64_t> wanted_;  // of a chunk
  ByteBuffer room_;                    // for some samples of one
  /// Of each chunk, where not by chunk: which batch asked for it last, and what it got.
  struct LastHeld {
    std::uint64_t batch = 0;
    HeldChunk chunk;
  };
  std::vector<LastHeld> held_;
  std::uint64_t batch_ = 0;  // counts those that were held
};

/// Slots with a buffer each, of any kind. A slot belongs to one thread while it is filled, and to the caller
/// while it is handed out. All functions are for the caller, if not said otherwise.
class BatchSlots {
 public:
  /// `make_buffer` is called for each of the `count` slots, for those of `grow`, and for each buffer that the
  /// caller retains.
  BatchSlots(std::size_t count, std::size_t max_count, std::function<std::shared_ptr<void>()> make_buffer);
  BatchSlots(const BatchSlots&) = delete;
  BatchSlots& operator=(const BatchSlots&) = delete;

  [[nodiscard]] std::size_t size() const { return size_; }  ///< slots that have a buffer
  [[nodiscard]] std::size_t max_size() const { return slots_.size(); }
  /// Makes buffers until `count` slots have one, at most max_size(); other threads may use the slots before.
  void grow(std::size_t count);
  struct State {
    MadeBatch made;
    std::exception_ptr error;
  };
  /// For the thread that fills the slot, too.
  [[nodiscard]] State& state(std::size_t slot) { return slots_[slot].state; }
  /// Gives all slots to the threads of a new pipeline; no thread may run.
  void restart();
  void hand_out(std::size_t slot) { handed_out_ = slot; }
  /// Must be called before the slot that was handed out goes back to the threads: puts another buffer into it
  /// if the caller retains this one. Returns whether a slot was handed out.
  bool take_back();
  /// How often a buffer left the ring because it was retained.
  [[nodiscard]] std::uint64_t kept_count() const { return kept_count_; }
  void reset_kept_count() { kept_count_ = 0; }

 protected:
  ~BatchSlots() = default;
  [[nodiscard]] void* buffer(std::size_t slot) const { return slots_[slot].buffer.get(); }
  [[nodiscard]] std::shared_ptr<void> handed_out_buffer() const {
    return handed_out_ ? slots_[*handed_out_].buffer : nullptr;
  }

 private:
  struct Slot {
    std::shared_ptr<void> buffer;
    State state;
  };
  [[nodiscard]] std::shared_ptr<void> take_returned();

  std::function<std::shared_ptr<void>()> make_buffer_;
  std::vector<Slot> slots_;
  std::size_t size_ = 0;
  std::vector<std::shared_ptr<void>> kept_;  // left the ring
  std::optional<std::size_t> handed_out_;
  std::uint64_t kept_count_ = 0;
};

/// Slots with buffers of one kind, each of which has a `batch`.
template <class Buffer>
class BatchRing final : public BatchSlots {
 public:
  using Batch = decltype(Buffer::batch);
  template <class MakeBuffer>
  BatchRing(std::size_t count, std::size_t max_count, MakeBuffer make_buffer)
      : BatchSlots(count, max_count,
                   [make = std::move(make_buffer)] { return std::make_shared<Buffer>(make()); }) {}
  /// For the thread that fills the slot, too.
  [[nodiscard]] Buffer& operator[](std::size_t slot) const { return *static_cast<Buffer*>(buffer(slot)); }
  /// The batch that was handed out, or null; it stays unchanged as long as anybody has it.
  [[nodiscard]] std::shared_ptr<const Batch> retain() const {
    const auto kept = std::static_pointer_cast<Buffer>(handed_out_buffer());
    return kept ? std::shared_ptr<const Batch>(kept, &kept->batch) : nullptr;
  }
};

}  // namespace chunkhit
