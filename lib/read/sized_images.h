// Images of their own sizes: from their stored bytes to pixels, or to the samples of a batch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "augment/random_crop.h"
#include "augment/sample_writer.h"
#include "base/bytes.h"
#include "cache/chunk_arena.h"
#include "cache/chunk_set.h"
#include "decode/jpeg_tiles.h"
#include "store/part.h"
#include "types/image.h"

namespace chunkhit {

/// One stored image, and its masks.
struct StoredImage {
  Bytes frame;  ///< the payload, or a zstd frame of raw blocks around it
  std::uint32_t payload_bytes = 0;
  std::uint32_t height = 0;  ///< of the payload, pixels
  std::uint32_t width = 0;
  PayloadKind kind = PayloadKind::raw;
  int orientation = 1;           ///< how it is to be turned
  std::uint32_t mask_bytes = 0;  ///< of the payload's end
  [[nodiscard]] std::uint32_t upright_height() const;
  [[nodiscard]] std::uint32_t upright_width() const;
};

/// Looks at the sample of a part whose stored bytes are at `frame`; without them, at its sizes.
[[nodiscard]] StoredImage stored_image(const ImageSizes& sizes, std::uint64_t sample,
                                       const std::uint8_t* frame = nullptr);
[[nodiscard]] inline StoredImage stored_image(const ChunkSet& chunks, ChunkSet::SampleLocation location,
                                              const std::uint8_t* frame = nullptr) {
  return stored_image(chunks.parts()[location.part]->samples().sizes, location.sample, frame);
}

/// The payload, or that of the image without its masks, in `room` where it is not in one piece. Throws
/// ImageError where its frame is damaged.
[[nodiscard]] Bytes payload_of(const StoredImage& image, ByteBuffer& room);
[[nodiscard]] Bytes image_payload(const StoredImage& image, ByteBuffer& room);

/// What decoding takes on so many threads: as much as their largest images.
[[nodiscard]] std::uint64_t decoding_bytes(const ChunkSet& chunks, std::uint64_t threads);

/// Decodes parts of images; keeps buffers, so each thread has its own.
class SizedImageDecoder {
 public:
  /// The pixels of `region` of the upright image, valid until the next call. Throws ImageError where the
  /// payload is damaged or has another size than the index says.
  [[nodiscard]] ImageView decode(const StoredImage& image, const Rect& region, std::uint32_t channels);
  /// Writes the whole upright image to `out`, row by row. Throws the same.
  void decode_whole(const StoredImage& image, std::uint32_t channels, std::uint8_t* out);
  /// The whole upright masks, of `count`, one below the other, valid until the next call; nothing of them is
  /// cached. Throws the same.
  [[nodiscard]] ImageView decode_masks(const StoredImage& image, std::size_t count);
  /// Memory that is kept for the next image.
  [[nodiscard]] std::uint64_t held_bytes() const;

 private:
  /// Bytes [begin, end) of the pixels of an image that is not stored as JPEG.
  Bytes pixels_of(const StoredImage& image, std::uint32_t channels, std::uint64_t begin, std::uint64_t end);
  ImageView decode_jpeg(const StoredImage& image, const Rect& region, std::uint32_t channels);

  ByteBuffer payload_;  // where it is not in one piece
  ByteBuffer cut_;
  JpegTiles tiles_;
  Image decoded_;
  Image upright_;
};

/// Keeps the pixels of some images once they are decoded. Any thread may call anything.
class DecodedImages {
 public:
  /// What all images need that are not stored as pixels.
  [[nodiscard]] static std::uint64_t bytes_of_all(const ChunkSet& chunks);
  /// Chooses images evenly, the same ones for equal sources, as long as they fit into `bytes`. `id`: as
  /// ChunkArena. Throws std::bad_alloc.
  DecodedImages(const ChunkSet& chunks, std::uint64_t bytes, std::optional<std::uint64_t> id);
  DecodedImages() = default;  ///< chooses none

  /// How many were chosen.
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// The upright pixels of an image, row by row. `decode` writes them where a chosen image has none yet; it
  /// may throw. Null where the image was not chosen, or a thread of any process decodes it now.
  template <class Decode>
  [[nodiscard]] const std::uint8_t* find(std::uint64_t sample, Decode decode) {
    const std::uint64_t place = places_.empty() ? kNotChosen : places_[sample];
    if (place == kNotChosen) return nullptr;
    std::uint8_t* const pixels = arena_.chunk(place);
    if (arena_.is_ready(place)) return pixels;
    const ChunkArena::Claim claim = arena_.try_claim(place);
    if (claim != ChunkArena::Claim::own) return claim == ChunkArena::Claim::filled ? pixels : nullptr;
    try {
      decode(pixels);
    } catch (...) {
      arena_.give_up(place);
      throw;
    }
    arena_.finish(place);
    return pixels;
  }

 private:
  static constexpr std::uint64_t kNotChosen = ~std::uint64_t{0};
  std::vector<std::uint64_t>
      places_;        // of each sample in `arena_`, or kNotChosen; empty where none is chosen
  ChunkArena arena_;  // a chunk a sample, in the order of choice
  std::uint64_t count_ = 0;
};

/// Writes samples of a batch from images of their own sizes.
class SizedImageWriter {
 public:
  /// `format.stored` has no sides. Throws usage, naming the option, where augment does not give all samples
  /// one shape.
  explicit SizedImageWriter(const SampleFormat& format);
  /// Throws bad_data, naming the part and the image, where one of a part cannot be resized so.
  void check(const ChunkReader& part) const;
  /// Writes the samples' pixels once they are resized.
  [[nodiscard]] const SampleWriter& finish() const { return finish_; }
  /// Writes one sample to `out` (finish().sample_bytes(), aligned to 4 for f32), from its pixels in `decoded`
  /// where they are there. Returns the seconds of decoding. Throws as SizedImageDecoder.
  double write(const StoredImage& image, DecodedImages& decoded, const SampleUse& use,
               std::uint8_t* out) const;
  /// Writes the same part of the image's masks, each by its writer, whose format is that of masks
  /// (`pair_format`). Throws the same.
  static void write_masks(std::span<const SizedImageWriter> writers, const StoredImage& image,
                          const SampleUse& use, std::span<std::uint8_t* const> outs);

 private:
  void resize(ImageView pixels, const ResizedPart& part, const SampleUse& use, std::uint8_t* out) const;

  ResizedCrop resized_crop_;
  SampleWriter finish_;
};

}  // namespace chunkhit
