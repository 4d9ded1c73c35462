// Class maps in PNG by libpng: the stored values, which stb_image would expand or scale.
// libpng reports errors by longjmp, so its calls run in a function whose locals need no destructor.
#include <png.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "decode/class_ids.h"
#include "decode/formats.h"

namespace chunkhit {
namespace {

/// One decompression and the state that libpng's callbacks need.
class PngSession {
 public:
  explicit PngSession(Bytes file)
      : left_(file),
        png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, [](png_structp, png_const_charp) {})),
        info_(png_ == nullptr ? nullptr : png_create_info_struct(png_)) {
    if (info_ == nullptr) throw std::bad_alloc();
    png_set_read_fn(png_, this, read);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);  // texts may expand to gigabytes
  }
  PngSession(const PngSession&) = delete;
  PngSession& operator=(const PngSession&) = delete;
  ~PngSession() { png_destroy_read_struct(&png_, &info_, nullptr); }

  void read_header(ImageHeader& header) {
    attempt([](PngSession& self) { png_read_info(self.png_, self.info_); });
    header.width = png_get_image_width(png_, info_);
    header.height = png_get_image_height(png_, info_);
    channels_ = png_get_channels(png_, info_);
    is_deep_ = png_get_bit_depth(png_, info_) == 16;
    const std::uint64_t values = std::uint64_t{header.width} * header.height * channels_;
    if (!is_plain()) header.extra_bytes = values * (is_deep_ ? 2 : 1);
  }

  void read_ids(Image& image) {
    if (is_plain()) return read_rows(image.pixels.data(), image.height, image.row_bytes());
    if (is_deep_) return read_values<std::uint16_t>(image, 65535);
    read_values<std::uint8_t>(image, 255);
  }

 private:
  /// Whether a pixel is one value of at most 8 bits.
  [[nodiscard]] bool is_plain() const { return channels_ == 1 && !is_deep_; }

  template <class Value>
  void read_values(Image& image, std::uint32_t opaque) {
    const std::size_t row_values = std::size_t{image.width} * channels_;
    std::vector<Value> values(row_values * image.height);
    read_rows(reinterpret_cast<std::uint8_t*>(values.data()), image.height, row_values * sizeof(Value));
    ClassIds ids(channels_, opaque);
    for (std::uint32_t y = 0; y < image.height; ++y)
      ids.take(values.data() + y * row_values, 0, y, image.width, image.row(y));
    ids.finish();
  }

  void read_rows(std::uint8_t* out, std::uint32_t height, std::size_t row_bytes) {
    rows_.resize(height);
    for (std::uint32_t y = 0; y < height; ++y) rows_[y] = out + y * row_bytes;
    attempt([](PngSession& self) {
      png_set_packing(self.png_);
      if (self.is_deep_ && std::endian::native == std::endian::little) png_set_swap(self.png_);
      static_cast<void>(png_set_interlace_handling(self.png_));
      png_read_update_info(self.png_, self.info_);
      png_read_image(self.png_, self.rows_.data());
      png_read_end(self.png_, nullptr);
    });
  }

  void attempt(void (*calls)(PngSession&)) {
    if (setjmp(png_jmpbuf(png_)) == 0) return calls(*this);
    throw ImageError(RejectKind::damaged, "damaged PNG: " + std::string(reason_));
  }

  [[noreturn]] static void fail(png_structp png, png_const_charp reason) {
    auto& self = *static_cast<PngSession*>(png_get_error_ptr(png));
    std::strncpy(self.reason_, reason, sizeof self.reason_ - 1);
    png_longjmp(png, 1);
  }

  static void read(png_structp png, png_bytep out, std::size_t count) {
    auto& self = *static_cast<PngSession*>(png_get_io_ptr(png));
    if (count > self.left_.size()) png_error(png, "truncated");
    std::memcpy(out, self.left_.data(), count);
    self.left_ = self.left_.subspan(count);
  }

  Bytes left_;
  char reason_[128] = {};
  std::vector<png_bytep> rows_;
  unsigned channels_ = 1;
  bool is_deep_ = false;  // 16 bits a value
  png_structp png_;
  png_infop info_;
};

class PngIds final : public OpenedImage {
 public:
  explicit PngIds(Bytes file) : session_(file) {
    header.channels = 1;
    session_.read_header(header);
  }
  void decode(const DecodePlan&, Image& image) override {
    image.reshape(header.width, header.height, 1);
    session_.read_ids(image);
  }

 private:
  PngSession session_;
};

}  // namespace

std::unique_ptr<OpenedImage> open_png_ids(Bytes file, DecodeMonitor&) {
  return std::make_unique<PngIds>(file);
}

}  // namespace chunkhit
