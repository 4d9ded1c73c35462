#include <gtest/gtest.h>
#include <jxl/encode.h>

#include <cstdint>
#include <string>

#include "decoded.h"

namespace chunkhit {
namespace {

constexpr std::uint32_t kWidth = 40, kHeight = 30;

std::string noise(std::uint32_t channels) {
  std::string values(std::size_t{kWidth} * kHeight * channels, '\0');
  std::uint32_t state = 7;
  for (char& value : values) value = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return values;
}

struct Settings {
  std::uint32_t channels = 3;
  bool is_boxed = false;
  JxlOrientation orientation = JXL_ORIENT_IDENTITY;
  std::uint32_t width = kWidth;
  std::uint32_t height = kHeight;
  std::uint32_t layer_side = 0;  ///< of a frame that the image is cut out of; 0: the frame is the image
};

std::string encoded(const std::string& pixels, const Settings& settings) {
  JxlEncoder* const encoder = JxlEncoderCreate(nullptr);
  JxlEncoderUseContainer(encoder, settings.is_boxed ? JXL_TRUE : JXL_FALSE);
  JxlBasicInfo info;
  JxlEncoderInitBasicInfo(&info);
  info.xsize = settings.width;
  info.ysize = settings.height;
  info.bits_per_sample = 8;
  info.num_color_channels = settings.channels < 3 ? 1 : 3;
  info.num_extra_channels = settings.channels % 2 == 0 ? 1 : 0;
  info.alpha_bits = settings.channels % 2 == 0 ? 8 : 0;
  info.uses_original_profile = JXL_TRUE;
  info.orientation = settings.orientation;
  EXPECT_EQ(JxlEncoderSetBasicInfo(encoder, &info), JXL_ENC_SUCCESS);
  JxlColorEncoding color;
  JxlColorEncodingSetToSRGB(&color, settings.channels < 3 ? JXL_TRUE : JXL_FALSE);
  EXPECT_EQ(JxlEncoderSetColorEncoding(encoder, &color), JXL_ENC_SUCCESS);
  JxlEncoderFrameSettings* const frame = JxlEncoderFrameSettingsCreate(encoder, nullptr);
  JxlEncoderSetFrameLossless(frame, JXL_TRUE);
  if (settings.layer_side != 0) {
    JxlFrameHeader header;
    JxlEncoderInitFrameHeader(&header);
    header.layer_info.have_crop = JXL_TRUE;
    header.layer_info.xsize = header.layer_info.ysize = settings.layer_side;
    EXPECT_EQ(JxlEncoderSetFrameHeader(frame, &header), JXL_ENC_SUCCESS);
  }
  JxlEncoderFrameSettingsSetOption(frame, JXL_ENC_FRAME_SETTING_EFFORT, 1);
  const JxlPixelFormat format{settings.channels, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
  EXPECT_EQ(JxlEncoderAddImageFrame(frame, &format, pixels.data(), pixels.size()), JXL_ENC_SUCCESS);
  JxlEncoderCloseInput(encoder);
  std::string file(pixels.size() * 2 + 10'000, '\0');
  auto* next = reinterpret_cast<std::uint8_t*>(file.data());
  std::size_t left = file.size();
  EXPECT_EQ(JxlEncoderProcessOutput(encoder, &next, &left), JXL_ENC_SUCCESS);
  file.resize(file.size() - left);
  JxlEncoderDestroy(encoder);
  return file;
}

TEST(Jxl, GivesItsPixels) {
  for (const std::uint32_t channels : {1u, 2u, 3u, 4u})
    for (const bool is_boxed : {false, true}) {
      const std::string pixels = noise(channels);
      const Decoded decoded = decode(as_bytes(encoded(pixels, {.channels = channels, .is_boxed = is_boxed})));
      ASSERT_EQ(decoded.error, "") << channels;
      EXPECT_EQ(decoded.header.format, "jxl");
      EXPECT_EQ(decoded.header.channels, channels);
      EXPECT_TRUE(as_text(decoded.image.pixels) == pixels) << channels;
    }
}

/// Of a file of several steps.
TEST(Jxl, GivesARegionInOtherChannels) {
  constexpr std::uint32_t kSide = 300;
  std::string gray(std::size_t{kSide} * kSide, '\0');
  std::uint32_t state = 3;
  for (char& value : gray) value = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  const std::string file = encoded(gray, {.channels = 1, .width = kSide, .height = kSide});
  ASSERT_GT(file.size(), 40'000u);
  const Decoded part = decode(as_bytes(file), {1, {3, 290, 2, 1}, 3});
  EXPECT_EQ(std::string(as_text(part.image.pixels)),
            std::string(3, gray[290 * kSide + 3]) + std::string(3, gray[290 * kSide + 4]));
}

TEST(Jxl, GivesItsOrientation) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Decoded decoded =
        decode(as_bytes(encoded(noise(3), {.orientation = static_cast<JxlOrientation>(orientation)})));
    EXPECT_EQ(decoded.header.orientation, orientation);
    EXPECT_EQ(decoded.header.width, kWidth);
    EXPECT_TRUE(as_text(decoded.image.pixels) == noise(3));
  }
}

/// Its frame would take memory that its size does not tell.
TEST(Jxl, CutOutOfALargerFrameIsAnError) {
  const std::string file = encoded(std::string(std::size_t{2000} * 2000 * 3, 'x'), {.layer_side = 2000});
  EXPECT_EQ(decode(as_bytes(file)).error,
            "JPEG XL with a frame of 2000 x 2000 pixels in an image of 40 x 30 is not supported; "
            "`djxl IN.jxl OUT.png` converts it");
}

TEST(Jxl, ThatIsDamagedIsAnError) {
  for (const bool is_boxed : {false, true}) {
    const std::string file = encoded(noise(3), {.is_boxed = is_boxed});
    for (std::size_t bytes = 2; bytes < file.size(); bytes += 7)
      ASSERT_NE(decode(as_bytes(file.substr(0, bytes))).error, "") << bytes;
    EXPECT_EQ(decode(as_bytes(file.substr(0, file.size() - 100))).error,
              "truncated: the data ends before the image does");
  }
}

}  // namespace
}  // namespace chunkhit
