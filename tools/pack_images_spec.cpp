// What the flags mean, once they are parsed.
#include <tuple>

#include "chunkhit/error.h"
#include "chunkhit/version.h"
#include "cli.h"
#include "flag_values.h"
#include "pack_images_flags.h"

namespace chunkhit {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::usage, message); }

void set_resize(const PackImagesFlags& flags, TransformSpec& transform) {
  const int ways =
      (flags.resize.empty() ? 0 : 1) + (flags.resize_long.empty() ? 0 : 1) + (flags.fit.empty() ? 0 : 1);
  if (ways > 1) refuse("--resize, --resize-long and --fit exclude each other");
  if (!flags.fit.empty()) {
    transform.resize = Resize::fit;
    std::tie(transform.resize_width, transform.resize_height) = parse_size("--fit", flags.fit);
  } else if (!flags.resize_long.empty()) {
    transform.resize = Resize::long_side;
    transform.resize_width = parse_side("--resize-long", flags.resize_long);
  } else if (flags.resize.find_first_not_of("0123456789x") != std::string::npos) {
    refuse("--resize: expected WxH or N, found '" + flags.resize + "'");
  } else if (flags.resize.find('x') != std::string::npos) {
    transform.resize = Resize::exact;
    std::tie(transform.resize_width, transform.resize_height) = parse_size("--resize", flags.resize);
  } else if (!flags.resize.empty()) {
    transform.resize = Resize::short_side;
    transform.resize_width = parse_side("--resize", flags.resize);
  }
}

TransformSpec transform_spec(const PackImagesFlags& flags) {
  TransformSpec transform;
  set_resize(flags, transform);
  if (!flags.crop.empty())
    std::tie(transform.crop_width, transform.crop_height) = parse_crop("--crop", flags.crop);
  transform.pad_color = parse_color("--pad-color", flags.pad_color);
  transform.resample = parse_choice<Filter>(kFilterNames, flags.resample);
  transform.channels = parse_choice<Channels>(kChannelsNames, flags.channels);
  transform.layout = parse_choice<Layout>(kLayoutNames, flags.layout);
  transform.fast_decode = flags.decode == "fast";
  return transform;
}

/// ROOT as given, else the folder of the CSV, else here.
std::string root_folder(const PackImagesFlags& flags) {
  const std::string& labels = flags.spec.labels;
  if (!flags.options.root.empty()) return flags.options.root;
  if (labels.empty()) refuse("ROOT is required: the folder of the images; see pack-images --help");
  const std::size_t slash = labels.rfind('/');
  return labels == "-" || slash == std::string::npos ? "." : labels.substr(0, slash + 1);
}

}  // namespace

PackImagesSpec pack_images_spec(const PackImagesFlags& flags) {
  PackImagesSpec spec = flags.spec;
  if (!flags.delimiter.empty()) spec.columns.delimiter = parse_delimiter("--delimiter", flags.delimiter);
  spec.transform = transform_spec(flags);
  spec.exif = parse_choice<Exif>(kExifNames, flags.exif);
  spec.check = parse_choice<Check>(kCheckNames, flags.check);
  spec.max_seconds_per_image = static_cast<std::uint32_t>(
      parse_count("--max-seconds-per-image", flags.max_seconds_per_image, {0, 1'000'000}));
  spec.max_pixels = parse_pixels("--max-pixels", flags.max_pixels);
  spec.max_input_bytes = parse_bytes("--max-input-bytes", flags.max_input_bytes);
  spec.max_decode_bytes = parse_bytes("--max-decode-bytes", flags.max_decode_bytes);
  if (flags.chunk_samples != "auto")
    spec.chunk_samples = parse_count("--chunk-samples", flags.chunk_samples, {.least = 1});
  if (flags.chunk_bytes != "auto") {
    spec.chunk_bytes = parse_bytes("--chunk-bytes", flags.chunk_bytes);
    if (spec.chunk_bytes < 1) refuse("--chunk-bytes: must be at least 1");
  }
  spec.part_bytes = parse_bytes("--part-bytes", flags.part_bytes);
  spec.order = parse_choice<Order>(kOrderNames, flags.order);
  spec.seed = parse_count("--seed", flags.seed, {});
  spec.split = parse_split("--split", flags.split);
  // A recipe has an empty text where nothing is given.
  std::erase(spec.folders.include, "");
  std::erase(spec.folders.split_folders, "");
  spec.classes_extra = parse_choice<ClassesExtra>(kClassesExtraNames, flags.classes_extra);
  return spec;
}

PackImagesOptions pack_images_options(const PackImagesFlags& flags) {
  PackImagesOptions options = flags.options;
  options.root = root_folder(flags);
  if (options.output.empty()) refuse("--output is required: a folder for the pack; see pack-images --help");
  while (options.output.size() > 1 && options.output.ends_with('/')) options.output.pop_back();
  if (flags.threads != "all")
    options.threads = static_cast<std::uint32_t>(parse_count("--threads", flags.threads, {1, 4096}));
  options.memory_bytes = parse_bytes("--memory", flags.memory);
  options.fail_on_error = flags.on_error == "fail";
  options.reject_unreadable = flags.on_io_error == "reject";
  const ErrorLimit limit = parse_error_limit("--max-errors", flags.max_errors);
  options.max_error_share = limit.share;
  options.max_error_count = limit.count;
  options.tool = "pack-images " + version();
  return options;
}

}  // namespace chunkhit
