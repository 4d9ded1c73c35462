// Puts a batch together: finds its samples, gets their chunks, copies and changes them.
#pragma once

#include <cstdint>
#include <vector>

#include "augment/sample_writer.h"
#include "base/bytes.h"
#include "batch/epoch_batches.h"
#include "batch/epoch_order.h"
#include "cache/chunk_cache.h"
#include "read/batch_buffer.h"
#include "read/image_source.h"

namespace chunkhit {

/// What making one batch took.
struct BatchCounts {
  double assemble_seconds = 0;  ///< without getting the chunks
  std::uint64_t chunk_hits = 0;
  std::uint64_t chunk_misses = 0;
  void add(const BatchCounts& other);
};

/// Makes batches; each thread has its own, because it keeps tables between batches.
class BatchMaker {
 public:
  BatchMaker(const ImageSource& source, const ChunkGrid& grid, ChunkCache& cache, const SampleWriter& writer,
             std::uint64_t seed)
      : source_(source), grid_(grid), cache_(cache), writer_(writer), seed_(seed) {}
  /// Fills `buffer` with a batch of an epoch; throws bad_data for a damaged chunk.
  void make(std::uint64_t epoch, const EpochOrder& order, const EpochBatches& batches, std::uint64_t index,
            BatchBuffer& buffer);
  [[nodiscard]] const BatchCounts& counts() const { return counts_; }  ///< of the last batch
  [[nodiscard]] ByteBuffer& stored() { return stored_; }               ///< scratch for stored bytes

 private:
  struct Wanted {
    std::uint64_t chunk;
    std::uint64_t in_chunk;
    std::uint32_t at;  // in the batch
    const std::uint8_t* stored;
  };
  void find_samples(const EpochOrder& order, const EpochBatches& batches, const EpochBatches::Batch& batch);
  [[nodiscard]] bool pin_chunks();  // false when some are left out
  [[nodiscard]] std::uint64_t leave_out_corrupt();
  void copy_samples(std::uint64_t epoch, std::uint32_t pass, BatchBuffer& buffer);
  void copy_label(std::uint64_t sample, std::size_t at, BatchBuffer& buffer) const;

  const ImageSource& source_;
  const ChunkGrid& grid_;
  ChunkCache& cache_;
  const SampleWriter& writer_;
  std::uint64_t seed_;
  ByteBuffer stored_;
  EpochOrder::Window window_;
  std::vector<Wanted> wanted_;
  std::vector<ChunkCache::Pin> pins_;
  BatchCounts counts_;
};

}  // namespace chunkhit
