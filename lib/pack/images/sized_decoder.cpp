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
  const bool is_framed = container(spec.container).is_zstd_stream;
  if ((is_framed ? raw_frame_bytes(bytes) : bytes) > max_bytes)
    throw ImageError("would take " + bytes_text(static_cast<double>(bytes)) +
                     " in the pack, over the limit of " + bytes_text(static_cast<double>(max_bytes)) +
                     "; `max_side` or `short_side` makes it smaller" +
                     (is_framed ? ", `container` hdf5 takes larger ones" : ""));
}

}  // namespace

/// A JPEG that is kept is decoded as it is stored: its orientation is applied at reading.
void SizedSampleDecoder::check_plan(std::string_view file, const ImageHeader& header) {
  if (plan_.sample.channels != context_.sample.channels)
    throw Error(ErrorCode::bad_data, "images of different channels: " + context_.first_file + " gives " +
                                         std::to_string(context_.sample.channels) + ", " + std::string(file) +
                                         " gives " + std::to_string(plan_.sample.channels) +
                                         "; `channels` rgb, gray or rgba makes them alike");
  if (plan_.sample.channels == 2)
    throw Error(ErrorCode::bad_data, std::string(file) +
                                         ": has gray and alpha, which images of their own sizes cannot have; "
                                         "`channels` rgb, gray or rgba converts it");
  is_resized_ = sample_transform(context_.spec, header).resize != Resize::none;
  keeps_jpeg_ = header.format == "jpeg" && !is_resized_ && context_.spec.own_sizes.store == Store::jpeg;
  keeps_file_ = keeps_jpeg_ && context_.spec.own_sizes.jpeg_tile == 0 && !header.is_cmyk;
  if (keeps_jpeg_)
    plan_ = plan_transform(context_.spec.transform, header.width, header.height, header.channels, false);
  if (context_.spec.own_sizes.store == Store::raw) check_payload(expected_payload(), context_.spec);
}

DecodePlan SizedSampleDecoder::decode_plan() const {
  return keeps_jpeg_ ? DecodePlan{1, plan_.region, plan_.channels} : SampleDecoder::decode_plan();
}

/// Estimates what making a sample of its own size takes, with the file and the decoded region, which are
/// `held`: a JPEG's coefficients where it is cut into tiles, or the upright pixels and the transform; and the
/// payload. Where pixels are compressed, the pixels, their differences (photo) and the payload.
std::uint64_t SizedSampleDecoder::made_bytes(const ImageHeader& header, std::uint64_t held) const {
  const bool is_tiled = context_.spec.own_sizes.jpeg_tile != 0;
  if (keeps_jpeg_) return held + (is_tiled ? header.block_bytes : 0) + 2 * expected_payload();
  const std::uint64_t pixel_bytes = plan_.sample.pixel_bytes();
  const std::uint64_t transforming = held + pixel_bytes + transform_.needed_bytes(plan_);
  if (is_encoded()) return std::max(transforming, held + pixel_bytes + 2 * expected_payload());
  if (!is_compressed()) return transforming;
  const std::uint64_t copies = is_photo() ? 3 : 2;
  const int level = chunk_codec(is_photo() ? "photo" : "zstd").default_level;
  return std::max(transforming, zstd_context_bytes(level, pixel_bytes) + copies * pixel_bytes +
                                    (held > context_.kept_bytes ? 0 : held));
}

/// One behind the other, their rows upright; class maps shrink to a few bytes.
void SizedSampleDecoder::append_masks(const SampleList& list, std::size_t index, SizedSample& sample) {
  const SampleShape shape = mask_.plan({input_.width, input_.height}).sample;
  const std::size_t count = context_.sample.pairs.size();
  ByteBuffer pixels(shape.byte_count() * count), compressed;
  for (std::size_t field = 0; field < count; ++field)
    make_field(list, index, field, pixels.data() + field * shape.byte_count());
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
  make_image(list, index, [&] { sample = store(read(list, index, &payload)); });
  if (!context_.sample.pairs.empty()) append_masks(list, index, sample);
  return sample;
}

bool SizedSampleDecoder::is_encoded() const {
  constexpr std::uint32_t kMaxJpegSide = 65500;  // libjpeg's
  const OwnSizesSpec& own = context_.spec.own_sizes;
  return own.store == Store::jpeg && is_resized_ && plan_.channels != 4 && plan_.channels != 2 &&
         std::max(plan_.sample.height, plan_.sample.width) <= kMaxJpegSide;
}

bool SizedSampleDecoder::is_compressed() const {
  return context_.spec.own_sizes.store != Store::raw && context_.spec.container != "hdf5";
}

bool SizedSampleDecoder::is_photo() const {
  return context_.spec.own_sizes.store != Store::zstd && plan_.channels == 3;
}

std::uint64_t SizedSampleDecoder::expected_payload() const {
  constexpr std::uint64_t kEncodedShare = 4;  // JPEG of quality 90 has an eighth of the pixels' bytes
  if (keeps_jpeg_) return file_.size();
  return std::max<std::uint64_t>(1, plan_.sample.pixel_bytes() / (is_encoded() ? kEncodedShare : 1));
}

SizedSample SizedSampleDecoder::store(const Decoded& image) {
  SizedSample sample;
  if (keeps_jpeg_ && keep_jpeg(sample.payload)) {
    sample.kind = PayloadKind::jpeg;
    sample.orientation = orientation_;
    sample.height = image.pixels.height;
    sample.width = image.pixels.width;
    sample.pixels.add_sample(image.pixels.pixels.data(), plan_.sample);
  } else {
    store_pixels(image, sample);
  }
  check_payload(sample.payload.size(), context_.spec);
  sample.xxh3 = xxh3(sample.payload);
  return sample;
}

bool SizedSampleDecoder::keep_jpeg(ByteBuffer& payload) {
  if (context_.spec.own_sizes.jpeg_tile == 0) {
    const bool keeps = keeps_file_ && !is_damaged_;
    if (keeps) payload = file_;
    return keeps;
  }
  DecodeMonitor monitor({.max_seconds = context_.spec.max_seconds_per_image});
  try {
    write_tiled_jpeg(file_, context_.spec.own_sizes.jpeg_tile, monitor, payload);
    return true;
  } catch (const ImageError&) {
    if (monitor.is_out_of_time()) throw;
    return false;  // CMYK, say: its pixels are stored
  }
}

/// Stores upright pixels, raw or encoded.
void SizedSampleDecoder::store_pixels(const Decoded& image, SizedSample& sample) {
  if (keeps_jpeg_) {
    Image& pixels = upright(image);
    sample.height = pixels.height;
    sample.width = pixels.width;
    sample.payload.swap(pixels.pixels);
  } else {
    sample.height = plan_.sample.height;
    sample.width = plan_.sample.width;
    resize_empty(sample.payload, plan_.sample.pixel_bytes());
    transform(image, sample.payload.data());
  }
  if (is_encoded()) return encode(sample);
  const SampleShape shape{sample.height, sample.width, plan_.channels, Layout::nhwc};
  sample.pixels.add_sample(sample.payload.data(), shape);
  compress(shape, sample);
}

/// Compresses a sample's pixels without loss, where that makes them smaller. In HDF5 they stay as h5py reads
/// them.
void SizedSampleDecoder::compress(const SampleShape& shape, SizedSample& sample) {
  if (!is_compressed()) return;
  free_large_buffers();
  const ChunkCodec& codec = chunk_codec(is_photo() ? "photo" : "zstd");
  ByteBuffer compressed;
  codec.encode(sample.payload, shape, codec.default_level, false, compressed);
  if (compressed.size() >= sample.payload.size()) return;
  sample.payload.swap(compressed);
  sample.kind = is_photo() ? PayloadKind::photo : PayloadKind::zstd;
}

/// Encodes a sample's pixels; its statistics are those of what was encoded.
void SizedSampleDecoder::encode(SizedSample& sample) {
  const std::uint32_t channels = plan_.channels;
  const ImageView pixels{sample.payload.data(), sample.width, sample.height, channels,
                         std::size_t{sample.width} * channels};
  ByteBuffer encoded;
  const OwnSizesSpec& own = context_.spec.own_sizes;
  DecodeMonitor monitor({.max_seconds = context_.spec.max_seconds_per_image});
  encode_tiled_jpeg(pixels, own.quality, own.jpeg_tile, monitor, encoded);
  open_jpeg(encoded, monitor)->decode({1, {0, 0, sample.width, sample.height}, channels}, stored_);
  sample.pixels.add_sample(stored_.pixels.data(), plan_.sample);
  sample.payload.swap(encoded);
  sample.kind = PayloadKind::jpeg;
}

}  // namespace chunkhit
