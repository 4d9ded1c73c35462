#include "decode/exif.h"

#include <libdeflate.h>
#include <libexif/exif-data.h>

#include <cstdint>
#include <memory>
#include <new>
#include <string>

namespace chunkhit {
namespace {

struct ReleaseExif {
  void operator()(ExifData* data) const { exif_data_unref(data); }
};

/// A whole number of any type but bytes, as Pillow reads it; the specification wants SHORT, programs write
/// LONG.
std::optional<std::int64_t> whole_number(const ExifEntry& entry, ExifByteOrder order) {
  if (entry.size < exif_format_get_size(entry.format) || entry.data == nullptr) return std::nullopt;
  switch (entry.format) {
    case EXIF_FORMAT_SHORT:
      return exif_get_short(entry.data, order);
    case EXIF_FORMAT_LONG:
      return exif_get_long(entry.data, order);
    case EXIF_FORMAT_SBYTE:
      return static_cast<std::int8_t>(entry.data[0]);
    case EXIF_FORMAT_SSHORT:
      return exif_get_sshort(entry.data, order);
    case EXIF_FORMAT_SLONG:
      return exif_get_slong(entry.data, order);
    default:
      return std::nullopt;
  }
}

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

/// EXIF data of a chunk, where the mark is left out that libexif wants.
std::optional<int> find_unmarked_orientation(Bytes data) {
  if (data.size() > kMaxBytes) return std::nullopt;
  ByteBuffer exif(kExifMark.begin(), kExifMark.end());
  exif.insert(exif.end(), data.begin(), data.end());
  return find_exif_orientation(exif);
}

}  // namespace

int exif_orientation(Bytes exif) { return find_exif_orientation(exif).value_or(1); }

std::optional<int> find_exif_orientation(Bytes exif) {
  const std::unique_ptr<ExifData, ReleaseExif> data(exif_data_new());
  if (data == nullptr) throw std::bad_alloc();
  // Nothing is written back, so entries need not be completed to what the specification demands.
  exif_data_unset_option(data.get(), EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
  exif_data_load_data(data.get(), exif.data(), static_cast<unsigned>(exif.size()));
  const ExifEntry* entry = exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr) return std::nullopt;
  const auto orientation = whole_number(*entry, exif_data_get_byte_order(data.get()));
  if (!orientation) return std::nullopt;
  return *orientation >= 1 && *orientation <= 8 ? static_cast<int>(*orientation) : 1;
}

int chunk_orientation(Bytes exif) {
  if (as_text(exif).starts_with(kExifMark)) return exif_orientation(exif);
  return find_unmarked_orientation(exif).value_or(1);
}

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
    found = find_unmarked_orientation(exif_);
  } else if (!raw_profile_.stored.empty()) {
    found = find_exif_orientation(profile_bytes(read_text(raw_profile_, inflated)));
  }
  if (!found) found = xmp_orientation(read_text(xmp_, inflated));
  return found && *found >= 1 && *found <= 8 ? *found : 1;
}

}  // namespace chunkhit
