// Binary PNM: P5 (grey) and P6 (RGB), 8 or 16 bits a value, any largest value.
#include <cmath>

#include "decode/formats.h"
#include "decode/packed_pixels.h"

namespace chunkhit {
namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r";

// Reads a number and the one blank after it; blanks and comments come before it. False when there is none.
bool read_number(std::string_view text, std::size_t& at, std::uint32_t& number) {
  while (at < text.size() && (kBlanks.find(text[at]) != std::string_view::npos || text[at] == '#')) {
    if (text[at] == '#')
      while (at < text.size() && text[at] != '\n' && text[at] != '\r') ++at;
    else
      ++at;
  }
  constexpr std::size_t kMostDigits = 9;  // so that the number fits in 32 bits
  const std::size_t begin = at;
  for (number = 0; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    if (at - begin == kMostDigits) return false;
    number = number * 10 + static_cast<std::uint32_t>(text[at] - '0');
  }
  return at > begin && at < text.size() && kBlanks.find(text[at++]) != std::string_view::npos;
}

// round(v / largest · 255) in doubles, ties to even: Pillow's PpmDecoder.
ByteBuffer scale_table(std::uint32_t largest) {
  ByteBuffer scaled(largest > 255 ? 65536 : 256);
  for (std::size_t v = 0; v < scaled.size(); ++v)
    scaled[v] = v >= largest ? 255
                             : static_cast<std::uint8_t>(std::nearbyint(static_cast<double>(v) /
                                                                        static_cast<double>(largest) * 255));
  return scaled;
}

}  // namespace

bool is_pnm(Bytes file) {
  const std::string_view text = as_text(file);
  return (text.starts_with("P5") || text.starts_with("P6")) && text.size() > 2 &&
         (kBlanks.find(text[2]) != std::string_view::npos || text[2] == '#');
}

std::string decode_pnm(Bytes file, const PlanDecode& plan, DecodeMonitor& monitor, Image& image) {
  ImageHeader header;
  header.format = "pnm";
  header.channels = file[1] == '5' ? 1 : 3;
  std::size_t at = 2;
  std::uint32_t largest = 0;
  if (!read_number(as_text(file), at, header.width) || !read_number(as_text(file), at, header.height) ||
      !read_number(as_text(file), at, largest) || largest == 0 || largest > 65535)
    return "damaged PNM: its header is not width, height and largest value";
  const std::size_t value_bytes = largest > 255 ? 2 : 1;
  header.extra_bytes = std::uint64_t{header.width} * header.channels + 65536;
  PackedPicture picture;
  picture.pixels = file.subspan(at);
  picture.row_bytes = picture.row_step = std::uint64_t{header.width} * header.channels * value_bytes;
  picture.width = header.width;
  picture.height = header.height;
  picture.channels = header.channels;
  picture.unpack = value_bytes == 2 ? unpack_scaled16 : unpack_scaled8;

  std::optional<DecodePlan> wanted;
  const PlanDecode plan_if_whole = [&](const ImageHeader& found,
                                       std::string& fault) -> std::optional<DecodePlan> {
    fault = check_rows(picture, monitor);
    return fault.empty() ? plan(found, fault) : std::nullopt;
  };
  std::string fault = ask_plan(header, plan_if_whole, monitor, wanted);
  if (!wanted) return fault;
  picture.scaled = scale_table(largest);
  return decode_packed(picture, *wanted, monitor, image);
}

}  // namespace chunkhit
