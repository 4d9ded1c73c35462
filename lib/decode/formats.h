// The decoders behind ImageFile, one per format, and what they share.
#pragma once

#include <memory>
#include <string_view>

#include "base/bytes.h"
#include "decode/image_decoder.h"
#include "types/image.h"

namespace chunkhit {

/// An image whose header has been read. The decoders that keep state from there to the pixels derive from it.
class OpenedImage {
 public:
  OpenedImage() = default;
  OpenedImage(const OpenedImage&) = delete;
  OpenedImage& operator=(const OpenedImage&) = delete;
  virtual ~OpenedImage() = default;
  /// Does what ImageFile::decode promises; the plan fits the image, and its channels are not 0.
  virtual void decode(const DecodePlan& plan, Image& image) = 0;
  ImageHeader header;
  Bytes exif;  ///< of a JPEG, from "Exif\0\0" on; it has the orientation
};

/// One format; one static row per format.
struct ImageFormat {
  std::string_view name;
  /// Detects the format by the file's bytes.
  bool (*detect)(Bytes file);
  /// Reads the header; throws ImageError. File and monitor outlive what it gives.
  std::unique_ptr<OpenedImage> (*open)(Bytes file, DecodeMonitor& monitor);
};

[[nodiscard]] bool is_jpeg(Bytes file);
[[nodiscard]] bool is_png(Bytes file);
[[nodiscard]] bool is_bmp(Bytes file);
[[nodiscard]] bool is_gif(Bytes file);
[[nodiscard]] bool is_pnm(Bytes file);
[[nodiscard]] bool is_npy(Bytes file);
[[nodiscard]] bool is_webp(Bytes file);
[[nodiscard]] bool is_tiff(Bytes file);
[[nodiscard]] bool is_avif(Bytes file);
[[nodiscard]] bool is_jxl(Bytes file);
/// TGA has no signature: true only for a plausible header and, where no run lengths are used, enough bytes,
/// or no other type that is known.
[[nodiscard]] bool is_tga(Bytes file);

[[nodiscard]] std::unique_ptr<OpenedImage> open_jpeg(Bytes file, DecodeMonitor& monitor);
[[nodiscard]] std::unique_ptr<OpenedImage> open_png(Bytes file, DecodeMonitor& monitor);
[[nodiscard]] std::unique_ptr<OpenedImage> open_bmp(Bytes file, DecodeMonitor& monitor);
[[nodiscard]] std::unique_ptr<OpenedImage> open_gif(Bytes file, DecodeMonitor& monitor);
[[nodiscard]] std::unique_ptr<OpenedImage> open_pnm(Bytes file, DecodeMonitor& monitor);
[[nodiscard]] std::unique_ptr<OpenedImage> open_npy(Bytes file, DecodeMonitor& monitor);
[[nodiscard]] std::unique_ptr<OpenedImage> open_webp(Bytes file, DecodeMonitor& monitor);
[[nodiscard]] std::unique_ptr<OpenedImage> open_tiff(Bytes file, DecodeMonitor& monitor);
[[nodiscard]] std::unique_ptr<OpenedImage> open_avif(Bytes file, DecodeMonitor& monitor);
[[nodiscard]] std::unique_ptr<OpenedImage> open_jxl(Bytes file, DecodeMonitor& monitor);
[[nodiscard]] std::unique_ptr<OpenedImage> open_tga(Bytes file, DecodeMonitor& monitor);

/// PNM whose values are text: P2 (gray), P3 (RGB).
[[nodiscard]] bool is_plain_pnm(Bytes file);

// Files whose pixels are class ids, as open_class_ids says, which chooses among them.
[[nodiscard]] std::unique_ptr<OpenedImage> open_png_ids(Bytes file, DecodeMonitor& monitor);
[[nodiscard]] std::unique_ptr<OpenedImage> open_npy_ids(Bytes file, DecodeMonitor& monitor);
[[nodiscard]] std::unique_ptr<OpenedImage> open_pnm_ids(Bytes file, DecodeMonitor& monitor);
[[nodiscard]] std::unique_ptr<OpenedImage> open_tiff_ids(Bytes file, DecodeMonitor& monitor);

/// Names a type of file that is known but not decoded ("AVIF"); empty for any other file.
[[nodiscard]] std::string_view undecoded_type(Bytes file);

/// Reads two bytes, the high one first, as PNG and PNM store them; the caller has checked that they are
/// there.
[[nodiscard]] constexpr std::uint32_t load_big16(const std::uint8_t* from) {
  return std::uint32_t{from[0]} << 8 | from[1];
}

/// Reads four bytes, highest one first; the caller has checked that they are there.
[[nodiscard]] constexpr std::uint32_t load_big32(const std::uint8_t* from) {
  return load_big16(from) << 16 | load_big16(from + 2);
}

/// Throws ImageError where a file has fewer bytes; `where` they would be.
void require_bytes(Bytes file, std::uint64_t count, const char* where = "header");

/// Rows that are stored raw in a file, perhaps with padding.
struct StoredRows {
  Bytes bytes;                  ///< the last ones may be missing
  std::uint64_t row_bytes = 0;  ///< of a row's pixels
  std::uint64_t row_step = 0;   ///< from a row to the next one
};

/// Counts the rows that are whole. Where some of `height` are missing, that is damage; where all are, an
/// error.
[[nodiscard]] std::uint64_t count_whole_rows(const StoredRows& rows, std::uint64_t height,
                                             DecodeMonitor& monitor);

/// Whether the colors of a palette are grays; the first three bytes of an entry are its color.
[[nodiscard]] bool is_gray(Bytes palette, std::size_t entry_bytes);

}  // namespace chunkhit
