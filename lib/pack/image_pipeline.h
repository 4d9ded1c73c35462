// The pipeline that packs one part: rows → samples in their chunk's slots → encoded chunks → writer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "codec/chunk_codec.h"
#include "listing/sample_list.h"
#include "manifest/manifest.h"
#include "pack/sample_decoder.h"
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

/// Samples made by one task: enough to make the task's own cost small, few enough to spread the end of a
/// part.
inline constexpr std::uint64_t kBlockSamples = 8;

/// What a part is packed with.
struct PartJob {
  AssemblerContext& context;
  const SampleList& list;
  std::span<const std::uint32_t> indices;  ///< of the list, in the order of packing
  const ChunkCodec& codec;
  int level = 0;
  std::uint64_t chunk_samples = 1;
  bool pads_last_chunk = false;    ///< the container wants whole chunks
  std::uint64_t buffer_bytes = 0;  ///< what chunks in work may hold
  std::uint32_t threads = 1;
  const std::atomic<bool>* stop = nullptr;
  /// Called for every row in order, by one thread at a time, with its reject or its warning where it has
  /// one; throws to end the run.
  std::function<void(std::uint64_t rows_done, const Reject* reject, const Reject* warning)> on_row;
};

/// What came out beside the chunks.
struct PartOutcome {
  PartSamples samples;
  std::vector<FileStamp> inputs;  ///< per row
  PartRecord record;              ///< all but file, bytes and xxh3
  bool interrupted = false;       ///< `stop` was seen: the part is not whole
};

/// Packs one part into `writer`; samples are stored without gaps, whatever was rejected. Equal bytes for any
/// number of threads.
[[nodiscard]] PartOutcome pack_part(const PartJob& job, ChunkWriter& writer);

}  // namespace chunkhit
