// A consumer's packing program: nothing but the installed package and a compiler. Usage: consumer_pack IMAGES
// PACK RATINGS MATRIX_PACK
#include <chunkhit/image_writer.h>
#include <chunkhit/pack.h>
#include <chunkhit/rating_writer.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <string>

namespace {

/// Packs two images and two ratings of this program's own; returns whether the packs hold them.
bool packs_what_it_has(const std::string& folder) {
  chunkhit::PackImagesOptions to_images;
  to_images.output = folder + "-images";
  const std::array<std::uint8_t, 12> pixels{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  chunkhit::ImageWriter images({}, to_images);
  images.add(chunkhit::PixelsView{pixels, 2, 2, 3}, "ant");
  images.add(chunkhit::PixelsView{pixels, 2, 2, 3}, "bee", "second");
  chunkhit::PackSparseOptions to_ratings;
  to_ratings.output = folder + "-ratings";
  const std::array<std::int64_t, 2> users{7, 8}, items{1, 1};
  chunkhit::RatingWriter ratings({}, to_ratings);
  ratings.add(chunkhit::RatingEntries{std::span(users), std::span(items)});
  return images.finish().packs.at(0).samples == 2 && ratings.finish().packs.at(0).rows == 2;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) return 2;
  chunkhit::PackImagesSpec images;
  images.chunk_samples = 3;
  chunkhit::PackImagesOptions options;
  options.root = arguments[1];
  options.output = arguments[2];
  std::uint64_t rows = 0;
  options.on_progress = [&](const chunkhit::PackProgress& progress) { rows = progress.rows_done; };
  const chunkhit::PackImagesReport report = chunkhit::pack_images(images, options);

  chunkhit::PackSparseOptions ratings;
  ratings.inputs = {arguments[3]};
  ratings.output = arguments[4];
  const chunkhit::PackSparseReport matrix = chunkhit::pack_sparse({}, ratings);

  if (!packs_what_it_has(options.output)) return 1;
  images.max_decode_bytes = 0;
  try {
    chunkhit::pack_images(images, options);
    return 1;
  } catch (const chunkhit::Error& error) {
    std::cout << error.what() << "\n";
    if (error.code() != chunkhit::ErrorCode::usage) return 1;
  }
  return report.packs.at(0).samples == rows && matrix.packs.at(0).rows > 0 ? 0 : 1;
}
