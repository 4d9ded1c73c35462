// Time of the loader's constructor, and until its first batch in order none, in one process with a warm page
// cache. usage: reader_open_bench PACK [ROUNDS [HELD_GIB]]; prints medians of ROUNDS (21) while the process
// holds HELD_GIB (0) of touched memory.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "bench_clock.h"
#include "chunkhit/image_loader.h"

namespace chunkhit {
namespace {

void measure(const std::string& pack, int rounds) {
  std::vector<double> open;
  std::vector<double> first;
  for (int round = 0; round < rounds; ++round) {
    std::optional<ImageLoader> loader;
    const ImageLoaderOptions options{.batch_size = kBenchBatch, .shuffle = Shuffle::none};
    open.push_back(seconds_of([&] { loader.emplace(pack, options); }));
    first.push_back(open.back() + seconds_of([&] { static_cast<void>(loader->next()); }));
  }
  std::printf("opened %8.3f ms  first batch %8.3f ms\n", median(open) * 1e3, median(first) * 1e3);
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::size_t held_gib = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
  const std::vector<unsigned char> held(held_gib << 30, 1);
  chunkhit::measure(argv[1], argc > 2 ? std::atoi(argv[2]) : 21);
}
