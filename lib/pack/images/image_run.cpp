#include "pack/images/image_run.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text_stream.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "listing/class_folders.h"
#include "listing/root_folder.h"
#include "listing/tar_members.h"
#include "pack/images/group_split.h"
#include "pack/images/mask_decoder.h"
#include "pack/images/memory_plan.h"
#include "pack/images/pack_spec.h"
#include "pack/output_pack.h"
#include "pack/run_fields.h"
#include "store/part_index.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

constexpr std::string_view kStdin = "-";

/// Whether a regular file is a tar, plain or compressed.
bool is_tar_file(const std::string& path) {
  if (is_tar(InputFile(path))) return true;
  TextStream stream(path);
  return is_tar(stream.head());
}

/// The files below a root that are named as tars are, by their paths below it; none where it holds an image,
/// or what may be one.
std::vector<std::string> tar_names(const std::string& root, bool follow_symlinks) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {".tar", ".tgz", ".gz", ".zst", ".txz", ".xz", ".tbz", ".tbz2", ".bz2"});
  const auto follow =
      follow_symlinks ? fs::directory_options::follow_directory_symlink : fs::directory_options::none;
  std::vector<std::string> tars;
  std::error_code error;
  fs::recursive_directory_iterator entries(root, follow, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (name.starts_with('.')) entries.disable_recursion_pending();
    if (name.starts_with('.') || is_folder(entries->path().string())) continue;
    const std::string kind = evident_kind(name);
    if (kind.empty()) return {};
    if (std::ranges::find(kNames, kind) != kNames.end())
      tars.push_back(entries->path().lexically_relative(root).string());
  }
  if (error) throw_failed_read(root, "cannot be listed: ", error.value());
  return tars;
}

/// Checks archives; returns the folder that all are in.
std::string folder_of_all(const std::vector<std::string>& inputs) {
  std::vector<std::string> paths;
  for (const std::string& input : inputs) {
    std::error_code error;
    if (is_folder(input))
      throw_usage("`root`: expected one folder, or archives alone; found the folder " + input + " among " +
                  count_text(inputs.size(), "input"));
    if (input != kStdin && !fs::exists(input, error)) throw_bad_data(input + ": no such file or folder");
    paths.push_back(fs::absolute(input).lexically_normal().string());
  }
  std::ranges::sort(paths);
  const auto twice = std::ranges::adjacent_find(paths);
  if (twice != paths.end()) throw_usage("`root`: " + *twice + " is given twice");
  paths.push_back(fs::path(paths.front()).parent_path().string());
  return common_folder(paths);
}

/// The files that a pattern of the shell names, for it stands in quotes or comes from no shell; other inputs
/// as they are.
std::vector<std::string> expand_pattern(const std::string& input) {
  std::error_code error;
  if (input == kStdin || input.find_first_of("*?[") == std::string::npos || fs::exists(input, error))
    return {input};
  glob_t found{};
  const int result = ::glob(input.c_str(), 0, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + (result == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  if (files.empty()) throw_bad_data(input + ": no such file or folder, and none has a name of this pattern");
  return files;
}

/// Sets the root: the folder of images, or that of all archives, which are returned.
std::vector<std::string> take_inputs(PackImagesOptions& options) {
  if (!options.root.empty() && !options.inputs.empty()) throw_usage("`root` and `inputs` exclude each other");
  if (!options.root.empty()) options.inputs = {std::exchange(options.root, "")};
  std::vector<std::string> inputs;
  for (const std::string& input : std::exchange(options.inputs, {}))
    for (std::string& file : expand_pattern(input)) inputs.push_back(std::move(file));
  const bool is_one = inputs.size() == 1 && inputs[0] != kStdin;
  std::error_code error;
  if (is_one && (is_folder(inputs[0]) || !fs::exists(inputs[0], error)))
    options.root = std::exchange(inputs, {})[0];
  if (!inputs.empty()) options.root = folder_of_all(inputs);
  return inputs;
}

/// The tars below a root that holds no images, sorted by their paths; else none. Throws bad_data for a link
/// that leads out of the root.
std::vector<std::string> find_tars(const PackImagesSpec& spec, const std::string& root) {
  std::vector<std::string> tars;
  if (!is_folder(root)) return tars;
  const RootFolder folder(root, spec.follow_symlinks);
  for (const std::string& tar : tar_names(root, spec.follow_symlinks)) {
    const std::string path = (fs::path(root) / tar).string();
    if (const FileError error = folder.open(tar).error)
      throw_bad_data(path + ": " + error.reason() +
                     (spec.follow_symlinks ? "" : "; `follow_symlinks` follows links"));
    if (is_tar_file(path)) tars.push_back(path);
  }
  std::ranges::sort(tars);
  return tars;
}

/// An output below the root would be a class of the next run.
void check_outside_root(const PackImagesOptions& options) {
  std::error_code error;
  const auto root = fs::weakly_canonical(options.root, error);
  const auto output = fs::weakly_canonical(options.output, error);
  if (std::mismatch(root.begin(), root.end(), output.begin(), output.end()).first == root.end())
    throw_usage("`output`: " + options.output + " lies in " + options.root +
                ", whose sub-folders are the classes; choose a folder outside");
}

/// Throws usage for columns where class folders have the labels.
void check_folder_columns(const PackImagesSpec& spec, const std::string& root) {
  if (!is_folder(root)) return;  // a missing tar, say: opening it fails
  if (!spec.columns.mask_column.empty())
    throw_usage(
        "`mask_column`: is for a CSV or for tars, found class folders: give the CSV with `labels`; masks of "
        "the images' names are found by `pair` alone");
  const LabelCsvSpec plain;
  const LabelType type = spec.columns.label_type;
  const bool has_type = type != plain.label_type && type != LabelType::none;
  const char* given = spec.columns.label_column != plain.label_column ? "`label_column`"
                      : !spec.columns.keep_columns.empty()            ? "`keep_columns`"
                      : has_type                                      ? "`label_type`"
                      : !spec.columns.label_separator.empty()         ? "`label_separator`"
                      : spec.columns.missing != plain.missing         ? "`missing`"
                                                                      : nullptr;
  constexpr const char* kAdvice =
      ": is for a CSV or for .json files in tars, found class folders: give the CSV with `labels`";
  if (given != nullptr) throw_usage(given + std::string(kAdvice));
}

/// Checks the spec and the output, where no root is looked into. Throws usage.
PackImagesOptions checked_output(const PackImagesSpec& spec, PackImagesOptions options, bool is_preview) {
  const std::string& sheet = options.sheet;
  if (!is_preview && !sheet.empty())
    throw_usage("`sheet`: found " + sheet + " without `dry_run`, which alone writes it");
  if (!sheet.empty() && !sheet.ends_with(".png") && !sheet.ends_with(".PNG"))
    throw_usage("`sheet`: found " + sheet + ", expected a name that ends in .png: it is a PNG");
  check_spec(spec);
  check_error_limit(options, "bad images");
  if (options.output.empty()) throw_usage("`output` is required: a folder for the pack");
  while (options.output.size() > 1 && options.output.ends_with('/')) options.output.pop_back();
  check_outside_packs(options.output);
  return options;
}

/// Detects the source of the images, which are in `archives` or below the root.
ImageSource find_source(const PackImagesSpec& spec, const PackImagesOptions& options,
                        std::vector<std::string> archives) {
  const bool has_labels = !spec.labels.empty();
  if (archives.empty() && has_labels) return CsvSource{};
  if (archives.empty()) {
    check_outside_root(options);
    archives = find_tars(spec, options.root);
  }
  if (archives.empty()) {
    check_folder_columns(spec, options.root);
    return FolderSource{};
  }
  std::error_code error;
  if (!has_labels || !fs::is_regular_file(archives[0], error) || is_tar_file(archives[0]))
    return TarSource{std::move(archives), has_labels};
  if (spec.columns.label_type == LabelType::none)
    throw_usage("`label_type` none: excludes `labels` of an IDX file, which holds nothing but labels");
  if (archives.size() > 1)
    throw_usage("`labels`: belongs to one IDX file, found " + count_text(archives.size(), "input"));
  return IdxSource{archives[0]};
}

/// Throws usage for the padding of masks that samples do not have.
void check_mask_pad(const PackImagesSpec& spec, const std::vector<FieldPlace>& pairs) {
  const auto is_mask = [](const FieldPlace& pair) { return pair.field.role == FieldRole::mask; };
  if (spec.mask_pad != 0 && std::ranges::none_of(pairs, is_mask))
    throw_usage("`mask_pad`: is for masks, which `pair` or `mask_column` names");
}

/// Checks where the masks lie: files of a folder, or members of the tars.
void find_masks(ImageRun& run) {
  PackImagesSpec& spec = run.spec;
  const std::vector<FieldPlace> columns = field_columns(spec.columns);
  const bool are_files =
      std::holds_alternative<FolderSource>(run.source) || std::holds_alternative<CsvSource>(run.source);
  if (!are_files && !spec.pair.empty())
    throw_usage(columns.empty() ? "`pair`: is for images that are files of a folder, not parts of archives; "
                                  "`mask_column` seg.png takes masks that are members of tars"
                                : "`pair`: `mask_column` names masks that are members of the tars; leave out "
                                  "one of them");
  if (columns.empty()) return check_mask_pad(spec, pairs_of(spec));
  // Those of columns in their order, then those of folders alone.
  std::vector<FieldPlace> given = pairs_of(spec), pairs;
  for (const auto& [field, column] : columns) {
    const auto pair =
        std::ranges::find(given, field.name, [](const FieldPlace& at) { return at.field.name; });
    if (pair != given.end() && pair->field.role != field.role)
      throw_usage("`mask_column` " + column + ": " + field.name + " is a " + traits_of(field.role).name +
                  " here, and a " + traits_of(pair->field.role).name + " by `pair`");
    pairs.push_back({field, pair == given.end() ? run.options.root : pair->place});
    if (pair != given.end()) given.erase(pair);
  }
  pairs.insert(pairs.end(), given.begin(), given.end());
  check_mask_pad(spec, pairs);
  std::vector<SampleField> fields(pairs.size());
  std::ranges::transform(pairs, fields.begin(), &FieldPlace::field);
  check_fields(spec, fields);
  if (are_files) spec.pair = field_texts(pairs);
  // Kept, so that the list of the pack and its rejects name the masks, too.
  std::vector<std::string>& kept = spec.columns.keep_columns;
  for (const auto& [field, column] : columns)
    if (!spec.labels.empty() && kept.size() < kMaxKeptColumns && is_column_name(column))
      if (std::ranges::find(kept, column) == kept.end()) kept.push_back(column);
}

}  // namespace

ImageRun checked_run(const PackImagesSpec& spec, PackImagesOptions options, bool is_preview) {
  check_spec(spec);
  for (const std::string& input : options.inputs) check_local_input("`root`", input);
  check_local_input("`root`", options.root);
  check_local_input("`labels`", spec.labels);
  for (const FieldPlace& pair : pairs_of(spec)) check_local_input("`pair`", pair.place);
  std::vector<std::string> archives = take_inputs(options);
  if (options.root.empty()) {
    if (spec.labels.empty()) throw_usage("`root` is required: the folder of the images, or archives");
    const std::size_t slash = spec.labels.rfind('/');
    options.root = spec.labels == "-" || slash == std::string::npos ? "." : spec.labels.substr(0, slash + 1);
  }
  options = checked_output(spec, std::move(options), is_preview);
  ImageSource source = find_source(spec, options, std::move(archives));
  ImageRun run{spec, std::move(options), std::move(source)};
  keep_split_column(run.spec);
  find_masks(run);
  return run;
}

PackImagesOptions checked_writer_options(const PackImagesSpec& spec, PackImagesOptions given) {
  PackImagesOptions options = checked_output(spec, std::move(given), false);
  check_memory(spec, options);
  options.root = "/";  // samples are not looked for below it
  if (spec.split.empty()) OutputPack::check(kImagePacks, options.output, options.force);
  for (const SplitShare& share : spec.split)
    OutputPack::check(kImagePacks, pack_path(options.output, share.name), options.force);
  return options;
}

}  // namespace chunkhit
