// Writes samples as another program asks for:
// augment_probe HEIGHT WIDTH CHANNELS STORED_LAYOUT LAYOUT u8|f32 FLIP CROP_HEIGHT CROP_WIDTH RANDOM PADDING
// IN OUT
//               [MEAN...] [STD...] [NAME=VALUE...]
// Layouts and RANDOM are 0 or 1. IN holds whole samples, OUT gets as many. Names: seed, epoch, pass,
// resize_short, resample (a number), height, width, area0, area1, aspect0, aspect1 (of resized_crop).
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "augment/sample_writer.h"

namespace {

std::vector<std::uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Takes the words NAME=VALUE out of all words.
std::map<std::string, double> take_named(std::vector<std::string>& words) {
  std::map<std::string, double> named;
  for (const std::string& word : words)
    if (const std::size_t equals = word.find('='); equals != std::string::npos)
      named[word.substr(0, equals)] = std::stod(word.substr(equals + 1));
  std::erase_if(words, [](const std::string& word) { return word.find('=') != std::string::npos; });
  return named;
}

void set_resize(const std::map<std::string, double>& named, chunkhit::AugmentSpec& augment) {
  const auto take = [&](const char* name, auto& field) {
    if (const auto found = named.find(name); found != named.end())
      field = static_cast<std::remove_reference_t<decltype(field)>>(found->second);
  };
  chunkhit::ResizedCropSpec& crop = augment.resized_crop;
  std::uint32_t resample = 0;
  take("resample", resample);
  augment.resample = static_cast<chunkhit::Filter>(resample);
  take("resize_short", augment.resize_short);
  take("height", crop.height);
  take("width", crop.width);
  take("area0", crop.area[0]);
  take("area1", crop.area[1]);
  take("aspect0", crop.aspect[0]);
  take("aspect1", crop.aspect[1]);
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

void write_samples(std::vector<std::string> words) {
  std::map<std::string, double> named = take_named(words);
  chunkhit::SampleFormat format = format_of(words);
  set_resize(named, format.augment);
  const auto seed = named.contains("seed") ? static_cast<std::uint64_t>(named["seed"]) : 7;
  const auto epoch = static_cast<std::uint64_t>(named["epoch"]);
  const auto pass = static_cast<std::uint32_t>(named["pass"]);
  const chunkhit::SampleWriter writer(format);
  const std::vector<std::uint8_t> stored = read_file(words.at(11));
  const std::size_t stored_bytes = format.stored.byte_count(), count = stored.size() / stored_bytes;
  std::vector<std::uint8_t> out(count * writer.sample_bytes());
  for (std::size_t i = 0; i < count; ++i)
    writer.write(&stored[i * stored_bytes], {seed, epoch, i, pass}, &out[i * writer.sample_bytes()]);
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
