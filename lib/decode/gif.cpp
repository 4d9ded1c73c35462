// GIF: the first frame. Layout: GIF89a specification (CompuServe, 1990).
#include <algorithm>
#include <optional>
#include <string>

#include "decode/formats.h"
#include "decode/stb.h"

namespace chunkhit {
namespace {

/// Walks a GIF up to its first frame.
class GifWalk {
 public:
  explicit GifWalk(Bytes file) : rest_(file) {
    const Bytes screen = take(13);
    width_ = load_little<std::uint16_t>(screen.data() + 6);
    height_ = load_little<std::uint16_t>(screen.data() + 8);
    take_palette(screen[10]);
    for (std::uint8_t tag = take(1)[0]; tag != ','; tag = take(1)[0]) {
      if (tag == ';') throw ImageError("damaged GIF: it has no frame");
      if (tag == '!') take_extension();
    }
    take_descriptor();
  }
  [[nodiscard]] std::uint32_t width() const { return width_; }
  [[nodiscard]] std::uint32_t height() const { return height_; }
  [[nodiscard]] std::uint32_t channels() const {
    return (is_gray(palette_, 3) ? 1 : 3) + (transparent_ ? 1 : 0);
  }
  /// What Pillow shows where the frame draws nothing: the transparent color, else color 0.
  [[nodiscard]] Pixel background() const {
    const std::size_t color = transparent_.value_or(0);
    const auto value = static_cast<std::uint8_t>(color);
    const std::uint8_t alpha = transparent_ ? 0 : 255;
    if (3 * color >= palette_.size()) return {value, value, value, alpha};
    return {palette_[3 * color], palette_[3 * color + 1], palette_[3 * color + 2], alpha};
  }

 private:
  Bytes take(std::size_t count) {
    if (rest_.size() < count) throw ImageError("truncated: the data ends before the first frame");
    const Bytes bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }
  void take_palette(unsigned flags) {
    if ((flags & 0x80) != 0) palette_ = take(std::size_t{6} << (flags & 7));
  }
  // A label and blocks up to an empty one; of label 0xf9 (graphic control) the lowest bit says that a color
  // is transparent.
  void take_extension() {
    const unsigned label = take(1)[0];
    bool is_first = true;
    for (std::size_t size = take(1)[0]; size != 0; size = take(1)[0], is_first = false) {
      const Bytes block = take(size);
      if (!is_first || label != 0xf9 || size != 4) continue;
      transparent_ = (block[0] & 1) != 0 ? std::optional<std::size_t>(block[3]) : std::nullopt;
    }
  }
  void take_descriptor() {
    const Bytes frame = take(9);
    const auto at = [&](std::size_t offset) { return load_little<std::uint16_t>(frame.data() + offset); };
    if (at(4) == 0 || at(6) == 0) throw ImageError("damaged GIF: its first frame has no pixels");
    take_palette(frame[8]);
    const unsigned code_bits = take(1)[0];
    if (code_bits < 1 || code_bits > 8)
      throw ImageError("damaged GIF: its code size is " + std::to_string(code_bits));
    width_ = std::max<std::uint32_t>(width_, at(0) + at(4));
    height_ = std::max<std::uint32_t>(height_, at(2) + at(6));
    if (width_ > 0xffff || height_ > 0xffff)
      throw ImageError("damaged GIF: its first frame leaves its screen too far");
  }

  Bytes rest_;
  std::uint32_t width_ = 0;
  std::uint32_t height_ = 0;
  Bytes palette_;
  std::optional<std::size_t> transparent_;
};

}  // namespace

bool is_gif(Bytes file) { return as_text(file).starts_with("GIF87a") || as_text(file).starts_with("GIF89a"); }

std::unique_ptr<OpenedImage> open_gif(Bytes file, DecodeMonitor& monitor) {
  const GifWalk walk(file);
  constexpr std::uint32_t kTwoCanvasesAndAMask = 9;
  auto image = std::make_unique<StbFile>("GIF", monitor);
  image->describe(walk.width(), walk.height(), walk.channels(), kTwoCanvasesAndAMask);
  // stb_image takes no frame that leaves its screen, and draws the background color where the frame leaves
  // the screen free: it reads a screen of our own.
  constexpr std::size_t kBegin = 6, kEnd = 12;
  const auto byte = [](std::uint32_t value) { return static_cast<std::uint8_t>(value & 255); };
  image->own_piece.assign({byte(walk.width()), byte(walk.width() >> 8), byte(walk.height()),
                           byte(walk.height() >> 8), file[10], 0});
  image->pieces = {file.first(kBegin), Bytes(image->own_piece), file.subspan(kEnd)};
  image->background = walk.background();
  return image;
}

}  // namespace chunkhit
