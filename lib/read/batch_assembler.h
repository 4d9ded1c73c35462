// Puts batches together: what the makers of all kinds of batches have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "batch/epoch_batches.h"
#include "batch/epoch_order.h"
#include "cache/chunk_cache.h"

namespace chunkhit {

/// What making one batch took.
struct BatchCounts {
  double assemble_seconds = 0;  ///< without getting the chunks
  double page_seconds = 0;      ///< that copying waited for the system, where it reads samples one by one
  std::uint64_t chunk_hits = 0;
  std::uint64_t chunk_misses = 0;
  void add(const BatchCounts& other);
};

/// Which batch is to be made.
struct BatchTask {
  std::uint64_t epoch = 0;
  const EpochOrder& order;
  const EpochBatches& batches;
  std::uint64_t index = 0;
};

/// What became of it.
struct MadeBatch {
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;            ///< that are handed out
  std::uint64_t corrupt_samples = 0;  ///< that were left out
};

/// Makes batches in the slots of a ring; each thread has its own, because it keeps tables between batches.
class BatchAssembler {
 public:
  BatchAssembler() = default;
  BatchAssembler(const BatchAssembler&) = delete;
  BatchAssembler& operator=(const BatchAssembler&) = delete;
  virtual ~BatchAssembler() = default;
  /// Makes a batch in a slot that nobody uses; throws bad_data for a damaged chunk.
  virtual MadeBatch make(const BatchTask& task, std::size_t slot) = 0;
  [[nodiscard]] const BatchCounts& counts() const { return counts_; }  ///< of the last batch
  [[nodiscard]] ByteBuffer& stored() { return stored_; }               ///< scratch for stored bytes

 protected:
  BatchCounts counts_;
  ByteBuffer stored_;
};

/// How the chunks of a batch are held.
struct BatchChunksSpec {
  std::size_t batch_size = 1;
  /// Somebody keeps a batch's chunks, or has room for all of them; else no more than one is held at a time.
  bool holds_all = true;
  /// Samples of one chunk come side by side, which copying likes; else in the batch's order, with all held.
  bool by_chunk = true;
};

/// The samples of a batch, and the chunks that hold them.
class BatchSamples {
 public:
  BatchSamples(const ChunkSet& chunks, const ChunkGrid& grid, ChunkCache& cache, const BatchChunksSpec& spec);
  struct Sample {
    std::uint64_t chunk;
    std::uint64_t in_chunk;
    std::uint32_t at;             ///< in the batch
    const std::uint8_t* decoded;  ///< the chunk's samples, while it is held; null: left out
  };
  /// Finds the samples of a batch.
  void find(const BatchTask& task, const EpochBatches::Batch& batch);
  /// Asks for each chunk once. Lets go of the chunks that were held, and holds those of the samples from
  /// `begin` on; returns where the samples end whose chunks are held.
  [[nodiscard]] std::size_t hold(std::size_t begin, BatchCounts& counts, ByteBuffer& stored);
  void release() { pins_.clear(); }
  void leave_out(std::size_t index) { samples_[index].decoded = nullptr; }
  /// Leaves those out whose chunk is; the others are by their place in the batch then. Returns how many.
  [[nodiscard]] std::uint64_t leave_out_corrupt();
  /// Moves the samples behind those that were left out up: their places in the batch are 0, 1, ... again.
  void close_gaps();
  [[nodiscard]] std::span<const Sample> all() const { return samples_; }
  /// The sample's number in the source.
  [[nodiscard]] std::uint64_t number(const Sample& sample) const {
    return grid_.first_sample(sample.chunk) + sample.in_chunk;
  }

 private:
  [[nodiscard]] const std::uint8_t* acquire(std::uint64_t chunk, BatchCounts& counts, ByteBuffer& stored);
  void hold_all(BatchCounts& counts, ByteBuffer& stored);

  const ChunkGrid& grid_;
  ChunkCache& cache_;
  BatchChunksSpec spec_;
  EpochOrder::Window window_;
  std::vector<Sample> samples_;
  std::vector<ChunkCache::Pin> pins_;
  /// Of each chunk, where not by chunk: which batch asked for it last, and what it got.
  struct Held {
    std::uint64_t batch = 0;
    const std::uint8_t* decoded = nullptr;
  };
  std::vector<Held> held_;
  std::uint64_t batch_ = 0;  // counts those that were held
};

}  // namespace chunkhit
