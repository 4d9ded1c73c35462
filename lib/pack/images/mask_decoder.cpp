#include "pack/images/mask_decoder.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/words.h"
#include "decode/formats.h"
#include "pack/images/pack_spec.h"
#include "pack/images/sample_decoder.h"

namespace chunkhit {
namespace {

/// Of files whose values are classes: without loss, and not scaled by the decoder. The first that is there is
/// taken.
constexpr std::array<std::string_view, 8> kExtensions{".png", ".npy", ".bmp", ".gif",
                                                      ".PNG", ".NPY", ".BMP", ".GIF"};
/// Of files that people take for masks.
constexpr std::array<std::string_view, 6> kOtherExtensions{".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".JPG"};

/// Of views: what decoders read.
constexpr std::array<std::string_view, 14> kViewExtensions{".jpg", ".jpeg", ".png", ".webp", ".bmp",
                                                           ".tif", ".tiff", ".npy", ".ppm",  ".gif",
                                                           ".tga", ".JPG",  ".PNG", ".JPEG"};

/// Of a file beside its pixels: an ICC profile, say.
constexpr std::uint64_t kMaxHeadBytes = 1 << 20;

PackImagesSpec spec_of_masks(PackImagesSpec spec) {
  spec.transform.resample = Filter::nearest;
  spec.transform.channels = Channels::gray;
  spec.transform.background.reset();
  spec.transform.pad_color = {};
  spec.transform.layout = Layout::nhwc;
  spec.exif = Exif::ignore;
  spec.pair.clear();
  return spec;
}

std::string_view without_extension(std::string_view path) {
  const std::size_t dot = path.rfind('.'), slash = path.rfind('/');
  const bool has_extension =
      dot != std::string_view::npos && (slash == std::string_view::npos || dot > slash + 1);
  return path.substr(0, has_extension ? dot : path.size());
}

/// Opens a mask's pixels, each of one value.
std::unique_ptr<OpenedImage> open_pixels(Bytes file, DecodeMonitor& monitor) {
  if (is_png(file)) return open_png_indices(file);
  if (is_npy(file)) return open_npy(file, monitor);
  if (is_bmp(file)) return open_bmp(file, monitor);
  if (is_gif(file)) return open_gif(file, monitor);
  throw ImageError("is of another type, expected PNG, npy, BMP or GIF, which keep class ids");
}

}  // namespace

std::optional<RootFolder> mask_folder(const PackImagesSpec& spec) {
  if (spec.pair.empty() || spec.pair == kWriterLabels || spec.pair == kMemberMasks) return std::nullopt;
  return RootFolder(spec.pair, spec.follow_symlinks);
}

namespace {

/// Opens what may be the mask or view of an image.
MaskFile open_pair(const InputFolders& folders, std::string_view image, std::string name) {
  MaskFile mask{std::move(name), {}};
  // Where masks lie beside the images, an image is not its own.
  const bool is_image = mask.name == image && folders.masks->is(folders.images);
  if (!is_image) mask.file = open_file(*folders.masks, mask.name);
  mask.is_there = !is_image && !mask.file.error.starts_with("no such file");
  return mask;
}

MaskFile open_view(const InputFolders& folders, std::string_view image) {
  const std::string stem(without_extension(image));
  MaskFile view = open_pair(folders, image, std::string(image));
  for (std::size_t i = 0; i < kViewExtensions.size() && !view.is_there; ++i)
    view = open_pair(folders, image, stem + std::string(kViewExtensions[i]));
  if (view.is_there && view.file.error.empty()) return view;
  if (view.is_there) throw ImageError("its view " + view.name + ": " + view.file.error);
  folders.masks->check_mounted(std::string(image));
  throw ImageError("has no view: expected " + std::string(image) +
                   ", or of another extension (.jpg, .png, …), in the folder of `pair`");
}

}  // namespace

MaskFile open_mask(const InputFolders& folders, std::string_view image) {
  if (folders.kind == PairKind::view) return open_view(folders, image);
  const RootFolder& masks = *folders.masks;
  const std::string stem(without_extension(image));
  const auto open = [&](std::string_view extension) {
    return open_pair(folders, image, stem + std::string(extension));
  };
  for (const std::string_view extension : kExtensions) {
    MaskFile mask = open(extension);
    if (!mask.is_there) continue;
    if (!mask.file.error.empty()) throw ImageError("its mask " + mask.name + ": " + mask.file.error);
    return mask;
  }
  for (const std::string_view extension : kOtherExtensions)
    if (const MaskFile other = open(extension); other.is_there)
      throw ImageError("its mask " + other.name +
                       ": is of another type, expected PNG, npy, BMP or GIF, which " + "keep class ids");
  masks.check_mounted(stem + ".png");
  throw ImageError("has no mask: expected " + stem + ".png, or .npy, .bmp, .gif, in the folder of `pair`");
}

MaskFile open_mask(const InputFolders& folders, const SampleList& list, std::size_t index) {
  if (list.mask_files.empty()) return open_mask(folders, list.file(index));
  MaskFile mask{std::string(list.mask_files[index]), {}, true};
  const bool is_member = !list.masks.empty();
  mask.file = is_member ? open_mask_range(list, index) : open_file(*folders.masks, mask.name);
  if (mask.file.error.empty()) return mask;
  if (!is_member && mask.file.error.starts_with("no such file")) folders.masks->check_mounted(mask.name);
  throw ImageError("its mask " + mask.name + ": " + mask.file.error);
}

FileStamp joined_stamp(const FileStamp& image, const FileStamp& mask) {
  return {image.bytes + mask.bytes, image.mtime_ns + mask.mtime_ns};
}

FileStamp joined_stamp(const InputFolders& folders, const SampleList& list, std::size_t index,
                       const FileStamp& image) {
  if (!folders.masks && list.mask_files.empty()) return image;
  try {
    return joined_stamp(image, open_mask(folders, list, index).file.stamp);
  } catch (const ImageError&) {
    return image;
  }
}

MaskDecoder::MaskDecoder(const PackImagesSpec& spec)
    : spec_(spec_of_masks(spec)), transform_(spec_.transform) {}

TransformPlan MaskDecoder::plan(const Size& image) const {
  ImageHeader header;
  header.width = image.width;
  header.height = image.height;
  header.channels = 1;
  return plan_sample(spec_, header);
}

namespace {

void check_shape(std::uint32_t width, std::uint32_t height, const MaskDecoder::Size& image) {
  if (width != image.width || height != image.height)
    throw ImageError("has " + std::to_string(width) + " x " + std::to_string(height) + " pixels, expected " +
                     std::to_string(image.width) + " x " + std::to_string(image.height) + " as its image");
}

}  // namespace

void MaskDecoder::make(const InputFolders& folders, const SampleList& list, std::size_t index,
                       const Size& image, std::uint8_t* out) {
  stamp_ = {};
  if (!list.mask_shapes.empty()) return make_added(list, index, image, out);
  const MaskFile mask = open_mask(folders, list, index);
  stamp_ = mask.file.stamp;
  try {
    if (mask.file.bytes >
        std::max<std::uint64_t>(kMaxHeadBytes, std::uint64_t{2} * image.width * image.height))
      throw ImageError("has " + count_text(mask.file.bytes, "byte") +
                       ", too many for the pixels of its image");
    if (const std::string reason = mask.file.read(file_); !reason.empty()) throw ImageError(reason);
    DecodeMonitor monitor({.max_seconds = spec_.max_seconds_per_image});
    const std::unique_ptr<OpenedImage> opened = open_pixels(file_, monitor);
    check_shape(opened->header.width, opened->header.height, image);
    if (opened->header.channels != 1)
      throw ImageError("has " + std::to_string(opened->header.channels) +
                       " channels, expected 1, of class ids");
    opened->decode({1, {0, 0, image.width, image.height}, 1}, pixels_);
    transform(image, pixels_.pixels, out);
  } catch (const ImageError& error) {
    throw ImageError("its mask " + mask.name + ": " + error.reason());
  }
}

void MaskDecoder::make_added(const SampleList& list, std::size_t index, const Size& image,
                             std::uint8_t* out) {
  const SampleFile mask = open_mask_range(list, index);
  static_cast<void>(mask.read(file_));
  try {
    check_shape(mask.pixels.width, mask.pixels.height, image);
  } catch (const ImageError& error) {
    throw ImageError("its mask: " + error.reason());
  }
  transform(image, file_, out);
}

void MaskDecoder::transform(const Size& image, Bytes pixels, std::uint8_t* out) {
  const TransformPlan plan = this->plan(image);
  const Rect& region = plan.region;
  const std::uint8_t* const first = pixels.data() + std::size_t{region.y} * image.width + region.x;
  transform_.apply(plan, {first, region.width, region.height, 1, image.width}, out);
}

void MaskDecoder::release() {
  ByteBuffer().swap(file_);
  ByteBuffer().swap(pixels_.pixels);
  transform_.release();
}

}  // namespace chunkhit
