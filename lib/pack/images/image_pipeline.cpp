#include "pack/images/image_pipeline.h"

#include <oneapi/tbb/parallel_pipeline.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/text.h"
#include "pack/buffer_pool.h"

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

void SizedChunks::take(const SizedSample& sample, ImageSizes& sizes) {
  const std::uint64_t payload_bytes = sample.payload.size();
  const std::uint64_t stored_bytes = framed_ ? raw_frame_bytes(payload_bytes) : payload_bytes;
  if (sample_count_ > 0 && chunk_.size() + stored_bytes > chunk_bytes_) finish();
  if (framed_)
    append_raw_frame(sample.payload, chunk_);
  else
    chunk_.insert(chunk_.end(), sample.payload.begin(), sample.payload.end());
  ++sample_count_;
  sizes.payload_bytes.push_back(static_cast<std::uint32_t>(payload_bytes));
  sizes.heights.push_back(sample.height);
  sizes.widths.push_back(sample.width);
  sizes.kinds.push_back(static_cast<std::uint8_t>(sample.kind));
  sizes.orientations.push_back(static_cast<std::uint8_t>(sample.orientation));
  sizes.payload_xxh3.push_back(sample.xxh3);
  if (sample.mask_bytes != 0) sizes.mask_bytes.push_back(sample.mask_bytes);
}

void SizedChunks::finish() {
  if (sample_count_ == 0) return;
  writer_.append({chunk_, chunk_.size(), sample_count_, xxh3(chunk_), false});
  chunk_.clear();
  if (chunk_.capacity() > 2 * chunk_bytes_) ByteBuffer().swap(chunk_);  // one large image was in it
  sample_count_ = 0;
}

namespace {

/// Consecutive rows whose samples have consecutive slots of one buffer, or sizes of their own.
struct Block {
  std::shared_ptr<ChunkBuffer> buffer;  ///< none for images of their own sizes
  std::uint64_t first_row = 0;          ///< in the job's indices
  std::uint64_t first_slot = 0;
  std::vector<std::optional<std::string>> reasons;  ///< per row: why no sample was made
  std::vector<std::string> warnings;                ///< per row
  std::vector<FileStamp> inputs;                    ///< per row
  std::vector<InputImage> images;                   ///< per row, of samples that were made
  PixelSums pixels;
  // Of images of their own sizes, one a block:
  SizedSample sized;
  MemoryBudget::Share share;  ///< of the row and its payload
  bool is_made = false;
};

/// What a row takes beside its payload, so that a slow image does not leave endless tiny ones in work.
constexpr std::uint64_t kRowRoom = 4096;

/// A chunk with its stored bytes; `encoded` is empty where the raw bytes are stored.
struct StoredSamples {
  FilledChunk filled;
  std::uint64_t raw_bytes = 0;
  std::shared_ptr<ByteBuffer> encoded;
  std::uint64_t xxh3 = 0;
};

/// Packs one part: list rows, decode (parallel), close gaps of rejected samples, compress (parallel), and
/// write in order. Order and bytes do not depend on the number of threads.
class PartPipeline {
 public:
  PartPipeline(const PartJob& job, ChunkWriter& writer)
      : job_(job),
        writer_(writer),
        sample_bytes_(job.context.sample.byte_count()),
        assembler_(job.chunk_samples, sample_bytes_),
        payloads_(std::max(job.buffer_bytes, 2 * job.chunk_bytes) - job.chunk_bytes +
                  kRowRoom * kBlocksPerThread * job.threads),
        sized_chunks_(job.chunk_bytes, job.container.is_zstd_stream, writer) {
    record_.inputs.emplace();
    for (const PackColumn& column : column_types(job.list.columns))
      outcome_.samples.columns.push_back(empty_column(column));
  }

  PartOutcome run() {
    if (is_sized())
      run_sized();
    else
      run_steps();
    failure_.rethrow();
    assembler_.finish();
    append(encode(assembler_.collect()));
    sized_chunks_.finish();
    record_.samples = outcome_.samples.rows.size();
    outcome_.samples.mean = record_.pixels.mean(job_.context.sample.channels);
    outcome_.samples.std = record_.pixels.std(job_.context.sample.channels);
    outcome_.record = std::move(record_);
    return std::move(outcome_);
  }

 private:
  using Filled = std::vector<FilledChunk>;
  using Stored = std::vector<StoredSamples>;

  void run_steps() {
    using tbb::filter_mode;
    tbb::parallel_pipeline(
        token_count(),
        tbb::make_filter<void, Block>(filter_mode::serial_in_order, [this](tbb::flow_control& flow) {
          if (failure_) flow.stop();
          return failure_.unless_failed([&] { return next_block(flow); });
        }) & tbb::make_filter<Block, Block>(filter_mode::parallel, [this](Block block) {
          return failure_.unless_failed([&] { return make(std::move(block)); });
        }) & tbb::make_filter<Block, Filled>(filter_mode::serial_in_order, [this](Block block) {
          return failure_.unless_failed([&] { return assemble(std::move(block)); });
        }) & tbb::make_filter<Filled, Stored>(filter_mode::parallel, [this](Filled chunks) {
          return failure_.unless_failed([&] { return encode(std::move(chunks)); });
        }) & tbb::make_filter<Stored, void>(filter_mode::serial_in_order, [this](const Stored& chunks) {
          failure_.unless_failed([&] { append(chunks); });
        }));
  }

  // Images of their own sizes have no slots: each thread makes one at a time. It waits for room for a payload
  // only while it holds no memory of images. The first row that was not taken yet always has room, and is
  // being made: oneTBB holds no task back that others would wait for. So there is no deadlock.
  void run_sized() {
    tbb::parallel_pipeline(
        kBlocksPerThread * job_.threads,
        tbb::make_filter<void, void>(tbb::filter_mode::parallel, [this](tbb::flow_control& flow) {
          Block* const block = next_sized(flow);
          if (block == nullptr) return;
          failure_.unless_failed([&] { make_sized(*block); });
          take_sized(*block);
        }));
  }

  /// Begins a row; nothing at the end.
  Block* next_sized(tbb::flow_control& flow) {
    const std::lock_guard lock(mutex_);
    if (failure_) flow.stop();
    return failure_.unless_failed([&]() -> Block* {
      Block block = next_block(flow);
      return block.reasons.empty() ? nullptr : &blocks_.emplace_back(std::move(block));
    });
  }

  void make_sized(Block& block) {
    block.share = MemoryBudget::Share(payloads_, kRowRoom, block.first_row);
    make(block, 0);
    // JPEG that has no tiles, and noise, may be larger than expected.
    block.share.resize(kRowRoom + block.sized.payload.size());
  }

  /// Takes the blocks that are made, in order; where another thread does that already, it takes this one,
  /// too.
  void take_sized(Block& made) {
    std::unique_lock lock(mutex_);
    made.is_made = true;
    if (std::exchange(is_taking_, true)) return;
    while (!blocks_.empty() && blocks_.front().is_made) {
      Block& block = blocks_.front();
      lock.unlock();
      failure_.unless_failed([&] { static_cast<void>(assemble(std::move(block))); });
      lock.lock();
      blocks_.pop_front();
      payloads_.advance();
    }
    is_taking_ = false;
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
  Block next_block(tbb::flow_control& flow) {
    const bool stopped = job_.is_stopped();
    if (stopped) outcome_.interrupted = true;
    if (stopped || next_row_ == job_.indices.size()) {
      flow.stop();
      return {};
    }
    if (is_sized()) return next_rows(1);
    if (next_slot_ == 0) {
      open_ = chunks_.get();
      open_->bytes.resize(job_.chunk_samples * sample_bytes_);
    }
    Block block = next_rows(
        std::min({kBlockSamples, job_.chunk_samples - next_slot_, job_.indices.size() - next_row_}));
    next_slot_ = (next_slot_ + block.reasons.size()) % job_.chunk_samples;
    return block;
  }

  Block next_rows(std::uint64_t count) {
    Block block;
    block.buffer = open_;
    block.first_row = next_row_;
    block.first_slot = next_slot_;
    block.reasons.resize(count);
    block.warnings.resize(count);
    block.inputs.resize(count);
    block.images.resize(count);
    next_row_ += count;
    return block;
  }

  [[nodiscard]] bool is_sized() const { return job_.chunk_samples == 0; }

  Block make(Block block) {
    for (std::size_t at = 0; at < block.reasons.size(); ++at) make(block, at);
    return block;
  }

  /// Makes one sample of a block.
  void make(Block& block, std::size_t at) {
    SampleDecoder& decoder = job_.decoders.local();
    const std::uint32_t index = job_.indices[block.first_row + at];
    // A reason may name bytes of a damaged file; part records and tables hold UTF-8.
    try {
      if (is_sized()) {
        block.sized = decoder.make_sized(job_.list, index, block.share);
        block.pixels.add(block.sized.pixels);
      } else {
        std::uint8_t* slot = block.buffer->bytes.data() + (block.first_slot + at) * sample_bytes_;
        decoder.make(job_.list, index, slot);
        block.pixels.add_sample(slot, job_.context.sample);
      }
      block.warnings[at] = escape_bytes(decoder.warnings());
      block.images[at] = decoder.input();
    } catch (const ImageError& error) {
      block.reasons[at] = escape_bytes(error.reason());
    }
    block.inputs[at] = decoder.stamp();
  }

  void take(Block& block, std::size_t at) {
    if (is_sized())
      sized_chunks_.take(block.sized, outcome_.samples.sizes);
    else
      assembler_.take(block.buffer, block.first_slot + at);
  }

  std::vector<FilledChunk> assemble(Block block) {
    record_.pixels.add(block.pixels);
    outcome_.inputs.insert(outcome_.inputs.end(), block.inputs.begin(), block.inputs.end());
    for (std::size_t at = 0; at < block.reasons.size(); ++at) {
      const std::uint32_t index = job_.indices[block.first_row + at];
      ++record_.rows;
      if (!block.reasons[at]) {
        keep(index);
        add_image(block.images[at], *record_.inputs);
        const bool is_odd = !block.warnings[at].empty();
        if (is_odd) record_.warnings.push_back(listed(index, block.warnings[at]));
        take(block, at);
        job_.on_row(nullptr, is_odd ? &record_.warnings.back() : nullptr);
      } else {
        record_.rejects.push_back(listed(index, *block.reasons[at]));
        job_.on_row(&record_.rejects.back(), nullptr);
      }
    }
    return assembler_.collect();
  }

  [[nodiscard]] Reject listed(std::uint32_t index, const std::string& reason) const {
    return {job_.list.row(index), std::string(job_.list.file(index)), job_.list.label_text(index), reason};
  }

  /// Records row, file and label of a sample that was packed.
  void keep(std::uint32_t index) {
    PartSamples& samples = outcome_.samples;
    samples.rows.push_back(job_.list.row(index));
    samples.files.add(job_.list.file(index));
    for (std::size_t column = 0; column < samples.columns.size(); ++column)
      samples.columns[column].append(job_.list.columns[column], index);
    if (job_.list.label_kind == LabelKind::class_id) {
      samples.labels.ids.push_back(job_.list.class_ids[index]);
      ++record_.class_counts[job_.list.class_ids[index]];
      return;
    }
    const std::size_t columns = job_.list.label_columns.size();
    const auto first = job_.list.values.begin() + static_cast<std::ptrdiff_t>(index * columns);
    samples.labels.values.insert(samples.labels.values.end(), first,
                                 first + static_cast<std::ptrdiff_t>(columns));
  }

  std::vector<StoredSamples> encode(std::vector<FilledChunk> chunks) {
    std::vector<StoredSamples> stored;
    stored.reserve(chunks.size());
    for (FilledChunk& chunk : chunks) stored.push_back(encode(std::move(chunk)));
    return stored;
  }

  StoredSamples encode(FilledChunk chunk) {
    StoredSamples stored{std::move(chunk), 0, nullptr, 0};
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
    stored.xxh3 = chunkhit::xxh3(stored.encoded ? Bytes(*stored.encoded) : raw);
    return stored;
  }

  void append(const std::vector<StoredSamples>& chunks) {
    for (const StoredSamples& chunk : chunks) {
      const Bytes raw(chunk.filled.buffer->bytes.data(), chunk.raw_bytes);
      writer_.append({chunk.encoded ? Bytes(*chunk.encoded) : raw, chunk.raw_bytes, chunk.filled.sample_count,
                      chunk.xxh3, chunk.encoded != nullptr});
    }
  }

  const PartJob& job_;
  ChunkWriter& writer_;
  const std::uint64_t sample_bytes_;
  // The pools outlive whatever still holds one of their buffers.
  BufferPool<ChunkBuffer> chunks_;
  BufferPool<ByteBuffer> encoded_;
  ChunkAssembler assembler_;
  MemoryBudget payloads_;
  SizedChunks sized_chunks_;
  std::shared_ptr<ChunkBuffer> open_;
  std::uint64_t next_row_ = 0;
  std::uint64_t next_slot_ = 0;
  // Of images of their own sizes:
  std::mutex mutex_;
  std::deque<Block> blocks_;  // in work, or made before an earlier one
  bool is_taking_ = false;    // a thread takes blocks
  PartRecord record_;
  PartOutcome outcome_;
  FirstFailure failure_;
};

}  // namespace

PartOutcome pack_part(const PartJob& job, ChunkWriter& writer) { return PartPipeline(job, writer).run(); }

}  // namespace chunkhit
