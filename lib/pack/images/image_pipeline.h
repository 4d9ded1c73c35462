// Packs one part: rows → samples → chunks → writer. Images of one shape are made in their chunk's slots
// (fixed_pipeline.cpp), those of their own sizes one by one (sized_pipeline.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "codec/chunk_codec.h"
#include "listing/sample_list.h"
#include "manifest/manifest.h"
#include "pack/images/sample_decoder.h"
#include "store/part.h"

namespace chunkhit {

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

/// What a part is packed with.
struct PartJob {
  const DecoderContext& context;
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

/// Packs parts of images of one payload; keeps the threads' decoders, which hold buffers and tables.
class PartPacker {
 public:
  virtual ~PartPacker() = default;
  /// Sets the payload of a part.
  virtual void set_samples(PartSpec& part) const = 0;
  /// Packs one part into `writer`; samples are stored without gaps, whatever was rejected. Equal bytes for
  /// any number of threads. Any thread may call it.
  [[nodiscard]] virtual PartOutcome pack(const PartJob& job, ChunkWriter& writer) = 0;
};

[[nodiscard]] std::unique_ptr<PartPacker> fixed_packer(DecoderContext& context);
[[nodiscard]] std::unique_ptr<PartPacker> sized_packer(DecoderContext& context);

/// The packer of what a spec's images become.
[[nodiscard]] inline std::unique_ptr<PartPacker> part_packer(DecoderContext& context) {
  return context.spec.sizes == Sizes::own ? sized_packer(context) : fixed_packer(context);
}

}  // namespace chunkhit
