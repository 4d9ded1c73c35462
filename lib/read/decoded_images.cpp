#include "read/decoded_images.h"

#include "base/random.h"
#include "batch/epoch_order.h"

namespace chunkhit {
namespace {

/// Beside the pixels.
constexpr std::uint64_t kBytesOfSample = sizeof(std::uint64_t) + 1;

/// The bytes of an image's pixels; 0 where it is stored as these.
std::uint64_t pixel_bytes(const ChunkSet& chunks, ChunkSet::SampleLocation location) {
  const ImageSizes& sizes = chunks.parts()[location.part]->samples().sizes;
  if (sizes.kinds[location.sample] == static_cast<std::uint8_t>(PayloadKind::raw)) return 0;
  return std::uint64_t{sizes.heights[location.sample]} * sizes.widths[location.sample] *
         chunks.sample().channels;
}

}  // namespace

std::uint64_t DecodedImages::bytes_of_all(const ChunkSet& chunks) {
  std::uint64_t bytes = chunks.sample_count() * kBytesOfSample;
  for (std::size_t part = 0; part < chunks.parts().size(); ++part)
    for (std::uint64_t i = 0; i < chunks.parts()[part]->samples().rows.size(); ++i)
      bytes += pixel_bytes(chunks, {part, i});
  return bytes;
}

DecodedImages::DecodedImages(const ChunkSet& chunks, std::uint64_t bytes) {
  const std::uint64_t samples = chunks.sample_count();
  if (bytes <= samples * kBytesOfSample) return;
  const std::uint64_t room = bytes - samples * kBytesOfSample;
  offsets_.assign(samples, kNotChosen);
  states_ = std::vector<std::atomic<State>>(samples);
  // Images are chosen by a permutation of all, so that each batch has about the same share of them.
  const Permutation choice(samples, random_bits(0, Purpose::decoded_images, 0));
  std::uint64_t taken = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const std::uint64_t sample = choice(i);
    const std::uint64_t pixels = pixel_bytes(chunks, chunks.find_sample(sample));
    if (pixels == 0 || pixels > room - taken) continue;
    offsets_[sample] = taken;
    taken += pixels;
    ++count_;
  }
  if (taken > 0) memory_ = MemoryMap::of_memory(taken);
}

}  // namespace chunkhit
