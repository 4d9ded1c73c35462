// Makes batches of images: copies samples and changes them on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "read/batch_ring.h"
#include "read/image_source.h"
#include "read/stored_images.h"

namespace chunkhit {

/// What all assemblers of a loader share.
struct ImageBatchContext {
  const ImageSource& source;
  const ChunkGrid& grid;
  ChunkCache& cache;
  ImageCopier& copier;
  const BatchRing<BatchBuffer>& ring;
  std::uint64_t seed;
  std::uint64_t echo;
  BatchChunksSpec chunks;
};

class ImageBatchAssembler final : public BatchAssembler {
 public:
  explicit ImageBatchAssembler(const ImageBatchContext& context);
  void make(const BatchTask& task, std::size_t slot) override;
  [[nodiscard]] MadeBatch complete(const BatchTask& task, std::size_t slot) override;

 private:
  [[nodiscard]] bool is_read_in_place(std::size_t index) const;
  void read_samples(std::size_t begin, std::size_t end, BatchBuffer& buffer);
  void copy_samples(std::size_t begin, std::size_t end, const BatchTask& task, std::uint32_t pass,
                    BatchBuffer& buffer);
  [[nodiscard]] bool write_sample(std::size_t at, const std::uint8_t* stored, const BatchTask& task,
                                  std::uint32_t pass, BatchBuffer& buffer);
  void copy_label(std::uint64_t sample, std::size_t at, BatchBuffer& buffer) const;
  [[nodiscard]] std::size_t close_gaps(std::size_t batch_size, BatchBuffer& buffer) const;
  void move_sample(std::size_t from, std::size_t to, BatchBuffer& buffer) const;
  void show(const BatchTask& task, std::size_t count, BatchBuffer& buffer) const;
  void show_fields(std::size_t count, BatchBuffer& buffer) const;

  ImageBatchContext context_;
  std::size_t image_bytes_;                // of a sample in the batch
  std::vector<std::uint8_t*> field_outs_;  // of the sample that is written
  BatchSamples samples_;
  ByteBuffer sample_;                          // where samples are read one by one
  std::vector<ChunkCache::SampleRead> reads_;  // straight into the batch
};

}  // namespace chunkhit
