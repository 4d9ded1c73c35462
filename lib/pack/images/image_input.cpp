#include "pack/images/image_input.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

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
#include "pack/images/image_reader.h"
#include "pack/images/image_run.h"
#include "pack/images/list_findings.h"
#include "pack/images/mask_decoder.h"
#include "pack/images/pack_spec.h"
#include "pack/images/pack_task.h"
#include "pack/images/plan_rows.h"
#include "pack/output_pack.h"
#include "store/part_index.h"
#include "transform/orientation.h"

namespace chunkhit {
namespace {

/// The pack's shape comes from the first readable image among so many rows.
constexpr std::size_t kProbedRows = 1000;

/// The aspect ratio of an image may become so many times another one without a notice.
constexpr double kMaxAspectChange = 1.05;

/// A sample that is worth a notice where nothing makes images smaller.
constexpr double kLargeSampleBytes = 512 << 10;

SampleList list_source(const ImageRun& run) {
  const auto& [spec, options, source] = run;
  if (const auto* const tars = std::get_if<TarSource>(&source)) return list_tars(run, *tars);
  if (const auto* const idx = std::get_if<IdxSource>(&source)) return list_idx(run, idx->path);
  if (std::holds_alternative<CsvSource>(source))
    return list_label_csv(spec.labels, LabelColumns{spec.columns, !spec.classes.empty()}, options.stop);
  // What pixels show is said by the masks: folders need not be classes.
  const bool has_classes = spec.pair.empty() && spec.columns.label_type != LabelType::none;
  return list_class_folders(options.root, spec.folders, {spec.follow_symlinks, has_classes});
}

SampleList list_samples(const ImageRun& run) {
  const PackImagesSpec& spec = run.spec;
  std::vector<std::string> classes;
  if (!spec.classes.empty()) classes = read_classes(spec.classes, !spec.columns.label_separator.empty());
  SampleList list = list_source(run);
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

/// Tables of Windows have backslashes in paths: they are taken for slashes where one of the first such files
/// is then there, and none was before.
void turn_backslashes(SampleList& list, const RootFolder& root) {
  constexpr std::size_t kTried = 64;
  const auto turned = [](std::string_view path) {
    std::string file(path);
    std::ranges::replace(file, '\\', '/');
    return file;
  };
  const FileStamp missing{};
  std::string shown;
  std::size_t tried = 0;
  for (std::size_t at = 0; list.ranges.empty() && shown.empty() && tried < kTried && at < list.size(); ++at) {
    const std::string file(list.file(at));
    if (file.find('\\') == file.npos) continue;
    ++tried;
    if (root.stamp(file) != missing) return;
    if (root.stamp(turned(file)) != missing) shown = file;
  }
  if (shown.empty()) return;
  const auto turn = [&](TextList& files) {
    TextList all;
    for (std::size_t index = 0; index < files.size(); ++index) all.add(turned(files[index]));
    files = std::move(all);
  };
  turn(list.files);
  for (ListedField& field : list.fields) turn(field.files);
  list.notices.push_back("paths have backslashes, as " + shown + ", which are taken for slashes");
}

/// Lists, or gives nothing where the run was stopped meanwhile: a list on stdin may lack its end then.
std::optional<SampleList> list_unless_stopped(const ImageRun& run) {
  const auto is_stopped = [&] { return run.options.stop != nullptr && *run.options.stop; };
  try {
    SampleList list = list_samples(run);
    if (!is_stopped()) return list;
  } catch (const Error&) {
    if (!is_stopped()) throw;
  }
  return std::nullopt;
}

/// Reads headers in the list's order until one gives the pack's shape; throws bad_data when none does.
FirstImage probe_shape(const PackImagesSpec& spec, const RootFolder& root, const SampleList& list) {
  std::string first_reject;
  ByteBuffer bytes;
  const std::vector<SampleField> fields = fields_of(spec, list);
  check_fields(spec, fields);
  for (std::size_t index = 0; index < std::min(list.size(), kProbedRows); ++index) {
    const std::string file(list.file(index));
    try {
      load_with_retries(spec, root, list, index, bytes);
      return probe_file(spec, file, bytes, list.shapes.empty() ? SampleShape() : list.shapes[index], fields);
    } catch (const ImageError& error) {
      if (!first_reject.empty()) continue;
      first_reject = file + ": " + error.reason();
      if (error.of_file() == FileError::Kind::below_no_folder)
        first_reject += "; where files are members of tars, give the tars as `root`";
    }
  }
  if (list.size() == 1) throw_bad_data("the only file is no image that can be packed: " + first_reject);
  throw_bad_data("none of the " + std::string(list.size() > kProbedRows ? "first " : "") +
                 count_text(std::min(list.size(), kProbedRows), "file") +
                 " is an image that can be packed; the first: " + first_reject);
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
  const std::uint32_t kept_width = is_cropped ? transform.crop_width : width;
  const std::uint32_t kept_height = is_cropped ? transform.crop_height : height;
  return "`resize` " + std::to_string(width) + "x" + std::to_string(height) +
         " changes the aspect ratio (width / height) of " + first.file + " from " + ratio_text(before) +
         " to " + ratio_text(after) + "; `resize` " + std::to_string(std::max(kept_width, kept_height)) +
         " `crop` " + std::to_string(kept_width) + "x" + std::to_string(kept_height) + " keeps it";
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
std::uint64_t mean_file_bytes(const ImageRun& run, const SampleList& list) {
  constexpr std::size_t kStamped = 256;
  const RootFolder root(run.options.root, run.spec.follow_symlinks);
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
void check_plan(const ImageRun& run, const ImageInput& input) {
  const PackImagesOptions& options = run.options;
  const std::optional<PackPlan> plan = read_plan(options.output);
  if (!plan) return;
  std::string error = options.force ? "`force`: " + options.output + " holds a plan" : "";
  if (const std::string difference = version_difference(*plan); error.empty() && !difference.empty())
    error = options.output + ": holds the plan of another build (" + difference + ")";
  for (std::size_t index = 0; error.empty() && index < input.packs.size(); ++index) {
    const PackIdentity wanted = image_pack(run.spec, input.first.sample, input.list, input.packs[index]);
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

std::vector<std::string> find_stale_shares(const PackImagesOptions& options, const ImageInput& input) {
  std::set<std::string> wanted;
  for (const PackSamples& samples : input.packs) wanted.insert(samples.name);
  if (wanted.contains("")) return {};  // no split
  std::vector<std::string> stale = stale_shares(options.output, input.list.xxh3, wanted);
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

}  // namespace

FirstImage probe_file(const PackImagesSpec& spec, const std::string& file, Bytes bytes,
                      const SampleShape& pixels, std::vector<SampleField> fields) {
  const ImageHeader header = pixels.channels > 0 ? pixels_header(pixels, max_pixels(spec))
                                                 : ImageFile(bytes, decode_options(spec)).header();
  const TransformPlan plan = plan_sample(spec, header, std::move(fields));
  if (!plan.error.empty()) throw ImageError(RejectKind::shape, plan.error);
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

void load_with_retries(const PackImagesSpec& spec, const RootFolder& root, const SampleList& list,
                       std::size_t index, ByteBuffer& bytes) {
  try {
    with_retries([&] {
      const SampleFile opened = open_sample(root, list, index);
      if (opened.error) throw ImageError(opened.error);
      if (opened.bytes > spec.max_decode_bytes)
        throw ImageError(RejectKind::too_large, "is over `max_decode_bytes`");
      if (const FileError error = opened.read(bytes)) throw ImageError(error);
    });
  } catch (const MachineError& error) {
    throw_unreadable(list.file(index), error);
  }
}

std::optional<ImageInput> read_image_input(const ImageRun& run) {
  std::optional<SampleList> list = list_unless_stopped(run);
  if (!list) return std::nullopt;
  if (std::holds_alternative<CsvSource>(run.source)) {
    const PackImagesSpec& spec = run.spec;
    const RootFolder root(run.options.root, spec.follow_symlinks);
    make_relative(*list, root);
    turn_backslashes(*list, root);
    const std::string table = spec.labels == "-" ? "stdin" : spec.labels;
    append_extension(*list, run.options.root, table, spec.follow_symlinks);
    for (const auto& [field, folder] : pairs_of(spec))
      for (ListedField& listed : list->fields)
        if (listed.field == field) append_field_extension(*list, listed, folder, table, spec.follow_symlinks);
  }
  return make_image_input(run, std::move(*list));
}

ImageInput make_image_input(const ImageRun& run, SampleList list) {
  const PackImagesSpec& spec = run.spec;
  const RootFolder root(run.options.root, spec.follow_symlinks);
  ImageInput input{std::move(list), {}, {}, {}, {}};
  input.first = probe_shape(spec, root, input.list);
  if (!spec.pair.empty()) check_pairs(spec, {root, pair_folders(spec, input.first.sample.pairs)}, input.list);
  input.packs = divide_list(input.list, spec);
  input.notices = all_notices(input.list, spec, input.first);
  std::ranges::move(dark_view_notices(run, input), std::back_inserter(input.notices));
  std::ranges::move(split_notices(input.list, spec, input.packs), std::back_inserter(input.notices));
  input.labels = summarize_labels(input.list);
  return input;
}

void count_part_samples(ImageRun& run, const SampleList& list) {
  PackImagesSpec& spec = run.spec;
  if (spec.sizes == Sizes::fixed || spec.own_sizes.part_samples > 0) return;
  // A power of two, so that a few files that change nearly always leave the pack the same.
  const std::uint64_t image_bytes = std::bit_ceil(expected_image_bytes(run, list));
  spec.own_sizes.part_samples = std::max<std::uint64_t>(1, spec.part_bytes / image_bytes);
}

/// Photographs have half a byte a pixel as files, a fifth of one when they are encoded again.
std::uint64_t expected_image_bytes(const ImageRun& run, const SampleList& list) {
  constexpr double kPixelsOfFileByte = 2, kEncodedBytesOfPixel = 0.2, kAspect = 4. / 3;
  const OwnSizesSpec& own = run.spec.own_sizes;
  const auto file_bytes = static_cast<double>(mean_file_bytes(run, list));
  const double pixels = file_bytes * kPixelsOfFileByte;
  const double limit = own.max_side > 0     ? own.max_side * (own.max_side / kAspect)
                       : own.short_side > 0 ? own.short_side * (own.short_side * kAspect)
                                            : pixels;
  const double channels = run.spec.transform.channels == Channels::gray ? 1 : 3;
  const double bytes = own.store != SizedStore::jpeg ? std::min(pixels, limit) * channels
                       : limit < pixels              ? limit * kEncodedBytesOfPixel
                                                     : file_bytes;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(bytes));
}

ChunkPlan largest_chunks(const PackImagesSpec& spec, const ImageInput& input) {
  ChunkPlan largest;
  for (const PackSamples& samples : input.packs) {
    const ChunkPlan plan = plan_pack(spec, input.first.sample, samples.indices.size());
    if (plan.chunk_bytes > largest.chunk_bytes) largest = plan;
  }
  return largest;
}

std::vector<std::string> check_outputs(const ImageRun& run, const ImageInput& input) {
  const PackImagesOptions& options = run.options;
  for (const PackSamples& samples : input.packs)
    OutputPack::check(kImagePacks, pack_path(options.output, samples.name), options.force);
  check_plan(run, input);
  return find_stale_shares(options, input);
}

}  // namespace chunkhit
