// Writes parts with known pixels, one of every container, layout, filter and number of channels, for other
// readers to read: store_probe FOLDER.
#include <cstdio>
#include <exception>

#include "known_parts.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kSamples = 10;

void write_all(const std::string& folder) {
  for (const Container& kind : containers())
    for (const std::string_view filter : kind.codecs)
      for (const Layout layout : {Layout::nhwc, Layout::nchw})
        for (const std::uint32_t channels : {1u, 3u, 4u}) {
          const std::string name = std::string(kind.name) + "-" + std::string(filter) + "-" +
                                   name_of(layout) + "-" + std::to_string(channels) +
                                   std::string(kind.extension);
          const std::size_t columns = channels == 4 ? 3 : 1;
          write_known_part(kind, folder + "/" + name,
                           known_spec({20, 17, channels, layout}, std::string(filter), columns), kSamples);
        }
  // A chunk of several raw blocks.
  PartSpec large = known_spec({300, 400, 3, Layout::nhwc}, "none");
  large.chunk_samples = 1;
  write_known_part(container("shard"), folder + "/shard-large.zst", large, kSamples);
  // Chunks of several frames.
  const PartSpec frames = known_spec({150, 200, 3, Layout::nhwc}, "photo");
  write_known_part(container("shard"), folder + "/shard-frames.zst", frames, kSamples);
}

}  // namespace
}  // namespace chunkhit

int main(int count, char** arguments) {
  if (count != 2) return 2;
  try {
    chunkhit::write_all(arguments[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
