// A stranger's program: nothing but the installed package and a compiler. Usage: stranger PACK SAMPLES
#include <chunkhit/reader.h>
#include <chunkhit/version.h>

#include <iostream>
#include <string>

namespace {

/// Whether two epochs of batches hold each sample once, with pixels and labels.
bool reads(const std::string& pack, std::uint64_t samples) {
  chunkhit::ImageLoader loader(pack, {.batch_size = 4,
                                      .shuffle = chunkhit::Shuffle::window,
                                      .seed = 7,
                                      .augment = {.flip_horizontal = 0.5}});
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    std::uint64_t seen = 0;
    std::uint64_t sum = 0;
    for (const chunkhit::ImageBatch& batch : loader.epoch(epoch)) {
      seen += batch.labels.size();
      for (const std::uint64_t sample : batch.samples) sum += sample;
      if (batch.pixels.size() != batch.shape.batch * batch.shape.height * batch.shape.width * 3) return false;
    }
    if (seen != samples || sum != samples * (samples - 1) / 2) return false;
  }
  std::cout << loader.stats();
  return chunkhit::ImageDataset(pack).size() == samples;
}

bool refuses_what_is_not_there() {
  try {
    const chunkhit::ImageLoader loader("/nonexistent/pack");
  } catch (const chunkhit::Error& error) {
    std::cout << chunkhit::version() << ": " << error.what() << "\n";
    return error.code() == chunkhit::ErrorCode::bad_data;
  }
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  return reads(arguments[1], std::stoull(arguments[2])) && refuses_what_is_not_there() ? 0 : 1;
}
