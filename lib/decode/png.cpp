// PNG by libpng: pixels, and class ids as they are stored. Layout: PNG specification, 2nd edition (ISO
// 15948). libpng reports errors by longjmp, so its calls run in functions whose locals need no destructor.
#include <png.h>

#include <array>
#include <bit>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "decode/channels.h"
#include "decode/class_ids.h"
#include "decode/exif.h"
#include "decode/formats.h"

namespace chunkhit {
namespace {

constexpr std::string_view kSignature("\x89PNG\r\n\x1a\n", 8);
constexpr std::string_view kTruncated = "truncated: the data ends before the end chunk";

/// libpng's structs, which are freed also where the constructor of their owner throws.
struct PngStructs {
  explicit PngStructs(png_structp of_png)
      : png(of_png), info(of_png == nullptr ? nullptr : png_create_info_struct(of_png)) {}
  PngStructs(const PngStructs&) = delete;
  PngStructs& operator=(const PngStructs&) = delete;
  ~PngStructs() { png_destroy_read_struct(&png, &info, nullptr); }
  png_structp png;
  png_infop info;
};

/// One decompression and the state that libpng's callbacks need.
class PngReader {
 public:
  /// Reads what stands before the pixels. File and monitor outlive this.
  PngReader(Bytes file, DecodeMonitor& monitor)
      : monitor_(monitor),
        left_(file),
        structs_(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, warn)),
        png_(structs_.png),
        info_(structs_.info) {
    if (info_ == nullptr) throw std::bad_alloc();
    png_set_read_fn(png_, this, read);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // max_pixels is the limit
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);  // texts may expand to gigabytes
    // As in Pillow, a stream may need a larger window than it says, and palettes may lack entries.
    png_set_option(png_, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);
#ifdef PNG_IGNORE_ADLER32                                     // not in Debian 13, where a wrong one is damage
    png_set_option(png_, PNG_IGNORE_ADLER32, PNG_OPTION_ON);  // the checksums of the chunks say as much
#endif
    png_set_check_for_invalid_index(png_, 0);
    attempt([](PngReader& self) { png_read_info(self.png_, self.info_); });
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  /// Sets sizes, and the memory for whole rows.
  void describe(ImageHeader& header) const {
    constexpr std::uint64_t kSmall = 128 << 10, kRowBuffers = 4;
    header.width = png_get_image_width(png_, info_);
    header.height = png_get_image_height(png_, info_);
    const std::uint64_t row_bytes = std::uint64_t{header.width} * 4 * (is_deep() ? 2 : 1);
    header.extra_bytes = std::uint64_t{header.width} * header.height * header.channels * (is_deep() ? 2 : 1) +
                         kRowBuffers * row_bytes + kSmall;
    header.peak_bytes = header.extra_bytes;
  }
  /// Values of a pixel, as stored.
  [[nodiscard]] std::uint32_t channels() const { return png_get_channels(png_, info_); }
  /// Whether a value has 16 bits.
  [[nodiscard]] bool is_deep() const { return png_get_bit_depth(png_, info_) == 16; }
  [[nodiscard]] bool is_indexed() const { return png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE; }
  [[nodiscard]] bool has_transparency() const { return png_get_valid(png_, info_, PNG_INFO_tRNS) != 0; }
  /// The colors of indices, three bytes each.
  [[nodiscard]] Bytes palette() const {
    png_colorp colors = nullptr;
    int count = 0;
    png_get_PLTE(png_, info_, &colors, &count);
    return {&colors->red, 3 * static_cast<std::size_t>(count)};
  }
  /// The alphas of the first indices.
  [[nodiscard]] Bytes palette_alphas() const {
    png_bytep alphas = nullptr;
    int count = 0;
    png_get_tRNS(png_, info_, &alphas, &count, nullptr);
    return {alphas, static_cast<std::size_t>(count)};
  }

  /// Reads all rows to `out`: values of 8 or, in the machine's order, 16 bits. Where `expands`, gray takes
  /// the whole range of 8 bits, and a transparent color is made alpha.
  void read_rows(std::uint8_t* out, std::uint32_t height, std::size_t row_bytes, bool expands) {
    out_ = out;
    height_ = height;
    row_bytes_ = row_bytes;
    expands_ = expands;
    attempt([](PngReader& self) {
      if (self.expands_) png_set_expand(self.png_);
      png_set_packing(self.png_);
      if (std::endian::native == std::endian::little) png_set_swap(self.png_);
      const int passes = png_set_interlace_handling(self.png_);
      png_read_update_info(self.png_, self.info_);
      for (int pass = 0; pass < passes; ++pass)
        for (std::size_t y = 0; y < self.height_; ++y) {
          self.is_last_row_ = pass == passes - 1 && y == self.height_ - 1;
          png_read_row(self.png_, self.out_ + y * self.row_bytes_, nullptr);
        }
      self.is_last_row_ = false;  // texts may follow
      png_read_end(self.png_, self.info_);
    });
  }

 private:
  void attempt(void (*calls)(PngReader&)) {
    if (setjmp(png_jmpbuf(png_)) == 0) return calls(*this);
    monitor_.check_time();
    const std::string_view reason(reason_);
    throw ImageError(RejectKind::damaged,
                     reason == kTruncated ? reason_ : "damaged PNG: " + std::string(reason));
  }

  [[noreturn]] static void fail(png_structp png, png_const_charp reason) {
    auto& self = *static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(self.reason_, reason, sizeof self.reason_ - 1);
    png_longjmp(png, 1);
  }

  // libpng leaves out a malformed tRNS with a warning. Some data beyond the last row does no harm.
  static void warn(png_structp png, png_const_charp reason) {
    if (std::strncmp(reason, "tRNS", 4) == 0) png_error(png, reason);
  }

  static void read(png_structp png, png_bytep out, std::size_t count) {
    auto& self = *static_cast<PngReader*>(png_get_io_ptr(png));
    if (self.monitor_.is_out_of_time()) png_error(png, "");
    if (count > self.left_.size()) png_error(png, kTruncated.data());
    // With the last row libpng inflates all that is behind it, which may be gigabytes.
    constexpr std::size_t kMaxExcess = 64 << 10;
    if (self.is_last_row_ && (self.last_bytes_ += count) > 2 * self.row_bytes_ + kMaxExcess)
      png_error(png, "its data inflates to more than its size allows");
    std::memcpy(out, self.left_.data(), count);
    self.left_ = self.left_.subspan(count);
  }

  DecodeMonitor& monitor_;
  Bytes left_;
  char reason_[128] = {};
  std::uint8_t* out_ = nullptr;
  std::size_t height_ = 0;
  std::size_t row_bytes_ = 0;
  bool expands_ = false;
  bool is_last_row_ = false;
  std::size_t last_bytes_ = 0;  // read since the last row began
  PngStructs structs_;
  png_structp png_;
  png_infop info_;
};

/// Notes orientation and frames. libpng compares the checksums of the chunks later.
void walk_chunks(Bytes file, ImageHeader& header) {
  constexpr std::size_t kFrameBytes = 12;  // length, type, checksum
  PngOrientation orientation;
  for (Bytes rest = file.subspan(kSignature.size()); rest.size() >= kFrameBytes;) {
    const std::size_t length = load_big32(rest.data());
    const std::string_view type = as_text(rest.subspan(4, 4));
    if (type == "IEND" || length > rest.size() - kFrameBytes) break;
    const Bytes data = rest.subspan(8, length);
    orientation.add(type, data);
    if (type == "acTL" && length == 8 && load_big32(data.data()) > 1) header.has_more_frames = true;
    rest = rest.subspan(length + kFrameBytes);
  }
  header.orientation = orientation.value();
}

/// Makes 8 bits of 16-bit values in place; alpha is no color, and keeps its high byte.
void narrow(std::uint8_t* values, std::size_t count, std::size_t channels, DeepValues& deep) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = load_little<std::uint16_t>(values + 2 * i);
    const bool is_alpha = channels % 2 == 0 && i % channels == channels - 1;
    values[i] = is_alpha ? static_cast<std::uint8_t>(value >> 8) : deep.scaled(value);
  }
}

using RgbaTable = std::array<std::uint8_t, std::size_t{4} * 256>;

/// The colors of indices. An entry that the palette lacks is the gray of its number, as in Pillow.
RgbaTable rgba_of(Bytes palette, Bytes alphas) {
  RgbaTable colors;
  for (std::size_t i = 0; i < 256; ++i) {
    for (std::size_t c = 0; c < 3; ++c)
      colors[4 * i + c] = 3 * i < palette.size() ? palette[3 * i + c] : static_cast<std::uint8_t>(i);
    colors[4 * i + 3] = i < alphas.size() ? alphas[i] : 255;
  }
  return colors;
}

class PngFile final : public OpenedImage {
 public:
  PngFile(Bytes file, DecodeMonitor& monitor)
      : png_(file, monitor), scale_from_(monitor.options().scale_from) {
    const std::uint32_t colors = !png_.is_indexed() ? png_.channels() : is_gray(png_.palette(), 3) ? 1 : 3;
    header.channels = colors + (png_.has_transparency() ? 1 : 0);
    png_.describe(header);
    walk_chunks(file, header);
  }

  void decode(const DecodePlan& plan, Image& image) override {
    const Rect& region = plan.region;
    image.reshape(region.width, region.height, plan.channels);
    const bool is_indexed = png_.is_indexed(), is_whole = region == Rect{0, 0, header.width, header.height};
    if (is_whole && plan.channels == header.channels && !is_indexed && !png_.is_deep())
      return png_.read_rows(image.pixels.data(), header.height, image.row_bytes(), true);
    const std::uint32_t channels = is_indexed ? 1 : header.channels;
    const std::size_t row_values = std::size_t{header.width} * channels;
    RgbaTable colors{};
    if (is_indexed) colors = rgba_of(png_.palette(), png_.palette_alphas());
    const ByteBuffer rows = read_rows(row_values, !is_indexed);
    ByteBuffer rgba(is_indexed ? 4 * std::size_t{region.width} : 0);
    for (std::uint32_t y = 0; y < region.height; ++y) {
      const std::uint8_t* row = rows.data() + (region.y + y) * row_values + std::size_t{region.x} * channels;
      for (std::size_t x = 0; x < rgba.size() / 4; ++x)
        std::memcpy(&rgba[4 * x], &colors[std::size_t{4} * row[x]], 4);
      convert_channels(is_indexed ? rgba.data() : row, is_indexed ? 4 : channels, image.row(y), plan.channels,
                       region.width);
    }
  }

 private:
  /// Returns rows of 8 bits a value.
  ByteBuffer read_rows(std::size_t row_values, bool expands) {
    const std::size_t value_bytes = png_.is_deep() ? 2 : 1;
    ByteBuffer rows(row_values * header.height * value_bytes);
    png_.read_rows(rows.data(), header.height, row_values * value_bytes, expands);
    if (!png_.is_deep()) return rows;
    DeepValues deep(scale_from_);
    narrow(rows.data(), row_values * header.height, header.channels, deep);
    header.max_value = deep.max_value();
    return rows;
  }

  PngReader png_;
  std::array<std::uint16_t, 2> scale_from_;
};

class PngIds final : public OpenedImage {
 public:
  PngIds(Bytes file, DecodeMonitor& monitor) : png_(file, monitor) {
    header.channels = png_.channels();
    png_.describe(header);
    header.channels = 1;
  }

  void decode(const DecodePlan&, Image& image) override {
    image.reshape(header.width, header.height, 1);
    if (png_.is_deep()) return read_values<std::uint16_t>(image, 65535);
    if (png_.channels() > 1) return read_values<std::uint8_t>(image, 255);
    png_.read_rows(image.pixels.data(), image.height, image.row_bytes(), false);
  }

 private:
  template <class Value>
  void read_values(Image& image, std::uint32_t opaque) {
    const std::uint32_t channels = png_.channels();
    const std::size_t row_values = std::size_t{image.width} * channels;
    std::vector<Value> values(row_values * image.height);
    png_.read_rows(reinterpret_cast<std::uint8_t*>(values.data()), image.height, row_values * sizeof(Value),
                   false);
    ClassIds ids(channels, opaque);
    for (std::uint32_t y = 0; y < image.height; ++y)
      ids.take(values.data() + y * row_values, 0, y, image.width, image.row(y));
    ids.finish();
  }

  PngReader png_;
};

}  // namespace

bool is_png(Bytes file) { return as_text(file).starts_with(kSignature); }

std::unique_ptr<OpenedImage> open_png(Bytes file, DecodeMonitor& monitor) {
  constexpr std::size_t kFirstType = 12;
  if (file.size() > kFirstType && as_text(file.subspan(kFirstType)).starts_with("CgBI"))
    throw ImageError(RejectKind::unsupported, "Apple's PNG variant (CgBI) is not supported");
  return std::make_unique<PngFile>(file, monitor);
}

std::unique_ptr<OpenedImage> open_png_ids(Bytes file, DecodeMonitor& monitor) {
  return std::make_unique<PngIds>(file, monitor);
}

}  // namespace chunkhit
