#include "pack/images/mask_decoder.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "decode/class_ids.h"
#include "listing/class_folders.h"
#include "listing/file_extension.h"
#include "pack/images/image_reader.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

/// Of files that people take for masks.
constexpr std::array<std::string_view, 5> kOtherExtensions{".jpg", ".jpeg", ".JPG", ".JPEG", ".webp"};

/// Of views: what decoders read.
constexpr std::array<std::string_view, 14> kViewExtensions{".jpg", ".jpeg", ".png", ".webp", ".bmp",
                                                           ".tif", ".tiff", ".npy", ".ppm",  ".gif",
                                                           ".tga", ".JPG",  ".PNG", ".JPEG"};

/// Of a file beside its pixels: an ICC profile, say.
constexpr std::uint64_t kMaxHeadBytes = 1 << 20;
/// Of a pixel in a file: four int64 of npy.
constexpr std::uint64_t kMaxPixelBytes = 32;
/// Of class ids: as decoded, and what is made of them for a sample of its own size.
constexpr std::uint64_t kPixelCopies = 2;

PackImagesSpec spec_of_masks(PackImagesSpec spec) {
  spec.transform.resample = Filter::nearest;
  spec.transform.channels = Channels::gray;
  spec.transform.background.reset();
  spec.transform.pad_color = {spec.mask_pad, spec.mask_pad, spec.mask_pad};
  spec.transform.layout = Layout::nhwc;
  spec.exif = ExifUse::ignore;
  return spec;
}

void check_shape(std::uint32_t width, std::uint32_t height, const MaskDecoder::Size& image) {
  if (width != image.width || height != image.height)
    throw ImageError(RejectKind::shape, "has " + std::to_string(width) + " x " + std::to_string(height) +
                                            " pixels, expected " + std::to_string(image.width) + " x " +
                                            std::to_string(image.height) + " as its image");
}

/// Opens what may be the mask or view of an image.
MaskFile open_candidate(const RootFolder& images, const RootFolder& folder, std::string_view image,
                        std::string name) {
  MaskFile mask{std::move(name), {}};
  // Where masks lie beside the images, an image is not its own.
  const bool is_image = mask.name == image && folder.is(images);
  if (!is_image) mask.file = open_file(folder, mask.name);
  mask.is_there = !is_image && !mask.file.error.is_missing();
  return mask;
}

[[noreturn]] void throw_of_pair(const PairFolder& pair, const std::string& file, const ImageError& error) {
  throw ImageError(error.kind(), pair_text(pair, file) + error.reason());
}

MaskFile open_view(const RootFolder& images, const PairFolder& pair, std::string_view image) {
  const std::string stem(without_extension(image));
  const RootFolder& folder = *pair.folder;
  MaskFile view = open_candidate(images, folder, image, std::string(image));
  for (std::size_t i = 0; i < kViewExtensions.size() && !view.is_there; ++i)
    view = open_candidate(images, folder, image, stem + std::string(kViewExtensions[i]));
  if (view.is_there && !view.file.error) return view;
  if (view.is_there) throw_of_pair(pair, view.name, ImageError(view.file.error));
  folder.check_mounted(std::string(image));
  throw ImageError(RejectKind::no_pair,
                   "has no " + pair.field.name + ": expected " + std::string(image) +
                       ", or of another extension (.jpg, .png, …), in the folder of `pair`",
                   FileError::Kind::missing);
}

}  // namespace

std::vector<FieldPlace> pairs_of(const PackImagesSpec& spec) {
  return parse_fields(spec.pair, "`pair`", "[NAME=]FOLDER[:view]");
}

std::vector<SampleField> fields_of(const PackImagesSpec& spec, const SampleList& list) {
  std::vector<SampleField> fields;
  for (FieldPlace& pair : pairs_of(spec)) fields.push_back(std::move(pair.field));
  if (fields.empty())
    for (const ListedField& listed : list.fields) fields.push_back(listed.field);
  return fields;
}

std::vector<PairFolder> pair_folders(const PackImagesSpec& spec, const std::vector<SampleField>& fields) {
  const std::vector<FieldPlace> inputs = pairs_of(spec);
  std::vector<PairFolder> pairs;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    pairs.push_back({fields[i], std::nullopt});
    if (!inputs.empty()) pairs.back().folder.emplace(inputs[i].place, spec.follow_symlinks);
  }
  return pairs;
}

MaskFile open_pair(const RootFolder& images, const PairFolder& pair, std::string_view image) {
  if (traits_of(pair.field.role).is_image) return open_view(images, pair, image);
  const RootFolder& masks = *pair.folder;
  const std::string stem(without_extension(image));
  const auto open = [&](std::string_view extension) {
    return open_candidate(images, masks, image, stem + std::string(extension));
  };
  for (const std::string_view extension : kMaskExtensions) {
    MaskFile mask = open(extension);
    if (!mask.is_there) continue;
    if (mask.file.error) throw_of_pair(pair, mask.name, ImageError(mask.file.error));
    return mask;
  }
  for (const std::string_view extension : kOtherExtensions)
    if (const MaskFile other = open(extension); other.is_there)
      throw_of_pair(pair, other.name,
                    ImageError(RejectKind::unsupported, no_mask_type(extension != ".webp")));
  masks.check_mounted(stem + ".png");
  throw ImageError(RejectKind::no_pair,
                   "has no " + pair.field.name + ": expected " + stem +
                       ".png, or .npy, .bmp, .gif, .tif, .tiff, .pgm, in the folder of `pair`",
                   FileError::Kind::missing);
}

MaskFile open_pair(const RootFolder& images, const PairFolder& pair, const SampleList& list,
                   std::size_t index) {
  const ListedField* const listed = list.find_field(pair.field.name);
  if (listed == nullptr) return open_pair(images, pair, list.file(index));
  MaskFile mask{listed->files.empty() ? "" : std::string(listed->files[index]), {}, true};
  const bool is_member = !listed->ranges.empty();
  mask.file = is_member ? open_field_range(list, *listed, index) : open_file(*pair.folder, mask.name);
  if (!mask.file.error) return mask;
  if (!is_member && mask.file.error.is_missing()) pair.folder->check_mounted(mask.name);
  throw_of_pair(pair, mask.name, ImageError(mask.file.error));
}

std::uint64_t pair_hash(const RootFolder& images, const PairFolder& pair, const SampleList& list,
                        std::size_t index) {
  ByteBuffer bytes;
  try {
    if (open_pair(images, pair, list, index).file.read(bytes)) return 0;
  } catch (const ImageError&) {
    return 0;
  }
  return xxh3(bytes);
}

namespace {

/// So many images are looked at before the folder of the masks is walked.
constexpr std::size_t kProbedPairs = 8;

bool has_pair(const RootFolder& images, const PairFolder& pair, std::string_view image) {
  try {
    static_cast<void>(open_pair(images, pair, image));
  } catch (const ImageError& error) {
    return error.of_file() != FileError::Kind::missing;
  } catch (const MachineError&) {
  }
  return true;
}

/// Names of files that may be the pair of an image.
std::vector<std::string> pair_names(std::string_view image, FieldRole role) {
  const std::string stem(without_extension(image));
  std::vector<std::string> names{std::string(image)};
  for (const std::string_view extension : kViewExtensions) names.push_back(stem + std::string(extension));
  for (const std::string_view extension : kMaskExtensions) names.push_back(stem + std::string(extension));
  if (!traits_of(role).is_image)
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

/// Throws bad_data where no image of a list has a file of a field.
void check_pair_folder(const PackImagesSpec& spec, const RootFolder& images, const PairFolder& pair,
                       const std::string& folder, const SampleList& list) {
  for (std::size_t i = 0; i < std::min(list.size(), kProbedPairs); ++i)
    if (has_pair(images, pair, list.file(i * list.size() / std::min(list.size(), kProbedPairs)))) return;
  const std::optional<FolderTree> tree = walk_folder(folder, spec.follow_symlinks);
  if (!tree || tree->count() == 0) return;
  std::vector<std::uint64_t> files(tree->count());
  for (std::size_t index = 0; index < files.size(); ++index)
    files[index] = file_hash(tree->path(index).substr(2));
  std::ranges::sort(files);
  const bool is_one_folder = pair.folder->is(images);
  for (std::size_t index = 0; index < list.size(); ++index)
    for (const std::string& name : pair_names(list.file(index), pair.field.role))
      if (!(is_one_folder && name == list.file(index)) && std::ranges::binary_search(files, file_hash(name)))
        return;
  const std::string first(list.file(0)), stem(without_extension(first));
  const bool are_views = traits_of(pair.field.role).is_image;
  throw_bad_data(
      "`pair`: none of " + count_text(list.size(), "image") + " has " +
      (has_usual_name(pair.field) ? "a " : "the field ") + pair.field.name + ": " + first + " needs " +
      (are_views ? first + ", or of another extension,"
                 : stem + ".png, .npy, .bmp, .gif, .tif, .tiff or .pgm") +
      " in " + folder + ", which holds " + likely_pair(first, *tree) + "; " +
      (are_views             ? "links give views the names of images"
       : spec.labels.empty() ? "`labels` takes a CSV of images and masks, whose column `mask_column` names"
                             : "`mask_column` names the column of masks in " + spec.labels));
}

}  // namespace

void check_pairs(const PackImagesSpec& spec, const InputFolders& folders, const SampleList& list) {
  if (!list.ranges.empty()) return;
  const std::vector<FieldPlace> inputs = pairs_of(spec);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (list.find_field(inputs[i].field.name) == nullptr)
      check_pair_folder(spec, folders.images, folders.pairs[i], inputs[i].place, list);
}

/// A hash: of sums, opposite changes of both files would cancel.
FileStamp joined_stamp(const FileStamp& image, const FileStamp& mask) {
  if (mask == FileStamp{}) return image;
  const std::array<std::uint64_t, 4> facts{image.bytes, static_cast<std::uint64_t>(image.mtime_ns),
                                           mask.bytes, static_cast<std::uint64_t>(mask.mtime_ns)};
  return {xxh3(bytes_of(facts)), mask.mtime_ns};
}

FileStamp joined_stamps(FileStamp image, const InputFolders& folders, const SampleList& list,
                        std::size_t index, std::size_t first) {
  for (const PairFolder& pair : std::span(folders.pairs).subspan(first)) {
    const ListedField* const listed = list.find_field(pair.field.name);
    if (!pair.folder && (listed == nullptr || listed->files.empty())) continue;  // a program's pixels
    try {
      image = joined_stamp(image, open_pair(folders.images, pair, list, index).file.stamp);
    } catch (const ImageError&) {
    }
  }
  return image;
}

std::string pair_text(const PairFolder& pair, std::string_view file) {
  return "its " + pair.field.name + (file.empty() ? "" : " ") + std::string(file) + ": ";
}

MaskDecoder::MaskDecoder(const PackImagesSpec& spec)
    : spec_(spec_of_masks(spec)), transform_(spec_.transform) {}

TransformPlan MaskDecoder::plan(const Size& image) const {
  ImageHeader header;
  header.width = image.width;
  header.height = image.height;
  header.channels = 1;
  TransformPlan plan = plan_sample(spec_, header, {});
  // Crops beyond the image are padded as `fit` pads.
  plan.canvas = {0, 0, plan.sample.width, plan.sample.height};
  return plan;
}

std::uint64_t MaskDecoder::make(const RootFolder& images, const PairFolder& pair, const SampleList& list,
                                std::size_t index, const Size& image, std::uint64_t max_bytes,
                                std::uint8_t* out) {
  stamp_ = {};
  const MaskFile mask = open_pair(images, pair, list, index);
  if (!mask.name.empty()) stamp_ = mask.file.stamp;
  try {
    const std::uint64_t pixel_count = std::uint64_t{image.width} * image.height;
    if (mask.file.bytes > kMaxHeadBytes + kMaxPixelBytes * pixel_count)
      throw ImageError(RejectKind::too_large, "has " + count_text(mask.file.bytes, "byte") +
                                                  ", too many for the pixels of its image");
    const std::uint64_t held = mask.file.bytes + kPixelCopies * pixel_count;
    if (held > max_bytes) return held;
    if (const FileError error = mask.file.read(file_)) throw ImageError(error);
    if (mask.file.pixels.channels != 0) {
      check_shape(mask.file.pixels.width, mask.file.pixels.height, image);
      transform(image, file_, out);
      return 0;
    }
    DecodeMonitor monitor({.max_pixels = max_pixels(spec_), .max_seconds = spec_.max_seconds_per_image});
    const std::unique_ptr<OpenedImage> opened = open_class_ids(file_, monitor);
    const ImageHeader& header = opened->header;
    check_shape(header.width, header.height, image);
    const std::uint64_t needed = held + std::max(header.peak_bytes, header.extra_bytes);
    if (needed > max_bytes) return needed;
    opened->decode({1, {0, 0, image.width, image.height}, 1}, pixels_);
    transform(image, pixels_.pixels, out);
    return 0;
  } catch (const ImageError& error) {
    throw_of_pair(pair, mask.name, error);
  }
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
