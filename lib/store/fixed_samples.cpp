// Images of one shape: the rules of their chunks, and their hashes. Layout: schemas/images-hdf5.md.
#include <string>

#include "base/hash.h"
#include "base/throw_error.h"
#include "store/part_index.h"
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

void FixedSamples::append_more(const PartSpec& spec, const std::vector<StoredChunk>& chunks,
                               const PartSamples&, ByteBuffer& bytes) const {
  if (!spec.hashes_samples) return;
  for (const StoredChunk& chunk : chunks) {
    const Bytes hashes = bytes_of(chunk.sample_hashes);
    bytes.insert(bytes.end(), hashes.begin(), hashes.end());
  }
}

void FixedSamples::decode_more(IndexCursor& cursor, PartContents& contents) const {
  if (!contents.spec.hashes_samples) return;
  const std::uint64_t block_bytes = contents.spec.block_bytes();
  for_each_chunk(contents, [&](std::size_t i) {
    StoredChunk& chunk = contents.chunks[i];
    chunk.sample_hashes = cursor.numbers<std::uint64_t>(chunk.raw_bytes / block_bytes +
                                                        (chunk.raw_bytes % block_bytes != 0 ? 1 : 0));
    if (const std::uint64_t found = xxh3(bytes_of(chunk.sample_hashes)); found != chunk.xxh3)
      throw_bad_data("checksum of its samples' hashes " + hash_text(found) + ", expected " +
                     hash_text(chunk.xxh3));
  });
}

}  // namespace chunkhit
