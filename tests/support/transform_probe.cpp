// Runs transforms that another program asks for: transform_probe REQUESTS RESULTS.
// A request is 18 little-endian u32 (Request, in its order) and the pixels as stored, after shrinking:
// pixel_bytes bytes. A result is 11 u32 (Result, in its order) and the sample.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <vector>

#include "transform/image_transform.h"
#include "transform/orientation.h"

namespace {

using namespace chunkhit;

struct Request {
  std::uint32_t resize, resize_width, resize_height, filter, crop_width, crop_height;
  std::uint32_t pad_red, pad_green, pad_blue, channels, fast_decode, layout;
  std::uint32_t width, height, source_channels, scales, orientation, pixel_bytes;
};

struct Result {
  std::uint32_t shrink, source_width, source_height, region_x, region_y, region_width, region_height;
  std::uint32_t sample_height, sample_width, sample_channels, sample_bytes;
};

TransformSpec spec_of(const Request& request) {
  TransformSpec spec;
  spec.resize = static_cast<Resize>(request.resize);
  spec.resize_width = request.resize_width;
  spec.resize_height = request.resize_height;
  spec.resample = static_cast<Filter>(request.filter);
  spec.crop_width = request.crop_width;
  spec.crop_height = request.crop_height;
  spec.pad_color = {static_cast<std::uint8_t>(request.pad_red), static_cast<std::uint8_t>(request.pad_green),
                    static_cast<std::uint8_t>(request.pad_blue)};
  spec.channels = static_cast<Channels>(request.channels);
  spec.decode = request.fast_decode != 0 ? JpegDecode::fast : JpegDecode::exact;
  spec.layout = static_cast<Layout>(request.layout);
  return spec;
}

// The pixels of a rectangle in a buffer of exactly their size, so that a sanitizer sees every step beyond.
std::vector<std::uint8_t> cut(const ImageView& image, Rect rect) {
  const std::size_t row_bytes = std::size_t{rect.width} * image.channels;
  std::vector<std::uint8_t> pixels(row_bytes * rect.height);
  for (std::uint32_t y = 0; y < rect.height; ++y)
    std::memcpy(pixels.data() + y * row_bytes, image.row(rect.y + y) + std::size_t{rect.x} * image.channels,
                row_bytes);
  return pixels;
}

Result result_of(const TransformPlan& plan) {
  return {plan.shrink,
          plan.source_width,
          plan.source_height,
          plan.region.x,
          plan.region.y,
          plan.region.width,
          plan.region.height,
          plan.sample.height,
          plan.sample.width,
          plan.sample.channels,
          static_cast<std::uint32_t>(plan.sample.byte_count())};
}

bool answer(const Request& request, const std::vector<std::uint8_t>& pixels, std::ostream& results) {
  const TransformSpec spec = spec_of(request);
  const int orientation = static_cast<int>(request.orientation);
  const bool turned = swaps_sides(orientation);
  const TransformPlan plan =
      plan_transform(spec, turned ? request.height : request.width, turned ? request.width : request.height,
                     request.source_channels, request.scales != 0);
  const std::uint32_t stored_width = turned ? plan.source_height : plan.source_width;
  const std::uint32_t stored_height = turned ? plan.source_width : plan.source_height;
  const std::size_t row_bytes = std::size_t{stored_width} * plan.channels;
  const Result result = result_of(plan);
  results.write(reinterpret_cast<const char*>(&result), sizeof result);
  if (!plan.error.empty() || pixels.size() != row_bytes * stored_height) {
    std::cerr << "a request of " << pixels.size() << " bytes for a source of " << stored_width << " x "
              << stored_height << " x " << plan.channels << ", shrink " << plan.shrink << " " << plan.error
              << "\n";
    return false;
  }
  const ImageView stored{pixels.data(), stored_width, stored_height, plan.channels, row_bytes};
  const Rect rect = stored_region(plan.region, orientation, stored_width, stored_height);
  const std::vector<std::uint8_t> region = cut(stored, rect);
  Image upright;
  turn_upright(
      {region.data(), rect.width, rect.height, plan.channels, std::size_t{rect.width} * plan.channels},
      orientation, upright);
  std::vector<std::uint8_t> sample(plan.sample.byte_count(), 0xcd);
  ImageTransform(spec).apply(plan, upright.view(), sample.data());
  results.write(reinterpret_cast<const char*>(sample.data()), static_cast<std::streamsize>(sample.size()));
  return true;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 3) {
    std::cerr << "usage: transform_probe REQUESTS RESULTS\n";
    return 2;
  }
  std::ifstream requests(arguments[1], std::ios::binary);
  std::ofstream results(arguments[2], std::ios::binary);
  Request request;
  while (requests.read(reinterpret_cast<char*>(&request), sizeof request)) {
    std::vector<std::uint8_t> pixels(request.pixel_bytes);
    requests.read(reinterpret_cast<char*>(pixels.data()), static_cast<std::streamsize>(pixels.size()));
    if (!requests || !answer(request, pixels, results)) return 1;
  }
  results.flush();
  return results ? 0 : 1;
}
