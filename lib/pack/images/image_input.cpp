#include "pack/images/image_input.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "base/file.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "decode/image_decoder.h"
#include "listing/file_extension.h"
#include "listing/label_sets.h"
#include "listing/like_names.h"
#include "listing/root_folder.h"
#include "listing/sample_list.h"
#include "manifest/plan.h"
#include "pack/images/group_split.h"
#include "pack/images/image_archives.h"
#include "pack/images/image_run.h"
#include "pack/images/mask_decoder.h"
#include "pack/images/pack_spec.h"
#include "pack/images/pack_task.h"
#include "pack/images/plan_rows.h"
#include "pack/images/sample_decoder.h"
#include "pack/output_pack.h"
#include "pack/pack_folder.h"
#include "pack/run_fields.h"
#include "store/part_index.h"
#include "transform/image_transform.h"
#include "transform/orientation.h"

namespace chunkhit {
namespace {

/// The pack's shape comes from the first readable image among so many rows.
constexpr std::size_t kProbedRows = 1000;

/// The aspect ratio of an image may become so many times another one without a notice.
constexpr double kMaxAspectChange = 1.05;

/// A sample that is worth a notice where nothing makes images smaller.
constexpr double kLargeSampleBytes = 512 << 10;

SampleList list_samples(const PackImagesSpec& spec, const PackImagesOptions& options) {
  std::vector<std::string> classes;
  if (!spec.classes.empty()) classes = read_classes(spec.classes, !spec.columns.label_separator.empty());
  SampleList list =
      !options.inputs.empty() ? list_archives(spec, options, existing_folder(options.output))
      : spec.labels.empty()
          // What pixels show is said by the masks: folders need not be classes.
          ? list_class_folders(options.root, spec.folders, {spec.follow_symlinks, spec.pair.empty()})
          : list_label_csv(spec.labels, LabelColumns{spec.columns, !spec.classes.empty()}, options.stop);
  if (classes.empty() && spec.labels.empty()) notice_text_order(list);
  if (classes.empty()) notice_like_names(list);
  if (!classes.empty() && !spec.columns.label_separator.empty())
    reorder_label_sets(list, classes);
  else if (!classes.empty())
    renumber_classes(list, std::move(classes));
  return list;
}

/// Makes absolute paths below the root relative to it.
void make_relative(SampleList& list, const RootFolder& root) {
  std::size_t first = 0;
  while (first < list.size() && !list.file(first).starts_with('/')) ++first;
  if (first == list.size()) return;  // a long list is not copied in vain
  TextList files;
  std::string known;  // how the last absolute path leads to the root, with its slash
  for (std::size_t index = 0; index < list.size(); ++index) {
    std::string_view file = list.file(index);
    const bool is_known = !known.empty() && file.starts_with(known) && file.find("/../") == file.npos;
    const std::optional<std::string_view> rest =
        is_known ? file.substr(std::min(file.find_first_not_of('/', known.size()), file.size()))
                 : root.rest_below(file);
    if (rest && !rest->empty()) known = file.substr(0, file.size() - rest->size());
    if (rest) file = rest->empty() ? "." : *rest;
    files.add(file);
  }
  list.files = std::move(files);
}

/// Lists, or gives nothing where the run was stopped meanwhile: a list on stdin may lack its end then.
std::optional<SampleList> list_unless_stopped(const PackImagesSpec& spec, const PackImagesOptions& options) {
  const auto is_stopped = [&] { return options.stop != nullptr && *options.stop; };
  try {
    SampleList list = list_samples(spec, options);
    if (!is_stopped()) return list;
  } catch (const Error&) {
    if (!is_stopped()) throw;
  }
  return std::nullopt;
}

/// Reads a sample into `bytes`; throws ImageError where it cannot be packed.
void load(const PackImagesSpec& spec, const RootFolder& root, const SampleList& list, std::size_t index,
          ByteBuffer& bytes) {
  const SampleFile opened = open_sample(root, list, index);
  if (!opened.error.empty()) throw ImageError(opened.error);
  if (opened.bytes > spec.max_decode_bytes) throw ImageError("is over `max_decode_bytes`");
  const std::string reason = opened.read(bytes);
  if (!reason.empty()) throw ImageError(reason);
}

}  // namespace

void load_with_retries(const PackImagesSpec& spec, const RootFolder& root, const SampleList& list,
                       std::size_t index, ByteBuffer& bytes) {
  try {
    with_retries([&] { load(spec, root, list, index, bytes); });
  } catch (const MachineError& error) {
    throw_unreadable(list.file(index), error);
  }
}

namespace {

FirstImage probe_file(const PackImagesSpec& spec, const std::string& file, Bytes bytes,
                      const SampleShape& pixels) {
  const ImageHeader header = pixels.channels > 0 ? pixels_header(pixels, max_pixels(spec))
                                                 : ImageFile(bytes, decode_options(spec)).header();
  const TransformPlan plan = plan_sample(spec, header);
  if (!plan.error.empty()) throw ImageError(plan.error);
  const bool swapped = swaps_sides(effective_orientation(spec, header));
  FirstImage first{file,
                   bytes.size(),
                   swapped ? header.height : header.width,
                   swapped ? header.width : header.height,
                   plan.sample,
                   has_alpha(header.channels) && !has_alpha(plan.channels) && !spec.transform.background};
  if (spec.sizes == Sizes::own) first.sample.height = first.sample.width = 0;
  return first;
}

/// Reads headers in the list's order until one gives the pack's shape; throws bad_data when none does.
FirstImage probe_shape(const PackImagesSpec& spec, const RootFolder& root, const SampleList& list) {
  std::string first_reject;
  ByteBuffer bytes;
  for (std::size_t index = 0; index < std::min(list.size(), kProbedRows); ++index) {
    const std::string file(list.file(index));
    try {
      load_with_retries(spec, root, list, index, bytes);
      return probe_file(spec, file, bytes, list.shapes.empty() ? SampleShape() : list.shapes[index]);
    } catch (const ImageError& error) {
      if (first_reject.empty()) first_reject = file + ": " + error.reason();
    }
  }
  if (first_reject.ends_with("is not a folder"))
    first_reject += "; where files are members of tars, give the tars as `root`";
  if (list.size() == 1) throw_bad_data("the only file is no image that can be packed: " + first_reject);
  throw_bad_data("none of the " + std::string(list.size() > kProbedRows ? "first " : "") +
                 count_text(std::min(list.size(), kProbedRows), "file") +
                 " is an image that can be packed; the first: " + first_reject);
}

void check_outside_root(const PackImagesOptions& options) {
  std::error_code error;
  const auto root = std::filesystem::weakly_canonical(options.root, error);
  const auto output = std::filesystem::weakly_canonical(options.output, error);
  if (std::mismatch(root.begin(), root.end(), output.begin(), output.end()).first == root.end())
    throw_usage("`output`: " + options.output + " lies in " + options.root +
                ", whose sub-folders are the classes; choose a folder outside");
}

/// Divides the list into packs; throws usage for a share that gets nothing.
std::vector<PackSamples> divide_list(const SampleList& list, const PackImagesSpec& spec) {
  std::vector<PackSamples> packs = order_samples(list, spec);
  for (const PackSamples& samples : packs)
    if (samples.indices.empty())
      throw_usage("`split`: " + samples.name + " gets none of the " + count_text(list.size(), "sample") +
                  ", because each class is divided by itself; give it a larger share");
  return packs;
}

std::string ratio_text(double ratio) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", ratio);
  return text.data();
}

/// Says where --resize WxH makes images wider or narrower than they are.
std::string squeeze_notice(const FirstImage& first, const TransformSpec& transform) {
  if (transform.resize != Resize::exact) return "";
  const std::uint32_t width = transform.resize_width;
  const std::uint32_t height = transform.resize_height;
  const double before = static_cast<double>(first.width) / first.height;
  const double after = static_cast<double>(width) / height;
  if (std::max(before, after) <= kMaxAspectChange * std::min(before, after)) return "";
  const bool is_cropped = transform.crop_width > 0;
  const std::string sides = std::to_string(is_cropped ? transform.crop_width : width) + "x" +
                            std::to_string(is_cropped ? transform.crop_height : height);
  const std::uint32_t side =
      std::max(is_cropped ? transform.crop_width : width, is_cropped ? transform.crop_height : height);
  return "`resize` " + std::to_string(width) + "x" + std::to_string(height) +
         " changes the aspect ratio (width / height) of " + first.file + " from " + ratio_text(before) +
         " to " + ratio_text(after) + "; `resize` " + std::to_string(side) + " `crop` " + sides + " keeps it";
}

/// Says what becomes of transparent pixels: as in Pillow's convert, alpha is dropped.
std::string alpha_notice(const FirstImage& first) {
  if (!first.loses_alpha) return "";
  return first.file +
         " has alpha, which is dropped: transparent pixels get the colors that they hide; `background` white "
         "shows white instead, `channels` rgba keeps alpha";
}

/// Says how large samples are that nothing makes smaller.
std::string size_notice(const FirstImage& first, const PackImagesSpec& spec, std::uint64_t sample_count) {
  const TransformSpec& transform = spec.transform;
  const auto bytes = static_cast<double>(first.sample.byte_count());  // of own sizes: 0
  if (transform.resize != Resize::none || transform.crop_width > 0 || bytes < kLargeSampleBytes) return "";
  return "images are packed as large as they are: " + std::to_string(first.width) + "x" +
         std::to_string(first.height) + " pixels, " + bytes_text(bytes) + " a sample, " +
         bytes_text(bytes * static_cast<double>(sample_count)) +
         " in all; `resize` 256 `crop` 224x224, for example, makes them smaller";
}

std::vector<std::string> all_notices(const SampleList& list, const PackImagesSpec& spec,
                                     const FirstImage& first) {
  std::vector<std::string> notices = list.notices;
  for (std::string notice :
       {squeeze_notice(first, spec.transform), size_notice(first, spec, list.size()), alpha_notice(first)})
    if (!notice.empty()) notices.push_back(std::move(notice));
  if (container(spec.container).is_read_by_library && codec_choice(spec).codec == "zstd")
    notices.emplace_back(
        "readers need HDF5's zstd plug-in: HDF5_PLUGIN_PATH=…/hdf5-plugins, or Python's hdf5plugin; deflate "
        "opens everywhere");
  return notices;
}

/// The mean size of files that are evenly spread over the list; unreadable ones do not count.
std::uint64_t mean_file_bytes(const PackImagesSpec& spec, const PackImagesOptions& options,
                              const SampleList& list) {
  constexpr std::size_t kStamped = 256;
  const RootFolder root(options.root, spec.follow_symlinks);
  const std::size_t count = std::min(list.size(), kStamped);
  std::uint64_t bytes = 0, files = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t index = i * list.size() / count;
    const FileStamp stamp = list.ranges.empty() ? root.stamp(list.file(index)) : FileStamp{};
    bytes += list.ranges.empty() ? stamp.bytes : list.ranges[index].bytes;
    if (!list.shapes.empty()) bytes += pnm_header(list.shapes[index]).size();
    files += list.ranges.empty() && stamp == FileStamp{} ? 0 : 1;
  }
  return files == 0 ? 0 : bytes / files;
}

/// About how many stored bytes an image of its own size will have: from the sizes of files, and from what
/// photographs have a pixel, half a byte as files, a fifth of one when they are encoded again.
std::uint64_t expected_bytes(const PackImagesSpec& spec, double file_bytes) {
  constexpr double kPixelsOfFileByte = 2, kEncodedBytesOfPixel = 0.2, kAspect = 4. / 3;
  const OwnSizesSpec& own = spec.own_sizes;
  const double pixels = file_bytes * kPixelsOfFileByte;
  const double limit = own.max_side > 0     ? own.max_side * (own.max_side / kAspect)
                       : own.short_side > 0 ? own.short_side * (own.short_side * kAspect)
                                            : pixels;
  const double channels = spec.transform.channels == Channels::gray ? 1 : 3;
  const double bytes = own.store != Store::jpeg ? std::min(pixels, limit) * channels
                       : limit < pixels         ? limit * kEncodedBytesOfPixel
                                                : file_bytes;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(bytes));
}

/// How many different ids there are. A list of 10^8 images has few: no copy of all ids is sorted.
std::uint64_t count_different(const std::vector<std::int64_t>& ids) {
  constexpr std::size_t kFew = 1 << 20;
  std::unordered_set<std::int64_t> seen;
  for (const std::int64_t id : ids) {
    seen.insert(id);
    if (seen.size() <= kFew) continue;
    std::vector<std::int64_t> sorted = ids;
    std::sort(sorted.begin(), sorted.end());
    return static_cast<std::uint64_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
  }
  return seen.size();
}

LabelSummary summarize_labels(const SampleList& list) {
  const bool has_none = std::ranges::all_of(list.class_ids, [](std::int64_t id) { return id == -1; });
  return {list.label_kind, list.label_columns, list.classes, has_none ? 0 : count_different(list.class_ids),
          list.is_detected};
}

/// Throws cannot_write where a plan of other packs is there, or of these and `force` would remove their
/// parts: its tasks may be running.
void check_plan(const PackImagesSpec& spec, const PackImagesOptions& options, const ImageInput& input) {
  const std::optional<PackPlan> plan = read_plan(options.output);
  if (!plan) return;
  std::string error = options.force ? "`force`: " + options.output + " holds a plan" : "";
  if (const std::string difference = version_difference(*plan); error.empty() && !difference.empty())
    error = options.output + ": holds the plan of another build (" + difference + ")";
  for (std::size_t index = 0; error.empty() && index < input.packs.size(); ++index) {
    const PackIdentity wanted = image_pack(spec, input.first.sample, input.list, input.packs[index]);
    if (index >= plan->packs.size() || plan->packs.size() != input.packs.size())
      error = options.output + ": holds the plan of " + count_text(plan->packs.size(), "pack");
    else if (const PlannedPack& planned = plan->packs[index]; planned.pack_id != wanted.pack_id)
      error = options.output + ": holds the plan of another pack (" +
              wanted.difference({planned.pack_id, planned.spec, std::nullopt}) + ")";
  }
  if (error.empty()) return;
  throw_cannot_write(error + ", whose tasks may be running; remove " + options.output + "/" +
                     std::string(kPlanName) + " first");
}

std::vector<std::string> find_stale_shares(const SampleList& list, const PackImagesOptions& options,
                                           const std::vector<PackSamples>& packs) {
  std::set<std::string> wanted;
  for (const PackSamples& samples : packs) wanted.insert(samples.name);
  if (wanted.contains("")) return {};  // no split
  std::vector<std::string> stale = stale_shares(options.output, list.xxh3, wanted);
  for (const std::string& path : stale) {
    if (!options.force)
      throw_cannot_write(path +
                         ": holds a share of another split of the same images, which "
                         "this run does not make; `force` removes it, another `output` "
                         "keeps both");
    OutputPack::check(kImagePacks, path, true);
  }
  return stale;
}

/// Throws usage for columns where class folders have the labels.
void check_folder_columns(const PackImagesSpec& spec, const PackImagesOptions& options) {
  if (!options.inputs.empty() || !spec.labels.empty()) return;
  std::error_code failed;
  if (!std::filesystem::is_directory(options.root, failed)) return;  // a missing tar, say: opening it fails
  if (!spec.columns.mask_column.empty())
    throw_usage(
        "`mask_column`: is for a CSV or for tars, found class folders: give the CSV with `labels`; masks of "
        "the images' names are found by `pair` alone");
  const LabelCsvSpec plain;
  const char* given = spec.columns.label_column != plain.label_column ? "`label_column`"
                      : !spec.columns.keep_columns.empty()            ? "`keep_columns`"
                      : spec.columns.label_type != plain.label_type   ? "`label_type`"
                      : !spec.columns.label_separator.empty()         ? "`label_separator`"
                                                                      : nullptr;
  if (given == nullptr) return;
  throw_usage(std::string(given) +
              ": is for a CSV or for .json files in tars, found class folders: give "
              "the CSV with `labels`");
}

}  // namespace

PackImagesOptions checked_options(const PackImagesSpec& spec, PackImagesOptions options) {
  check_spec(spec);
  for (const std::string& input : options.inputs) check_local_input("`root`", input);
  check_local_input("`root`", options.root);
  check_local_input("`labels`", spec.labels);
  check_local_input("`pair`", spec.pair);
  take_inputs(options);
  if (options.root.empty()) {
    if (spec.labels.empty()) throw_usage("`root` is required: the folder of the images, or archives");
    const std::size_t slash = spec.labels.rfind('/');
    options.root = spec.labels == "-" || slash == std::string::npos ? "." : spec.labels.substr(0, slash + 1);
  }
  options = checked_output(spec, std::move(options));
  // An output below ROOT would be a class of the next run.
  if (spec.labels.empty() && options.inputs.empty()) check_outside_root(options);
  if (options.inputs.empty() && spec.labels.empty()) options.inputs = find_tars(spec, options.root);
  check_folder_columns(spec, options);
  return options;
}

PackImagesSpec with_masks(PackImagesSpec spec, const PackImagesOptions& checked) {
  spec = with_kept_split_column(std::move(spec));
  if (spec.columns.mask_column.empty()) return spec;
  const bool are_members = !checked.inputs.empty();
  if (are_members && !spec.pair.empty())
    throw_usage("`pair`: `mask_column` names masks that are members of the tars; leave out one of them");
  if (spec.pair.empty()) spec.pair = are_members ? std::string(kMemberMasks) : checked.root;
  // Kept, so that the list of the pack and its rejects name the masks, too.
  std::vector<std::string>& kept = spec.columns.keep_columns;
  const std::string& mask = spec.columns.mask_column;
  if (!spec.labels.empty() && kept.size() < kMaxKeptColumns && is_column_name(mask))
    if (std::ranges::find(kept, mask) == kept.end()) kept.push_back(mask);
  return spec;
}

PackImagesOptions checked_output(const PackImagesSpec& spec, PackImagesOptions options) {
  check_spec(spec);
  check_error_limit(options, "bad images");
  if (options.output.empty()) throw_usage("`output` is required: a folder for the pack");
  while (options.output.size() > 1 && options.output.ends_with('/')) options.output.pop_back();
  check_outside_packs(options.output);
  return options;
}

void check_no_sheet(const PackImagesOptions& options) {
  if (options.sheet.empty()) return;
  throw_usage("`sheet`: found " + options.sheet + " without `dry_run`, which alone writes it");
}

void check_sheet_name(const PackImagesOptions& options) {
  const std::string& name = options.sheet;
  if (name.empty() || name.ends_with(".png") || name.ends_with(".PNG")) return;
  throw_usage("`sheet`: found " + name + ", expected a name that ends in .png: it is a PNG");
}

std::optional<ImageInput> read_image_input(const PackImagesSpec& spec, const PackImagesOptions& options) {
  std::optional<SampleList> list = list_unless_stopped(spec, options);
  if (!list) return std::nullopt;
  if (!spec.labels.empty() && options.inputs.empty()) {
    make_relative(*list, RootFolder(options.root, spec.follow_symlinks));
    const std::string table = spec.labels == "-" ? "stdin" : spec.labels;
    append_extension(*list, options.root, table, spec.follow_symlinks);
    if (!list->mask_files.empty()) append_mask_extension(*list, spec.pair, table, spec.follow_symlinks);
  }
  return make_image_input(spec, options, std::move(*list));
}

ImageInput make_image_input(const PackImagesSpec& spec, const PackImagesOptions& options, SampleList list) {
  const RootFolder root(options.root, spec.follow_symlinks);
  if (!spec.pair.empty() && !list.ranges.empty() && list.masks.empty())
    throw_usage(
        "`pair`: is for images that are files of a folder, not parts of archives; `mask_column` seg.png "
        "takes masks that are members of tars");
  ImageInput input{std::move(list), {}, {}, {}, {}};
  input.first = probe_shape(spec, root, input.list);
  check_pairs(spec, {root, mask_folder(spec), spec.pair_kind}, input.list);
  input.packs = divide_list(input.list, spec);
  input.notices = all_notices(input.list, spec, input.first);
  std::ranges::move(split_notices(input.list, spec, input.packs), std::back_inserter(input.notices));
  input.labels = summarize_labels(input.list);
  return input;
}

PackImagesSpec with_part_samples(const PackImagesSpec& spec, const PackImagesOptions& options,
                                 const SampleList& list) {
  PackImagesSpec counted = spec;
  if (spec.sizes == Sizes::fixed || spec.own_sizes.part_samples > 0) return counted;
  const auto file_bytes = static_cast<double>(mean_file_bytes(spec, options, list));
  // A power of two, so that a few files that change nearly always leave the pack the same.
  const std::uint64_t image_bytes = std::bit_ceil(expected_bytes(spec, file_bytes));
  counted.own_sizes.part_samples = std::max<std::uint64_t>(1, spec.part_bytes / image_bytes);
  return counted;
}

std::uint64_t expected_list_bytes(const PackImagesSpec& spec, const PackImagesOptions& options,
                                  const SampleList& list) {
  const auto file_bytes = static_cast<double>(mean_file_bytes(spec, options, list));
  return expected_bytes(spec, file_bytes) * list.size();
}

ChunkPlan largest_chunks(const PackImagesSpec& spec, const ImageInput& input) {
  ChunkPlan largest;
  for (const PackSamples& samples : input.packs) {
    const ChunkPlan plan = plan_pack(spec, input.first.sample, samples.indices.size());
    if (plan.chunk_bytes > largest.chunk_bytes) largest = plan;
  }
  return largest;
}

std::vector<std::string> check_outputs(const PackImagesSpec& spec, const PackImagesOptions& options,
                                       const ImageInput& input) {
  for (const PackSamples& samples : input.packs)
    OutputPack::check(kImagePacks, pack_path(options.output, samples.name), options.force);
  check_plan(spec, options, input);
  return find_stale_shares(input.list, options, input.packs);
}

}  // namespace chunkhit
