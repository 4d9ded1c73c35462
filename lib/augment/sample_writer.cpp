#include "augment/sample_writer.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "augment/pixel_rows.h"
#include "base/per_thread.h"
#include "base/throw_error.h"
#include "transform/resample.h"
#include "transform/transpose.h"

namespace chunkhit {
namespace {

// What one pass over a few rows has in hand, so that it stays in the first cache.
constexpr std::size_t kBlockBytes = 8192;
// Batches of samples as large as this do not stay in a cache until they are used: their floats go past it,
// which saves reading the lines that are written.
constexpr std::size_t kStreamedBytes = 16384;

const SampleFormat& checked(const SampleFormat& format) {
  const SampleShape& stored = format.stored;
  if (stored.height == 0 || stored.width == 0 || stored.channels == 0)
    throw_usage("samples without pixels cannot be written");
  return format;
}

// Refuses a crop whose bytes cannot be counted.
void check_size(const BatchShape& shape) {
  std::size_t bytes = sizeof(float);
  for (const std::uint32_t count : {shape.height, shape.width, shape.channels})
    if (__builtin_mul_overflow(bytes, std::size_t{count}, &bytes))
      throw_usage("augment: a crop of " + std::to_string(shape.height) + "x" + std::to_string(shape.width) +
                  " pixels has more bytes than can be counted");
}

void check_turns(const BatchShape& shape, const AugmentSpec& augment) {
  if (augment.quarter_turns && shape.height != shape.width)
    throw_usage("augment.quarter_turns: samples of " + std::to_string(shape.height) + " x " +
                std::to_string(shape.width) +
                " pixels, expected square ones: crop_height and crop_width, or resized_crop, make them so");
}

// The format of what remains to be done to resized images.
SampleFormat resized_format(SampleFormat format, const ResizedCrop& resized_crop) {
  if (!resized_crop.resizes()) return format;
  const ResizedPart part = resized_crop(format.stored.height, format.stored.width, {});
  const ResizedCanvas canvas = resized_crop.canvas(part.request);
  format.stored.height = canvas.height;
  format.stored.width = canvas.width;
  format.augment = ResizedCrop::rest(format.augment);
  return format;
}

}  // namespace

SampleFormat pair_format(const SampleFormat& image, FieldRole role) {
  if (traits_of(role).is_image) return image;
  SampleFormat format{image.stored.shape_of(role), image.augment};
  const bool resizes = image.augment.resized_crop.height != 0 || image.augment.resize_short != 0;
  if (resizes) format.augment.resample = Filter::nearest;
  format.padding = image.mask_padding;
  return format;
}

SampleWriter::SampleWriter(const SampleFormat& format)
    : image_(checked(format).stored),
      resized_crop_(format.augment),
      format_(resized_format(format, resized_crop_)),
      random_crop_(format_.stored, format_.augment) {
  const std::uint32_t channels = image_.channels;
  shape_ = {1, random_crop_.height(), random_crop_.width(), channels, format.layout};
  check_size(shape_);
  check_turns(shape_, format_.augment);
  if (format.dtype != Dtype::uint8) normalizer_ = Normalizer(format.normalize, channels, format.layout);
  if (value_bytes() == 2) half_normalizer_ = HalfNormalizer(format.normalize, channels, format.dtype);
  copies_ = format.dtype == Dtype::uint8 && random_crop_.keeps_all() && keeps_layout();
  const std::size_t row_bytes = std::size_t{shape_.width} * channels;
  block_rows_ = std::clamp<std::size_t>(kBlockBytes / row_bytes, 1, shape_.height);
}

const BatchShape& SampleWriter::shape() const { return shape_; }

std::size_t SampleWriter::value_bytes() const {
  if (format_.dtype == Dtype::uint8) return 1;
  return format_.dtype == Dtype::float32 ? sizeof(float) : sizeof(std::uint16_t);
}

std::size_t SampleWriter::sample_bytes() const {
  return value_bytes() * shape_.height * shape_.width * shape_.channels;
}

bool SampleWriter::copies() const { return copies_ && !resized_crop_.resizes(); }

bool SampleWriter::streams() const { return sample_bytes() >= kStreamedBytes; }

// Values that are stored together at each position of an image: a pixel's, or one of a plane.
std::size_t SampleWriter::stored_values() const {
  return format_.stored.layout == Layout::nhwc ? shape_.channels : 1;
}

std::size_t SampleWriter::written_values() const {
  return format_.layout == Layout::nhwc ? shape_.channels : 1;
}

bool SampleWriter::keeps_layout() const {
  return format_.layout == format_.stored.layout || format_.stored.channels == 1;
}

// Where rows from `first` on are written as bytes.
SampleWriter::MutableRows SampleWriter::written_rows(std::uint8_t* out, std::size_t first) const {
  const std::size_t row_bytes = shape_.width * written_values();
  return {out + first * row_bytes, shape_.height * row_bytes};
}

void SampleWriter::write(const std::uint8_t* stored, const SampleUse& use, std::uint8_t* out) const {
  if (!resized_crop_.resizes()) return write_whole(stored, use, out);
  if (copies_) return resize(stored, use, out);
  static PerThread<ByteBuffer> buffer;
  ByteBuffer& resized = buffer.get();
  resize_empty(resized, format_.stored.pixel_bytes());
  resize(stored, use, resized.data());
  write_whole(resized.data(), use, out);
}

// Resizes the pixels, or plane by plane, in the stored layout.
void SampleWriter::resize(const std::uint8_t* stored, const SampleUse& use, std::uint8_t* out) const {
  static PerThread<AlphaResampler> resampler;
  const ResizedPart part = resized_crop_(image_.height, image_.width, use);
  const Rect& box = part.box;
  const ResampleRequest& request = part.request;
  const ResizedCanvas canvas = resized_crop_.canvas(request);
  if (canvas.height != request.window.height || canvas.width != request.window.width)
    std::memset(out, format_.padding, format_.stored.pixel_bytes());
  const auto values = static_cast<std::uint32_t>(stored_values());
  if (values == 1 && weighs_alpha(request, shape_.channels))
    return resize_planes(stored, part, resampler.get(), out);
  const Rect region = source_region(request);
  const std::size_t row_bytes = std::size_t{image_.width} * values;
  const std::size_t out_row_bytes = std::size_t{shape_.width} * values;
  const std::size_t first = (box.y + region.y) * row_bytes + (std::size_t{box.x} + region.x) * values;
  out += canvas.paste_y * out_row_bytes + std::size_t{canvas.paste_x} * values;
  for (std::size_t piece = 0; piece < shape_.channels / values; ++piece) {
    const std::uint8_t* const pixels = stored + piece * image_.height * row_bytes + first;
    resampler.get().resample(request, {pixels, region.width, region.height, values, row_bytes},
                             out + piece * shape_.height * out_row_bytes, out_row_bytes);
  }
}

// Planes of colours and alpha: joined, so that alpha weighs the colours, and split again.
void SampleWriter::resize_planes(const std::uint8_t* stored, const ResizedPart& part,
                                 AlphaResampler& resampler, std::uint8_t* out) const {
  static PerThread<std::array<Image, 2>> images;
  auto& [joined, resized] = images.get();
  const std::uint32_t channels = shape_.channels;
  const Rect region = source_region(part.request), window = part.request.window;
  const ResizedCanvas canvas = resized_crop_.canvas(part.request);
  const std::size_t plane_bytes = std::size_t{image_.height} * image_.width;
  joined.reshape(region.width, region.height, channels);
  for (std::uint32_t y = 0; y < region.height; ++y)
    join_channels(stored + (std::size_t{part.box.y} + region.y + y) * image_.width + part.box.x + region.x,
                  plane_bytes, channels, region.width, joined.row(y));
  resized.reshape(window.width, window.height, channels);
  resampler.resample(part.request, joined.view(), resized.pixels.data(), resized.row_bytes());
  for (std::uint32_t y = 0; y < window.height; ++y)
    split_channels(resized.row(y), channels, window.width,
                   out + (std::size_t{canvas.paste_y} + y) * shape_.width + canvas.paste_x,
                   std::size_t{shape_.height} * shape_.width);
}

void SampleWriter::write_whole(const std::uint8_t* stored, const SampleUse& use, std::uint8_t* out) const {
  if (copies_) {
    copy_bytes(stored, sample_bytes(), out);
    if (streams()) hwy::FlushStream();
    return;
  }
  const Crop crop = random_crop_(use);
  for (std::size_t row = 0; row < shape_.height; row += block_rows_)
    write_rows(stored, crop, {row, std::min<std::size_t>(block_rows_, shape_.height - row)}, out);
  if (streams()) hwy::FlushStream();
}

void SampleWriter::write_rows(const std::uint8_t* stored, const Crop& crop, const RowRange& range,
                              std::uint8_t* out) const {
  const bool bytes_as_stored = format_.dtype == Dtype::uint8 && keeps_layout();
  if (bytes_as_stored && !crop.flipped && !crop.transposed)
    return copy_rows(stored, crop, range, written_rows(out, range.first));
  // Kept, so that a thread allocates once.
  static PerThread<ByteBuffer> buffer;
  ByteBuffer& room = buffer.get();
  const std::size_t pixel_count = range.count * shape_.width, bytes = pixel_count * shape_.channels;
  const std::size_t wanted = (value_bytes() == 2 ? 4 : 2) * bytes;  // cropped, arranged, and halves of them
  if (room.size() < wanted) room.resize(wanted);
  Rows rows = crop_rows(stored, crop, range, room.data());
  // Mirrored rows, too, reach the memory forwards: written backwards they take three times as long.
  if (bytes_as_stored) return copy_pieces(rows, pixel_count, written_rows(out, range.first));
  if (format_.dtype == Dtype::uint8) return arrange(rows, pixel_count, written_rows(out, range.first));
  if (!keeps_layout()) {
    const MutableRows arranged{room.data() + bytes, pixel_count * written_values()};
    arrange(rows, pixel_count, arranged);
    rows = {arranged.bytes, arranged.piece_bytes};
  }
  if (format_.dtype == Dtype::float32) return normalize_rows(rows, range, reinterpret_cast<float*>(out));
  halve_rows(rows, range, reinterpret_cast<std::uint16_t*>(room.data() + 2 * bytes), out);
}

void SampleWriter::copy_pieces(const Rows& from, std::size_t pixel_count, const MutableRows& to) const {
  const std::size_t values = written_values();
  for (std::size_t piece = 0; piece < shape_.channels / values; ++piece)
    copy_bytes(from.bytes + piece * from.piece_bytes, pixel_count * values,
               to.bytes + piece * to.piece_bytes);
}

void SampleWriter::copy_bytes(const std::uint8_t* bytes, std::size_t count, std::uint8_t* out) const {
  if (streams()) return stream_bytes(bytes, count, out);
  std::memcpy(out, bytes, count);
}

// Views the stored bytes where they can be used as they are, else copies them to `room`.
SampleWriter::Rows SampleWriter::crop_rows(const std::uint8_t* stored, const Crop& crop,
                                           const RowRange& range, std::uint8_t* room) const {
  const SampleShape& from = format_.stored;
  const std::size_t values = stored_values();
  const std::int64_t first = crop.top + static_cast<std::int64_t>(range.first);
  const bool whole_rows =
      !crop.flipped && !crop.upside_down && !crop.transposed && crop.left == 0 && from.width == shape_.width;
  if (whole_rows && first >= 0 && first + static_cast<std::int64_t>(range.count) <= from.height)
    return {stored + static_cast<std::size_t>(first) * from.width * values,
            std::size_t{from.height} * from.width * values};
  const MutableRows to{room, range.count * shape_.width * values};
  if (crop.transposed)
    copy_columns(stored, crop, range, to);
  else
    copy_rows(stored, crop, range, to);
  return {to.bytes, to.piece_bytes};
}

void SampleWriter::copy_rows(const std::uint8_t* stored, const Crop& crop, const RowRange& range,
                             const MutableRows& to) const {
  const std::size_t values = stored_values(), height = format_.stored.height;
  const std::size_t from_row_bytes = format_.stored.width * values, row_bytes = shape_.width * values;
  for (std::size_t piece = 0; piece < shape_.channels / values; ++piece) {
    std::uint8_t* out = to.bytes + piece * to.piece_bytes;
    for (std::size_t i = 0; i < range.count; ++i, out += row_bytes) {
      const std::size_t written = range.first + i;
      const std::int64_t row =
          crop.top + static_cast<std::int64_t>(crop.upside_down ? shape_.height - 1 - written : written);
      if (row < 0 || row >= static_cast<std::int64_t>(height)) {
        std::memset(out, format_.padding, row_bytes);
      } else {
        copy_row(stored + (piece * height + static_cast<std::size_t>(row)) * from_row_bytes, crop, out);
      }
    }
  }
}

void SampleWriter::copy_row(const std::uint8_t* row, const Crop& crop, std::uint8_t* out) const {
  const std::size_t values = stored_values();
  const std::int64_t width = shape_.width, from_width = format_.stored.width;
  const std::int64_t begin = std::clamp<std::int64_t>(crop.left, 0, from_width);
  const std::int64_t end = std::clamp<std::int64_t>(crop.left + width, 0, from_width);
  const auto inside = static_cast<std::size_t>(end - begin);
  // Padded columns to the left and right, before mirroring.
  const auto left = static_cast<std::size_t>(std::clamp<std::int64_t>(begin - crop.left, 0, width));
  const std::size_t right = shape_.width - left - inside;
  const std::size_t padded = crop.flipped ? right : left;
  std::memset(out, format_.padding, padded * values);
  std::memset(out + (padded + inside) * values, format_.padding, (shape_.width - padded - inside) * values);
  const std::uint8_t* from = row + static_cast<std::size_t>(begin) * values;
  if (crop.flipped) return reverse_pixels(from, inside, values, out + padded * values);
  std::memcpy(out + padded * values, from, inside * values);
}

// The range's rows are columns of the crop, of which each stored row has a pixel. Square samples only.
void SampleWriter::copy_columns(const std::uint8_t* stored, const Crop& crop, const RowRange& range,
                                const MutableRows& to) const {
  const std::size_t values = stored_values(), side = shape_.height, row_bytes = side * values;
  const auto height = static_cast<std::int64_t>(format_.stored.height);
  const auto width = static_cast<std::int64_t>(format_.stored.width);
  const auto count = static_cast<std::int64_t>(range.count);
  const std::int64_t left =
      crop.left + static_cast<std::int64_t>(crop.flipped ? side - range.first - range.count : range.first);
  const std::int64_t begin = std::clamp<std::int64_t>(left, 0, width);
  const std::int64_t end = std::clamp<std::int64_t>(left + count, 0, width);
  const auto first = static_cast<std::size_t>(crop.flipped ? left + count - end : begin - left);
  const PixelColumn pixels{values, static_cast<std::size_t>(end - begin), row_bytes, crop.flipped};
  for (std::size_t piece = 0; piece < shape_.channels / values; ++piece) {
    std::uint8_t* const out = to.bytes + piece * to.piece_bytes;
    if (end - begin < count || crop.top < 0 || crop.top + static_cast<std::int64_t>(side) > height)
      std::memset(out, format_.padding, range.count * row_bytes);
    for (std::size_t x = 0; x < side && begin < end; ++x) {
      const std::int64_t row = crop.top + static_cast<std::int64_t>(crop.upside_down ? side - 1 - x : x);
      if (row < 0 || row >= height) continue;
      const std::size_t at =
          (piece * format_.stored.height + static_cast<std::size_t>(row)) * format_.stored.width +
          static_cast<std::size_t>(begin);
      write_column(stored + at * values, pixels, out + first * row_bytes + x * values);
    }
  }
}

// From the stored layout to the other one.
void SampleWriter::arrange(const Rows& from, std::size_t pixel_count, const MutableRows& to) const {
  const std::uint32_t channels = shape_.channels;
  if (channels <= 4 && format_.layout == Layout::nchw)
    return split_channels(from.bytes, channels, pixel_count, to.bytes, to.piece_bytes);
  if (channels <= 4) return join_channels(from.bytes, from.piece_bytes, channels, pixel_count, to.bytes);
  if (format_.layout == Layout::nchw)
    return transpose_bytes({from.bytes, channels, pixel_count, channels}, to.bytes, to.piece_bytes);
  transpose_bytes({from.bytes, from.piece_bytes, channels, pixel_count}, to.bytes, channels);
}

void SampleWriter::normalize_rows(const Rows& from, const RowRange& range, float* out) const {
  const bool stream = streams();
  const std::size_t values = written_values(), row_values = shape_.width * values;
  for (std::uint32_t piece = 0; piece < shape_.channels / values; ++piece)
    normalize_values(normalizer_.constants(piece), from.bytes + piece * from.piece_bytes,
                     range.count * row_values, stream,
                     out + (std::size_t{piece} * shape_.height + range.first) * row_values);
}

// Made in `room`, because rows that go past the caches are copied in one piece.
void SampleWriter::halve_rows(const Rows& from, const RowRange& range, std::uint16_t* room,
                              std::uint8_t* out) const {
  const std::size_t values = written_values(), count = range.count * shape_.width;
  for (std::uint32_t piece = 0; piece < shape_.channels / values; ++piece) {
    const std::uint8_t* const pixels = from.bytes + piece * from.piece_bytes;
    if (format_.layout == Layout::nhwc)
      half_normalizer_.write_pixels(pixels, count, room);
    else
      half_normalizer_.write_plane(piece, pixels, count, room);
    const std::size_t first = (std::size_t{piece} * shape_.height + range.first) * shape_.width * values;
    copy_bytes(reinterpret_cast<const std::uint8_t*>(room), count * values * sizeof(std::uint16_t),
               out + first * sizeof(std::uint16_t));
  }
}

}  // namespace chunkhit
