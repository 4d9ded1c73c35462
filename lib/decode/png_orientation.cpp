#include "decode/png_orientation.h"

#include <libdeflate.h>

#include <memory>
#include <new>
#include <optional>
#include <string>

#include "decode/exif.h"

namespace chunkhit {
namespace {

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* codec) const { libdeflate_free_decompressor(codec); }
};

constexpr std::size_t kMaxBytes = 1 << 20;

std::string inflate_text(std::string_view packed) {
  const std::unique_ptr<libdeflate_decompressor, FreeDecompressor> codec(libdeflate_alloc_decompressor());
  if (codec == nullptr) throw std::bad_alloc();
  std::string text(kMaxBytes, '\0');
  std::size_t bytes = 0;
  const libdeflate_result result =
      libdeflate_zlib_decompress(codec.get(), packed.data(), packed.size(), text.data(), text.size(), &bytes);
  text.resize(result == LIBDEFLATE_SUCCESS ? bytes : 0);
  return text;
}

// What follows the keyword: zTXt has a method, iTXt a flag, a method, a language and a translated keyword.
PngText text_of(std::string_view type, std::string_view rest) {
  if (type == "tEXt") return {rest, false};
  if (type == "zTXt") return rest.empty() ? PngText() : PngText{rest.substr(1), true};
  if (rest.size() < 2) return {};
  const bool is_packed = rest[0] != 0;
  std::size_t at = rest.find('\0', 2);
  if (at != std::string_view::npos) at = rest.find('\0', at + 1);
  if (at == std::string_view::npos) return {};
  return {rest.substr(at + 1), is_packed};
}

/// Gives a text as it stands in the file, or inflated into `inflated`.
std::string_view read_text(const PngText& text, std::string& inflated) {
  if (!text.is_packed) return text.stored;
  inflated = inflate_text(text.stored);
  return inflated;
}

int hex_digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

// An empty line, the profile's name, its size, and lines of hexadecimal digits.
ByteBuffer profile_bytes(std::string_view text) {
  std::size_t at = 0;
  for (int line = 0; line < 3; ++line) {
    at = text.find('\n', at);
    if (at == std::string_view::npos) return {};
    ++at;
  }
  ByteBuffer bytes;
  int high = -1;
  for (; at < text.size(); ++at) {
    const int digit = hex_digit(text[at]);
    if (digit < 0) continue;
    if (bytes.size() == kMaxBytes) return {};
    if (high >= 0) bytes.push_back(static_cast<std::uint8_t>(high << 4 | digit));
    high = high >= 0 ? -1 : digit;
  }
  return bytes;
}

// The first tiff:Orientation="N" or tiff:Orientation>N.
std::optional<int> xmp_orientation(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (std::size_t at = xmp.find(kName); at != std::string_view::npos; at = xmp.find(kName, at + 1)) {
    std::string_view rest = xmp.substr(at + kName.size());
    if (!rest.starts_with("=\"") && !rest.starts_with(">")) continue;
    rest.remove_prefix(rest[0] == '>' ? 1 : 2);
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') return rest[0] - '0';
  }
  return std::nullopt;
}

}  // namespace

void PngOrientation::add(std::string_view type, Bytes data) {
  if (type == "eXIf" && data.size() <= kMaxBytes) exif_ = data;
  if (type != "tEXt" && type != "zTXt" && type != "iTXt") return;
  const std::string_view text = as_text(data);
  const std::size_t end = text.find('\0');
  if (end == std::string_view::npos) return;
  const std::string_view keyword = text.substr(0, end);
  if (keyword == "Raw profile type exif") raw_profile_ = text_of(type, text.substr(end + 1));
  if (keyword == "XML:com.adobe.xmp") xmp_ = text_of(type, text.substr(end + 1));
}

int PngOrientation::value() const {
  std::optional<int> found;
  std::string inflated;
  if (!exif_.empty()) {
    ByteBuffer exif{'E', 'x', 'i', 'f', 0, 0};
    exif.insert(exif.end(), exif_.begin(), exif_.end());
    found = find_exif_orientation(exif);
  } else if (!raw_profile_.stored.empty()) {
    found = find_exif_orientation(profile_bytes(read_text(raw_profile_, inflated)));
  }
  if (!found) found = xmp_orientation(read_text(xmp_, inflated));
  return found && *found >= 1 && *found <= 8 ? *found : 1;
}

}  // namespace chunkhit
