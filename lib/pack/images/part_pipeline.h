// What packing a part has in common whatever its samples are: rows become blocks, which are taken in order.
#pragma once

#include <oneapi/tbb/enumerable_thread_specific.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "pack/buffer_pool.h"
#include "pack/images/image_pipeline.h"
#include "types/pixel_sums.h"

namespace chunkhit {

/// Consecutive rows of the list.
struct ListBlock {
  std::uint64_t first_row = 0;                    ///< in the job's indices
  std::vector<std::optional<ImageError>> errors;  ///< per row: why no sample was made
  std::vector<std::string> warnings;              ///< per row
  std::vector<FileStamp> inputs;                  ///< per row
  std::vector<InputImage> images;                 ///< per row, of samples that were made
  PixelSums pixels;
};

/// Packs one part. Order and bytes do not depend on the number of threads.
class PartPipeline {
 public:
  PartPipeline(const PartJob& job, ChunkWriter& writer);
  virtual ~PartPipeline() = default;
  [[nodiscard]] PartOutcome run();

 protected:
  /// Makes all samples, and takes them in order.
  virtual void run_steps() = 0;
  /// Writes what is left in the last chunk.
  virtual void finish_chunks() = 0;
  [[nodiscard]] std::uint64_t rows_left() const { return job_.indices.size() - next_row_; }
  /// Returns whether no further block is begun: at the end, or where the run is stopped, which it notes.
  [[nodiscard]] bool stop_or_end();
  /// Begins the next `count` rows.
  void begin_rows(std::uint64_t count, ListBlock& block);
  /// Makes one sample of a block by make(decoder, list index); a reject is noted.
  template <class Decoder, class Make>
  void make_sample(Decoder& decoder, ListBlock& block, std::size_t at, const Make& make) const {
    try {
      make(decoder, job_.indices[block.first_row + at]);
      block.warnings[at] = decoder.files().warnings();
      block.images[at] = decoder.files().input();
    } catch (const ImageError& error) {
      block.errors[at] = error;
    }
    block.inputs[at] = decoder.files().stamp();
  }
  /// Takes the next block: records its rows, and calls take(at) for each sample that was made.
  template <class Take>
  void take_rows(const ListBlock& block, const Take& take) {
    record_.pixels.add(block.pixels);
    outcome_.inputs.insert(outcome_.inputs.end(), block.inputs.begin(), block.inputs.end());
    for (std::size_t at = 0; at < block.errors.size(); ++at) {
      if (!block.errors[at]) take(at);
      note(block, at);
    }
  }

  const PartJob& job_;
  ChunkWriter& writer_;
  PartOutcome outcome_;
  FirstFailure failure_;

 private:
  void note(const ListBlock& block, std::size_t at);
  void keep(std::uint32_t index);
  [[nodiscard]] Reject listed(std::uint32_t index, const std::string& reason, RejectKind kind) const;

  PartRecord record_;
  std::uint64_t next_row_ = 0;
};

/// Packs parts by `Pipeline`, with a `Decoder` for each thread; parts hold `Samples`.
template <class Samples, class Pipeline, class Decoder>
class PackerOf final : public PartPacker {
 public:
  explicit PackerOf(DecoderContext& context) : decoders_([&context] { return Decoder(context); }) {}
  void set_samples(PartSpec& part) const override { part.samples.emplace<Samples>(); }
  [[nodiscard]] PartOutcome pack(const PartJob& job, ChunkWriter& writer) override {
    return Pipeline(job, writer, decoders_).run();
  }

 private:
  tbb::enumerable_thread_specific<Decoder> decoders_;
};

}  // namespace chunkhit
