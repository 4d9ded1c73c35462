// Class maps in PNG by libpng: the stored values of gray and palette images, which stb_image would expand.
// libpng reports errors by longjmp, so its calls run in a function whose locals need no destructor.
#include <png.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

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

  /// Reads the header; throws ImageError where a pixel is not one value of at most 8 bits.
  void read_header(std::uint32_t& width, std::uint32_t& height) {
    attempt([](PngSession& self) { png_read_info(self.png_, self.info_); });
    width = png_get_image_width(png_, info_);
    height = png_get_image_height(png_, info_);
    const unsigned depth = png_get_bit_depth(png_, info_);
    const unsigned type = png_get_color_type(png_, info_);
    if (type != PNG_COLOR_TYPE_GRAY && type != PNG_COLOR_TYPE_PALETTE)
      throw ImageError("has colors, expected one value a pixel: gray, or a palette");
    if (depth > 8) throw ImageError("has " + std::to_string(depth) + " bits a pixel, expected at most 8");
  }

  void read_pixels(Image& image) {
    rows_.resize(image.height);
    for (std::uint32_t y = 0; y < image.height; ++y) rows_[y] = image.row(y);
    attempt([](PngSession& self) {
      png_set_packing(self.png_);
      static_cast<void>(png_set_interlace_handling(self.png_));
      png_read_update_info(self.png_, self.info_);
      png_read_image(self.png_, self.rows_.data());
      png_read_end(self.png_, nullptr);
    });
  }

 private:
  void attempt(void (*calls)(PngSession&)) {
    if (setjmp(png_jmpbuf(png_)) == 0) return calls(*this);
    throw ImageError("damaged PNG: " + std::string(reason_));
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
  png_structp png_;
  png_infop info_;
};

class OpenedIndices final : public OpenedImage {
 public:
  explicit OpenedIndices(Bytes file) : session_(file) {
    header.format = "png";
    header.channels = 1;
    session_.read_header(header.width, header.height);
  }
  void decode(const DecodePlan&, Image& image) override {
    image.reshape(header.width, header.height, 1);
    session_.read_pixels(image);
  }

 private:
  PngSession session_;
};

}  // namespace

std::unique_ptr<OpenedImage> open_png_indices(Bytes file) { return std::make_unique<OpenedIndices>(file); }

}  // namespace chunkhit
