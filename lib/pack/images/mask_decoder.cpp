#include "pack/images/mask_decoder.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "decode/formats.h"
#include "listing/class_folders.h"
#include "listing/file_extension.h"
#include "pack/images/pack_spec.h"
#include "pack/images/sample_decoder.h"

namespace chunkhit {
namespace {

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
  for (const std::string_view extension : kMaskExtensions) {
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

namespace {

/// So many images are looked at before the folder of the masks is walked.
constexpr std::size_t kProbedPairs = 8;

bool has_pair(const InputFolders& folders, std::string_view image) {
  try {
    static_cast<void>(open_mask(folders, image));
  } catch (const ImageError& error) {
    return !error.reason().starts_with("has no ");
  } catch (const MachineError&) {
  }
  return true;
}

/// Names of files that may be the pair of an image.
std::vector<std::string> pair_names(std::string_view image, PairKind kind) {
  const std::string stem(without_extension(image));
  std::vector<std::string> names{std::string(image)};
  for (const std::string_view extension : kViewExtensions) names.push_back(stem + std::string(extension));
  for (const std::string_view extension : kMaskExtensions) names.push_back(stem + std::string(extension));
  if (kind == PairKind::mask)
    for (const std::string_view extension : kOtherExtensions) names.push_back(stem + std::string(extension));
  return names;
}

/// The file of a folder whose name is most like an image's: it has its stem, begins with it, or holds it;
/// else the first one.
std::string likely_pair(std::string_view image, const FolderTree& tree) {
  const std::string stem(without_extension(file_name(image)));
  std::array<std::string, 4> found;
  for (std::size_t index = 0; index < tree.count(); ++index) {
    std::string file = tree.path(index).substr(2);  // behind "./"
    const std::string_view name = without_extension(file_name(file));
    const std::size_t rank = name == stem                   ? 0
                             : name.starts_with(stem)       ? 1
                             : name.find(stem) != name.npos ? 2
                                                            : 3;
    if (file != image && evident_kind(file).empty() && found[rank].empty()) found[rank] = std::move(file);
  }
  const auto best = std::ranges::find_if(found, [](const std::string& file) { return !file.empty(); });
  return best == found.end() ? "no other image" : *best;
}

}  // namespace

void check_pairs(const PackImagesSpec& spec, const InputFolders& folders, const SampleList& list) {
  if (!folders.masks || !list.mask_files.empty() || !list.ranges.empty()) return;
  for (std::size_t i = 0; i < std::min(list.size(), kProbedPairs); ++i)
    if (has_pair(folders, list.file(i * list.size() / std::min(list.size(), kProbedPairs)))) return;
  const std::optional<FolderTree> tree = walk_folder(spec.pair, spec.follow_symlinks);
  if (!tree || tree->count() == 0) return;
  std::vector<std::uint64_t> files(tree->count());
  for (std::size_t index = 0; index < files.size(); ++index)
    files[index] = file_hash(tree->path(index).substr(2));
  std::ranges::sort(files);
  const bool is_one_folder = folders.masks->is(folders.images);
  for (std::size_t index = 0; index < list.size(); ++index)
    for (const std::string& name : pair_names(list.file(index), spec.pair_kind))
      if (!(is_one_folder && name == list.file(index)) && std::ranges::binary_search(files, file_hash(name)))
        return;
  const std::string first(list.file(0)), stem(without_extension(first));
  const bool are_views = spec.pair_kind == PairKind::view;
  throw_bad_data("`pair`: none of " + count_text(list.size(), "image") + " has a " +
                 (are_views ? "view: " : "mask: ") + first + " needs " +
                 (are_views ? first + ", or of another extension," : stem + ".png, .npy, .bmp or .gif") +
                 " in " + spec.pair + ", which holds " + likely_pair(first, *tree) + "; " +
                 (are_views ? "links give views the names of images"
                  : spec.labels.empty()
                      ? "`labels` takes a CSV of images and masks, whose column `mask_column` names"
                      : "`mask_column` names the column of masks in " + spec.labels));
}

/// A hash: of sums, opposite changes of both files would cancel.
FileStamp joined_stamp(const FileStamp& image, const FileStamp& mask) {
  if (mask == FileStamp{}) return image;
  const std::array<std::uint64_t, 4> facts{image.bytes, static_cast<std::uint64_t>(image.mtime_ns),
                                           mask.bytes, static_cast<std::uint64_t>(mask.mtime_ns)};
  return {xxh3(bytes_of(facts)), mask.mtime_ns};
}

FileStamp pair_stamp(const InputFolders& folders, const SampleList& list, std::size_t index) {
  if (!folders.masks && list.mask_files.empty()) return {};
  try {
    return open_mask(folders, list, index).file.stamp;
  } catch (const ImageError&) {
    return {};
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
