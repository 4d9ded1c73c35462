// Feeds the image decoders. The first 8 bytes of an input say which region and channels are wanted, the
// rest is the file. Seeds: tests/fuzz/corpus/decode.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "decode/image_decoder.h"

namespace chunkhit {
namespace {

constexpr std::size_t kChoiceBytes = 8;

// Four bytes pick a range of [0, length): its begin and its length.
void pick_range(const std::uint8_t* choice, std::uint32_t length, std::uint32_t& begin,
                std::uint32_t& count) {
  begin = load_little<std::uint16_t>(choice) % length;
  count = load_little<std::uint16_t>(choice + 2) % (length - begin) + 1;
}

DecodePlan pick_plan(const std::uint8_t* choice, const ImageHeader& header) {
  constexpr std::uint32_t kChannels[] = {0, 1, 3, 4};
  DecodePlan plan;
  plan.shrink = header.scales ? 1u << (choice[3] >> 6) : 1;
  plan.channels = kChannels[choice[7] >> 6];
  pick_range(choice, (header.width + plan.shrink - 1) / plan.shrink, plan.region.x, plan.region.width);
  pick_range(choice + 4, (header.height + plan.shrink - 1) / plan.shrink, plan.region.y, plan.region.height);
  return plan;
}

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

}  // namespace
}  // namespace chunkhit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size >= chunkhit::kChoiceBytes) chunkhit::decode_region({data, size});
  return 0;
}
