// TIFF and BigTIFF, the first page: libtiff reads tags and unpacks strips and tiles, which are put together
// here, because TIFFReadRGBAImage multiplies colors with alpha and rounds otherwise than Pillow.
#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "base/bytes.h"
#include "decode/channels.h"
#include "decode/formats.h"

namespace chunkhit {
namespace {

/// What libtiff says of a file; the first message of a kind counts.
struct TiffMessages {
  std::array<char, 160> error{};
  std::array<char, 160> warning{};
};

/// A file in memory, read by libtiff's callbacks.
struct TiffSource {
  Bytes file;
  std::uint64_t offset = 0;
  TiffMessages messages;
};

TiffSource& source_of(thandle_t handle) { return *static_cast<TiffSource*>(handle); }

tmsize_t read_source(thandle_t handle, void* into, tmsize_t count) {
  TiffSource& source = source_of(handle);
  const std::uint64_t left = source.file.size() - std::min<std::uint64_t>(source.offset, source.file.size());
  const std::uint64_t taken = std::min(static_cast<std::uint64_t>(std::max<tmsize_t>(count, 0)), left);
  if (taken > 0) std::memcpy(into, source.file.data() + source.offset, taken);
  source.offset += taken;
  return static_cast<tmsize_t>(taken);
}

toff_t seek_source(thandle_t handle, toff_t offset, int whence) {
  TiffSource& source = source_of(handle);
  const std::uint64_t base = whence == SEEK_CUR ? source.offset : whence == SEEK_END ? source.file.size() : 0;
  return source.offset = base + offset;
}

// libtiff only reads what is mapped: it was opened for reading.
int map_source(thandle_t handle, void** base, toff_t* size) {
  *base = const_cast<std::uint8_t*>(source_of(handle).file.data());
  *size = source_of(handle).file.size();
  return 1;
}

int keep_message(std::array<char, 160>& kept, const char* format, std::va_list values) {
  if (kept[0] != '\0') return 1;
  std::vsnprintf(kept.data(), kept.size(), format, values);
  kept[std::strcspn(kept.data(), "\n")] = '\0';
  return 1;  // handled: libtiff reports it no further
}

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
struct FreeOptions {
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};
using TiffHandle = std::unique_ptr<TIFF, CloseTiff>;

[[noreturn]] void throw_unopened(const TiffSource& source) {
  const Bytes file = source.file;
  const bool is_big_endian = file[0] == 'M', is_big_tiff = file[2] == '+' || file[3] == '+';
  if (!is_big_tiff && file.size() >= 8) {
    const std::uint64_t offset =
        is_big_endian ? load_big32(file.data() + 4) : load_little<std::uint32_t>(file.data() + 4);
    if (offset >= file.size()) throw ImageError("truncated: the data ends before the list of tags");
  }
  throw ImageError("damaged TIFF: " + std::string(source.messages.error.data()));
}

TiffHandle open_source(TiffSource& source) {
  constexpr tmsize_t kSmallBytes = 16 << 20;
  const std::unique_ptr<TIFFOpenOptions, FreeOptions> options(TIFFOpenOptionsAlloc());
  if (options == nullptr) throw std::bad_alloc();
  // Lists of 2-byte numbers become 8-byte ones.
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(),
                                      kSmallBytes + 4 * static_cast<tmsize_t>(source.file.size()));
  const auto keep_error = [](TIFF*, void* to, const char*, const char* format, std::va_list values) {
    return keep_message(source_of(to).messages.error, format, values);
  };
  const auto keep_warning = [](TIFF*, void* to, const char*, const char* format, std::va_list values) {
    return keep_message(source_of(to).messages.warning, format, values);
  };
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), keep_warning, &source);
  TiffHandle tiff(TIFFClientOpenExt(
      "TIFF", "r", &source, read_source, [](thandle_t, void*, tmsize_t) { return tmsize_t{0}; }, seek_source,
      [](thandle_t) { return 0; }, [](thandle_t handle) { return toff_t{source_of(handle).file.size()}; },
      map_source, [](thandle_t, void*, toff_t) {}, options.get()));
  if (tiff == nullptr) throw_unopened(source);
  return tiff;
}

template <class Value>
Value field(TIFF* tiff, std::uint32_t tag, Value fallback) {
  Value value{};
  return TIFFGetFieldDefaulted(tiff, tag, &value) == 1 ? value : fallback;
}

enum class Color { gray, palette, rgb, cmyk };
enum class Alpha { none, associated, unassociated };

/// What the tags say of the pixels.
struct TiffLayout {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint16_t bits = 1;     ///< of a sample
  std::uint16_t samples = 1;  ///< of a pixel
  std::uint16_t compression = COMPRESSION_NONE;
  Color color = Color::gray;
  Alpha alpha = Alpha::none;  ///< the sample behind the color's
  bool is_inverted = false;   ///< gray: 0 is white
  bool is_planar = false;     ///< a strip or tile has one sample of each pixel
  bool is_tiled = false;
  std::uint32_t part_width = 0;  ///< of a strip or tile, in pixels
  std::uint32_t part_height = 0;

  [[nodiscard]] std::uint32_t color_samples() const {
    return color == Color::rgb ? 3 : color == Color::cmyk ? 4 : 1;
  }
  [[nodiscard]] std::uint32_t planes() const { return is_planar ? samples : 1; }
  [[nodiscard]] std::uint64_t row_bytes() const {  ///< of a strip or tile
    return (std::uint64_t{part_width} * (is_planar ? 1 : samples) * bits + 7) / 8;
  }
  [[nodiscard]] std::uint64_t part_bytes() const { return row_bytes() * part_height; }
};

[[noreturn]] void throw_unsupported(const std::string& what) {
  throw ImageError("TIFF " + what + " is not supported");
}

// What libtiff only warns of in these is damage; libtiff continues with pixels of its own.
bool warns_of_damage(std::uint16_t compression) {
  return compression == COMPRESSION_JPEG || compression == COMPRESSION_CCITTRLE ||
         compression == COMPRESSION_CCITTFAX3 || compression == COMPRESSION_CCITTFAX4;
}

void check_compression(std::uint16_t compression) {
  constexpr std::array<std::uint16_t, 6> kDecoded{COMPRESSION_NONE,          COMPRESSION_LZW,
                                                  COMPRESSION_ADOBE_DEFLATE, COMPRESSION_DEFLATE,
                                                  COMPRESSION_PACKBITS,      COMPRESSION_JPEG};
  if (warns_of_damage(compression) || std::ranges::find(kDecoded, compression) != kDecoded.end()) return;
  const std::string_view name = compression == COMPRESSION_OJPEG  ? "old-style JPEG"
                                : compression == COMPRESSION_LZMA ? "LZMA"
                                : compression == COMPRESSION_ZSTD ? "Zstandard"
                                : compression == COMPRESSION_WEBP ? "WebP"
                                                                  : "";
  throw_unsupported(name.empty() ? "with compression " + std::to_string(compression)
                                 : "with " + std::string(name) + " compression");
}

void read_color(TIFF* tiff, TiffLayout& layout) {
  const auto photometric = field<std::uint16_t>(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISWHITE);
  layout.is_inverted = photometric == PHOTOMETRIC_MINISWHITE;
  if (photometric == PHOTOMETRIC_MINISWHITE || photometric == PHOTOMETRIC_MINISBLACK) {
    layout.color = Color::gray;
  } else if (photometric == PHOTOMETRIC_PALETTE) {
    layout.color = Color::palette;
  } else if (photometric == PHOTOMETRIC_SEPARATED) {
    layout.color = Color::cmyk;
  } else if (photometric == PHOTOMETRIC_RGB) {
    layout.color = Color::rgb;
  } else if (photometric == PHOTOMETRIC_YCBCR && layout.compression == COMPRESSION_JPEG &&
             !layout.is_planar) {
    layout.color = Color::rgb;  // libjpeg converts it
    TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  } else {
    throw_unsupported(photometric == PHOTOMETRIC_YCBCR ? "in YCbCr without JPEG, or with planes,"
                      : photometric == PHOTOMETRIC_CIELAB
                          ? "in CIE L*a*b*"
                          : "of photometric interpretation " + std::to_string(photometric));
  }
}

/// Reads what the samples behind the color's mean. RGB of four without a word is RGBA, as in Pillow, which
/// takes planes of that kind now as this, now as that.
void read_extra_samples(TIFF* tiff, TiffLayout& layout) {
  std::uint16_t count = 0;
  const std::uint16_t* types = nullptr;
  const bool has_types = TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &count, &types) == 1;
  const std::uint32_t color = layout.color_samples();
  const std::uint32_t extra = layout.samples - std::min<std::uint32_t>(color, layout.samples);
  const bool is_color = layout.color == Color::rgb || layout.color == Color::cmyk;
  const bool is_named = has_types && count > 0 && types != nullptr;
  if (layout.samples < color || extra > (is_color ? 3 : 1) || (extra > 0 && !is_named && layout.is_planar))
    throw_unsupported("of " + std::to_string(layout.samples) + " samples a pixel");
  if (extra == 0) return;
  const int type = is_named ? types[0] : layout.color == Color::rgb ? EXTRASAMPLE_UNASSALPHA : -1;
  if (type == EXTRASAMPLE_UNASSALPHA && layout.color != Color::cmyk) {
    layout.alpha = Alpha::unassociated;
  } else if (type == EXTRASAMPLE_ASSOCALPHA && layout.color == Color::rgb) {
    layout.alpha = Alpha::associated;
  } else if (type != EXTRASAMPLE_UNSPECIFIED || !is_color) {
    throw_unsupported("with an extra sample of type " + std::to_string(type));
  }
}

void check_depth(TIFF* tiff, const TiffLayout& layout) {
  const auto format = field<std::uint16_t>(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
  if (format != SAMPLEFORMAT_UINT)
    throw_unsupported(format == SAMPLEFORMAT_IEEEFP ? "of floating-point samples"
                      : format == SAMPLEFORMAT_INT  ? "of signed samples"
                                                    : "of sample format " + std::to_string(format));
  const bool is_gray = layout.color == Color::gray, is_palette = layout.color == Color::palette;
  const bool is_small = layout.bits == 1 || layout.bits == 2 || layout.bits == 4;
  const bool is_known = layout.bits == 8 || (layout.bits == 16 && !is_palette) ||
                        (is_small && (is_gray || is_palette) && layout.alpha == Alpha::none);
  if (!is_known || (layout.compression == COMPRESSION_JPEG && layout.bits != 8))
    throw_unsupported("of " + std::to_string(layout.bits) + " bits a sample");
}

/// Reads the size of strips or tiles, and compares it with libtiff's own reckoning.
void read_parts(TIFF* tiff, TiffLayout& layout) {
  layout.is_tiled = TIFFIsTiled(tiff) != 0;
  layout.part_width = layout.is_tiled ? field<std::uint32_t>(tiff, TIFFTAG_TILEWIDTH, 0) : layout.width;
  layout.part_height =
      layout.is_tiled
          ? field<std::uint32_t>(tiff, TIFFTAG_TILELENGTH, 0)
          : std::min(field<std::uint32_t>(tiff, TIFFTAG_ROWSPERSTRIP, layout.height), layout.height);
  const std::uint64_t row_bytes = layout.is_tiled ? TIFFTileRowSize64(tiff) : TIFFScanlineSize64(tiff);
  if (layout.part_width == 0 || layout.part_height == 0 || row_bytes != layout.row_bytes())
    throw ImageError("damaged TIFF: its strips or tiles have no size");
}

TiffLayout read_layout(TIFF* tiff) {
  TiffLayout layout;
  layout.width = field<std::uint32_t>(tiff, TIFFTAG_IMAGEWIDTH, 0);
  layout.height = field<std::uint32_t>(tiff, TIFFTAG_IMAGELENGTH, 0);
  layout.bits = field<std::uint16_t>(tiff, TIFFTAG_BITSPERSAMPLE, 1);
  layout.samples = field<std::uint16_t>(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
  layout.compression = field<std::uint16_t>(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  layout.is_planar =
      field<std::uint16_t>(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) == PLANARCONFIG_SEPARATE &&
      layout.samples > 1;
  check_compression(layout.compression);
  read_color(tiff, layout);
  read_extra_samples(tiff, layout);
  check_depth(tiff, layout);
  read_parts(tiff, layout);
  return layout;
}

// 16 bits of gray and RGB are scaled; fewer than 8 are, too, unless they are indices.
void widen(const TiffLayout& layout, std::uint32_t plane, const std::uint8_t* row, std::size_t first,
           std::size_t count, DeepValues& values, std::uint8_t* to) {
  if (layout.bits == 8) {
    std::memcpy(to, row + first, count);
  } else if (layout.bits == 16) {
    const std::uint32_t scaled = layout.color == Color::cmyk ? 0 : layout.color_samples();
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = load_little<std::uint16_t>(row + 2 * (first + i));
      const std::size_t sample = layout.is_planar ? plane : i % layout.samples;
      to[i] = sample < scaled ? values.scaled(value) : static_cast<std::uint8_t>(value >> 8);
    }
  } else {
    const std::uint32_t largest = (1u << layout.bits) - 1;
    const std::uint32_t scale = layout.color == Color::palette ? 1 : 255 / largest;
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
  TiffFile(Bytes file, DecodeMonitor& monitor) : monitor_(monitor), values_(monitor.options().scale_from) {
    source_.file = file;
    tiff_ = open_source(source_);
    find_more_pages();
    layout_ = read_layout(tiff_.get());
    if (layout_.color == Color::palette) read_palette();
    header.width = layout_.width;
    header.height = layout_.height;
    const bool is_gray_image =
        layout_.color == Color::gray || (layout_.color == Color::palette && is_gray(palette_, 3));
    header.channels = (is_gray_image ? 1 : 3) + (layout_.alpha != Alpha::none ? 1 : 0);
    const auto orientation = field<std::uint16_t>(tiff_.get(), TIFFTAG_ORIENTATION, 1);
    header.orientation = orientation >= 1 && orientation <= 8 ? orientation : 1;
    describe_memory();
  }

  void decode(const DecodePlan& plan, Image& image) override {
    const bool is_whole = monitor_.options().check == Check::whole;
    image.reshape(plan.region.width, plan.region.height, plan.channels);
    buffer_.resize(layout_.planes() * layout_.part_bytes());
    samples_.resize(std::size_t{layout_.part_width} * layout_.samples);
    plane_.resize(layout_.is_planar ? layout_.part_width : 0);
    natural_.resize(std::size_t{layout_.part_width} * header.channels);
    for (std::uint64_t y = 0; y < layout_.height; y += layout_.part_height)
      for (std::uint64_t x = 0; x < layout_.width; x += layout_.part_width) {
        monitor_.check_time();
        const Rect part = part_at(static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y));
        const Rect wanted = intersection(part, plan.region);
        if (is_whole || wanted.width > 0) decode_part(part, wanted, plan, image);
      }
    if (!has_part_) throw ImageError(monitor_.warnings());
    header.max_value = values_.max_value();
  }

 private:
  /// Thumbnails, smaller copies and masks of the first page are no pages.
  void find_more_pages() {
    constexpr std::uint32_t kNoPage = FILETYPE_REDUCEDIMAGE | FILETYPE_MASK;
    if (TIFFLastDirectory(tiff_.get()) != 0) return;
    while (!header.has_more_frames && TIFFReadDirectory(tiff_.get()) == 1) {
      monitor_.check_time();
      header.has_more_frames = (field<std::uint32_t>(tiff_.get(), TIFFTAG_SUBFILETYPE, 0) & kNoPage) == 0;
    }
    source_.messages = {};
    if (TIFFSetDirectory(tiff_.get(), 0) == 0) throw_unopened(source_);
  }

  void read_palette() {
    std::array<std::uint16_t*, 3> colors{};
    if (TIFFGetField(tiff_.get(), TIFFTAG_COLORMAP, &colors[0], &colors[1], &colors[2]) != 1)
      throw ImageError("damaged TIFF: it has no palette");
    for (std::size_t i = 0; i < std::size_t{1} << layout_.bits; ++i)
      for (const std::uint16_t* color : colors) palette_.push_back(static_cast<std::uint8_t>(color[i] >> 8));
  }

  // libjpeg keeps all coefficients of a progressive strip. libtiff keeps offsets and sizes of all parts.
  void describe_memory() {
    const std::uint64_t max_pixels = monitor_.options().max_pixels;
    if (std::uint64_t{layout_.width} * layout_.height > max_pixels) return;  // is rejected for that
    const std::uint64_t part_pixels = std::uint64_t{layout_.part_width} * layout_.part_height;
    if (part_pixels > max_pixels)
      throw ImageError("has tiles of " + std::to_string(layout_.part_width) + " x " +
                       std::to_string(layout_.part_height) + " pixels, over the limit of " +
                       std::to_string(max_pixels) + " pixels");
    constexpr std::uint64_t kSmallBytes = 1 << 20, kBytesPerPart = 64, kBytesPerColumn = 64;
    const std::uint64_t part_count =
        layout_.is_tiled ? TIFFNumberOfTiles(tiff_.get()) : TIFFNumberOfStrips(tiff_.get());
    header.extra_bytes = layout_.planes() * layout_.part_bytes() + part_count * kBytesPerPart +
                         std::uint64_t{layout_.part_width} * layout_.samples * kBytesPerColumn + kSmallBytes;
    if (layout_.compression == COMPRESSION_JPEG) header.extra_bytes += 2 * part_pixels * layout_.samples;
  }

  [[nodiscard]] Rect part_at(std::uint32_t x, std::uint32_t y) const {
    return {x, y, std::min(layout_.part_width, layout_.width - x),
            std::min(layout_.part_height, layout_.height - y)};
  }

  void decode_part(const Rect& part, const Rect& wanted, const DecodePlan& plan, Image& image) {
    bool is_read = true;
    for (std::uint32_t plane = 0; plane < layout_.planes() && is_read; ++plane)
      is_read = read_plane(part, plane);
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

  /// Unpacks one plane of a strip or tile; false where it is damaged and that is accepted.
  bool read_plane(const Rect& part, std::uint32_t plane) {
    const std::size_t bytes = layout_.part_bytes();
    const std::size_t expected = layout_.row_bytes() * (layout_.is_tiled ? layout_.part_height : part.height);
    const auto sample = static_cast<std::uint16_t>(plane);
    TIFF* const tiff = tiff_.get();
    const std::uint32_t index = layout_.is_tiled ? TIFFComputeTile(tiff, part.x, part.y, 0, sample)
                                                 : TIFFComputeStrip(tiff, part.y, sample);
    std::uint8_t* const into = buffer_.data() + plane * bytes;
    std::memset(into, 0, bytes);  // a JPEG in it may be smaller
    source_.messages = {};
    const auto size = static_cast<tmsize_t>(bytes);
    const tmsize_t read = layout_.is_tiled ? TIFFReadEncodedTile(tiff, index, into, size)
                          : read_long_strip(part, index, into)
                              ? size
                              : TIFFReadEncodedStrip(tiff, index, into, size);
    const bool is_read = read >= static_cast<tmsize_t>(expected);
    const bool is_damaged = source_.messages.error[0] != '\0' ||
                            (source_.messages.warning[0] != '\0' && warns_of_damage(layout_.compression));
    if (!is_read || is_damaged) monitor_.damage(damage_text(part, index));
    return is_read;
  }

  // Some programs fill the last strip up to all its rows. libtiff 4.5 inflates as much of it as the image has
  // rows for, and leaves the last of them unwritten without a word: the height is set to that of all rows.
  bool read_long_strip(const Rect& part, std::uint32_t index, std::uint8_t* into) {
    const bool is_deflated =
        layout_.compression == COMPRESSION_DEFLATE || layout_.compression == COMPRESSION_ADOBE_DEFLATE;
    if (!is_deflated || part.height == layout_.part_height) return false;
    TIFFSetField(tiff_.get(), TIFFTAG_IMAGELENGTH, part.y + layout_.part_height);
    const auto size = static_cast<tmsize_t>(layout_.part_bytes());
    const bool is_long = TIFFReadEncodedStrip(tiff_.get(), index, into, size) == size;
    TIFFSetField(tiff_.get(), TIFFTAG_IMAGELENGTH, layout_.height);
    if (!is_long) source_.messages = {};
    return is_long;
  }

  [[nodiscard]] std::string damage_text(const Rect& part, std::uint32_t index) const {
    const std::string row = "near row " + std::to_string(part.y) + " of " + std::to_string(layout_.height);
    const std::uint64_t offset = TIFFGetStrileOffset(tiff_.get(), index);
    const std::uint64_t end = offset + TIFFGetStrileByteCount(tiff_.get(), index);
    if (end > source_.file.size() || end < offset) return "truncated: the data ends " + row;
    const TiffMessages& said = source_.messages;
    return "damaged TIFF " + row + ": " + (said.error[0] != '\0' ? said.error.data() : said.warning.data());
  }

  /// Gives natural channels of `count` pixels of a row of the part that buffer_ holds.
  const std::uint8_t* natural_row(std::uint32_t row, std::size_t first, std::size_t count) {
    const bool is_natural = layout_.bits == 8 && !layout_.is_planar && header.channels == layout_.samples &&
                            layout_.alpha != Alpha::associated && !layout_.is_inverted &&
                            (layout_.color == Color::gray || layout_.color == Color::rgb);
    if (is_natural) return buffer_.data() + row * layout_.row_bytes() + first * layout_.samples;
    read_samples(row, first, count);
    return natural_pixels(count);
  }

  /// Sets samples_ to `count` pixels of a row of the part that buffer_ holds, 8 bits a sample.
  void read_samples(std::uint32_t row, std::size_t first, std::size_t count) {
    const std::uint8_t* from = buffer_.data() + row * layout_.row_bytes();
    if (!layout_.is_planar)
      return widen(layout_, 0, from, first * layout_.samples, count * layout_.samples, values_,
                   samples_.data());
    for (std::uint32_t plane = 0; plane < layout_.samples; ++plane, from += layout_.part_bytes()) {
      widen(layout_, plane, from, first, count, values_, plane_.data());
      for (std::size_t i = 0; i < count; ++i) samples_[i * layout_.samples + plane] = plane_[i];
    }
  }

  /// Makes natural channels of samples_.
  const std::uint8_t* natural_pixels(std::size_t count) {
    const std::uint32_t color = layout_.color_samples();
    if (layout_.color == Color::cmyk) {
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t c = 0; c < color; ++c)
          samples_[i * color + c] = static_cast<std::uint8_t>(~samples_[i * layout_.samples + c]);
      cmyk_to_rgb(samples_.data(), natural_.data(), count);
      return natural_.data();
    }
    const std::uint32_t alpha = layout_.alpha == Alpha::none ? 0 : 1;
    const std::uint32_t channels = header.channels;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint8_t* const from = samples_.data() + i * layout_.samples;
      std::uint8_t* const to = natural_.data() + i * channels;
      for (std::size_t c = 0; c < channels - alpha; ++c)
        to[c] = layout_.color == Color::palette
                    ? palette_[std::size_t{from[0]} * 3 + c]
                    : static_cast<std::uint8_t>(layout_.is_inverted ? ~from[c] : from[c]);
      if (alpha != 0) to[channels - 1] = from[color];
      if (layout_.alpha == Alpha::associated) divide_by_alpha(to);
    }
    return natural_.data();
  }

  DecodeMonitor& monitor_;
  TiffSource source_;
  TiffHandle tiff_;
  TiffLayout layout_;
  DeepValues values_;
  ByteBuffer palette_;
  ByteBuffer buffer_;   // one strip or tile as stored, plane behind plane
  ByteBuffer samples_;  // of one row of it, pixel by pixel
  ByteBuffer plane_;
  ByteBuffer natural_;
  bool has_part_ = false;
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

}  // namespace chunkhit
