// Makes batches of images: copies samples and changes them on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "augment/sample_writer.h"
#include "read/batch_ring.h"
#include "read/image_source.h"

namespace chunkhit {

/// What all makers of a loader share.
struct ImageBatchContext {
  const ImageSource& source;
  const ChunkGrid& grid;
  ChunkCache& cache;
  const SampleWriter& writer;
  const BatchRing<BatchBuffer>& ring;
  std::uint64_t seed;
  BatchChunksSpec chunks;
};

class ImageBatchAssembler final : public BatchAssembler {
 public:
  explicit ImageBatchAssembler(const ImageBatchContext& context);
  MadeBatch make(const BatchTask& task, std::size_t slot) override;

 private:
  void copy_samples(std::size_t begin, std::size_t end, const BatchTask& task, std::uint32_t pass,
                    BatchBuffer& buffer);
  void copy_label(std::uint64_t sample, std::size_t at, BatchBuffer& buffer) const;
  void move_sample(std::size_t from, std::size_t to, BatchBuffer& buffer) const;
  void show(const BatchTask& task, BatchBuffer& buffer) const;

  ImageBatchContext context_;
  BatchSamples samples_;
  ByteBuffer sample_;  // where samples are read one by one
};

}  // namespace chunkhit
