// CPU time of a random resized crop to 224 x 224 and of an evaluation crop from JPEG, in tiles and whole,
// beside a bare decode of the file by libjpeg-turbo. usage: jpeg_crop_bench ROUNDS FILE...   Interleaved
// rounds, medians; one thread.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "codec/chunk_codec.h"
#include "decode/image_decoder.h"
#include "read/sized_images.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kSeed = 7;

/// A file, and what a pack stores of it.
struct Photo {
  ByteBuffer file;
  ByteBuffer frame;  // around the JPEG in tiles
  StoredImage stored;
};

AugmentSpec crop_of_224() {
  AugmentSpec augment;
  augment.flip_horizontal = 0.5;
  augment.resized_crop.height = augment.resized_crop.width = 224;
  return augment;
}

AugmentSpec centre_of_256() {
  AugmentSpec augment;
  augment.resize_short = 256;
  augment.crop_height = augment.crop_width = 224;
  return augment;
}

SampleFormat format_of(const AugmentSpec& augment) {
  return {{0, 0, 3, Layout::nhwc}, augment, Dtype::uint8, Layout::nhwc, {}};
}

std::vector<Photo> read_photos(int count, char** paths) {
  std::vector<Photo> photos;
  for (int i = 0; i < count; ++i) {
    Photo photo{read_file(paths[i], 1 << 30), {}, {}};
    DecodeMonitor monitor({});
    ByteBuffer tiled;
    write_tiled_jpeg(photo.file, 4, monitor, tiled);
    append_raw_frame(tiled, photo.frame);
    JpegTiles tiles;
    if (!tiles.find(tiled)) std::abort();
    photo.stored = {
        {}, static_cast<std::uint32_t>(tiled.size()), tiles.height(), tiles.width(), PayloadKind::jpeg, 1};
    photos.push_back(std::move(photo));
  }
  for (Photo& photo : photos) photo.stored.frame = photo.frame;
  return photos;
}

void decode_whole(const Photo& photo, bool stock, Image& image) {
  ImageFile opened(photo.file, {.check = DecodeCheck::region, .stock_entropy = stock});
  opened.decode({1, {0, 0, opened.header().width, opened.header().height}, 3}, image);
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Way {
  const char* name;
  std::function<void(const Photo&, std::uint64_t use)> run;
  std::vector<double> microseconds{};
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void run(int rounds, const std::vector<Photo>& photos) {
  const SizedImageWriter tiles(format_of(crop_of_224())), centre(format_of(centre_of_256()));
  DecodedImages none;
  const ResizedCrop crop(crop_of_224());
  Resampler resampler;
  ByteBuffer out(std::size_t{224} * 224 * 3);
  Image image;
  std::vector<Way> ways{
      {"bare whole decode", [&](const Photo& photo, std::uint64_t) { decode_whole(photo, true, image); }},
      {"whole, own codes", [&](const Photo& photo, std::uint64_t) { decode_whole(photo, false, image); }},
      {"whole decode and resize",
       [&](const Photo& photo, std::uint64_t use) {
         decode_whole(photo, true, image);
         const auto [box, request] = crop(image.height, image.width, {kSeed, 0, use, 0});
         const Rect region = source_region(request);
         resampler.resample(request,
                            {image.row(box.y + region.y) + std::size_t{box.x + region.x} * 3, region.width,
                             region.height, 3, image.row_bytes()},
                            out.data(), 224 * 3);
       }},
      {"tiles and resize",
       [&](const Photo& photo, std::uint64_t use) {
         tiles.write(photo.stored, none, {kSeed, 0, use, 0}, out.data());
       }},
      {"tiles, evaluation crop", [&](const Photo& photo, std::uint64_t use) {
         centre.write(photo.stored, none, {kSeed, 0, use, 0}, out.data());
       }}};
  for (int round = 0; round < rounds; ++round)
    for (Way& way : ways) {
      const double begin = cpu_seconds();
      for (std::size_t i = 0; i < photos.size(); ++i)
        way.run(photos[i], static_cast<std::uint64_t>(round) * photos.size() + i);
      way.microseconds.push_back((cpu_seconds() - begin) * 1e6 / static_cast<double>(photos.size()));
    }
  const double bare = median(ways[0].microseconds);
  for (const Way& way : ways)
    std::printf("%-24s %6.0f us CPU an image, %.2f of bare whole decodes\n", way.name,
                median(way.microseconds), bare / median(way.microseconds));
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::vector<chunkhit::Photo> photos = chunkhit::read_photos(argc - 2, argv + 2);
  std::size_t files = 0, stored = 0;
  for (const chunkhit::Photo& photo : photos) {
    files += photo.file.size();
    stored += photo.stored.payload_bytes;
  }
  std::printf("%zu files of %zu bytes, in tiles %.3f of that\n", photos.size(), files / photos.size(),
              static_cast<double>(stored) / static_cast<double>(files));
  chunkhit::run(std::atoi(argv[1]), photos);
}
