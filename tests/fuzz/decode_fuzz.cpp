// Feeds the image decoders. The first 8 bytes of an input say which region and channels are wanted, the
// rest is the file. Seeds: tests/fuzz/corpus/decode.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "decode/class_ids.h"
#include "decode/formats.h"
#include "decode/image_decoder.h"
#include "fuzz/picked_plan.h"

namespace chunkhit {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void decode_region(Bytes input) {
  const Bytes file = input.subspan(kChoiceBytes);
  DecodeOptions options;
  options.max_pixels = 4'000'000;
  options.accept_warnings = (input[1] & 0x80) != 0;
  Image image;
  std::optional<DecodePlan> plan;
  std::uint32_t natural = 0;
  try {
    ImageFile opened(file, options);
    const ImageHeader& header = opened.header();
    require(header.channels >= 1 && header.channels <= 4 && header.orientation >= 1 &&
            header.orientation <= 8);
    natural = header.channels;
    plan = pick_plan(input.data(), header);
    opened.decode(*plan, image);
  } catch (const ImageError&) {
    return;
  }
  require(image.width == plan->region.width && image.height == plan->region.height);
  require(image.channels == (plan->channels == 0 ? natural : plan->channels));
  // Reads every byte, so that valgrind sees one that was never written.
  unsigned sum = 0;
  for (const std::uint8_t value : image.pixels) sum += value;
  require(sum <= 255u * image.pixels.size());
}

void decode_mask(Bytes file) {
  try {
    DecodeMonitor monitor({.max_pixels = 4'000'000});
    const std::unique_ptr<OpenedImage> opened = open_class_ids(file, monitor);
    const ImageHeader& header = opened->header;
    const std::uint64_t pixel_count = std::uint64_t{header.width} * header.height;
    if (pixel_count == 0 || pixel_count > 4'000'000) return;
    Image image;
    opened->decode({1, {0, 0, header.width, header.height}, 1}, image);
    require(image.pixels.size() == std::size_t{header.width} * header.height);
  } catch (const ImageError&) {
    return;
  }
}

}  // namespace
}  // namespace chunkhit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size >= chunkhit::kChoiceBytes) chunkhit::decode_region({data, size});
  if (size >= chunkhit::kChoiceBytes)
    chunkhit::decode_mask({data + chunkhit::kChoiceBytes, size - chunkhit::kChoiceBytes});
  return 0;
}
