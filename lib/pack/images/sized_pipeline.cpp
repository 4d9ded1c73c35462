// Images of their own sizes: rows → payloads (parallel), one at a time in each thread → chunks, in order.
#include <oneapi/tbb/parallel_pipeline.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "base/hash.h"
#include "pack/images/part_pipeline.h"
#include "pack/images/sized_decoder.h"

namespace chunkhit {
namespace {

/// Cuts images of their own sizes into chunks by their stored bytes, and writes these.
class SizedChunks {
 public:
  SizedChunks(std::uint64_t chunk_bytes, ChunkWriter& writer) : chunk_bytes_(chunk_bytes), writer_(writer) {}
  /// Takes the next sample; notes its size.
  void take(const SizedSample& sample, ImageSizes& sizes);
  /// Writes what is left.
  void finish();

 private:
  std::uint64_t chunk_bytes_;
  ChunkWriter& writer_;
  ByteBuffer chunk_;
  std::uint64_t sample_count_ = 0;
};

void SizedChunks::take(const SizedSample& sample, ImageSizes& sizes) {
  const std::uint64_t payload_bytes = sample.payload.size();
  const std::uint64_t stored_bytes = raw_frame_bytes(payload_bytes);
  if (sample_count_ > 0 && chunk_.size() + stored_bytes > chunk_bytes_) finish();
  append_raw_frame(sample.payload, chunk_);
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

/// A row and its sample.
struct SizedBlock : ListBlock {
  SizedSample sample;
  MemoryBudget::Share share;  ///< of the row and its payload
  bool is_made = false;
};

/// What a row takes beside its payload, so that a slow image does not leave endless tiny ones in work.
constexpr std::uint64_t kRowRoom = 4096;

class SizedPipeline final : public PartPipeline {
 public:
  using Decoders = tbb::enumerable_thread_specific<SizedSampleDecoder>;
  SizedPipeline(const PartJob& job, ChunkWriter& writer, Decoders& decoders)
      : PartPipeline(job, writer),
        decoders_(decoders),
        payloads_(std::max(job.buffer_bytes, 2 * job.chunk_bytes) - job.chunk_bytes +
                  kRowRoom * kBlocksPerThread * job.threads),
        chunks_(job.chunk_bytes, writer) {}

 private:
  // Images of their own sizes have no slots: each thread makes one at a time. It waits for room for a payload
  // only while it holds no memory of images. The first row that was not taken yet always has room, and is
  // being made: oneTBB holds no task back that others would wait for. So there is no deadlock.
  void run_steps() override {
    tbb::parallel_pipeline(
        kBlocksPerThread * job_.threads,
        tbb::make_filter<void, void>(tbb::filter_mode::parallel, [this](tbb::flow_control& flow) {
          SizedBlock* const block = next_sized(flow);
          if (block == nullptr) return;
          failure_.unless_failed([&] { make_sized(*block); });
          take_sized(*block);
        }));
  }

  /// Begins a row; nothing at the end.
  SizedBlock* next_sized(tbb::flow_control& flow) {
    const std::lock_guard lock(mutex_);
    if (failure_) flow.stop();
    return failure_.unless_failed([&]() -> SizedBlock* {
      if (stop_or_end()) {
        flow.stop();
        return nullptr;
      }
      SizedBlock& block = blocks_.emplace_back();
      begin_rows(1, block);
      return &block;
    });
  }

  void make_sized(SizedBlock& block) {
    block.share = MemoryBudget::Share(payloads_, kRowRoom, block.first_row);
    make_sample(decoders_.local(), block, 0, [&](SizedSampleDecoder& decoder, std::uint32_t index) {
      block.sample = decoder.make_sized(job_.list, index, block.share);
      block.pixels.add(block.sample.pixels);
    });
    // JPEG that has no tiles, and noise, may be larger than expected.
    block.share.resize(kRowRoom + block.sample.payload.size());
  }

  /// Takes the blocks that are made, in order; where another thread does that already, it takes this one,
  /// too.
  void take_sized(SizedBlock& made) {
    std::unique_lock lock(mutex_);
    made.is_made = true;
    if (std::exchange(is_taking_, true)) return;
    while (!blocks_.empty() && blocks_.front().is_made) {
      SizedBlock& block = blocks_.front();
      lock.unlock();
      failure_.unless_failed([&] { take(std::move(block)); });
      lock.lock();
      blocks_.pop_front();
      payloads_.advance();
    }
    is_taking_ = false;
  }

  /// Frees the block's payload and its share.
  void take(SizedBlock block) {
    take_rows(block, [&](std::size_t) { chunks_.take(block.sample, outcome_.samples.sizes); });
  }

  void finish_chunks() override { chunks_.finish(); }

  Decoders& decoders_;
  MemoryBudget payloads_;
  SizedChunks chunks_;
  std::mutex mutex_;
  std::deque<SizedBlock> blocks_;  // in work, or made before an earlier one
  bool is_taking_ = false;         // a thread takes blocks
};

}  // namespace

std::unique_ptr<PartPacker> sized_packer(DecoderContext& context) {
  return std::make_unique<PackerOf<SizedSamples, SizedPipeline, SizedSampleDecoder>>(context);
}

}  // namespace chunkhit
