#include "decode/tiff_page.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

#include "decode/formats.h"

namespace chunkhit {
namespace {

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

struct FreeOptions {
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};

[[noreturn]] void throw_unopened(const TiffSource& source) {
  const Bytes file = source.file;
  const bool is_big_endian = file[0] == 'M', is_big_tiff = file[2] == '+' || file[3] == '+';
  if (!is_big_tiff && file.size() >= 8) {
    const std::uint64_t offset =
        is_big_endian ? load_big32(file.data() + 4) : load_little<std::uint32_t>(file.data() + 4);
    if (offset >= file.size())
      throw ImageError(RejectKind::damaged, "truncated: the data ends before the list of tags");
  }
  throw ImageError(RejectKind::damaged, "damaged TIFF: " + std::string(source.messages.error.data()));
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

[[noreturn]] void throw_unsupported(const std::string& what) {
  throw ImageError(RejectKind::unsupported, "TIFF " + what + " is not supported");
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
    layout.color = TiffColor::gray;
  } else if (photometric == PHOTOMETRIC_PALETTE) {
    layout.color = TiffColor::palette;
  } else if (photometric == PHOTOMETRIC_SEPARATED) {
    layout.color = TiffColor::cmyk;
  } else if (photometric == PHOTOMETRIC_RGB) {
    layout.color = TiffColor::rgb;
  } else if (photometric == PHOTOMETRIC_YCBCR && layout.compression == COMPRESSION_JPEG &&
             !layout.is_planar) {
    layout.color = TiffColor::rgb;  // libjpeg converts it
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
  const bool is_color = layout.color == TiffColor::rgb || layout.color == TiffColor::cmyk;
  const bool is_named = has_types && count > 0 && types != nullptr;
  if (layout.samples < color || extra > (is_color ? 3 : 1) || (extra > 0 && !is_named && layout.is_planar))
    throw_unsupported("of " + std::to_string(layout.samples) + " samples a pixel");
  if (extra == 0) return;
  const int type = is_named ? types[0] : layout.color == TiffColor::rgb ? EXTRASAMPLE_UNASSALPHA : -1;
  if (type == EXTRASAMPLE_UNASSALPHA && layout.color != TiffColor::cmyk) {
    layout.alpha = TiffAlpha::unassociated;
  } else if (type == EXTRASAMPLE_ASSOCALPHA && layout.color == TiffColor::rgb) {
    layout.alpha = TiffAlpha::associated;
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
  const bool is_gray = layout.color == TiffColor::gray, is_palette = layout.color == TiffColor::palette;
  const bool is_small = layout.bits == 1 || layout.bits == 2 || layout.bits == 4;
  const bool is_known = layout.bits == 8 || (layout.bits == 16 && !is_palette) ||
                        (is_small && (is_gray || is_palette) && layout.alpha == TiffAlpha::none);
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
    throw ImageError(RejectKind::damaged, "damaged TIFF: its strips or tiles have no size");
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

}  // namespace

TiffPage::TiffPage(Bytes file, DecodeMonitor& monitor) : monitor_(monitor) {
  source_.file = file;
  tiff_ = open_source(source_);
  find_more_pages();
  layout_ = read_layout(tiff_.get());
  if (layout_.color == TiffColor::palette) read_palette();
  const auto orientation = field<std::uint16_t>(tiff_.get(), TIFFTAG_ORIENTATION, 1);
  orientation_ = orientation >= 1 && orientation <= 8 ? orientation : 1;
}

// Thumbnails, smaller copies and masks of the first page are no pages.
void TiffPage::find_more_pages() {
  constexpr std::uint32_t kNoPage = FILETYPE_REDUCEDIMAGE | FILETYPE_MASK;
  if (TIFFLastDirectory(tiff_.get()) != 0) return;
  while (!has_more_pages_ && TIFFReadDirectory(tiff_.get()) == 1) {
    monitor_.check_time();
    has_more_pages_ = (field<std::uint32_t>(tiff_.get(), TIFFTAG_SUBFILETYPE, 0) & kNoPage) == 0;
  }
  source_.messages = {};
  if (TIFFSetDirectory(tiff_.get(), 0) == 0) throw_unopened(source_);
}

void TiffPage::read_palette() {
  std::array<std::uint16_t*, 3> colors{};
  if (TIFFGetField(tiff_.get(), TIFFTAG_COLORMAP, &colors[0], &colors[1], &colors[2]) != 1)
    throw ImageError(RejectKind::damaged, "damaged TIFF: it has no palette");
  for (std::size_t i = 0; i < std::size_t{1} << layout_.bits; ++i)
    for (const std::uint16_t* color : colors) palette_.push_back(static_cast<std::uint8_t>(color[i] >> 8));
}

// libjpeg keeps all coefficients of a progressive strip. libtiff keeps offsets and sizes of all parts.
std::uint64_t TiffPage::held_bytes() const {
  const std::uint64_t max_pixels = monitor_.options().max_pixels;
  if (std::uint64_t{layout_.width} * layout_.height > max_pixels) return 0;  // is rejected for that
  const std::uint64_t part_pixels = std::uint64_t{layout_.part_width} * layout_.part_height;
  if (part_pixels > max_pixels)
    throw ImageError(RejectKind::too_large, "has tiles of " + std::to_string(layout_.part_width) + " x " +
                                                std::to_string(layout_.part_height) +
                                                " pixels, over the limit of " + std::to_string(max_pixels) +
                                                " pixels");
  constexpr std::uint64_t kSmallBytes = 1 << 20, kBytesPerPart = 64, kBytesPerColumn = 64;
  const std::uint64_t part_count =
      layout_.is_tiled ? TIFFNumberOfTiles(tiff_.get()) : TIFFNumberOfStrips(tiff_.get());
  std::uint64_t bytes = layout_.planes() * layout_.part_bytes() + part_count * kBytesPerPart +
                        std::uint64_t{layout_.part_width} * layout_.samples * kBytesPerColumn + kSmallBytes;
  if (layout_.compression == COMPRESSION_JPEG) bytes += 2 * part_pixels * layout_.samples;
  return bytes;
}

bool TiffPage::read(const Rect& part) {
  buffer_.resize(layout_.planes() * layout_.part_bytes());
  bool is_read = true;
  for (std::uint32_t plane = 0; plane < layout_.planes() && is_read; ++plane)
    is_read = read_plane(part, plane);
  return is_read;
}

bool TiffPage::read_plane(const Rect& part, std::uint32_t plane) {
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
  const tmsize_t read = layout_.is_tiled                     ? TIFFReadEncodedTile(tiff, index, into, size)
                        : read_long_strip(part, index, into) ? size
                                                             : TIFFReadEncodedStrip(tiff, index, into, size);
  const bool is_read = read >= static_cast<tmsize_t>(expected);
  const bool is_damaged = source_.messages.error[0] != '\0' ||
                          (source_.messages.warning[0] != '\0' && warns_of_damage(layout_.compression));
  if (!is_read || is_damaged) monitor_.damage(damage_text(part, index));
  return is_read;
}

// Some programs fill the last strip up to all its rows. libtiff 4.5 inflates as much of it as the image has
// rows for, and leaves the last of them unwritten without a word: the height is set to that of all rows.
bool TiffPage::read_long_strip(const Rect& part, std::uint32_t index, std::uint8_t* into) {
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

std::string TiffPage::damage_text(const Rect& part, std::uint32_t index) const {
  const std::string row = "near row " + std::to_string(part.y) + " of " + std::to_string(layout_.height);
  const std::uint64_t offset = TIFFGetStrileOffset(tiff_.get(), index);
  const std::uint64_t end = offset + TIFFGetStrileByteCount(tiff_.get(), index);
  if (end > source_.file.size() || end < offset) return "truncated: the data ends " + row;
  const TiffMessages& said = source_.messages;
  return "damaged TIFF " + row + ": " + (said.error[0] != '\0' ? said.error.data() : said.warning.data());
}

}  // namespace chunkhit
