// TIFF and BigTIFF: strips and tiles are put together here, because TIFFReadRGBAImage multiplies colors with
// alpha and rounds otherwise than Pillow.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "decode/channels.h"
#include "decode/class_ids.h"
#include "decode/formats.h"
#include "decode/tiff_page.h"

namespace chunkhit {
namespace {

// 16 bits of gray and RGB are scaled; fewer than 8 are, too, unless they are indices.
void widen(const TiffLayout& layout, std::uint32_t plane, const std::uint8_t* row, std::size_t first,
           std::size_t count, DeepValues& values, std::uint8_t* to) {
  if (layout.bits == 8) {
    std::memcpy(to, row + first, count);
  } else if (layout.bits == 16) {
    const std::uint32_t scaled = layout.color == TiffColor::cmyk ? 0 : layout.color_samples();
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = load_little<std::uint16_t>(row + 2 * (first + i));
      const std::size_t sample = layout.is_planar ? plane : i % layout.samples;
      to[i] = sample < scaled ? values.scaled(value) : static_cast<std::uint8_t>(value >> 8);
    }
  } else {
    const std::uint32_t largest = (1u << layout.bits) - 1;
    const std::uint32_t scale = layout.color == TiffColor::palette ? 1 : 255 / largest;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t bit = (first + i) * layout.bits;
      to[i] = static_cast<std::uint8_t>((row[bit / 8] >> (8 - layout.bits - bit % 8) & largest) * scale);
    }
  }
}

Rect intersection(const Rect& a, const Rect& b) {
  const std::uint32_t x = std::max(a.x, b.x), y = std::max(a.y, b.y);
  const std::uint32_t right = std::min(a.x + a.width, b.x + b.width);
  const std::uint32_t bottom = std::min(a.y + a.height, b.y + b.height);
  return right <= x || bottom <= y ? Rect{} : Rect{x, y, right - x, bottom - y};
}

class TiffFile : public OpenedImage {
 public:
  TiffFile(Bytes file, DecodeMonitor& monitor)
      : monitor_(monitor), page_(file, monitor), values_(monitor.options().scale_from) {
    header.width = layout_.width;
    header.height = layout_.height;
    const bool is_gray_image = layout_.color == TiffColor::gray ||
                               (layout_.color == TiffColor::palette && is_gray(page_.palette(), 3));
    header.channels = (is_gray_image ? 1 : 3) + (layout_.alpha != TiffAlpha::none ? 1 : 0);
    header.has_more_frames = page_.has_more_pages();
    header.orientation = page_.orientation();
    header.extra_bytes = page_.held_bytes();
  }

  void decode(const DecodePlan& plan, Image& image) override {
    const bool is_whole = monitor_.options().check == DecodeCheck::whole;
    image.reshape(plan.region.width, plan.region.height, plan.channels);
    samples_.resize(std::size_t{layout_.part_width} * layout_.samples);
    plane_.resize(layout_.is_planar ? layout_.part_width : 0);
    natural_.resize(std::size_t{layout_.part_width} * header.channels);
    for (std::uint64_t y = 0; y < layout_.height; y += layout_.part_height)
      for (std::uint64_t x = 0; x < layout_.width; x += layout_.part_width) {
        monitor_.check_time();
        const Rect part = page_.part_at(static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y));
        const Rect wanted = intersection(part, plan.region);
        if (is_whole || wanted.width > 0) decode_part(part, wanted, plan, image);
      }
    if (!has_part_) throw ImageError(RejectKind::damaged, monitor_.warnings());
    header.max_value = values_.max_value();
  }

 private:
  void decode_part(const Rect& part, const Rect& wanted, const DecodePlan& plan, Image& image) {
    const bool is_read = page_.read(part);
    has_part_ = has_part_ || is_read;
    for (std::uint32_t y = wanted.y; y < wanted.y + wanted.height; ++y) {
      std::uint8_t* const to =
          image.row(y - plan.region.y) + std::size_t{wanted.x - plan.region.x} * plan.channels;
      if (is_read) {
        const std::uint8_t* const from = natural_row(y - part.y, wanted.x - part.x, wanted.width);
        convert_channels(from, header.channels, to, plan.channels, wanted.width);
      } else {
        std::fill_n(to, std::size_t{wanted.width} * plan.channels, std::uint8_t{0});
      }
    }
  }

  /// Gives natural channels of `count` pixels of a row of the part that was read.
  const std::uint8_t* natural_row(std::uint32_t row, std::size_t first, std::size_t count) {
    const bool is_natural = layout_.bits == 8 && !layout_.is_planar && header.channels == layout_.samples &&
                            layout_.alpha != TiffAlpha::associated && !layout_.is_inverted &&
                            (layout_.color == TiffColor::gray || layout_.color == TiffColor::rgb);
    if (is_natural) return page_.row(row) + first * layout_.samples;
    read_samples(row, first, count);
    return natural_pixels(count);
  }

  /// Sets samples_ to `count` pixels of a row of the part that was read, 8 bits a sample.
  void read_samples(std::uint32_t row, std::size_t first, std::size_t count) {
    if (!layout_.is_planar)
      return widen(layout_, 0, page_.row(row), first * layout_.samples, count * layout_.samples, values_,
                   samples_.data());
    for (std::uint32_t plane = 0; plane < layout_.samples; ++plane) {
      widen(layout_, plane, page_.row(row, plane), first, count, values_, plane_.data());
      for (std::size_t i = 0; i < count; ++i) samples_[i * layout_.samples + plane] = plane_[i];
    }
  }

  /// Makes natural channels of samples_.
  const std::uint8_t* natural_pixels(std::size_t count) {
    const std::uint32_t color = layout_.color_samples();
    if (layout_.color == TiffColor::cmyk) {
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t c = 0; c < color; ++c)
          samples_[i * color + c] = static_cast<std::uint8_t>(~samples_[i * layout_.samples + c]);
      cmyk_to_rgb(samples_.data(), natural_.data(), count);
      return natural_.data();
    }
    const std::uint32_t alpha = layout_.alpha == TiffAlpha::none ? 0 : 1;
    const std::uint32_t channels = header.channels;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint8_t* const from = samples_.data() + i * layout_.samples;
      std::uint8_t* const to = natural_.data() + i * channels;
      for (std::size_t c = 0; c < channels - alpha; ++c)
        to[c] = layout_.color == TiffColor::palette
                    ? page_.palette()[std::size_t{from[0]} * 3 + c]
                    : static_cast<std::uint8_t>(layout_.is_inverted ? ~from[c] : from[c]);
      if (alpha != 0) to[channels - 1] = from[color];
      if (layout_.alpha == TiffAlpha::associated) divide_by_alpha(to);
    }
    return natural_.data();
  }

  DecodeMonitor& monitor_;
  TiffPage page_;
  const TiffLayout& layout_ = page_.layout();
  DeepValues values_;
  ByteBuffer samples_;  // of one row of a strip or tile, pixel by pixel
  ByteBuffer plane_;
  ByteBuffer natural_;
  bool has_part_ = false;
};

/// Class ids: samples as they are stored.
class TiffIds final : public OpenedImage {
 public:
  TiffIds(Bytes file, DecodeMonitor& monitor) : monitor_(monitor), page_(file, monitor) {
    const TiffLayout& layout = page_.layout();
    if (layout.compression == COMPRESSION_JPEG) throw ImageError(RejectKind::unsupported, no_mask_type(true));
    if (page_.has_more_pages()) throw ImageError(RejectKind::unsupported, "has several pages, expected one");
    if (layout.color == TiffColor::cmyk)
      throw ImageError(RejectKind::values,
                       "has colors of CMYK, expected one value a pixel; map colors to class ids");
    if (layout.is_inverted)
      throw ImageError(
          RejectKind::unsupported,
          "is a TIFF whose 0 is white, which readers invert or not; save it with 0 as black (MinIsBlack)");
    header.width = layout.width;
    header.height = layout.height;
    header.channels = 1;
    header.extra_bytes = page_.held_bytes();
  }

  void decode(const DecodePlan&, Image& image) override {
    const TiffLayout& layout = page_.layout();
    image.reshape(layout.width, layout.height, 1);
    ClassIds ids(layout.color_samples() + (layout.alpha == TiffAlpha::none ? 0 : 1), (1u << layout.bits) - 1);
    for (std::uint64_t y = 0; y < layout.height; y += layout.part_height)
      for (std::uint64_t x = 0; x < layout.width; x += layout.part_width) {
        monitor_.check_time();
        const Rect part = page_.part_at(static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y));
        if (!page_.read(part)) throw ImageError(RejectKind::damaged, monitor_.warnings());
        for (std::uint32_t row = 0; row < part.height; ++row) take_row(part, row, ids, image);
      }
    ids.finish();
  }

 private:
  void take_row(const Rect& part, std::uint32_t row, ClassIds& ids, Image& image) {
    const TiffLayout& layout = page_.layout();
    const std::uint32_t y = part.y + row;
    const std::size_t taken = layout.color_samples() + (layout.alpha == TiffAlpha::none ? 0 : 1);
    if (layout.bits == 8 && layout.samples == 1)
      return ids.take(page_.row(row), part.x, y, part.width, image.row(y) + part.x);
    values_.resize(part.width * taken);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const std::size_t pixel = i / taken, sample = i % taken;
      values_[i] = layout.is_planar ? value_at(page_.row(row, static_cast<std::uint32_t>(sample)), pixel)
                                    : value_at(page_.row(row), pixel * layout.samples + sample);
    }
    ids.take(values_.data(), part.x, y, part.width, image.row(y) + part.x);
  }

  [[nodiscard]] std::uint16_t value_at(const std::uint8_t* row, std::size_t index) const {
    const std::uint32_t bits = page_.layout().bits;
    if (bits == 8) return row[index];
    if (bits == 16) return load_little<std::uint16_t>(row + 2 * index);
    const std::size_t bit = index * bits;
    return static_cast<std::uint16_t>(row[bit / 8] >> (8 - bits - bit % 8) & ((1u << bits) - 1));
  }

  DecodeMonitor& monitor_;
  TiffPage page_;
  std::vector<std::uint16_t> values_;  // of one row of a strip or tile
};

}  // namespace

bool is_tiff(Bytes file) {
  using std::literals::string_view_literals::operator""sv;
  const std::string_view text = as_text(file);
  return text.starts_with("II*\0"sv) || text.starts_with("MM\0*"sv) || text.starts_with("II+\0"sv) ||
         text.starts_with("MM\0+"sv);
}

std::unique_ptr<OpenedImage> open_tiff(Bytes file, DecodeMonitor& monitor) {
  return std::make_unique<TiffFile>(file, monitor);
}

std::unique_ptr<OpenedImage> open_tiff_ids(Bytes file, DecodeMonitor& monitor) {
  return std::make_unique<TiffIds>(file, monitor);
}

}  // namespace chunkhit
