// Bytes of a picture file → pixels. The file's type is told by its bytes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "types/image.h"

namespace chunkhit {

/// Why an image cannot be decoded, in words that a person understands.
class ImageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a picture file says of itself before its pixels are decoded; sizes are as stored, before any EXIF
/// turn.
struct ImageHeader {
  std::string_view format;   ///< "jpeg", "png", "bmp", "gif", "tga", "psd", "pnm"
  std::uint32_t width = 0;   ///< pixels a row
  std::uint32_t height = 0;  ///< rows
  std::uint32_t channels =
      0;                ///< natural channels: 1 grey, 2 grey + alpha, 3 RGB, 4 RGBA (CMYK counts as RGB)
  int orientation = 1;  ///< EXIF orientation, 1..8
  bool scales = false;  ///< the decoder can shrink by 2, 4 and 8 while decoding
  std::uint64_t extra_bytes = 0;  ///< memory that decoding needs beside the pixels of the wanted region
  bool whole_picture = false;     ///< the decoder holds the whole picture, whatever region is wanted
};

/// What is wanted of a picture.
struct DecodePlan {
  std::uint32_t shrink = 1;    ///< 1, 2, 4 or 8: sizes become ceil(size / shrink)
  Rect region{};               ///< pixels wanted, as stored and after shrinking; inside the picture
  std::uint32_t channels = 0;  ///< 1, 3 or 4; 0 keeps the natural ones
};

/// Decides, once the header is known, what is wanted; returns nothing to stop there, having put the reason
/// into `fault`.
using PlanDecode = std::function<std::optional<DecodePlan>(const ImageHeader& header, std::string& fault)>;

/// How much of a file is checked.
enum class Check { whole, region };
inline constexpr std::array<std::string_view, 2> kCheckNames{"whole", "region"};

/// Limits and rules of decoding.
struct DecodeOptions {
  std::uint64_t max_pixels = 256'000'000;  ///< width · height above this is an error, detected in the header
  bool accept_warnings = false;   ///< take the pixels that a damaged file still has, see decode_image
  Check check = Check::whole;     ///< region: JPEG is decoded no further than the last row of the region
  std::uint32_t max_seconds = 0;  ///< decoding that takes more CPU time is an error; 0: no limit
};

/// Decodes the wanted region of a picture into `image` (shape: region × channels) and returns an empty text,
/// or returns what is wrong with the file in words that a person understands ("truncated: the data ends near
/// row 208 of 384"). Pixels equal Pillow's (libjpeg defaults: islow DCT, fancy upsampling) bit for bit when
/// `shrink` is 1, but for 16-bit BMP (a level) and half-transparent PSD (stb_image takes a white background
/// out of its colors); a region always equals that of the whole image. Unlike Pillow, 16-bit gray is scaled
/// (PNG: the high byte) instead of saturated, and a PNG's transparent grey of fewer than 8 bits, or colour of
/// 16, is the one that the format means. With Check::whole all compressed data is read to its end, so that
/// damage outside of the region is an error, too; with Check::region a JPEG is decoded no further than the
/// region's last row, and below it only the end marker is looked for. `warnings`, where given, gets what is
/// odd about a file whose pixels were taken: harmless oddities ("Unknown JFIF revision number 2.01"), and
/// damage where warnings are accepted; empty as a rule. `max_seconds` is looked at between rows and
/// between scans, and while stb_image reads bytes. The deflate stream of PNG is undone without a look at it:
/// that takes time in proportion to the file and to the memory that `plan` was told of. Where
/// `accept_warnings`, damage behind the header is no error as long as a row can be had: rows that are missing
/// are black (JPEG: gray where libjpeg has no data), and runs and codes that are missing are zeros. A damaged
/// PNG or PSD, and JPEG where libjpeg itself gives up, stay errors. Only memory exhaustion and what `plan`
/// throws leave as exceptions. Thread-safe.
[[nodiscard]] std::string decode_image(Bytes file, const PlanDecode& plan, const DecodeOptions& options,
                                       Image& image, std::string* warnings = nullptr);

/// Reads only the header; the same faults and limits as `decode_image` finds there.
[[nodiscard]] std::string read_image_header(Bytes file, const DecodeOptions& options, ImageHeader& header);

}  // namespace chunkhit
