#include <gtest/gtest.h>
#include <webp/encode.h>

#include <algorithm>
#include <string>

#include "decoded.h"

namespace chunkhit {
namespace {

using std::literals::string_literals::operator""s;
using std::literals::string_view_literals::operator""sv;

constexpr int kWidth = 40, kHeight = 30;

// Opaque noise that no encoder shrinks, so that the data of any row takes bytes.
std::string noise_rgba(int width = kWidth, int height = kHeight) {
  std::string pixels(std::size_t{4} * width * height, '\0');
  std::uint32_t state = 7;
  for (char& value : pixels) value = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  for (std::size_t alpha = 3; alpha < pixels.size(); alpha += 4) pixels[alpha] = '\xff';
  return pixels;
}

std::string encoded(const std::string& rgba, int width, int height, bool lossless) {
  std::uint8_t* bytes = nullptr;
  const auto* pixels = reinterpret_cast<const std::uint8_t*>(rgba.data());
  const std::size_t size = lossless ? WebPEncodeLosslessRGBA(pixels, width, height, 4 * width, &bytes)
                                    : WebPEncodeRGBA(pixels, width, height, 4 * width, 90, &bytes);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  WebPFree(bytes);
  return file;
}

template <class Number>
std::string little(Number value, std::size_t bytes = sizeof(Number)) {
  std::string text(sizeof value, '\0');
  store_little(reinterpret_cast<std::uint8_t*>(text.data()), value);
  return text.substr(0, bytes);
}

std::string chunk(const std::string& type, const std::string& data) {
  return type + little(static_cast<std::uint32_t>(data.size())) + data + (data.size() % 2 != 0 ? "\0"s : "");
}

std::string riff(const std::string& chunks) {
  return "RIFF" + little(static_cast<std::uint32_t>(chunks.size() + 4)) + "WEBP" + chunks;
}

std::string extended(unsigned flags, std::uint32_t width, std::uint32_t height) {
  return chunk("VP8X", little(flags) + little(width - 1, 3) + little(height - 1, 3));
}

constexpr unsigned kAnimated = 2, kExif = 8, kAlpha = 16;

/// An animation of one frame of two pixels, "abcdefgh" as RGBA, somewhere on a canvas.
std::string animation(std::uint32_t width, std::uint32_t height, std::uint32_t x, std::uint32_t y) {
  const std::string frame = encoded("abcdefgh", 2, 1, true).substr(12);
  return riff(extended(kAnimated | kAlpha, width, height) + chunk("ANIM", "\xff\xff\xff\xff\0\0"s) +
              chunk("ANMF", little(x / 2, 3) + little(y / 2, 3) + little(1u, 3) + little(0u, 3) +
                                little(100u, 3) + "\0"s + frame));
}

std::string pixels(const std::string& file, const DecodePlan& plan = {}) {
  const Decoded decoded = decode(as_bytes(file), plan);
  return decoded.error.empty() ? std::string(as_text(decoded.image.pixels)) : decoded.error;
}

TEST(Webp, GivesItsPixels) {
  const std::string file = encoded("abcdefgh", 2, 1, true);
  EXPECT_EQ(pixels(file), "abcdefgh");
  EXPECT_EQ(pixels(file, {.channels = 3}), "abcefg");
  EXPECT_EQ(pixels(file, {.region = {1, 0, 1, 1}}), "efgh");
  EXPECT_EQ(pixels(file + "what follows the image"), "abcdefgh");
}

TEST(Webp, OfAnAnimationTheFirstFrameIsDrawnOnItsCanvas) {
  const std::string none(4, '\0');
  EXPECT_EQ(pixels(animation(2, 1, 0, 0)), "abcdefgh");
  EXPECT_EQ(pixels(animation(5, 3, 2, 2)), std::string(std::size_t{4} * 12, '\0') + "abcdefgh" + none);
  EXPECT_EQ(pixels(animation(5, 3, 2, 2), {.region = {1, 2, 2, 1}}), none + "abcd");
}

TEST(Webp, AlphaWithoutItsFlagIsIgnoredAsByPillow) {
  std::string rgba = noise_rgba();
  rgba[3] = 9;
  std::string file = encoded(rgba, kWidth, kHeight, false);
  EXPECT_EQ(decode(as_bytes(file)).header.channels, 4u);
  file[20] = 0;  // the flags of VP8X
  const Decoded decoded = decode(as_bytes(file), {.channels = 4});
  EXPECT_EQ(decoded.header.channels, 3u);
  EXPECT_EQ(decoded.image.pixels[3], 255);
}

TEST(Webp, TurnsByItsExif) {
  const std::string exif = "II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0"s;
  const std::string image = encoded("abcdefgh", 2, 1, true).substr(12);
  const auto orientation = [&](unsigned flags, const std::string& data) {
    return decode(as_bytes(riff(extended(flags | kAlpha, 2, 1) + image + chunk("EXIF", data))))
        .header.orientation;
  };
  EXPECT_EQ(orientation(kExif, exif), 6);
  EXPECT_EQ(orientation(kExif, "Exif\0\0"s + exif), 6);
  EXPECT_EQ(orientation(0, exif), 1);
  EXPECT_EQ(orientation(kExif, exif.substr(0, 12)), 1);
}

TEST(WebpError, FindsTruncationAtEveryLength) {
  for (const bool lossless : {false, true}) {
    const std::string file = encoded(noise_rgba(), kWidth, kHeight, lossless);
    ASSERT_EQ(decode(as_bytes(file)).error, "");
    for (std::size_t size = 0; size < file.size() - 1; ++size)  // the last byte may be padding
      ASSERT_NE(decode(as_bytes(file.substr(0, size))).error, "") << size << lossless;
    EXPECT_EQ(decode(as_bytes(file.substr(0, 22))).error, "truncated: the data ends in the header");
    EXPECT_EQ(decode(as_bytes(file.substr(0, file.size() / 2))).error,
              "truncated: the file is shorter than its header says");
  }
  const std::string file = animation(5, 3, 2, 2);
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_NE(decode(as_bytes(file.substr(0, size))).error, "") << size;
}

TEST(WebpWarning, OfATruncatedFileLeavesItsFirstRowsAndBlack) {
  for (const bool lossless : {false, true}) {
    const std::string file = encoded(noise_rgba(256, 128), 256, 128, lossless);
    const Decoded whole = decode(as_bytes(file));
    const Decoded part = decode(as_bytes(file.substr(0, file.size() * 2 / 3)), {}, {.accept_warnings = true});
    ASSERT_EQ(part.error, "");
    EXPECT_EQ(part.warnings, "truncated: the file is shorter than its header says (and 1 more warning)");
    const auto [end, same] = std::ranges::mismatch(part.image.pixels, whole.image.pixels);
    const auto same_bytes = static_cast<std::size_t>(end - part.image.pixels.begin());
    EXPECT_GT(same_bytes, part.image.row_bytes() * 48) << lossless;
    EXPECT_TRUE(std::all_of(end, part.image.pixels.end(), [](std::uint8_t value) { return value == 0; }));
  }
}

TEST(WebpError, RejectsDamagedDataAndFrames) {
  std::string file = encoded(noise_rgba(), kWidth, kHeight, true);
  std::fill(file.begin() + 30, file.begin() + 60, '\xff');
  EXPECT_EQ(decode(as_bytes(file)).error, "damaged WebP: its data is malformed near row 0 of 30");
  EXPECT_EQ(pixels("RIFF\x10\0\0\0WEBPVP9 \4\0\0\0abcd"s), "damaged WebP: its header is malformed");
  const std::string outside = "damaged WebP: its first frame does not fit in its canvas";
  EXPECT_EQ(pixels(animation(5, 3, 4, 2)), outside);
  EXPECT_EQ(pixels(animation(5, 3, 2, 4)), outside);
  EXPECT_EQ(pixels(animation(5, 3, 0xfffffe, 0)), outside);
  EXPECT_EQ(pixels(riff(extended(kAnimated, 5, 3) + chunk("ANIM", "\0\0\0\0\0\0"s))),
            "damaged WebP: its animation has no frame");
}

TEST(WebpError, RejectsHugeHeadersWithoutFillingTheMemory) {
  const long before = peak_kilobytes();
  const std::string error = "is 16383 x 16383 pixels, over the limit of 256000000 pixels";
  const std::string lossy = chunk("VP8 ", "\x30\1\0\x9d\1\x2a\xff\x3f\xff\x3f"s + std::string(40, 'x'));
  const std::string lossless = chunk("VP8L", "\x2f\xfe\xbf\xff\x0f"s + std::string(40, 'x'));
  EXPECT_EQ(pixels(riff(lossy)), error);
  EXPECT_EQ(pixels(riff(lossless)), error);
  EXPECT_EQ(pixels(riff(extended(kAnimated, 65000, 60000))), "damaged WebP: its animation has no frame");
  EXPECT_EQ(pixels(animation(65000, 60000, 0, 0)),
            "is 65000 x 60000 pixels, over the limit of 256000000 pixels");
  EXPECT_EQ(pixels(animation(1 << 24, 1 << 24, 0, 0)), "damaged WebP: its header is malformed");
  EXPECT_LT(peak_kilobytes() - before, 10 << 10);
}

TEST(Webp, CountsTheMemoryOfItsCodes) {
  // The first has one group of codes, the second one for every part of the image.
  std::string flat(std::size_t{4} * 512 * 384, '\xff');
  for (std::size_t at = 0; at < flat.size(); at += 1000) flat[at] = static_cast<char>(at / 1000);
  std::string varied = noise_rgba(512, 384);
  for (std::size_t at = 0; at < varied.size() / 2; ++at) varied[at] = static_cast<char>(varied[at] | '\xf0');
  const auto peak_bytes = [](const std::string& pixels) {
    const std::string file = encoded(pixels, 512, 384, true);
    EXPECT_EQ(decode(as_bytes(file)).error, "");
    return ImageFile(as_bytes(file), {}).header().peak_bytes;
  };
  constexpr std::uint64_t kPixels = std::uint64_t{512} * 384;
  EXPECT_GT(peak_bytes(flat), kPixels * 8);
  EXPECT_LT(peak_bytes(flat), kPixels * 8 + (4 << 20));
  EXPECT_GT(peak_bytes(varied), kPixels * 8 + (10 << 20));
  EXPECT_LT(peak_bytes(varied), kPixels * 8 + (60 << 20));
}

TEST(WebpError, RejectsCodesThatAreNone) {
  const std::string size = "\x2f\1\0\0\0"s;  // 2 x 1
  EXPECT_EQ(pixels(riff(chunk("VP8L", size + "\1"s))), "truncated: the data ends in the Huffman codes");
  EXPECT_EQ(pixels(riff(chunk("VP8L", size + "\x19" + std::string(40, '\0')))),
            "damaged WebP: its Huffman codes are malformed");
}

TEST(WebpError, EndsAtTheLimitOfTime) {
  const std::string file = encoded(noise_rgba(), kWidth, kHeight, false);
  EXPECT_EQ(decode_late(as_bytes(file)),
            "takes longer to decode than `max_seconds_per_image` allows: 1 second");
}

}  // namespace
}  // namespace chunkhit
