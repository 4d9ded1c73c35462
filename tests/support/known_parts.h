// Parts with pixels that every test knows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "codec/chunk_codec.h"
#include "store/part.h"

namespace chunkhit {

/// Chunks of four samples: the middle one of every three is noise, which no filter makes smaller.
inline constexpr std::uint64_t kKnownChunkSamples = 4;

/// Gives one value: a slope, or noise that depends on position and sample.
inline std::uint8_t known_pixel(std::uint64_t sample, std::uint64_t y, std::uint64_t x, std::uint64_t c) {
  const bool noisy = sample / kKnownChunkSamples % 3 == 1;
  const std::uint64_t position = (sample << 40) + (y << 24) + (x << 8) + c;
  return static_cast<std::uint8_t>(noisy ? mix_bits(position) : sample * 7 + y * 3 + x * 2 + c * 50);
}

/// Gives the bytes of samples [first, first + count) in the shape's layout.
inline ByteBuffer known_samples(const SampleShape& shape, std::uint64_t first, std::uint64_t count) {
  ByteBuffer bytes;
  const bool planes = shape.layout == Layout::nchw;
  for (std::uint64_t s = first; s < first + count; ++s)
    for (std::uint64_t a = 0; a < (planes ? shape.channels : shape.height); ++a)
      for (std::uint64_t b = 0; b < (planes ? shape.height : shape.width); ++b)
        for (std::uint64_t c = 0; c < (planes ? shape.width : shape.channels); ++c)
          bytes.push_back(planes ? known_pixel(s, b, c, a) : known_pixel(s, a, b, c));
  return bytes;
}

/// Gives what stands beside the pixels: with one label column class ids of three classes, with more of them
/// numbers.
inline PartSamples known_part_samples(const PartSpec& spec, std::uint64_t count) {
  PartSamples samples;
  for (std::uint64_t s = 0; s < count; ++s) {
    samples.rows.push_back(s * 2 + 1);
    samples.files.add("class/ä image " + std::to_string(s * s) + ".jpg");
    if (spec.label_columns.size() == 1) samples.labels.ids.push_back(static_cast<std::int64_t>(s % 3));
    if (spec.label_columns.size() == 1) continue;
    for (std::size_t column = 0; column < spec.label_columns.size(); ++column)
      samples.labels.values.push_back(static_cast<float>(s) + static_cast<float>(column) / 4);
  }
  for (std::uint32_t c = 0; c < spec.images().sample.channels; ++c) {
    samples.mean.push_back(0.5 + c / 16.0);
    samples.std.push_back(0.25 + c / 16.0);
  }
  return samples;
}

inline PartSpec known_spec(const SampleShape& shape, const std::string& filter,
                           std::size_t label_columns = 1) {
  PartSpec spec;
  spec.images().sample = shape;
  spec.codec = filter;
  spec.chunk_samples = kKnownChunkSamples;
  if (label_columns == 1) spec.images().classes = {"cat", "dög", "a class with a longer name"};
  for (std::size_t i = 0; i < label_columns; ++i) spec.label_columns.push_back("column " + std::to_string(i));
  spec.pack_id = 0x0123456789abcdefu;
  spec.part_index = 7;
  spec.cache_advice = {4 << 20, 521, 0.5};
  return spec;
}

/// Encodes one chunk as the pack pipeline does and appends it.
inline void append_known_chunk(ChunkWriter& writer, const Container& kind, const PartSpec& spec,
                               std::uint64_t first, std::uint64_t count) {
  ByteBuffer raw = known_samples(spec.images().sample, first, count);
  raw.resize(count * spec.images().sample.byte_count());  // where there are fields behind the images
  if (kind.pads_last_chunk) {
    const std::size_t filled = raw.size();
    raw.resize(spec.chunk_samples * spec.images().sample.byte_count());
    std::fill(raw.begin() + static_cast<std::ptrdiff_t>(filled), raw.end(), std::uint8_t{0});
  }
  ByteBuffer stored;
  const ChunkCodec& codec = chunk_codec(spec.codec);
  codec.encode(raw, spec.images().sample, codec.default_level, kind.is_zstd_stream, stored);
  const bool filtered = codec.name != "none" && stored.size() < raw.size();
  const Bytes bytes = filtered ? Bytes(stored) : Bytes(raw);
  ChunkHashes hashes = hash_chunk(bytes, spec.block_bytes());
  writer.append({bytes, raw.size(), count, hashes.chunk, filtered, std::move(hashes.samples)});
}

/// Writes a part as packing does, or with `is_old` as version 0.1.0 did: without hashes of samples.
inline PartReport write_known_part(const Container& kind, const std::string& path, PartSpec spec,
                                   std::uint64_t count, bool is_old = false) {
  spec.hashes_samples = kind.hashes_samples(spec.codec) && !is_old;
  const std::unique_ptr<ChunkWriter> writer = kind.create(path, spec);
  for (std::uint64_t first = 0; first < count; first += spec.chunk_samples)
    append_known_chunk(*writer, kind, spec, first, std::min(spec.chunk_samples, count - first));
  return writer->finish(known_part_samples(spec, count));
}

}  // namespace chunkhit
