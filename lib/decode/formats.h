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

/// Checks a header against the limits, asks what is wanted of the picture and checks that the picture has it.
/// Returns what is wrong; `wanted` stays empty where something is, or where the plan is to stop here without
/// a reason. Channels in `wanted` are never 0.
[[nodiscard]] std::string ask_plan(const ImageHeader& header, const PlanDecode& plan,
                                   const DecodeMonitor& monitor, std::optional<DecodePlan>& wanted);

}  // namespace chunkhit
