#include "transform/orientation.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace chunkhit {
namespace {

// Where the upright pixel (x, y) is stored: at (y, x) or (x, y), then counted from the right and from the
// bottom or not.
struct Turn {
  bool swaps;
  bool from_right;
  bool from_bottom;
};

Turn turn_of(int orientation) {
  constexpr std::array<Turn, 8> kTurns{{{false, false, false},
                                        {false, true, false},
                                        {false, true, true},
                                        {false, false, true},
                                        {true, false, false},
                                        {true, false, true},
                                        {true, true, true},
                                        {true, true, false}}};
  return orientation >= 1 && orientation <= 8 ? kTurns[static_cast<std::size_t>(orientation) - 1] : kTurns[0];
}

// Steps through stored bytes as one walks over upright pixels.
struct Walk {
  const std::uint8_t* origin;
  std::ptrdiff_t x_step;
  std::ptrdiff_t y_step;
};

Walk walk_of(const ImageView& stored, Turn turn) {
  const std::uint32_t x = turn.from_right ? stored.width - 1 : 0;
  const std::uint32_t y = turn.from_bottom ? stored.height - 1 : 0;
  const std::ptrdiff_t right = turn.from_right ? -std::ptrdiff_t{stored.channels} : stored.channels;
  const auto row_bytes = static_cast<std::ptrdiff_t>(stored.row_bytes);
  const std::ptrdiff_t down = turn.from_bottom ? -row_bytes : row_bytes;
  const std::uint8_t* origin = stored.row(y) + std::size_t{x} * stored.channels;
  return turn.swaps ? Walk{origin, down, right} : Walk{origin, right, down};
}

// So few rows that both sides of a block stay in the first-level cache, even where rows are a power of two
// apart.
constexpr std::uint32_t kBlockPixels = 16;

template <std::uint32_t kChannels>
void copy_block(const Walk& walk, Rect block, Image& upright) {
  for (std::uint32_t y = block.y; y < block.y + block.height; ++y) {
    const std::uint8_t* from =
        walk.origin + std::ptrdiff_t{block.x} * walk.x_step + std::ptrdiff_t{y} * walk.y_step;
    std::uint8_t* to = upright.row(y) + std::size_t{block.x} * kChannels;
    for (std::uint32_t x = 0; x < block.width; ++x, from += walk.x_step, to += kChannels)
      std::memcpy(to, from, kChannels);
  }
}

template <std::uint32_t kChannels>
void copy_blocks(const Walk& walk, Image& upright) {
  for (std::uint32_t y = 0; y < upright.height; y += kBlockPixels)
    for (std::uint32_t x = 0; x < upright.width; x += kBlockPixels)
      copy_block<kChannels>(
          walk, {x, y, std::min(kBlockPixels, upright.width - x), std::min(kBlockPixels, upright.height - y)},
          upright);
}

void copy_rows(const Walk& walk, Image& upright) {
  for (std::uint32_t y = 0; y < upright.height; ++y)
    std::memcpy(upright.row(y), walk.origin + std::ptrdiff_t{y} * walk.y_step, upright.row_bytes());
}

}  // namespace

FlippedAxes flipped_axes(int orientation) {
  const Turn turn = turn_of(orientation);
  return turn.swaps ? FlippedAxes{turn.from_bottom, turn.from_right}
                    : FlippedAxes{turn.from_right, turn.from_bottom};
}

Rect stored_region(Rect upright, int orientation, std::uint32_t width, std::uint32_t height) {
  const Turn turn = turn_of(orientation);
  Rect stored = turn.swaps ? Rect{upright.y, upright.x, upright.height, upright.width} : upright;
  if (turn.from_right) stored.x = width - stored.x - stored.width;
  if (turn.from_bottom) stored.y = height - stored.y - stored.height;
  return stored;
}

void turn_upright(ImageView stored, int orientation, Image& upright) {
  const Turn turn = turn_of(orientation);
  upright.reshape(turn.swaps ? stored.height : stored.width, turn.swaps ? stored.width : stored.height,
                  stored.channels);
  const Walk walk = walk_of(stored, turn);
  if (!turn.swaps && !turn.from_right) return copy_rows(walk, upright);
  using CopyBlocks = void (*)(const Walk&, Image&);
  constexpr std::array<CopyBlocks, 4> kByChannels{copy_blocks<1>, copy_blocks<2>, copy_blocks<3>,
                                                  copy_blocks<4>};
  kByChannels[stored.channels - 1](walk, upright);
}

}  // namespace chunkhit
