#include <algorithm>
#include <array>

#include "decode/formats.h"

namespace chunkhit {
namespace {

struct Signature {
  std::string_view name;
  std::size_t offset;
  std::string_view magic;
};

using std::literals::string_view_literals::operator""sv;

constexpr std::array kSignatures{
    Signature{"WebP", 8, "WEBP"sv},
    Signature{"TIFF", 0, "II*\0"sv},
    Signature{"TIFF", 0, "MM\0*"sv},
    Signature{"BigTIFF", 0, "II+\0"sv},
    Signature{"BigTIFF", 0, "MM\0+"sv},
    Signature{"AVIF", 4, "ftypavif"sv},
    Signature{"AVIF", 4, "ftypavis"sv},
    Signature{"HEIC", 4, "ftyphei"sv},
    Signature{"HEIC", 4, "ftyphev"sv},
    Signature{"HEIF", 4, "ftypmif1"sv},
    Signature{"HEIF", 4, "ftypmsf1"sv},
    Signature{"MP4 video", 4, "ftyp"sv},
    Signature{"JPEG XL", 0, "\xff\x0a"sv},
    Signature{"JPEG XL", 0, "\0\0\0\x0cJXL \r\n\x87\n"sv},
    Signature{"JPEG 2000", 0, "\0\0\0\x0cjP  \r\n\x87\n"sv},
    Signature{"JPEG 2000", 0, "\xff\x4f\xff\x51"sv},
    Signature{"JNG", 0, "\x8bJNG\r\n\x1a\n"sv},
    Signature{"MNG", 0, "\x8aMNG\r\n\x1a\n"sv},
    Signature{"PSB", 0, "8BPS\0\2"sv},
    Signature{"plain or bitmap PNM", 0, "P1\n"sv},
    Signature{"plain or bitmap PNM", 0, "P2\n"sv},
    Signature{"plain or bitmap PNM", 0, "P3\n"sv},
    Signature{"plain or bitmap PNM", 0, "P4\n"sv},
    Signature{"PAM", 0, "P7\n"sv},
    Signature{"PFM", 0, "PF\n"sv},
    Signature{"PFM", 0, "Pf\n"sv},
    Signature{"ICO", 0, "\0\0\1\0"sv},
    Signature{"OpenEXR", 0, "\x76\x2f\x31\x01"sv},
    Signature{"Radiance HDR", 0, "#?RADIANCE"sv},
    Signature{"QOI", 0, "qoif"sv},
    Signature{"DDS", 0, "DDS "sv},
    Signature{"PDF", 0, "%PDF"sv},
    Signature{"PostScript", 0, "%!PS"sv},
    Signature{"ZIP", 0, "PK\3\4"sv},
    Signature{"gzip", 0, "\x1f\x8b"sv},
    Signature{"Zstandard", 0, "\x28\xb5\x2f\xfd"sv},
    Signature{"7-Zip", 0, "7z\xbc\xaf\x27\x1c"sv},
    Signature{"NumPy", 0, "\x93NUMPY"sv},
    Signature{"HDF5", 0, "\x89HDF\r\n\x1a\n"sv},
};

// Types that are text: told by the first tag, whatever blanks, byte-order mark or letter case come before it.
std::string_view markup_type(std::string_view text) {
  constexpr std::size_t kEnough = 1024;
  std::string start(text.substr(0, kEnough));
  std::ranges::transform(start, start.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  const std::size_t first = start.find_first_not_of("\xef\xbb\xbf \t\r\n");
  if (first == std::string::npos || start[first] != '<') return {};
  if (start.find("<svg") != std::string::npos) return "SVG";
  if (start.find("<html") != std::string::npos || start.find("<!doctype html") != std::string::npos)
    return "HTML";
  return start.compare(first, 5, "<?xml") == 0 ? "XML" : "";
}

}  // namespace

std::string_view undecoded_type(Bytes file) {
  const std::string_view text = as_text(file);
  for (const Signature& signature : kSignatures)
    if (text.size() >= signature.offset && text.substr(signature.offset).starts_with(signature.magic))
      return signature.name;
  return markup_type(text);
}

}  // namespace chunkhit
