#include "decode/image_decoder.h"

#include <algorithm>
#include <array>

#include "decode/formats.h"

namespace chunkhit {
namespace {

// TGA comes last: it is the only one that is told without a signature.
constexpr std::array kImageDecoders{
    ImageDecoder{"jpeg", is_jpeg, decode_jpeg}, ImageDecoder{"png", is_png, decode_png},
    ImageDecoder{"gif", is_gif, decode_gif},    ImageDecoder{"bmp", is_bmp, decode_bmp},
    ImageDecoder{"psd", is_psd, decode_psd},    ImageDecoder{"pnm", is_pnm, decode_pnm},
    ImageDecoder{"tga", is_tga, decode_tga},
};

std::string unknown_type(Bytes file) {
  if (file.empty()) return "is empty";
  const std::string_view name = undecoded_type(file);
  if (name.empty()) return "not a picture of a known type";
  return std::string(name) + " is not supported";
}

}  // namespace

std::string decode_image(Bytes file, const PlanDecode& plan, const DecodeOptions& options, Image& image,
                         std::string* warnings) {
  const auto decoder = std::ranges::find_if(
      kImageDecoders, [&](const ImageDecoder& candidate) { return candidate.recognises(file); });
  if (decoder == kImageDecoders.end()) return unknown_type(file);
  DecodeMonitor monitor(options);
  std::string error;
  try {
    error = decoder->decode(file, plan, monitor, image);
  } catch (const ImageError& thrown) {
    error = thrown.what();
  }
  if (warnings != nullptr) *warnings = error.empty() ? monitor.warnings() : "";
  return error;
}

std::string read_image_header(Bytes file, const DecodeOptions& options, ImageHeader& header) {
  Image unused;
  const PlanDecode stop_at_header = [&](const ImageHeader& found, std::string&) {
    header = found;
    return std::optional<DecodePlan>();
  };
  return decode_image(file, stop_at_header, options, unused);
}

}  // namespace chunkhit
