// Compares both decoders of JPEG's codes: ours gives libjpeg's pixels, errors and warnings, whatever the
// file. What can be rewritten in tiles has the same pixels, and so have the regions of its tiles, and those
// of a file that a pack holds as it is. The first 8 bytes of an input say what is wanted of the image, the
// rest is the file. Seeds: tests/fuzz/corpus/jpeg.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/bytes.h"
#include "codec/chunk_codec.h"
#include "decode/formats.h"
#include "decode/image_decoder.h"
#include "decode/jpeg_tiles.h"
#include "fuzz/picked_plan.h"
#include "read/sized_images.h"
#include "support/decoded.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kMaxPixels = 1'000'000;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Decodes by both decoders.
Decoded decode_both(Bytes file, const DecodePlan& plan, DecodeOptions options) {
  options.max_pixels = kMaxPixels;
  Decoded ours = decode(file, plan, options);
  options.stock_entropy = true;
  const Decoded stock = decode(file, plan, options);
  require(ours.error == stock.error && ours.warnings == stock.warnings);
  require(!ours.error.empty() || ours.image.pixels == stock.image.pixels);
  return ours;
}

/// Decodes a region of a JPEG that may be in tiles; error where it is not.
Decoded decode_from_tiles(Bytes file, const Rect& region) {
  Decoded decoded;
  JpegTiles tiles;
  if (!tiles.find(file)) {
    decoded.error = "not in tiles";
    return decoded;
  }
  if (region.x + region.width > tiles.width() || region.y + region.height > tiles.height()) {
    decoded.error = "of another size";
    return decoded;
  }
  ByteBuffer cut;
  const Rect in_cut = tiles.cut(file, region, cut);
  return decode_both(cut, {.region = in_cut}, {.check = DecodeCheck::region});
}

void check_tiling(Bytes file, std::uint32_t tile_mcus, const Decoded& whole, const Rect& region) {
  DecodeMonitor monitor({});
  ByteBuffer tiled;
  try {
    write_tiled_jpeg(file, tile_mcus, monitor, tiled);
  } catch (const ImageError&) {
    return;
  }
  require(decode_both(tiled, {}, {}).image.pixels == whole.image.pixels);
  const Decoded part = decode_from_tiles(tiled, region);
  require(part.error.empty() && is_region(part.image, whole.image, region));
}

/// Decodes a region of a file that a pack holds as it is.
void check_payload(Bytes file, const Decoded& whole, const Rect& region) {
  ByteBuffer frame;
  append_raw_frame(file, frame);
  SizedImageDecoder decoder;
  try {
    const ImageView part = decoder.decode({frame, static_cast<std::uint32_t>(file.size()),
                                           whole.header.height, whole.header.width, PayloadKind::jpeg},
                                          region, whole.header.channels);
    if (!whole.error.empty()) return;
    for (std::uint32_t y = 0; y < region.height; ++y)
      require(std::equal(part.row(y), part.row(y) + std::size_t{region.width} * part.channels,
                         whole.image.row(region.y + y) + std::size_t{region.x} * part.channels));
  } catch (const ImageError&) {
    require(!whole.error.empty());
  }
}

void check_file(Bytes input) {
  const Bytes file = input.subspan(kChoiceBytes);
  if (!is_jpeg(file)) return;
  const Decoded whole = decode_both(file, {}, {});
  if (whole.header.width == 0) return;
  DecodePlan plan = pick_plan(input.data(), whole.header);
  for (const DecodeCheck check : {DecodeCheck::whole, DecodeCheck::region})
    for (const bool accept_warnings : {false, true})
      decode_both(file, plan, {.accept_warnings = accept_warnings, .check = check});
  plan.shrink = 1;
  pick_range(input.data(), whole.header.width, plan.region.x, plan.region.width);
  pick_range(input.data() + 4, whole.header.height, plan.region.y, plan.region.height);
  decode_from_tiles(file, plan.region);
  check_payload(file, whole, plan.region);
  if (whole.error.empty()) check_tiling(file, 1 + input[7] % 8, whole, plan.region);
}

}  // namespace
}  // namespace chunkhit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size >= chunkhit::kChoiceBytes) chunkhit::check_file({data, size});
  return 0;
}
