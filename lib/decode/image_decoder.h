// Decoding of one image: its header, what is wanted of it, limits, pixels; the monitor of time and warnings
// that every decoder asks; errors.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/file_error.h"
#include "chunkhit/image_spec.h"
#include "types/image.h"
#include "types/reject.h"

namespace chunkhit {

/// Why an image cannot be decoded, in words that a person understands. They may hold bytes of a damaged file,
/// zeros among them.
class ImageError : public std::exception {
 public:
  ImageError(RejectKind kind, std::string reason, FileError::Kind of_file = FileError::Kind::none)
      : reason_(std::move(reason)), kind_(kind), of_file_(of_file) {}
  explicit ImageError(const FileError& error);
  [[nodiscard]] RejectKind kind() const { return kind_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] const char* what() const noexcept override { return reason_.c_str(); }
  /// What is wrong with its file, or with that of its pair, where it is not what the file holds.
  [[nodiscard]] FileError::Kind of_file() const { return of_file_; }

 private:
  std::string reason_;
  RejectKind kind_;
  FileError::Kind of_file_;
};

/// What an image file says of itself before its pixels are decoded; sizes are as stored, before any EXIF
/// turn.
struct ImageHeader {
  std::string_view
      format;  ///< "jpeg", "png", "bmp", "gif", "tga", "pnm", "webp", "tiff", "npy", "avif", "jxl"
  std::uint32_t width = 0;   ///< pixels a row
  std::uint32_t height = 0;  ///< rows
  /// Natural channels: 1 gray, 2 gray + alpha, 3 RGB, 4 RGBA (CMYK counts as RGB).
  std::uint32_t channels = 0;
  bool is_cmyk = false;          ///< JPEG's four colors, which are decoded to RGB
  int orientation = 1;           ///< EXIF orientation, 1..8
  bool scales = false;           ///< the decoder can shrink by 2, 4 and 8 while decoding
  bool has_more_frames = false;  ///< the file has more pages or frames, which are left out
  std::uint32_t max_value =
      0;  ///< largest 16-bit value of the colors, once they were decoded by the whole range; else 0
  std::uint64_t peak_bytes = 0;  ///< memory that decoding takes before the wanted region's pixels take theirs
  std::uint64_t extra_bytes = 0;  ///< memory that decoding holds beside the wanted region's pixels
  std::uint64_t block_bytes = 0;  ///< JPEG's coefficients of the whole image
};

/// The header of pixels that lie in no file; throws ImageError as ImageFile. Reports count them as PNM.
[[nodiscard]] ImageHeader pixels_header(const SampleShape& shape, std::uint64_t max_pixels);

/// What is wanted of an image.
struct DecodePlan {
  std::uint32_t shrink = 1;    ///< 1, 2, 4 or 8: sizes become ceil(size / shrink)
  Rect region{};               ///< pixels wanted, as stored and after shrinking; inside the image
  std::uint32_t channels = 0;  ///< 1, 3 or 4; 0 keeps the natural ones
};

/// Limits and rules of decoding.
struct DecodeOptions {
  std::uint64_t max_pixels = 256'000'000;  ///< width · height above this is an error, detected in the header
  bool accept_warnings = false;            ///< take the pixels that a damaged file still has, see ImageFile
  DecodeCheck check =
      DecodeCheck::whole;         ///< region: JPEG is decoded no further than the last row of the region
  std::uint32_t max_seconds = 0;  ///< decoding that takes more CPU time is an error; 0: no limit
  bool stock_entropy = false;     ///< codes of JPEG by libjpeg alone, which gives the same: to compare with
  bool requires_end = true;       ///< with DecodeCheck::region, JPEG that lacks its end marker is damaged
  std::array<std::uint16_t, 2> scale_from{0, 65535};  ///< 16-bit values that become 0 and 255
};

class DecodeMonitor;
class OpenedImage;

/// Decodes one image: the header first, then what is wanted of its pixels.
///
/// Pixels equal Pillow's (libjpeg defaults: islow DCT, fancy upsampling) bit for bit when `shrink` is 1, but
/// for 16-bit BMP (by a level); a region always equals that of the whole image. Unlike Pillow, 16-bit gray is
/// scaled (PNG, TIFF: the high byte, or by `scale_from`) instead of saturated, and a PNG's transparent gray
/// of fewer than 8 bits, or color of 16, is the one that the format means.
///
/// With DecodeCheck::whole all compressed data is read to its end, so that damage outside of the region is an
/// error, too; with DecodeCheck::region a JPEG is decoded no further than the region's last row, and below it
/// only the end marker is looked for, and of a TIFF only the region's strips or tiles are. `max_seconds` is
/// looked at between rows, between scans, between strips or tiles, while libpng and stb_image read bytes, and
/// at every 16th of the bytes of WebP and JPEG XL; a strip or tile, and AVIF are decoded without a look at
/// it, which takes time in proportion to the file and to its memory (AVIF: to their product).
///
/// Where `accept_warnings`, damage behind the header is no error as long as a row can be had: rows that are
/// missing are black (JPEG: gray where libjpeg has no data; TIFF: whole strips or tiles, unless they hold
/// JPEG or CCITT), and runs and codes that are missing are zeros. A damaged PNG, AVIF or JPEG XL,
/// and JPEG where libjpeg itself gives up, stay errors.
class ImageFile {
 public:
  /// Detects the type and reads the header; `file` outlives this. Throws ImageError for a type that is not
  /// supported, for a damaged header and for more pixels than `options` allow.
  ImageFile(Bytes file, const DecodeOptions& options);
  ImageFile(const ImageFile&) = delete;
  ImageFile& operator=(const ImageFile&) = delete;
  ~ImageFile();

  [[nodiscard]] const ImageHeader& header() const;
  /// Decodes the wanted region into `image` (shape: region × channels); called once. Throws ImageError
  /// ("truncated: the data ends near row 208 of 384").
  void decode(const DecodePlan& plan, Image& image);
  /// What is odd about a file whose pixels were taken: harmless oddities ("Unknown JFIF revision number
  /// 2.01"), and damage where warnings are accepted; empty as a rule.
  [[nodiscard]] std::string warnings() const;
  /// Whether some of them are damage.
  [[nodiscard]] bool is_damaged() const;

 private:
  std::unique_ptr<DecodeMonitor> monitor_;
  std::unique_ptr<OpenedImage> opened_;
};

/// Watches one decoding; made when it begins, by the thread that decodes.
class DecodeMonitor {
 public:
  explicit DecodeMonitor(const DecodeOptions& options);
  [[nodiscard]] const DecodeOptions& options() const { return options_; }

  /// Whether this thread has worked for `max_seconds`. Time in which the process is stopped, or waits for a
  /// CPU, does not count: it says nothing of the image.
  [[nodiscard]] bool is_out_of_time() const;
  /// Throws ImageError where it has.
  void check_time() const;
  /// The reason where it has.
  [[nodiscard]] std::string time_error() const;

  /// Keeps damage that leaves pixels to take as a warning; throws it as ImageError where warnings are not
  /// accepted.
  void damage(const std::string& what);
  /// Keeps a harmless oddity as a warning.
  void oddity(const std::string& what);
  /// The first warning, damage before oddities, and how many more there were; empty where there was none.
  [[nodiscard]] std::string warnings() const;
  [[nodiscard]] bool is_damaged() const { return !first_damage_.empty(); }

 private:
  DecodeOptions options_;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::nanoseconds thread_begin_;
  std::string first_damage_;
  std::string first_oddity_;
  unsigned count_ = 0;
};

}  // namespace chunkhit
