#include "pack/images/image_fields.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>

#include "base/text.h"
#include "base/throw_error.h"

namespace chunkhit {
namespace {

std::string sides_text(std::uint32_t width, std::uint32_t height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

void set_resize(Resize resize, std::pair<std::uint32_t, std::uint32_t> size, TransformSpec& transform) {
  if (transform.resize != Resize::none) throw_usage("`resize` and `fit` exclude each other");
  transform.resize = resize;
  std::tie(transform.resize_width, transform.resize_height) = size;
}

bool is_none(const std::string& text) { return text.empty() || text == "none"; }

}  // namespace

std::string ResizeForm::text(const TransformSpec& value) const {
  if (value.resize == Resize::exact) return sides_text(value.resize_width, value.resize_height);
  return value.resize == Resize::short_side ? std::to_string(value.resize_width) : "none";
}

void ResizeForm::parse(const std::string& name, const std::string& text, TransformSpec& value) const {
  if (is_none(text)) return;
  const auto size = parse_size(name, text);
  set_resize(size.second > 0 ? Resize::exact : Resize::short_side, size, value);
}

std::string FitForm::text(const TransformSpec& value) const {
  return value.resize == Resize::fit ? sides_text(value.resize_width, value.resize_height) : "none";
}

void FitForm::parse(const std::string& name, const std::string& text, TransformSpec& value) const {
  if (!is_none(text)) set_resize(Resize::fit, parse_square(name, text), value);
}

std::string CropForm::text(const TransformSpec& value) const {
  return value.crop_width == 0 ? "none" : sides_text(value.crop_width, value.crop_height);
}

void CropForm::parse(const std::string& name, const std::string& text, TransformSpec& value) const {
  if (!is_none(text)) std::tie(value.crop_width, value.crop_height) = parse_square(name, text);
}

std::string ColorForm::text(const std::array<std::uint8_t, 3>& value) const {
  return std::to_string(value[0]) + "," + std::to_string(value[1]) + "," + std::to_string(value[2]);
}

void ColorForm::parse(const std::string& name, const std::string& text,
                      std::array<std::uint8_t, 3>& value) const {
  value = {0, 0, 0};
  if (text == "black") return;
  if (text == "white") {
    value = {255, 255, 255};
    return;
  }
  const bool is_hex = text.size() == 7 && text[0] == '#';
  std::size_t begin = is_hex ? 1 : 0;
  for (std::size_t index = 0; index < value.size(); ++index) {
    const std::size_t end = is_hex       ? begin + 2
                            : index == 2 ? text.size()
                                         : std::min(text.find(',', begin), text.size());
    const auto read = std::from_chars(text.data() + begin, text.data() + end, value[index], is_hex ? 16 : 10);
    if (read.ec != std::errc() || read.ptr != text.data() + end)
      refuse_text(name, "black, white, #rrggbb or r,g,b", text);
    begin = std::min(is_hex ? end : end + 1, text.size());
  }
}

std::string RangeForm::text(const Range& value) const {
  return std::to_string(value[0]) + "," + std::to_string(value[1]);
}

void RangeForm::parse(const std::string& name, const std::string& text, Range& value) const {
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) refuse_text(name, "two values, as 0,4095", text);
  const CountForm form{0, std::numeric_limits<std::uint16_t>::max()};
  form.parse(name, text.substr(0, comma), value[0]);
  form.parse(name, text.substr(comma + 1), value[1]);
}

std::string SharesForm::text(const std::vector<SplitShare>& value) const {
  std::string text;
  for (const SplitShare& share : value)
    text += (text.empty() ? "" : ",") + share.name + "=" +
            (share.share > 0 ? number_text(share.share) : share.values);
  return text.empty() ? "none" : text;
}

void SharesForm::parse(const std::string& name, const std::string& text,
                       std::vector<SplitShare>& value) const {
  value.clear();
  std::vector<std::string> entries;
  NamesForm().parse(name, text, entries);
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos && !value.empty()) {  // another value of the pack before
      value.back().values += "," + entry;
      value.back().share = 0;
      continue;
    }
    if (equals == std::string::npos || equals + 1 == entry.size())
      refuse_text(name, "names with shares, as train=0.8,val=0.2", entry);
    SplitShare& share = value.emplace_back(SplitShare{entry.substr(0, equals), 0, entry.substr(equals + 1)});
    if (!parse_all(share.values, share.share)) share.share = 0;
  }
}

}  // namespace chunkhit
