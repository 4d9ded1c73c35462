// A program without exceptions and run-time types, in which a failure ends the process. Usage: train PACK
// SAMPLES
#include <chunkhit/image_loader.h>
#include <chunkhit/version.h>

#include <cstdint>
#include <cstdlib>
#include <string>

static_assert(CHUNKHIT_VERSION_MAJOR * 10000 + CHUNKHIT_VERSION_MINOR * 100 + CHUNKHIT_VERSION_PATCH >= 100);

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const std::string numbers = std::to_string(CHUNKHIT_VERSION_MAJOR) + "." +
                              std::to_string(CHUNKHIT_VERSION_MINOR) + "." +
                              std::to_string(CHUNKHIT_VERSION_PATCH);
  if (numbers != chunkhit::version()) return 3;
  chunkhit::ImageLoader loader(arguments[1],
                               {.batch_size = 4, .shuffle = chunkhit::Shuffle::window, .seed = 7});
  std::uint64_t seen = 0;
  for (const chunkhit::ImageBatch& batch : loader.epoch(0)) seen += batch.labels().size();
  return seen == std::strtoull(arguments[2], nullptr, 10) ? 0 : 1;
}
