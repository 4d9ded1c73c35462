#include "read/sized_images.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>

#include "base/per_thread.h"
#include "base/random.h"
#include "base/throw_error.h"
#include "batch/epoch_order.h"
#include "chunkhit/error.h"
#include "codec/chunk_codec.h"
#include "codec/zstd.h"
#include "decode/formats.h"
#include "transform/image_transform.h"
#include "transform/orientation.h"
#include "transform/resample.h"

namespace chunkhit {
namespace {

/// Beside the pixels.
constexpr std::uint64_t kBytesOfSample = ChunkArena::kStateBytes + sizeof(std::uint64_t);

/// The bytes of an image's pixels; 0 where it is stored as these.
std::uint64_t pixel_bytes(const ChunkSet& chunks, ChunkSet::SampleLocation location) {
  const ImageSizes& sizes = chunks.parts()[location.part]->samples().sizes;
  if (sizes.kinds[location.sample] == static_cast<std::uint8_t>(PayloadKind::raw)) return 0;
  return std::uint64_t{sizes.heights[location.sample]} * sizes.widths[location.sample] *
         chunks.sample().channels;
}

}  // namespace

std::uint32_t StoredImage::upright_height() const { return swaps_sides(orientation) ? width : height; }
std::uint32_t StoredImage::upright_width() const { return swaps_sides(orientation) ? height : width; }

StoredImage stored_image(const ImageSizes& sizes, std::uint64_t at, const std::uint8_t* frame) {
  const Bytes bytes = frame == nullptr ? Bytes() : Bytes(frame, sizes.stored_bytes(at));
  return {bytes,
          sizes.payload_bytes[at],
          sizes.heights[at],
          sizes.widths[at],
          static_cast<PayloadKind>(sizes.kinds[at]),
          sizes.orientations[at],
          sizes.mask_bytes_of(at)};
}

namespace {

/// The payload as it is read, in one piece, and cut; the pixels, predicted (photo) and turned.
std::uint64_t decoding_bytes(const ImageSizes& sizes, std::uint64_t at, const SampleShape& sample) {
  constexpr std::uint64_t kPayloads = 3;
  const auto kind = static_cast<PayloadKind>(sizes.kinds[at]);
  const std::uint64_t images = (kind == PayloadKind::raw ? 0 : 1) + (kind == PayloadKind::photo ? 1 : 0) +
                               (sizes.orientations[at] != 1 ? 1 : 0);
  const std::uint64_t pixels = std::uint64_t{sizes.heights[at]} * sizes.widths[at];
  return kPayloads * sizes.payload_bytes[at] + images * pixels * sample.channels +
         pixels * sample.pairs.size();
}

}  // namespace

std::uint64_t decoding_bytes(const ChunkSet& chunks, std::uint64_t threads) {
  std::vector<std::uint64_t> bytes;
  bytes.reserve(chunks.sample_count());
  for (const auto& part : chunks.parts())
    for (std::uint64_t i = 0; i < part->samples().rows.size(); ++i)
      bytes.push_back(decoding_bytes(part->samples().sizes, i, chunks.sample()));
  const auto largest = bytes.begin() + static_cast<std::ptrdiff_t>(std::min(threads, bytes.size()));
  std::partial_sort(bytes.begin(), largest, bytes.end(), std::greater<>());
  return std::accumulate(bytes.begin(), largest, std::uint64_t{0});
}

namespace {

/// Bytes [begin, end) of the payload.
Bytes payload_bytes_of(const StoredImage& image, std::uint64_t begin, std::uint64_t end, ByteBuffer& room) {
  if (image.frame.size() == image.payload_bytes)  // a frame has more
    return image.frame.subspan(begin, end - begin);
  try {
    return raw_bytes_in(image.frame, image.payload_bytes, begin, end, room);
  } catch (const Error& error) {
    throw ImageError(RejectKind::damaged, error.what());
  }
}

}  // namespace

Bytes payload_of(const StoredImage& image, ByteBuffer& room) {
  return payload_bytes_of(image, 0, image.payload_bytes, room);
}

Bytes image_payload(const StoredImage& image, ByteBuffer& room) {
  return payload_of(image, room).first(image.payload_bytes - image.mask_bytes);
}

namespace {

/// Checks what a JPEG says of its size, before memory is taken for its pixels.
void check_sides(std::uint32_t width, std::uint32_t height, const StoredImage& image) {
  if (width != image.width || height != image.height)
    throw ImageError(RejectKind::shape, "a JPEG of " + std::to_string(width) + " x " +
                                            std::to_string(height) + " pixels, expected " +
                                            std::to_string(image.width) + " x " +
                                            std::to_string(image.height));
}

}  // namespace

ImageView SizedImageDecoder::decode_jpeg(const StoredImage& image, const Rect& region,
                                         std::uint32_t channels) {
  const Bytes payload = image_payload(image, payload_);
  // The chunk's hash vouches for the bytes; packing read them to their end.
  DecodeMonitor monitor({.check = DecodeCheck::region, .requires_end = false});
  const bool has_tiles = tiles_.find(payload);
  if (has_tiles) check_sides(tiles_.width(), tiles_.height(), image);
  const Rect in_jpeg = has_tiles ? tiles_.cut(payload, region, cut_) : region;
  const std::unique_ptr<OpenedImage> opened = open_jpeg(has_tiles ? Bytes(cut_) : payload, monitor);
  if (!has_tiles) check_sides(opened->header.width, opened->header.height, image);
  opened->decode({1, in_jpeg, channels}, decoded_);
  return decoded_.view();
}

Bytes SizedImageDecoder::pixels_of(const StoredImage& image, std::uint32_t channels, std::uint64_t begin,
                                   std::uint64_t end) {
  if (image.kind == PayloadKind::raw) return payload_bytes_of(image, begin, end, payload_);
  const Bytes payload = image_payload(image, payload_);
  const SampleShape shape{image.height, image.width, channels, Layout::nhwc};
  try {
    // Looked at before memory is taken.
    if (const std::uint64_t found = zstd_content_bytes(payload); found != shape.byte_count())
      throw ImageError(RejectKind::shape, std::to_string(found) + " bytes of pixels, expected " +
                                              std::to_string(shape.byte_count()));
    decoded_.reshape(image.width, image.height, channels);
    chunk_codec(image.kind == PayloadKind::photo ? "photo" : "zstd")
        .decode(payload, shape, {}, decoded_.pixels);
  } catch (const Error& error) {
    throw ImageError(RejectKind::damaged, error.what());
  }
  return Bytes(decoded_.pixels).subspan(begin, end - begin);
}

ImageView SizedImageDecoder::decode(const StoredImage& image, const Rect& region, std::uint32_t channels) {
  const Rect stored = stored_region(region, image.orientation, image.width, image.height);
  ImageView pixels;
  if (image.kind != PayloadKind::jpeg) {
    const std::size_t row_bytes = std::size_t{image.width} * channels;
    const std::size_t begin = stored.y * row_bytes + std::size_t{stored.x} * channels;
    const std::size_t end = begin + (stored.height - 1) * row_bytes + std::size_t{stored.width} * channels;
    pixels = {pixels_of(image, channels, begin, end).data(), stored.width, stored.height, channels,
              row_bytes};
  } else {
    pixels = decode_jpeg(image, stored, channels);
  }
  if (image.orientation == 1) return pixels;
  turn_upright(pixels, image.orientation, upright_);
  return upright_.view();
}

void SizedImageDecoder::decode_whole(const StoredImage& image, std::uint32_t channels, std::uint8_t* out) {
  const ImageView pixels = decode(image, {0, 0, image.upright_width(), image.upright_height()}, channels);
  for (std::uint32_t y = 0; y < pixels.height; ++y)
    out = std::copy_n(pixels.row(y), std::size_t{pixels.width} * channels, out);
}

ImageView SizedImageDecoder::decode_masks(const StoredImage& image, std::size_t count) {
  upright_.reshape(image.upright_width(), static_cast<std::uint32_t>(count * image.upright_height()), 1);
  const SampleShape shape{upright_.height, upright_.width, 1, Layout::nhwc};
  try {
    chunk_codec("deflate").decode(payload_of(image, payload_).last(image.mask_bytes), shape, {},
                                  upright_.pixels);
  } catch (const Error& error) {
    throw ImageError(RejectKind::damaged, std::string("mask: ") + error.what());
  }
  return upright_.view();
}

std::uint64_t SizedImageDecoder::held_bytes() const {
  return payload_.capacity() + cut_.capacity() + decoded_.pixels.capacity() + upright_.pixels.capacity();
}

namespace {

/// The format of what remains to be done to resized images.
SampleFormat finish_format(SampleFormat format) {
  const AugmentSpec& augment = format.augment;
  const bool resizes = augment.resized_crop.height != 0;
  if (!resizes && (augment.resize_short == 0 || augment.crop_height == 0))
    throw_usage(
        "augment: the images have sizes of their own: give resized_crop (training), or resize_short "
        "with crop_height and crop_width (evaluation), so that all samples of a batch have one shape");
  format.stored.height = resizes ? augment.resized_crop.height : augment.crop_height;
  format.stored.width = resizes ? augment.resized_crop.width : augment.crop_width;
  if (!resizes && augment.random_crop &&
      augment.resize_short < std::max(augment.crop_height, augment.crop_width))
    throw_usage("augment.resize_short: " + std::to_string(augment.resize_short) +
                " pixels, expected at least the larger side of the random crop");
  format.augment = ResizedCrop::rest(augment);
  return format;
}

/// The region of the upright image that a part of it is resized from.
Rect wanted_region(const ResizedPart& part) {
  const Rect region = source_region(part.request);
  return {part.box.x + region.x, part.box.y + region.y, region.width, region.height};
}

/// A region of an upright image whose pixels are there.
ImageView part_of(const std::uint8_t* pixels, const StoredImage& image, const Rect& region,
                  std::uint32_t channels) {
  const std::size_t row_bytes = std::size_t{image.upright_width()} * channels;
  return {pixels + region.y * row_bytes + std::size_t{region.x} * channels, region.width, region.height,
          channels, row_bytes};
}

/// Larger buffers are released after an image: else each thread would keep what the largest one needs.
constexpr std::uint64_t kMaxKeptBytes = std::uint64_t{16} << 20;

struct Tools {
  SizedImageDecoder decoder;
  AlphaResampler resampler;
  ByteBuffer resized;
  void release() {
    if (decoder.held_bytes() > kMaxKeptBytes) decoder = {};
    if (resampler.held_bytes() > kMaxKeptBytes) resampler.release();
  }
};

Tools& own_tools() {
  static PerThread<Tools> tools;
  return tools.get();
}

}  // namespace

SizedImageWriter::SizedImageWriter(const SampleFormat& format)
    : resized_crop_(format.augment), finish_(finish_format(format)) {}

void SizedImageWriter::check(const ChunkReader& part) const {
  for (std::uint64_t sample = 0; sample < part.samples().rows.size(); ++sample) {
    const StoredImage image = stored_image(part.samples().sizes, sample);
    try {
      static_cast<void>(resized_crop_(image.upright_height(), image.upright_width(), {}));
    } catch (const Error& error) {
      throw_bad_data(part.path() + ": sample " + std::to_string(sample) + ": " +
                     std::to_string(image.upright_width()) + " x " + std::to_string(image.upright_height()) +
                     " pixels: " + error.what());
    }
  }
}

double SizedImageWriter::write(const StoredImage& image, DecodedImages& decoded, const SampleUse& use,
                               std::uint8_t* out) const {
  SizedImageDecoder& decoder = own_tools().decoder;
  const BatchShape& shape = finish_.shape();
  const ResizedPart part = resized_crop_(image.upright_height(), image.upright_width(), use);
  const Rect wanted = wanted_region(part);
  const auto begin = std::chrono::steady_clock::now();
  const std::uint8_t* const kept = decoded.find(
      use.sample, [&](std::uint8_t* room) { decoder.decode_whole(image, shape.channels, room); });
  const ImageView pixels = kept == nullptr ? decoder.decode(image, wanted, shape.channels)
                                           : part_of(kept, image, wanted, shape.channels);
  const std::chrono::duration<double> decoding = std::chrono::steady_clock::now() - begin;
  resize(pixels, part, use, out);
  own_tools().release();
  return decoding.count();
}

void SizedImageWriter::write_masks(std::span<const SizedImageWriter> writers, const StoredImage& image,
                                   const SampleUse& use, std::span<std::uint8_t* const> outs) {
  if (writers.empty()) return;
  const ImageView masks = own_tools().decoder.decode_masks(image, writers.size());
  for (std::size_t i = 0; i < writers.size(); ++i) {
    const ResizedPart part = writers[i].resized_crop_(image.upright_height(), image.upright_width(), use);
    const std::uint8_t* const mask = masks.row(static_cast<std::uint32_t>(i * image.upright_height()));
    writers[i].resize(part_of(mask, image, wanted_region(part), 1), part, use, outs[i]);
  }
  own_tools().release();
}

void SizedImageWriter::resize(ImageView pixels, const ResizedPart& part, const SampleUse& use,
                              std::uint8_t* out) const {
  Tools& own = own_tools();
  const BatchShape& shape = finish_.shape();
  const std::size_t row_bytes = std::size_t{shape.width} * shape.channels;
  if (!finish_.copies()) resize_empty(own.resized, row_bytes * shape.height);
  std::uint8_t* const resized = finish_.copies() ? out : own.resized.data();
  const ResizedCanvas canvas = resized_crop_.canvas(part.request);
  const Rect& window = part.request.window;
  if (canvas.height != window.height || canvas.width != window.width)
    std::memset(resized, finish_.padding(), row_bytes * shape.height);
  const std::size_t paste = canvas.paste_y * row_bytes + std::size_t{canvas.paste_x} * shape.channels;
  own.resampler.resample(part.request, pixels, resized + paste, row_bytes);
  if (!finish_.copies()) finish_.write(resized, use, out);
}

std::uint64_t DecodedImages::bytes_of_all(const ChunkSet& chunks) {
  std::uint64_t bytes = chunks.sample_count() * kBytesOfSample;
  for (std::size_t part = 0; part < chunks.parts().size(); ++part)
    for (std::uint64_t i = 0; i < chunks.parts()[part]->samples().rows.size(); ++i)
      bytes += pixel_bytes(chunks, {part, i});
  return bytes;
}

// Shared memory has room for every image, so that processes may choose other numbers of them. Pages that
// nobody writes to take no memory: those of chosen images lie together.
DecodedImages::DecodedImages(const ChunkSet& chunks, std::uint64_t bytes, std::optional<std::uint64_t> id) {
  const std::uint64_t samples = chunks.sample_count();
  if (bytes <= samples * kBytesOfSample) return;
  std::uint64_t left = bytes - samples * kBytesOfSample;
  std::vector<std::uint64_t> places(samples, kNotChosen), sizes;
  // Images are chosen by a permutation of all, so that each batch has about the same share of them.
  const Permutation choice(samples, random_bits(0, Purpose::decoded_images, 0));
  for (std::uint64_t i = 0; i < samples; ++i) {
    const std::uint64_t sample = choice(i);
    const std::uint64_t pixels = pixel_bytes(chunks, chunks.find_sample(sample));
    if (pixels == 0) continue;
    const bool is_chosen = pixels <= left;
    if (is_chosen) {
      places[sample] = sizes.size();
      left -= pixels;
      ++count_;
    }
    if (is_chosen || id) sizes.push_back(pixels);
  }
  if (count_ == 0) return;
  arena_ = ChunkArena(sizes, id);
  places_ = std::move(places);
}

}  // namespace chunkhit
