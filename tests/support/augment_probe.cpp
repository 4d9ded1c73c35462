// Writes samples as another program asks for:
// augment_probe HEIGHT WIDTH CHANNELS STORED_LAYOUT LAYOUT u8|f32 FLIP CROP_HEIGHT CROP_WIDTH RANDOM PADDING
// IN OUT
//               [MEAN...] [STD...]
// Layouts and RANDOM are 0 or 1. IN holds whole samples, OUT gets as many.
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "augment/sample_writer.h"

namespace {

std::vector<std::uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

chunkhit::SampleFormat format_of(const std::vector<std::string>& words) {
  using chunkhit::Layout;
  const auto number = [&](std::size_t i) { return static_cast<std::uint32_t>(std::stoul(words.at(i))); };
  chunkhit::SampleFormat format;
  format.stored = {number(0), number(1), number(2), static_cast<Layout>(number(3))};
  format.layout = static_cast<Layout>(number(4));
  format.dtype = words.at(5) == "f32" ? chunkhit::Dtype::float32 : chunkhit::Dtype::uint8;
  format.augment = {std::stod(words.at(6)), number(7), number(8), number(9) != 0, number(10)};
  const std::size_t constants = 13, count = (words.size() - constants) / 2;
  for (std::size_t i = 0; i < count; ++i) {
    format.normalize.mean.push_back(std::stof(words[constants + i]));
    format.normalize.std.push_back(std::stof(words[constants + count + i]));
  }
  return format;
}

void write_samples(const std::vector<std::string>& words) {
  const chunkhit::SampleFormat format = format_of(words);
  const chunkhit::SampleWriter writer(format);
  const std::vector<std::uint8_t> stored = read_file(words.at(11));
  const std::size_t stored_bytes = format.stored.byte_count(), count = stored.size() / stored_bytes;
  std::vector<std::uint8_t> out(count * writer.sample_bytes());
  for (std::size_t i = 0; i < count; ++i)
    writer.write(&stored[i * stored_bytes], {7, 0, i, 0}, &out[i * writer.sample_bytes()]);
  std::ofstream(words.at(12), std::ios::binary)
      .write(reinterpret_cast<const char*>(out.data()), static_cast<std::streamsize>(out.size()));
}

}  // namespace

int main(int count, char** words) try {
  if (count < 14) {
    std::fputs("usage: see the source\n", stderr);
    return 2;
  }
  write_samples({words + 1, words + count});
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "augment_probe: %s\n", error.what());
  return 1;
}
