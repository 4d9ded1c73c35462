// The pipeline that packs one part: rows → samples in their chunk's slots → encoded chunks → writer.
#pragma once

#include <oneapi/tbb/enumerable_thread_specific.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "codec/chunk_codec.h"
#include "listing/sample_list.h"
#include "manifest/manifest.h"
#include "pack/images/sample_decoder.h"
#include "store/part.h"

namespace chunkhit {

/// Room for the samples of one chunk; filled in place by several threads, each in its own slots.
struct ChunkBuffer {
  ByteBuffer bytes;
};

/// A whole chunk, or the last one of a part.
struct FilledChunk {
  std::shared_ptr<ChunkBuffer> buffer;  // shared: blocks of one chunk are made by several threads
  std::uint64_t sample_count = 0;
};

/// Takes samples in order, out of the slots in which they were made. Without a gap no byte moves.
class ChunkAssembler {
 public:
  ChunkAssembler(std::uint64_t chunk_samples, std::uint64_t sample_bytes)
      : chunk_samples_(chunk_samples), sample_bytes_(sample_bytes) {}
  /// Takes the sample in `slot` of `buffer`; buffers and slots come in ascending order.
  void take(const std::shared_ptr<ChunkBuffer>& buffer, std::uint64_t slot);
  /// Ends the part: what is left is a chunk too.
  void finish();
  /// Hands out the chunks that are whole.
  [[nodiscard]] std::vector<FilledChunk> collect() { return std::exchange(filled_, {}); }

 private:
  std::uint64_t chunk_samples_;
  std::uint64_t sample_bytes_;
  FilledChunk current_;
  std::vector<FilledChunk> filled_;
};

/// Cuts images of their own sizes into chunks by their stored bytes, and writes these.
class SizedChunks {
 public:
  /// `framed`: each payload in a zstd frame of raw blocks.
  SizedChunks(std::uint64_t chunk_bytes, bool framed, ChunkWriter& writer)
      : chunk_bytes_(chunk_bytes), framed_(framed), writer_(writer) {}
  /// Takes the next sample; notes its size.
  void take(const SizedSample& sample, ImageSizes& sizes);
  /// Writes what is left.
  void finish();

 private:
  std::uint64_t chunk_bytes_;
  bool framed_;
  ChunkWriter& writer_;
  ByteBuffer chunk_;
  std::uint64_t sample_count_ = 0;
};

/// Samples made by one task: enough to make the task's own cost small, few enough to spread the end of a
/// part.
inline constexpr std::uint64_t kBlockSamples = 8;

/// Chunks that a part holds at least: the blocks of one may lie in two, and the assembler may hold another
/// one before them.
inline constexpr std::uint64_t kMinChunks = 3;

/// Blocks that are in work at most.
inline constexpr std::uint64_t kBlocksPerThread = 4;

/// What a chunk of `chunk_bytes` takes while it is in work: raw, and encoded where there is a codec.
[[nodiscard]] inline std::uint64_t work_bytes(std::string_view codec, std::uint64_t chunk_bytes) {
  return codec == "none" ? chunk_bytes : 2 * chunk_bytes;
}

/// The threads' decoders: those of all parts, because each keeps buffers and tables.
using SampleDecoders = tbb::enumerable_thread_specific<SampleDecoder>;

/// What a part is packed with.
struct PartJob {
  const DecoderContext& context;
  SampleDecoders& decoders;
  const SampleList& list;
  std::span<const std::uint32_t> indices;  ///< of the list, in the order of packing
  const ChunkCodec& codec;
  int level = 0;
  std::uint64_t chunk_samples = 1;  ///< 0: images of their own sizes
  std::uint64_t chunk_bytes = 0;    ///< of these: stored bytes of a chunk, unless one image has more
  const Container& container;
  std::uint64_t buffer_bytes = 0;    ///< what chunks in work may hold
  std::uint32_t threads = 1;         ///< that this part has on average
  std::function<bool()> is_stopped;  ///< any thread may call it
  /// Called for every row in order, by one thread at a time, with its reject or its warning where it has
  /// one; throws to end the run.
  std::function<void(const Reject* reject, const Reject* warning)> on_row;
};

/// What came out beside the chunks.
struct PartOutcome {
  PartSamples samples;
  std::vector<FileStamp> inputs;  ///< per row
  PartRecord record;              ///< all but file, bytes and xxh3
  bool interrupted = false;       ///< stopped: the part is not whole
};

/// Packs one part into `writer`; samples are stored without gaps, whatever was rejected. Equal bytes for any
/// number of threads.
[[nodiscard]] PartOutcome pack_part(const PartJob& job, ChunkWriter& writer);

}  // namespace chunkhit
