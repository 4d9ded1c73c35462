#include "transform/resample.h"

#include <algorithm>
#include <cstring>

#include "transform/row_mix.h"
#include "transform/transpose.h"

namespace chunkhit {
namespace {

// Rows that are mixed at the same time: they fill one vector register on most machines, and a strip of a
// typical image stays in the cache.
constexpr std::uint32_t kStripRows = 32;

AxisRequest horizontal_axis(const ResampleRequest& request) {
  return {request.source_width, request.box_width, request.resized_width, request.window.x,
          request.window.width, request.box_x,     request.flipped};
}

AxisRequest vertical_axis(const ResampleRequest& request) {
  return {request.source_height, request.box_height,    request.resized_height,
          request.window.y,      request.window.height, request.box_y};
}

/// Returns whether the copied pixels are consecutive, so that one memcpy copies a row.
bool is_run(const AxisWeights& axis) {
  return axis.first.front() <= axis.first.back() && axis.first.back() - axis.first.front() + 1 == axis.size();
}

template <std::uint32_t kChannels>
void pick_pixels(const AxisWeights& columns, const std::uint8_t* row, std::uint32_t, std::uint8_t* out) {
  for (std::uint32_t x = 0; x < columns.size(); ++x)
    std::memcpy(out + std::size_t{x} * kChannels, row + std::size_t{columns.first[x]} * kChannels, kChannels);
}

void pick_any_pixels(const AxisWeights& columns, const std::uint8_t* row, std::uint32_t channels,
                     std::uint8_t* out) {
  for (std::uint32_t x = 0; x < columns.size(); ++x)
    std::memcpy(out + std::size_t{x} * channels, row + std::size_t{columns.first[x]} * channels, channels);
}

void pick_row(const AxisWeights& columns, const std::uint8_t* row, std::uint32_t channels,
              std::uint8_t* out) {
  if (is_run(columns)) {
    std::memcpy(out, row + std::size_t{columns.first.front()} * channels,
                std::size_t{columns.size()} * channels);
    return;
  }
  constexpr std::array kByChannels{pick_pixels<1>, pick_pixels<2>, pick_pixels<3>, pick_pixels<4>};
  const auto pick = channels <= kByChannels.size() ? kByChannels[channels - 1] : pick_any_pixels;
  pick(columns, row, channels, out);
}

void pick(const AxisWeights& columns, const AxisWeights& rows, ImageView region_pixels, std::uint8_t* out,
          std::size_t out_row_bytes) {
  for (std::uint32_t y = 0; y < rows.size(); ++y)
    pick_row(columns, region_pixels.row(rows.first[y]), region_pixels.channels, out + y * out_row_bytes);
}

}  // namespace

Rect source_region(const ResampleRequest& request) {
  const AxisSpan columns = axis_span(request.filter, horizontal_axis(request));
  const AxisSpan rows = axis_span(request.filter, vertical_axis(request));
  return {columns.first, rows.first, columns.count, rows.count};
}

std::uint64_t resample_bytes(const ResampleRequest& request, std::uint32_t channels) {
  const Rect region = source_region(request);
  // Upper bound for a pixel: first tap, tap count and weights in every form, with overlapping windows.
  constexpr std::uint64_t kWeightBytes = 160;
  const std::uint64_t rows = std::uint64_t{request.window.width} * region.height;
  const std::uint64_t strips = (std::uint64_t{region.width} + request.window.width) * kStripRows;
  const std::uint64_t sides =
      std::uint64_t{region.width} + region.height + request.window.width + request.window.height;
  return (rows + strips) * channels + sides * kWeightBytes + PixelMixer::kMaxPlanBytes;
}

std::uint64_t Resampler::held_bytes() const {
  return rows_.capacity() + strip_.capacity() + mixed_strip_.capacity();
}

void Resampler::release() {
  ByteBuffer().swap(rows_);
  ByteBuffer().swap(strip_);
  ByteBuffer().swap(mixed_strip_);
}

void Resampler::resample(const ResampleRequest& request, ImageView region_pixels, std::uint8_t* out,
                         std::size_t out_row_bytes) {
  keep_weights(request, region_pixels);
  if (horizontal_.copies && vertical_.copies) {
    pick(horizontal_, vertical_, region_pixels, out, out_row_bytes);
    return;
  }
  if (vertical_.copies) {
    mix_columns(region_pixels, out, out_row_bytes);
    return;
  }
  const std::size_t row_bytes = std::size_t{request.window.width} * region_pixels.channels;
  if (horizontal_.copies) {
    const std::uint8_t* rows =
        region_pixels.pixels + std::size_t{horizontal_.first.front()} * region_pixels.channels;
    mix_rows(vertical_, rows, region_pixels.row_bytes, row_bytes, out, out_row_bytes);
    return;
  }
  resize_empty(rows_, row_bytes * region_pixels.height);
  mix_columns(region_pixels, rows_.data(), row_bytes);
  mix_rows(vertical_, rows_.data(), row_bytes, row_bytes, out, out_row_bytes);
}

/// Most images of a data set have the same size: their weights are computed once.
void Resampler::keep_weights(const ResampleRequest& request, ImageView region_pixels) {
  if (request == request_ && region_pixels.channels == channels_) return;
  request_ = {};  // where memory is lacking, the weights are no request's
  const Rect region = source_region(request);
  compute_weights(request.filter, horizontal_axis(request), horizontal_);
  compute_weights(request.filter, vertical_axis(request), vertical_);
  for (std::uint32_t& first : horizontal_.first) first -= region.x;
  for (std::uint32_t& first : vertical_.first) first -= region.y;
  mixes_pixels_ =
      !horizontal_.copies && pixel_mixer_.plan(horizontal_, region_pixels.channels,
                                               std::size_t{region.width} * region_pixels.channels);
  request_ = request;
  channels_ = region_pixels.channels;
}

void Resampler::mix_columns(ImageView region_pixels, std::uint8_t* out, std::size_t out_row_bytes) {
  if (mixes_pixels_) return pixel_mixer_.mix(region_pixels, out, out_row_bytes);
  mix_turned(region_pixels, out, out_row_bytes);
}

// Mixes along the rows: a strip of rows is turned, so that its columns become rows and mix_rows serves
// both passes, whatever the number of channels; the result is turned back. A last strip overlaps the one
// before it.
void Resampler::mix_turned(ImageView region_pixels, std::uint8_t* out, std::size_t out_row_bytes) {
  const std::uint32_t height = region_pixels.height;
  const std::size_t source_bytes = std::size_t{region_pixels.width} * region_pixels.channels;
  const std::size_t mixed_bytes = std::size_t{horizontal_.size()} * region_pixels.channels;
  resize_empty(strip_, source_bytes * kStripRows);
  resize_empty(mixed_strip_, mixed_bytes * kStripRows);
  for (std::uint32_t done = 0; done < height;) {
    const auto wanted = static_cast<std::uint32_t>(round_up(height - done, kTransposeBlock));
    const std::uint32_t rows = std::min({kStripRows, wanted, height});
    const std::uint32_t top = std::min(done, height - rows);
    const std::size_t pixel_bytes = std::size_t{region_pixels.channels} * rows;
    transpose_bytes({region_pixels.row(top), region_pixels.row_bytes, rows, source_bytes}, strip_.data(),
                    rows);
    mix_rows(horizontal_, strip_.data(), pixel_bytes, pixel_bytes, mixed_strip_.data(), pixel_bytes);
    transpose_bytes({mixed_strip_.data(), rows, mixed_bytes, rows}, out + top * out_row_bytes, out_row_bytes);
    done = top + rows;
  }
}

}  // namespace chunkhit
