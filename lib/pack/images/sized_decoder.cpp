#include "pack/images/sized_decoder.h"

#include <algorithm>
#include <string>

#include "base/hash.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "codec/chunk_codec.h"
#include "codec/zstd.h"
#include "decode/formats.h"
#include "decode/jpeg_tiles.h"

namespace chunkhit {
namespace {

/// A payload is one sample of a chunk.
void check_payload(std::uint64_t bytes, const PackImagesSpec& spec) {
  const std::uint64_t max_bytes = container(spec.container).max_chunk_bytes;
  if (raw_frame_bytes(bytes) > max_bytes)
    throw ImageError(RejectKind::too_large, "would take " + bytes_text(static_cast<double>(bytes)) +
                                                " in the pack, over the limit of " +
                                                bytes_text(static_cast<double>(max_bytes)) +
                                                "; `max_side` or `short_side` makes it smaller");
}

}  // namespace

/// A JPEG that is kept is decoded as it is stored: its orientation is applied at reading.
void SizedSampleDecoder::complete(std::string_view file, const ImageHeader& header, ImagePlan& plan) {
  const std::uint32_t channels = plan.transform.sample.channels;
  if (channels != context_.sample.channels)
    throw Error(ErrorCode::bad_data, "images of different channels: " + context_.first_file + " gives " +
                                         std::to_string(context_.sample.channels) + ", " + std::string(file) +
                                         " gives " + std::to_string(channels) +
                                         "; `channels` rgb, gray or rgba makes them alike");
  if (channels == 2)
    throw Error(ErrorCode::bad_data, std::string(file) +
                                         ": has gray and alpha, which images of their own sizes cannot have; "
                                         "`channels` rgb, gray or rgba converts it");
  is_resized_ = sample_transform(context_.spec, header).resize != Resize::none;
  keeps_jpeg_ = header.format == "jpeg" && !is_resized_ && context_.spec.own_sizes.store == SizedStore::jpeg;
  keeps_file_ = keeps_jpeg_ && context_.spec.own_sizes.jpeg_tile == 0 && !header.is_cmyk;
  if (keeps_jpeg_) {
    plan.transform =
        plan_transform(context_.spec.transform, header.width, header.height, header.channels, false);
    plan.decode = {1, plan.transform.region, plan.transform.channels};
  }
  plan.payload_bytes = expected_payload(plan.transform);
  plan.made_bytes = made_bytes(header, plan);
  if (context_.spec.own_sizes.store == SizedStore::raw) check_payload(plan.payload_bytes, context_.spec);
}

/// Estimates what making a sample of its own size takes: beside the file and the decoded region a JPEG's
/// coefficients where it is cut into tiles, or the upright pixels and the transform; and the payload. Where
/// pixels are compressed, the pixels, their differences (photo) and the payload.
std::uint64_t SizedSampleDecoder::made_bytes(const ImageHeader& header, const ImagePlan& plan) const {
  const bool is_tiled = context_.spec.own_sizes.jpeg_tile != 0;
  const std::uint64_t held = reader_.held_bytes(plan);
  constexpr std::uint64_t kCodeBytes = 8;  // of a byte of the file, where tiles are made from its codes
  const std::uint64_t recoding = std::max(header.block_bytes, kCodeBytes * reader_.file().size());
  if (keeps_jpeg_) return held + (is_tiled ? recoding : 0) + 2 * plan.payload_bytes;
  const std::uint64_t pixel_bytes = plan.transform.sample.pixel_bytes();
  const std::uint64_t transforming = reader_.transform_bytes(plan) + pixel_bytes;
  if (is_encoded(plan.transform)) return std::max(transforming, held + pixel_bytes + 2 * plan.payload_bytes);
  if (!is_compressed()) return transforming;
  const bool photo = is_photo(plan.transform);
  const int level = chunk_codec(photo ? "photo" : "zstd").default_level;
  return std::max(transforming, zstd_context_bytes(level, pixel_bytes) + (photo ? 3 : 2) * pixel_bytes +
                                    (held > context_.kept_bytes ? 0 : held));
}

/// One behind the other, their rows upright; class maps shrink to a few bytes.
void SizedSampleDecoder::append_masks(const SampleList& list, std::size_t index, SizedSample& sample) {
  const SampleShape shape = files_.mask_shape();
  const std::size_t count = context_.sample.pairs.size();
  ByteBuffer pixels(shape.byte_count() * count), compressed;
  for (std::size_t field = 0; field < count; ++field)
    files_.make_field(list, index, field, pixels.data() + field * shape.byte_count());
  const ChunkCodec& codec = chunk_codec("deflate");
  codec.encode(pixels, shape, codec.default_level, false, compressed);
  sample.mask_bytes = static_cast<std::uint32_t>(compressed.size());
  sample.payload.insert(sample.payload.end(), compressed.begin(), compressed.end());
  check_payload(sample.payload.size(), context_.spec);
  sample.xxh3 = xxh3(sample.payload);
}

SizedSample SizedSampleDecoder::make_sized(const SampleList& list, std::size_t index,
                                           MemoryBudget::Share& payload) {
  SizedSample sample;
  files_.make_image(
      list, index,
      [&](const ImageHeader& header, ImagePlan& plan) { complete(list.file(index), header, plan); },
      [&](const ImageReader::Decoded& image) { sample = store(image); }, &payload);
  if (!context_.sample.pairs.empty()) append_masks(list, index, sample);
  return sample;
}

bool SizedSampleDecoder::is_encoded(const TransformPlan& plan) const {
  constexpr std::uint32_t kMaxJpegSide = 65500;  // libjpeg's
  const OwnSizesSpec& own = context_.spec.own_sizes;
  return own.store == SizedStore::jpeg && is_resized_ && plan.channels != 4 && plan.channels != 2 &&
         std::max(plan.sample.height, plan.sample.width) <= kMaxJpegSide;
}

bool SizedSampleDecoder::is_compressed() const { return context_.spec.own_sizes.store != SizedStore::raw; }

bool SizedSampleDecoder::is_photo(const TransformPlan& plan) const {
  return context_.spec.own_sizes.store != SizedStore::zstd && plan.channels == 3;
}

std::uint64_t SizedSampleDecoder::expected_payload(const TransformPlan& plan) const {
  constexpr std::uint64_t kEncodedShare = 4;  // JPEG of quality 90 has an eighth of the pixels' bytes
  if (keeps_jpeg_) return reader_.file().size();
  return std::max<std::uint64_t>(1, plan.sample.pixel_bytes() / (is_encoded(plan) ? kEncodedShare : 1));
}

SizedSample SizedSampleDecoder::store(const ImageReader::Decoded& image) {
  SizedSample sample;
  if (keeps_jpeg_ && keep_jpeg(sample.payload)) {
    sample.kind = PayloadKind::jpeg;
    sample.orientation = reader_.plan().orientation;
    sample.height = image.pixels.height;
    sample.width = image.pixels.width;
    sample.pixels.add_sample(image.pixels.pixels.data(), plan().sample);
  } else {
    store_pixels(image, sample);
  }
  check_payload(sample.payload.size(), context_.spec);
  sample.xxh3 = xxh3(sample.payload);
  return sample;
}

bool SizedSampleDecoder::keep_jpeg(ByteBuffer& payload) {
  if (context_.spec.own_sizes.jpeg_tile == 0) {
    const bool keeps = keeps_file_ && !reader_.is_damaged();
    if (keeps) payload = reader_.file();
    return keeps;
  }
  DecodeMonitor monitor({.max_seconds = context_.spec.max_seconds_per_image});
  try {
    write_tiled_jpeg(reader_.file(), context_.spec.own_sizes.jpeg_tile, monitor, payload);
    return true;
  } catch (const ImageError&) {
    if (monitor.is_out_of_time()) throw;
    return false;  // CMYK, say: its pixels are stored
  }
}

/// Stores upright pixels, raw or encoded.
void SizedSampleDecoder::store_pixels(const ImageReader::Decoded& image, SizedSample& sample) {
  if (keeps_jpeg_) {
    Image& pixels = reader_.upright(image);
    sample.height = pixels.height;
    sample.width = pixels.width;
    sample.payload.swap(pixels.pixels);
  } else {
    sample.height = plan().sample.height;
    sample.width = plan().sample.width;
    resize_empty(sample.payload, plan().sample.pixel_bytes());
    reader_.transform(image, sample.payload.data());
  }
  if (is_encoded(plan())) return encode(image.pixels, sample);
  const SampleShape shape{sample.height, sample.width, plan().channels, Layout::nhwc};
  sample.pixels.add_sample(sample.payload.data(), shape);
  compress(shape, sample);
}

/// Compresses a sample's pixels without loss, where that makes them smaller.
void SizedSampleDecoder::compress(const SampleShape& shape, SizedSample& sample) {
  if (!is_compressed()) return;
  reader_.free_large_buffers();
  const ChunkCodec& codec = chunk_codec(is_photo(plan()) ? "photo" : "zstd");
  ByteBuffer compressed;
  codec.encode(sample.payload, shape, codec.default_level, false, compressed);
  if (compressed.size() >= sample.payload.size()) return;
  sample.payload.swap(compressed);
  sample.kind = is_photo(plan()) ? PayloadKind::photo : PayloadKind::zstd;
}

/// Encodes a sample's pixels; its statistics are those of what was encoded.
void SizedSampleDecoder::encode(Image& decoded, SizedSample& sample) {
  const std::uint32_t channels = plan().channels;
  const ImageView pixels{sample.payload.data(), sample.width, sample.height, channels,
                         std::size_t{sample.width} * channels};
  ByteBuffer encoded;
  const OwnSizesSpec& own = context_.spec.own_sizes;
  DecodeMonitor monitor({.max_seconds = context_.spec.max_seconds_per_image});
  encode_tiled_jpeg(pixels, own.quality, own.jpeg_tile, monitor, encoded);
  open_jpeg(encoded, monitor)->decode({1, {0, 0, sample.width, sample.height}, channels}, decoded);
  sample.pixels.add_sample(decoded.pixels.data(), plan().sample);
  sample.payload.swap(encoded);
  sample.kind = PayloadKind::jpeg;
}

}  // namespace chunkhit
