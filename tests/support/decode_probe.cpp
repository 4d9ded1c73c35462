// Decodes what it is told on stdin, for the comparison with Pillow (tests/decode/pillow_test.py). A line in
// is
//   SHRINK X Y WIDTH HEIGHT CHANNELS PATH     (WIDTH 0: the whole image)
// and the answer is "error REASON", or "ok FORMAT WIDTH HEIGHT CHANNELS ORIENTATION OUT_WIDTH OUT_HEIGHT
// OUT_CHANNELS" of the header and of the pixels, which follow.
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "decode/image_decoder.h"
#include "decoded.h"

namespace {

chunkhit::DecodePlan read_plan(std::istream& in) {
  chunkhit::DecodePlan plan;
  in >> plan.shrink >> plan.region.x >> plan.region.y >> plan.region.width >> plan.region.height >>
      plan.channels;
  return plan;
}

void answer(const chunkhit::DecodePlan& plan, const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  const chunkhit::Decoded decoded = chunkhit::decode(chunkhit::as_bytes(file), plan);
  const chunkhit::ImageHeader& header = decoded.header;
  const chunkhit::Image& image = decoded.image;
  if (!decoded.error.empty()) {
    std::cout << "error " << decoded.error << "\n";
    return;
  }
  std::cout << "ok " << header.format << ' ' << header.width << ' ' << header.height << ' ' << header.channels
            << ' ' << header.orientation << ' ' << image.width << ' ' << image.height << ' ' << image.channels
            << "\n";
  std::cout.write(reinterpret_cast<const char*>(image.pixels.data()),
                  static_cast<std::streamsize>(image.pixels.size()));
}

}  // namespace

int main() {
  while (true) {
    const chunkhit::DecodePlan plan = read_plan(std::cin);
    std::string path;
    if (!std::getline(std::cin >> std::ws, path)) return 0;
    answer(plan, path);
    std::cout.flush();
  }
}
