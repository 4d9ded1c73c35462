// Writes what a loader gives of files, for scripts that compare it with another reader.
// Usage: loader_probe OPTIONS OUT IMAGES LABELS PATH...
// OPTIONS are numbers, in one argument: SHUFFLE(0 none, 1 window, 2 global) SEED WINDOW_CHUNKS BATCH_SIZE
// RESIDENCY(0 automatic, 1 decoded, 2 compressed, 3 stream) THREADS LAYOUT(0 nhwc, 1 nchw, 2 as stored)
// EPOCHS. OUT.pixels, OUT.labels and OUT.samples get what the batches held, one after the other; stdout gets
// a line of the batches' sizes for each epoch. IMAGES and LABELS are empty for packs.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "chunkhit/image_loader.h"

namespace {

using namespace chunkhit;

struct Request {
  ImageLoaderOptions options;
  std::uint64_t epochs = 0;
};

Request parse(const std::string& text) {
  std::istringstream in(text);
  Request request;
  ImageLoaderOptions& options = request.options;
  unsigned shuffle = 0;
  unsigned cache = 0;
  unsigned layout = 0;
  in >> shuffle >> options.seed >> options.window_chunks >> options.batch_size >> cache >> options.threads >>
      layout >> request.epochs;
  if (!in) throw Error(ErrorCode::usage, "OPTIONS: eight numbers are expected");
  options.shuffle = static_cast<Shuffle>(shuffle);
  options.cache = static_cast<Cache>(cache);
  if (layout < 2) options.layout = static_cast<Layout>(layout);
  return request;
}

template <class Number>
void write(std::span<const Number> numbers, std::ofstream& out) {
  out.write(reinterpret_cast<const char*>(numbers.data()),
            static_cast<std::streamsize>(numbers.size_bytes()));
}

bool write_batches(ImageLoader& loader, std::uint64_t epochs, const std::string& out) {
  std::ofstream pixels(out + ".pixels", std::ios::binary);
  std::ofstream labels(out + ".labels", std::ios::binary);
  std::ofstream samples(out + ".samples", std::ios::binary);
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    for (const ImageBatch& batch : loader.epoch(epoch)) {
      std::cout << batch.shape.batch << ' ';
      write(batch.pixels(), pixels);
      if (batch.are_numbers())
        write(batch.label_values(), labels);
      else
        write(batch.labels(), labels);
      write(batch.samples, samples);
    }
    std::cout << '\n';
  }
  return pixels.flush() && labels.flush() && samples.flush() && std::cout.flush();
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 6) return 2;
  try {
    Request request = parse(arguments[1]);
    if (*arguments[3]) request.options.images = arguments[3];
    if (*arguments[4]) request.options.labels = arguments[4];
    ImageLoader loader(std::vector<std::string>(arguments + 5, arguments + count), request.options);
    return write_batches(loader, request.epochs, arguments[2]) ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
