// Images of one shape, made in the slots of their chunk: rows → decode (parallel) → close gaps → compress
// (parallel) → write in order. Rejected samples leave gaps.
#include <oneapi/tbb/parallel_pipeline.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "pack/images/chunk_assembler.h"
#include "pack/images/part_pipeline.h"

namespace chunkhit {

void ChunkAssembler::take(const std::shared_ptr<ChunkBuffer>& buffer, std::uint64_t slot) {
  // A new chunk begins in the buffer that holds the sample. Samples only move towards the front of a buffer,
  // so they never overwrite one that was not taken yet.
  if (current_.buffer == nullptr) current_ = {buffer, 0};
  const std::uint8_t* from = buffer->bytes.data() + slot * sample_bytes_;
  std::uint8_t* to = current_.buffer->bytes.data() + current_.sample_count * sample_bytes_;
  if (from != to) std::memmove(to, from, sample_bytes_);
  if (++current_.sample_count == chunk_samples_) filled_.push_back(std::exchange(current_, {}));
}

void ChunkAssembler::finish() {
  if (current_.buffer != nullptr) filled_.push_back(std::exchange(current_, {}));
}

namespace {

/// Rows whose samples have consecutive slots of one buffer.
struct SlotBlock : ListBlock {
  std::shared_ptr<ChunkBuffer> buffer;
  std::uint64_t first_slot = 0;
};

/// A chunk with its stored bytes; `encoded` is empty where the raw bytes are stored.
struct StoredSamples {
  FilledChunk filled;
  std::uint64_t raw_bytes = 0;
  std::shared_ptr<ByteBuffer> encoded;
  ChunkHashes hashes = {};
};

class FixedPipeline final : public PartPipeline {
 public:
  using Decoders = tbb::enumerable_thread_specific<SampleDecoder>;
  FixedPipeline(const PartJob& job, ChunkWriter& writer, Decoders& decoders)
      : PartPipeline(job, writer),
        decoders_(decoders),
        sample_bytes_(job.context.sample.byte_count()),
        block_bytes_(job.container.hashes_samples(job.codec.name) ? hashed_block_bytes(sample_bytes_) : 0),
        assembler_(job.chunk_samples, sample_bytes_) {}

 private:
  using Filled = std::vector<FilledChunk>;
  using Stored = std::vector<StoredSamples>;

  void run_steps() override {
    using tbb::filter_mode;
    tbb::parallel_pipeline(
        token_count(),
        tbb::make_filter<void, SlotBlock>(filter_mode::serial_in_order,
                                          [this](tbb::flow_control& flow) {
                                            if (failure_) flow.stop();
                                            return failure_.unless_failed([&] { return next_block(flow); });
                                          }) &
            tbb::make_filter<SlotBlock, SlotBlock>(filter_mode::parallel,
                                                   [this](SlotBlock block) {
                                                     return failure_.unless_failed(
                                                         [&] { return make(std::move(block)); });
                                                   }) &
            tbb::make_filter<SlotBlock, Filled>(filter_mode::serial_in_order,
                                                [this](const SlotBlock& block) {
                                                  return failure_.unless_failed(
                                                      [&] { return assemble(block); });
                                                }) &
            tbb::make_filter<Filled, Stored>(filter_mode::parallel,
                                             [this](Filled chunks) {
                                               return failure_.unless_failed(
                                                   [&] { return encode(std::move(chunks)); });
                                             }) &
            tbb::make_filter<Stored, void>(filter_mode::serial_in_order, [this](const Stored& chunks) {
              failure_.unless_failed([&] { append(chunks); });
            }));
  }

  void finish_chunks() override {
    assembler_.finish();
    append(encode(assembler_.collect()));
  }

  /// Returns how many blocks may be in work: enough for all threads, within the memory for chunks.
  [[nodiscard]] std::size_t token_count() const {
    // The blocks of one chunk may lie in two, and the assembler may hold another one before them.
    const std::uint64_t chunk_bytes = work_bytes(job_.codec.name, job_.chunk_samples * sample_bytes_);
    const std::uint64_t chunks = std::max(kMinChunks, job_.buffer_bytes / chunk_bytes) - (kMinChunks - 1);
    const std::uint64_t blocks = chunks * std::max<std::uint64_t>(1, job_.chunk_samples / kBlockSamples);
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(blocks, 1, kBlocksPerThread * job_.threads));
  }

  /// Divides the rows into blocks of slots in one chunk buffer.
  SlotBlock next_block(tbb::flow_control& flow) {
    SlotBlock block;
    if (stop_or_end()) {
      flow.stop();
      return block;
    }
    if (next_slot_ == 0) {
      open_ = chunks_.get();
      open_->bytes.resize(job_.chunk_samples * sample_bytes_);
    }
    block.buffer = open_;
    block.first_slot = next_slot_;
    begin_rows(std::min({kBlockSamples, job_.chunk_samples - next_slot_, rows_left()}), block);
    next_slot_ = (next_slot_ + block.errors.size()) % job_.chunk_samples;
    return block;
  }

  SlotBlock make(SlotBlock block) {
    std::uint8_t* slot = block.buffer->bytes.data() + block.first_slot * sample_bytes_;
    for (std::size_t at = 0; at < block.errors.size(); ++at, slot += sample_bytes_)
      make_sample(decoders_.local(), block, at, [&](SampleDecoder& decoder, std::uint32_t index) {
        decoder.make(job_.list, index, slot);
        block.pixels.add_sample(slot, job_.context.sample);
      });
    return block;
  }

  Filled assemble(const SlotBlock& block) {
    take_rows(block, [&](std::size_t at) { assembler_.take(block.buffer, block.first_slot + at); });
    return assembler_.collect();
  }

  std::vector<StoredSamples> encode(std::vector<FilledChunk> chunks) {
    std::vector<StoredSamples> stored;
    stored.reserve(chunks.size());
    for (FilledChunk& chunk : chunks) stored.push_back(encode(std::move(chunk)));
    return stored;
  }

  StoredSamples encode(FilledChunk chunk) {
    StoredSamples stored{std::move(chunk)};
    const std::uint64_t filled = stored.filled.sample_count * sample_bytes_;
    ByteBuffer& bytes = stored.filled.buffer->bytes;
    stored.raw_bytes = job_.container.pads_last_chunk ? bytes.size() : filled;
    std::memset(bytes.data() + filled, 0, stored.raw_bytes - filled);
    const Bytes raw(bytes.data(), stored.raw_bytes);
    if (job_.codec.name != "none") {
      stored.encoded = encoded_.get();
      job_.codec.encode(raw, job_.context.sample, job_.level, job_.container.is_zstd_stream, *stored.encoded);
      // Incompressible chunks are stored raw.
      if (stored.encoded->size() >= raw.size()) stored.encoded.reset();
    }
    stored.hashes = hash_chunk(stored.encoded ? Bytes(*stored.encoded) : raw, block_bytes_);
    return stored;
  }

  void append(const std::vector<StoredSamples>& chunks) {
    for (const StoredSamples& chunk : chunks) {
      const Bytes raw(chunk.filled.buffer->bytes.data(), chunk.raw_bytes);
      writer_.append({chunk.encoded ? Bytes(*chunk.encoded) : raw, chunk.raw_bytes, chunk.filled.sample_count,
                      chunk.hashes.chunk, chunk.encoded != nullptr, chunk.hashes.samples});
    }
  }

  Decoders& decoders_;
  const std::uint64_t sample_bytes_;
  const std::uint64_t block_bytes_;  // of the samples that share a hash; 0: none do
  // The pools outlive whatever still holds one of their buffers.
  BufferPool<ChunkBuffer> chunks_;
  BufferPool<ByteBuffer> encoded_;
  ChunkAssembler assembler_;
  std::shared_ptr<ChunkBuffer> open_;
  std::uint64_t next_slot_ = 0;
};

}  // namespace

std::unique_ptr<PartPacker> fixed_packer(DecoderContext& context) {
  return std::make_unique<PackerOf<FixedSamples, FixedPipeline, SampleDecoder>>(context);
}

}  // namespace chunkhit
