#include <avif/avif.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "decoded.h"

namespace chunkhit {
namespace {

constexpr std::uint32_t kWidth = 40, kHeight = 30;

struct Settings {
  std::uint32_t depth = 8;
  avifPixelFormat format = AVIF_PIXEL_FORMAT_YUV444;
  bool has_alpha = false;
  int angle = 0;
  int mirror = -1;
  std::uint32_t side = 0;  ///< 0: kWidth x kHeight
};

std::string noise(std::size_t bytes) {
  std::string values(bytes, '\0');
  std::uint32_t state = 7;
  for (char& value : values) value = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return values;
}

/// libavif 1.0 renamed the field.
void set_mirror(auto& imir, int mirror) {
  if constexpr (requires { imir.mode; })
    imir.mode = static_cast<std::uint8_t>(mirror);
  else
    imir.axis = static_cast<std::uint8_t>(mirror);
}

/// A lossless file; gray and 4:2:0 keep only what is gray.
std::string encoded(const std::string& pixels, const Settings& settings = {}) {
  const std::uint32_t width = settings.side == 0 ? kWidth : settings.side;
  const std::uint32_t height = settings.side == 0 ? kHeight : settings.side;
  avifImage* const image = avifImageCreate(static_cast<int>(width), static_cast<int>(height),
                                           static_cast<int>(settings.depth), settings.format);
  image->yuvRange = AVIF_RANGE_FULL;
  const bool has_color = settings.format == AVIF_PIXEL_FORMAT_YUV444;
  image->matrixCoefficients = has_color ? AVIF_MATRIX_COEFFICIENTS_IDENTITY : AVIF_MATRIX_COEFFICIENTS_BT601;
  if (settings.angle != 0) {
    image->transformFlags |= AVIF_TRANSFORM_IROT;
    image->irot.angle = static_cast<std::uint8_t>(settings.angle);
  }
  if (settings.mirror >= 0) {
    image->transformFlags |= AVIF_TRANSFORM_IMIR;
    set_mirror(image->imir, settings.mirror);
  }
  avifRGBImage rgb;
  avifRGBImageSetDefaults(&rgb, image);
  rgb.depth = 8;
  rgb.format = settings.has_alpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
  rgb.rowBytes = width * (settings.has_alpha ? 4 : 3);
  std::string bytes = pixels;
  rgb.pixels = reinterpret_cast<std::uint8_t*>(bytes.data());
  EXPECT_EQ(avifImageRGBToYUV(image, &rgb), AVIF_RESULT_OK);
  avifEncoder* const encoder = avifEncoderCreate();
  encoder->minQuantizer = encoder->maxQuantizer = AVIF_QUANTIZER_LOSSLESS;
  encoder->minQuantizerAlpha = encoder->maxQuantizerAlpha = AVIF_QUANTIZER_LOSSLESS;
  encoder->speed = 10;
  avifRWData output = AVIF_DATA_EMPTY;
  EXPECT_EQ(avifEncoderWrite(encoder, image, &output), AVIF_RESULT_OK);
  std::string file(reinterpret_cast<const char*>(output.data), output.size);
  avifRWDataFree(&output);
  avifEncoderDestroy(encoder);
  avifImageDestroy(image);
  return file;
}

std::string gray_as_rgb(const std::string& gray) {
  std::string rgb;
  for (const char value : gray) rgb += std::string(3, value);
  return rgb;
}

TEST(Avif, GivesItsPixels) {
  const std::string rgb = noise(std::size_t{kWidth} * kHeight * 3);
  const Decoded decoded = decode(as_bytes(encoded(rgb)));
  ASSERT_EQ(decoded.error, "");
  EXPECT_EQ(decoded.header.format, "avif");
  EXPECT_EQ(decoded.header.channels, 3u);
  EXPECT_TRUE(as_text(decoded.image.pixels) == rgb);
  const Decoded ten_bits = decode(as_bytes(encoded(rgb, {.depth = 10})));
  EXPECT_TRUE(as_text(ten_bits.image.pixels) == rgb);

  const std::string rgba = noise(std::size_t{kWidth} * kHeight * 4);
  const Decoded with_alpha = decode(as_bytes(encoded(rgba, {.has_alpha = true})));
  EXPECT_EQ(with_alpha.header.channels, 4u);
  EXPECT_TRUE(as_text(with_alpha.image.pixels) == rgba);

  const Decoded of_gray_alpha = decode(as_bytes(
      encoded(std::string(rgba.size(), 'x'), {.format = AVIF_PIXEL_FORMAT_YUV400, .has_alpha = true})));
  EXPECT_EQ(of_gray_alpha.header.channels, 2u);
  EXPECT_TRUE(as_text(of_gray_alpha.image.pixels) == std::string(rgba.size() / 2, 'x'));

  const std::string gray = noise(std::size_t{kWidth} * kHeight);
  const Decoded of_gray = decode(as_bytes(encoded(gray_as_rgb(gray), {.format = AVIF_PIXEL_FORMAT_YUV400})));
  EXPECT_EQ(of_gray.header.channels, 1u);
  EXPECT_TRUE(as_text(of_gray.image.pixels) == gray);
}

TEST(Avif, GivesARegionInOtherChannels) {
  const std::string gray = noise(std::size_t{kWidth} * kHeight);
  const std::string file = encoded(gray_as_rgb(gray), {.format = AVIF_PIXEL_FORMAT_YUV420});
  const Decoded part = decode(as_bytes(file), {1, {3, 29, 2, 1}, 1});
  EXPECT_EQ(std::string(as_text(part.image.pixels)), gray.substr(29 * kWidth + 3, 2));
}

/// libavif's own names: counter-clockwise turns, then 0 top to bottom, 1 left to right.
TEST(Avif, GivesItsOrientation) {
  const std::string rgb = noise(std::size_t{kWidth} * kHeight * 3);
  const auto orientation = [&](int angle, int mirror) {
    return decode(as_bytes(encoded(rgb, {.angle = angle, .mirror = mirror}))).header.orientation;
  };
  EXPECT_EQ(orientation(0, -1), 1);
  EXPECT_EQ(orientation(0, 1), 2);
  EXPECT_EQ(orientation(2, -1), 3);
  EXPECT_EQ(orientation(0, 0), 4);
  EXPECT_EQ(orientation(1, 0), 5);
  EXPECT_EQ(orientation(3, -1), 6);
  EXPECT_EQ(orientation(3, 0), 7);
  EXPECT_EQ(orientation(1, -1), 8);
  EXPECT_EQ(orientation(2, 0), 2);
  EXPECT_EQ(orientation(1, 1), 7);
  EXPECT_EQ(orientation(3, 1), 5);
}

TEST(Avif, ThatIsDamagedIsAnError) {
  const std::string file = encoded(noise(std::size_t{kWidth} * kHeight * 3));
  for (std::size_t bytes = 32; bytes < file.size(); bytes += 5)
    ASSERT_NE(decode(as_bytes(file.substr(0, bytes))).error, "") << bytes;
  EXPECT_EQ(decode(as_bytes(file.substr(0, file.size() - 100))).error, "truncated: the data ends early");
}

/// The header says 16 x 16 where the frame has 1024 x 1024: its memory was not asked for.
TEST(Avif, OfALargerFrameThanItsHeaderSaysIsAnError) {
  std::string file = encoded(std::string(std::size_t{1024} * 1024 * 3, 'x'), {.side = 1024});
  const std::size_t sizes = file.find("ispe");
  ASSERT_NE(sizes, std::string::npos);
  for (const std::size_t at : {sizes + 8, sizes + 12}) file.replace(at, 4, std::string("\0\0\0\20", 4));
  const Decoded decoded = decode(as_bytes(file));
  EXPECT_EQ(decoded.header.width, 16u);
  EXPECT_EQ(decoded.error.substr(0, 13), "damaged AVIF:");
}

}  // namespace
}  // namespace chunkhit
