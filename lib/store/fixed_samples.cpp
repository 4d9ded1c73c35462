// Images of one shape: the rules of their chunks.
#include <string>

#include "base/throw_error.h"
#include "store/part_rules.h"

namespace chunkhit {

void FixedSamples::check_spec(const PartSpec& spec, const Container& container) const {
  const std::uint64_t pixels = std::uint64_t{sample.height} * sample.width;
  if (pixels == 0 || sample.channels == 0) throw_bad_data("a sample without bytes");
  if (pixels > container.max_chunk_bytes / sample.values())
    throw_bad_data("a sample of " + std::to_string(sample.height) + " x " + std::to_string(sample.width) +
                   " x " + std::to_string(sample.channels) + " bytes is larger than a chunk may be (" +
                   std::to_string(container.max_chunk_bytes) + ")");
  if (spec.chunk_samples == 0 || spec.chunk_samples > container.max_chunk_bytes / sample.byte_count())
    throw_bad_data("chunks of " + std::to_string(spec.chunk_samples) + " samples, expected 1 to " +
                   std::to_string(container.max_chunk_bytes / sample.byte_count()));
}

void FixedSamples::check_raw_bytes(const StoredChunk& chunk, const PartSpec& spec,
                                   const Container& container) const {
  const std::uint64_t samples = container.pads_last_chunk ? spec.chunk_samples : chunk.sample_count;
  check_count("raw bytes", chunk.raw_bytes, samples * sample.byte_count());
}

}  // namespace chunkhit
