// Closes the gaps that rejected images leave in the slots of a chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"

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

}  // namespace chunkhit
