// The decoders behind decode_image, one per format, and what they share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "decode/decode_monitor.h"
#include "decode/image_decoder.h"
#include "types/image.h"

namespace chunkhit {

/// Decodes one format; one static row per format.
struct ImageDecoder {
  std::string_view name;
  /// Tells the format by the file's bytes.
  bool (*recognises)(Bytes file);
  /// Does what decode_image promises.
  std::string (*decode)(Bytes file, const PlanDecode& plan, DecodeMonitor& monitor, Image& image);
};

[[nodiscard]] bool is_jpeg(Bytes file);
[[nodiscard]] bool is_png(Bytes file);
[[nodiscard]] bool is_bmp(Bytes file);
[[nodiscard]] bool is_gif(Bytes file);
[[nodiscard]] bool is_psd(Bytes file);
[[nodiscard]] bool is_pnm(Bytes file);
/// TGA has no signature: true only for a plausible header and, where no run lengths are used, enough bytes,
/// or no other type that is known.
[[nodiscard]] bool is_tga(Bytes file);

[[nodiscard]] std::string decode_jpeg(Bytes file, const PlanDecode& plan, DecodeMonitor& monitor,
                                      Image& image);
[[nodiscard]] std::string decode_png(Bytes file, const PlanDecode& plan, DecodeMonitor& monitor,
                                     Image& image);
[[nodiscard]] std::string decode_bmp(Bytes file, const PlanDecode& plan, DecodeMonitor& monitor,
                                     Image& image);
[[nodiscard]] std::string decode_gif(Bytes file, const PlanDecode& plan, DecodeMonitor& monitor,
                                     Image& image);
[[nodiscard]] std::string decode_psd(Bytes file, const PlanDecode& plan, DecodeMonitor& monitor,
                                     Image& image);
[[nodiscard]] std::string decode_pnm(Bytes file, const PlanDecode& plan, DecodeMonitor& monitor,
                                     Image& image);
[[nodiscard]] std::string decode_tga(Bytes file, const PlanDecode& plan, DecodeMonitor& monitor,
                                     Image& image);

/// Names a type of file that is known but not decoded ("WebP"); empty for any other file.
[[nodiscard]] std::string_view undecoded_type(Bytes file);

/// Throws ImageError where a file has fewer bytes; `where` they would be.
void require_bytes(Bytes file, std::uint64_t count, const char* where = "header");

/// Rows that lie in a file as they are, perhaps with padding.
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

/// Checks a header against the limits, asks what is wanted of the picture and checks that the picture has it.
/// Returns what is wrong; `wanted` stays empty where something is, or where the plan is to stop here without
/// a reason. Channels in `wanted` are never 0.
[[nodiscard]] std::string ask_plan(const ImageHeader& header, const PlanDecode& plan,
                                   const DecodeMonitor& monitor, std::optional<DecodePlan>& wanted);

}  // namespace chunkhit
