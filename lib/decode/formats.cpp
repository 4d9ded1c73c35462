#include "decode/formats.h"

#include <algorithm>

namespace chunkhit {
namespace {

std::string size_text(std::uint64_t width, std::uint64_t height) {
  return std::to_string(width) + " x " + std::to_string(height);
}

std::string check_size(const ImageHeader& header, const DecodeOptions& options) {
  if (header.width == 0 || header.height == 0)
    return "has no pixels: " + size_text(header.width, header.height);
  if (std::uint64_t{header.width} * header.height > options.max_pixels)
    return "is " + size_text(header.width, header.height) + " pixels, over the limit of " +
           std::to_string(options.max_pixels) + " pixels";
  return {};
}

bool fits(const ImageHeader& header, const DecodePlan& plan) {
  const bool known_shrink = plan.shrink == 1 || plan.shrink == 2 || plan.shrink == 4 || plan.shrink == 8;
  if (!known_shrink || (plan.shrink > 1 && !header.scales) || plan.channels > 4) return false;
  const std::uint64_t width = (std::uint64_t{header.width} + plan.shrink - 1) / plan.shrink;
  const std::uint64_t height = (std::uint64_t{header.height} + plan.shrink - 1) / plan.shrink;
  const Rect& region = plan.region;
  return region.width > 0 && region.height > 0 && std::uint64_t{region.x} + region.width <= width &&
         std::uint64_t{region.y} + region.height <= height;
}

}  // namespace

void require_bytes(Bytes file, std::uint64_t count, const char* where) {
  if (file.size() < count) throw ImageError(std::string("truncated: the data ends in the ") + where);
}

std::uint64_t count_whole_rows(const StoredRows& rows, std::uint64_t height, DecodeMonitor& monitor) {
  const std::uint64_t room = rows.bytes.size();
  const std::uint64_t whole =
      room < rows.row_bytes ? 0 : std::min(height, (room - rows.row_bytes) / rows.row_step + 1);
  if (whole == height) return whole;
  const std::string reason =
      "truncated: the data ends near row " + std::to_string(whole) + " of " + std::to_string(height);
  const std::string error = whole == 0 ? reason : monitor.damage(reason);
  if (!error.empty()) throw ImageError(error);
  return whole;
}

bool is_gray(Bytes palette, std::size_t entry_bytes) {
  for (std::size_t at = 0; at + 3 <= palette.size(); at += entry_bytes)
    if (palette[at] != palette[at + 1] || palette[at] != palette[at + 2]) return false;
  return true;
}

std::string ask_plan(const ImageHeader& header, const PlanDecode& plan, const DecodeMonitor& monitor,
                     std::optional<DecodePlan>& wanted) {
  wanted.reset();
  std::string fault = check_size(header, monitor.options());
  if (!fault.empty()) return fault;
  std::optional<DecodePlan> asked = plan(header, fault);
  if (!asked) return fault;
  if (!fits(header, *asked)) return "the region wanted is not in the picture";
  if (asked->channels == 0) asked->channels = header.channels;
  wanted = asked;
  return {};
}

}  // namespace chunkhit
