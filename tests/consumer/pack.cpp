// A consumer's packing program: nothing but the installed package and a compiler. Usage: consumer_pack IMAGES
// PACK RATINGS MATRIX_PACK
#include <chunkhit/pack.h>

#include <iostream>

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

  images.max_pixels = 0;
  try {
    chunkhit::pack_images(images, options);
    return 1;
  } catch (const chunkhit::Error& error) {
    std::cout << error.what() << "\n";
    if (error.code() != chunkhit::ErrorCode::usage) return 1;
  }
  return report.packs.at(0).samples == rows && matrix.packs.at(0).rows > 0 ? 0 : 1;
}
