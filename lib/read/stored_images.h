// A source's samples as images, whatever the payload: read as they are stored, or copied into batches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "augment/sample_writer.h"
#include "cache/chunk_set.h"
#include "chunkhit/dataset.h"
#include "types/sample_shape.h"

namespace chunkhit {

/// Reads images from the bytes that `ChunkCache::sample` gives. One thread; throws ImageError where they are
/// damaged.
class ImageReader {
 public:
  virtual ~ImageReader() = default;
  /// The upright shape.
  [[nodiscard]] virtual SampleShape shape(ChunkSet::SampleLocation location) const = 0;
  /// Writes an image's pixels, or those of a field behind it, by its number, row by row.
  virtual void read(ChunkSet::SampleLocation location, const std::uint8_t* stored, std::uint8_t* out) = 0;
  virtual void read_field(ChunkSet::SampleLocation location, const std::uint8_t* stored, std::size_t field,
                          std::uint8_t* out) = 0;
  [[nodiscard]] virtual bool is_jpeg(ChunkSet::SampleLocation) const { return false; }
  /// The file of an image that is stored as JPEG.
  [[nodiscard]] virtual StoredJpeg jpeg(ChunkSet::SampleLocation, const std::uint8_t*) const { return {}; }
};

/// Copies images and their fields into batches, and changes them on the way. Any thread.
class ImageCopier {
 public:
  virtual ~ImageCopier() = default;
  /// What is written of each image, and of each field behind it.
  [[nodiscard]] virtual const SampleWriter& images() const = 0;
  [[nodiscard]] virtual std::size_t field_count() const = 0;
  [[nodiscard]] virtual const SampleWriter& field(std::size_t index) const = 0;
  /// Whether batches have the stored bytes of samples as they are.
  [[nodiscard]] virtual bool copies() const { return false; }
  /// Writes the sample `use.sample` of the source from its stored bytes, and its fields to `fields`. Returns
  /// the seconds of decoding. Throws ImageError where they are damaged.
  virtual double write(const std::uint8_t* stored, const SampleUse& use, std::uint8_t* out,
                       std::span<std::uint8_t* const> fields) = 0;
  /// Throws bad_data, naming part and image, where one cannot be resized as the format says.
  virtual void check() const {}
  /// Keeps the pixels of as many images as fit into `bytes`, where decoding takes time; returns how many.
  /// Throws std::bad_alloc.
  virtual std::uint64_t keep_pixels(std::uint64_t, std::optional<std::uint64_t>) { return 0; }
  [[nodiscard]] std::size_t sample_bytes() const {
    std::size_t bytes = images().sample_bytes();
    for (std::size_t i = 0; i < field_count(); ++i) bytes += field(i).sample_bytes();
    return bytes;
  }
};

[[nodiscard]] std::unique_ptr<ImageReader> image_reader(const ChunkSet& chunks);

/// Throws usage, naming the option, where the format makes no sense for the images.
[[nodiscard]] std::unique_ptr<ImageCopier> image_copier(const ChunkSet& chunks, const SampleFormat& format);

}  // namespace chunkhit
