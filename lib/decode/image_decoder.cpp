#include "decode/image_decoder.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "decode/exif.h"
#include "decode/formats.h"

namespace chunkhit {
namespace {

// AVIF and JPEG XL are there where the build found their libraries. TGA comes last: it is the only one that
// is detected without a signature.
constexpr std::array kImageFormats{
    ImageFormat{"jpeg", is_jpeg, open_jpeg}, ImageFormat{"png", is_png, open_png},
    ImageFormat{"gif", is_gif, open_gif},    ImageFormat{"bmp", is_bmp, open_bmp},
    ImageFormat{"pnm", is_pnm, open_pnm},    ImageFormat{"webp", is_webp, open_webp},
    ImageFormat{"tiff", is_tiff, open_tiff}, ImageFormat{"npy", is_npy, open_npy},
#ifdef CHUNKHIT_AVIF
    ImageFormat{"avif", is_avif, open_avif},
#endif
#ifdef CHUNKHIT_JXL
    ImageFormat{"jxl", is_jxl, open_jxl},
#endif
    ImageFormat{"tga", is_tga, open_tga},
};

struct Signature {
  std::string_view name;
  std::size_t offset;
  std::string_view magic;
  std::string_view converter = {};  ///< a command of Debian's that makes a PNG of it
};

using std::literals::string_view_literals::operator""sv;

constexpr std::array kSignatures{
    Signature{"AVIF", 4, "ftypavif"sv, "avifdec IN.avif OUT.png"},
    Signature{"AVIF", 4, "ftypavis"sv, "avifdec IN.avif OUT.png"},
    Signature{"HEIC", 4, "ftyphei"sv, "heif-convert IN.heic OUT.png"},
    Signature{"HEIC", 4, "ftyphev"sv, "heif-convert IN.heic OUT.png"},
    Signature{"HEIF", 4, "ftypmif1"sv, "heif-convert IN.heif OUT.png"},
    Signature{"HEIF", 4, "ftypmsf1"sv, "heif-convert IN.heif OUT.png"},
    Signature{"MP4 video", 4, "ftyp"sv},
    Signature{"JPEG XL", 0, "\xff\x0a"sv, "djxl IN.jxl OUT.png"},
    Signature{"JPEG XL", 0, "\0\0\0\x0cJXL \r\n\x87\n"sv, "djxl IN.jxl OUT.png"},
    Signature{"JPEG 2000", 0, "\0\0\0\x0cjP  \r\n\x87\n"sv},
    Signature{"JPEG 2000", 0, "\xff\x4f\xff\x51"sv},
    Signature{"JNG", 0, "\x8bJNG\r\n\x1a\n"sv},
    Signature{"MNG", 0, "\x8aMNG\r\n\x1a\n"sv},
    Signature{"PSD", 0, "8BPS"sv, "convert IN.psd[0] OUT.png"},
    Signature{"plain or bitmap PNM", 0, "P1\n"sv},
    Signature{"plain or bitmap PNM", 0, "P2\n"sv},
    Signature{"plain or bitmap PNM", 0, "P3\n"sv},
    Signature{"plain or bitmap PNM", 0, "P4\n"sv},
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
    Signature{"HDF5", 0, "\x89HDF\r\n\x1a\n"sv},
};

// Types that are text: detected by the first tag, whatever blanks, byte-order mark or letter case come before
// it.
std::string_view markup_type(std::string_view text) {
  constexpr std::size_t kEnough = 1024;
  const std::string start = lower(text.substr(0, kEnough));
  const std::size_t first = start.find_first_not_of("\xef\xbb\xbf \t\r\n");
  if (first == std::string::npos || start[first] != '<') return {};
  if (start.find("<svg") != std::string::npos) return "SVG";
  if (start.find("<html") != std::string::npos || start.find("<!doctype html") != std::string::npos)
    return "HTML";
  return start.compare(first, 5, "<?xml") == 0 ? "XML" : "";
}

const Signature* find_signature(std::string_view text) {
  const auto found = std::ranges::find_if(kSignatures, [&](const Signature& signature) {
    return text.size() >= signature.offset && text.substr(signature.offset).starts_with(signature.magic);
  });
  return found == kSignatures.end() ? nullptr : found;
}

RejectKind kind_of(const FileError& error) {
  if (error.is_missing()) return RejectKind::missing;
  if (error.kind == FileError::Kind::empty) return RejectKind::empty;
  return error.kind == FileError::Kind::changed ? RejectKind::changed : RejectKind::unreadable;
}

[[noreturn]] void throw_undecoded(Bytes file) {
  if (file.empty()) throw ImageError(RejectKind::empty, "is empty");
  const std::string_view name = undecoded_type(file);
  if (name.empty()) throw ImageError(RejectKind::unknown_type, "not an image of a known type");
  const Signature* signature = find_signature(as_text(file));
  const bool converts = signature != nullptr && !signature->converter.empty();
  throw ImageError(RejectKind::unsupported,
                   std::string(name) + " is not supported" +
                       (converts ? "; `" + std::string(signature->converter) + "` converts it" : ""));
}

const ImageFormat& detect_format(Bytes file) {
  const auto format = std::ranges::find_if(
      kImageFormats, [&](const ImageFormat& candidate) { return candidate.detect(file); });
  if (format == kImageFormats.end()) throw_undecoded(file);
  return *format;
}

void check_size(const ImageHeader& header, std::uint64_t max_pixels) {
  const std::string size = std::to_string(header.width) + " x " + std::to_string(header.height);
  if (header.width == 0 || header.height == 0)
    throw ImageError(RejectKind::damaged, "has no pixels: " + size);
  if (std::uint64_t{header.width} * header.height > max_pixels)
    throw ImageError(RejectKind::too_large,
                     "is " + size + " pixels, over the limit of " + std::to_string(max_pixels) + " pixels");
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

ImageError::ImageError(const FileError& error) : ImageError(kind_of(error), error.reason(), error.kind) {}

ImageHeader pixels_header(const SampleShape& shape, std::uint64_t max_pixels) {
  const ImageHeader header{"pnm", shape.width, shape.height, shape.channels};
  check_size(header, max_pixels);
  return header;
}

ImageFile::ImageFile(Bytes file, const DecodeOptions& options)
    : monitor_(std::make_unique<DecodeMonitor>(options)) {
  const ImageFormat& format = detect_format(file);
  opened_ = format.open(file, *monitor_);
  opened_->header.format = format.name;
  if (!opened_->exif.empty()) opened_->header.orientation = exif_orientation(opened_->exif);
  check_size(opened_->header, options.max_pixels);
}

ImageFile::~ImageFile() = default;

const ImageHeader& ImageFile::header() const { return opened_->header; }

void ImageFile::decode(const DecodePlan& plan, Image& image) {
  if (!fits(header(), plan)) throw ImageError(RejectKind::damaged, "the region wanted is not in the image");
  DecodePlan wanted = plan;
  if (wanted.channels == 0) wanted.channels = header().channels;
  opened_->decode(wanted, image);
}

std::string ImageFile::warnings() const { return monitor_->warnings(); }
bool ImageFile::is_damaged() const { return monitor_->is_damaged(); }

std::string_view undecoded_type(Bytes file) {
  const Signature* signature = find_signature(as_text(file));
  return signature != nullptr ? signature->name : markup_type(as_text(file));
}

void require_bytes(Bytes file, std::uint64_t count, const char* where) {
  if (file.size() < count)
    throw ImageError(RejectKind::damaged, std::string("truncated: the data ends in the ") + where);
}

std::uint64_t count_whole_rows(const StoredRows& rows, std::uint64_t height, DecodeMonitor& monitor) {
  const std::uint64_t room = rows.bytes.size();
  const std::uint64_t whole =
      room < rows.row_bytes ? 0 : std::min(height, (room - rows.row_bytes) / rows.row_step + 1);
  if (whole == height) return whole;
  const std::string reason =
      "truncated: the data ends near row " + std::to_string(whole) + " of " + std::to_string(height);
  if (whole == 0) throw ImageError(RejectKind::damaged, reason);
  monitor.damage(reason);
  return whole;
}

bool is_gray(Bytes palette, std::size_t entry_bytes) {
  for (std::size_t at = 0; at + 3 <= palette.size(); at += entry_bytes)
    if (palette[at] != palette[at + 1] || palette[at] != palette[at + 2]) return false;
  return true;
}

}  // namespace chunkhit
