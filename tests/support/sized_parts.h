// Parts of images of their own sizes for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "codec/chunk_codec.h"
#include "decode/jpeg_tiles.h"
#include "store/part.h"
#include "store/shard.h"
#include "support/jpeg_writer.h"

namespace chunkhit {

/// One image, and the pixels that it stands for, before it is turned.
struct SizedImage {
  ByteBuffer payload;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  PayloadKind kind = PayloadKind::raw;
  std::uint8_t orientation = 1;
};

/// JPEG in tiles and raw pixels by turns; orientations 1 to 8; some payloads in several blocks of their
/// frame.
inline std::vector<SizedImage> sized_images(std::size_t count) {
  std::vector<SizedImage> images;
  for (std::size_t i = 0; i < count; ++i) {
    const auto height = static_cast<std::uint32_t>(40 + i * 37 % 90 + (i % 7 == 6 ? 300 : 0));
    const auto width = static_cast<std::uint32_t>(50 + i * 7 % 60 + (i % 7 == 6 ? 200 : 0));
    const Image image = make_image(width, height, 3, i);
    SizedImage made{{},
                    height,
                    width,
                    i % 2 == 0 ? PayloadKind::jpeg : PayloadKind::raw,
                    static_cast<std::uint8_t>(1 + i % 8)};
    if (made.kind == PayloadKind::raw) {
      made.payload = image.pixels;
    } else {
      DecodeMonitor monitor({});
      write_tiled_jpeg(write_jpeg(image, {.quality = i % 7 == 6 ? 100 : 85}), 4, monitor, made.payload);
    }
    images.push_back(std::move(made));
  }
  return images;
}

inline PartSpec sized_spec() {
  PartSpec spec;
  spec.samples.emplace<SizedSamples>().sample.channels = 3;
  spec.chunk_samples = 0;
  spec.images().classes = {"cat", "dog"};
  spec.label_columns = {"label"};
  spec.pack_id = 17;
  return spec;
}

/// Writes them with up to `chunk_samples` in a chunk, and one less in every
/// second one.
inline PartReport write_sized_part(const std::string& path, const std::vector<SizedImage>& images,
                                   std::size_t chunk_samples) {
  const std::unique_ptr<ChunkWriter> writer = create_shard(path, sized_spec());
  PartSamples samples;
  ByteBuffer chunk;
  std::uint64_t in_chunk = 0, chunks = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const SizedImage& image = images[i];
    append_raw_frame(image.payload, chunk);
    samples.sizes.payload_bytes.push_back(static_cast<std::uint32_t>(image.payload.size()));
    samples.sizes.heights.push_back(image.height);
    samples.sizes.widths.push_back(image.width);
    samples.sizes.kinds.push_back(static_cast<std::uint8_t>(image.kind));
    samples.sizes.orientations.push_back(image.orientation);
    samples.sizes.payload_xxh3.push_back(xxh3(image.payload));
    samples.labels.ids.push_back(static_cast<std::int64_t>(i % 2));
    samples.rows.push_back(i);
    samples.files.add(std::to_string(i) + ".jpg");
    if (++in_chunk < chunk_samples - chunks % 2 && i + 1 < images.size()) continue;
    writer->append({chunk, chunk.size(), in_chunk, xxh3(chunk), false});
    chunk.clear();
    in_chunk = 0;
    ++chunks;
  }
  return writer->finish(samples);
}

}  // namespace chunkhit
