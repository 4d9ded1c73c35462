#include "decode/image_decoder.h"

#include <gtest/gtest.h>

#include "decoded.h"
#include "png_writer.h"

namespace chunkhit {
namespace {

using std::literals::string_view_literals::operator""sv;

std::string error_of(std::string_view file) { return decode(as_bytes(file)).error; }

std::vector<std::uint8_t> small_png() {
  return write_png({.width = 2, .height = 2}, as_bytes("\0abcdef\0ghijkl"sv));
}

TEST(ImageDecoder, RejectsWhatIsNoImage) {
  EXPECT_EQ(error_of(""), "is empty");
  EXPECT_EQ(error_of("hello, world: this is text and not an image"), "not an image of a known type");
  EXPECT_EQ(error_of("\0"sv), "not an image of a known type");
  EXPECT_EQ(error_of(std::string(5000, '\0')), "not an image of a known type");
}

TEST(ImageDecoder, NamesTypesThatItDoesNotDecode) {
#ifndef CHUNKHIT_AVIF
  EXPECT_EQ(error_of("\0\0\0\x1c"
                     "ftypavif\0\0\0\0"sv),
            "AVIF is not supported; `avifdec IN.avif OUT.png` converts it");
#endif
  EXPECT_EQ(error_of("\0\0\0\x18"
                     "ftypheic\0\0\0\0"sv),
            "HEIC is not supported; `heif-convert IN.heic OUT.png` converts it");
  EXPECT_EQ(error_of("8BPS\0\1\0\0\0\0\0\0"sv),
            "PSD is not supported; `convert IN.psd[0] OUT.png` converts it");
#ifndef CHUNKHIT_JXL
  EXPECT_EQ(error_of("\0\0\0\x0cJXL \r\n\x87\n"sv),
            "JPEG XL is not supported; `djxl IN.jxl OUT.png` converts it");
#endif
  EXPECT_EQ(error_of("\0\0\0\x0cjP  \r\n\x87\n"sv), "JPEG 2000 is not supported");
  EXPECT_EQ(error_of("%PDF-1.4"), "PDF is not supported");
  EXPECT_EQ(error_of("PK\3\4rest"), "ZIP is not supported");
  EXPECT_EQ(error_of("\n<!DOCTYPE HTML><html>"), "HTML is not supported");
  EXPECT_EQ(error_of("<?xml version='1.0'?><svg/>"), "SVG is not supported");
  EXPECT_EQ(error_of("<?xml version='1.0'?><feed/>"), "XML is not supported");
}

TEST(ImageDecoder, ReadsTheHeaderBeforeThePixels) {
  const std::vector<std::uint8_t> file = small_png();
  ImageFile image(file, {});
  EXPECT_EQ(image.header().format, "png");
  EXPECT_EQ(image.header().width, 2u);
  EXPECT_EQ(image.header().height, 2u);
  Image pixels;
  image.decode({.region = {1, 1, 1, 1}}, pixels);
  EXPECT_EQ(as_text(pixels.pixels), "jkl");
  EXPECT_EQ(pixels.channels, image.header().channels);
}

TEST(ImageDecoder, KeepsToTheLimitOfPixels) {
  EXPECT_EQ(decode(small_png(), {}, {.max_pixels = 4}).error, "");
  EXPECT_EQ(decode(small_png(), {}, {.max_pixels = 3}).error, "is 2 x 2 pixels, over the limit of 3 pixels");
}

TEST(ImageDecoder, RejectsARegionThatTheImageLacks) {
  const std::string error = "the region wanted is not in the image";
  EXPECT_EQ(decode(small_png(), {.region = {1, 0, 2, 1}}).error, error);
  EXPECT_EQ(decode(small_png(), {.region = {0, 2, 1, 1}}).error, error);
  EXPECT_EQ(decode(small_png(), {.region = {0xffffffff, 0, 2, 1}}).error, error);
  EXPECT_EQ(decode(small_png(), {.shrink = 2, .region = {0, 0, 1, 1}}).error, error);
}

}  // namespace
}  // namespace chunkhit
