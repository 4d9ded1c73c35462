#include "pack_images_flags.h"

#include <tuple>

#include "chunkhit/error.h"
#include "cli.h"
#include "decode/image_decoder.h"
#include "pack/images/pack_spec.h"
#include "store/part.h"
#include "transform/transform_plan.h"

namespace chunkhit {
namespace {

using Names = std::vector<std::string>;

Names container_names() {
  Names names{"auto"};
  for (const Container& container : containers()) names.emplace_back(container.name);
  return names;
}

void add_decoding_flags(FlagGroup& group, PackImagesFlags& flags) {
  group.add("--exif", "WORD", flags.exif, "EXIF orientation: apply, ignore (apply)")->check(one_of<Exif>());
  group
      .add("--decode", "WORD", flags.decode,
           "exact: Pillow's pixels; fast: large JPEG files are decoded at a smaller size (exact)")
      ->check(one_of({"exact", "fast"}));
  group
      .add("--check", "WORD", flags.check,
           "How far files are decoded: whole, or region: JPEG to the last row that is used (whole)")
      ->check(one_of<Check>());
  group.add_switch("--accept-warnings", flags.spec.accept_warnings,
                   "Accept images that decode with warnings (not PNG)");
  group.add("--max-seconds-per-image", "N", flags.max_seconds_per_image,
            "CPU time limit for decoding; 0: none (10)");
  group.add("--max-pixels", "N", flags.max_pixels, "Reject images with more pixels (256M)");
  group.add("--max-input-bytes", "SIZE", flags.max_input_bytes, "Reject larger files (256M)");
  group.add("--max-decode-bytes", "SIZE", flags.max_decode_bytes,
            "Reject images that need more memory to decode (1G)");
}

void add_input_flags(CLI::App& app, PackImagesFlags& flags) {
  LabelCsvSpec& columns = flags.spec.columns;
  app.add_option("ROOT", flags.options.inputs,
                 "Root folder of the images (the folder of --labels), or tars of them; - reads stdin")
      ->option_text("...");
  FlagGroup group(app, "Input");
  group.add(
      "--labels", "FILE.csv", flags.spec.labels,
      "CSV of files and labels, - for stdin (none: first folder is the class); of an IDX file, its labels");
  group.add("--file-column", "NAME", columns.file_column, "CSV column of the file paths, below ROOT (file)");
  group
      .add("--label-column", "NAME", columns.label_columns,
           "CSV column, or key of a tar's .json, of the labels; several of this flag make float labels "
           "(label)")
      ->default_str(columns.label_columns[0])  // a recipe would hold "[label]" else
      ->allow_extra_args(false);               // and it would swallow ROOT
  group
      .add("--label-type", "WORD", flags.label_type,
           "Labels of one column: auto: whole numbers are class ids; classes, numbers (auto)")
      ->check(one_of<LabelType>());
  group
      .add("--keep-columns", "NAMES", columns.keep_columns,
           "Further CSV columns, or keys of a tar's .json, to store beside the labels: a,b (none)")
      ->default_str("")
      ->delimiter(',')
      ->allow_extra_args(false);
  group.add("--classes", "FILE|PACK", flags.spec.classes,
            "Take class ids from a list (one name per line) or a pack");
  group
      .add("--classes-extra", "WORD", flags.classes_extra,
           "A class that --classes lacks is an error, or is added at the end: error, append (error)")
      ->check(one_of<ClassesExtra>());
  group
      .add("--include", "GLOB", flags.spec.folders.include,
           "Without --labels: pack only files whose names match (all images)")
      ->default_str("")
      ->delimiter(',')
      ->allow_extra_args(false);
  group.add_switch("--follow-symlinks", flags.spec.follow_symlinks,
                   "Follow links to folders and out of ROOT (DVC, git-annex, Hugging Face)");
  group.add("--delimiter", "CHAR", flags.delimiter, "Field delimiter (comma or tab, detected)");
  add_decoding_flags(group, flags);
}

void add_sample_flags(CLI::App& app, PackImagesFlags& flags) {
  FlagGroup group(app, "Samples");
  group.add("--resize", "WxH|N", flags.resize, "Resize to WxH, or the short side to N");
  group.add("--resize-long", "N", flags.resize_long, "Resize the long side to N");
  group.add("--fit", "WxH|N", flags.fit, "Resize to fit into WxH (N: NxN), pad with --pad-color");
  group.add("--pad-color", "COLOR", flags.pad_color, "Padding: black, white, #rrggbb or r,g,b (black)");
  group
      .add("--resample", "NAME", flags.resample,
           "Resample filter: (bilinear), bicubic, lanczos, box, hamming, nearest")
      ->check(one_of<Filter>());
  group.add("--crop", "WxH|N", flags.crop, "Center crop; N: NxN");
  group.add("--channels", "NAME", flags.channels, "rgb, gray, rgba, keep (rgb)")->check(one_of<Channels>());
  group.add("--background", "COLOR", flags.background,
            "Color behind transparent pixels, as --pad-color (none: alpha is dropped)");
}

void add_own_sizes_flags(CLI::App& app, PackImagesFlags& flags) {
  FlagGroup group(app, "Images of their own sizes");
  group.add("--sizes", "WORD", flags.sizes, "fixed: one shape; own: each image its own size (fixed)")
      ->check(one_of<Sizes>());
  group.add("--max-side", "N", flags.max_side, "Shrink images to a long side of at most N pixels");
  group.add("--short-side", "N", flags.short_side, "Shrink images to a short side of at most N pixels");
  group
      .add("--store", "WORD", flags.store,
           "jpeg: JPEG files without loss, shrunk ones encoded again; photo, zstd: pixels, compressed "
           "without loss, photo for photos; raw: pixels (jpeg)")
      ->check(one_of<Store>());
  group
      .add("--others", "WORD", flags.others,
           "With --store jpeg, files of other types: lossless (as photo does), or encoded as jpeg (lossless)")
      ->check(one_of<Others>());
  group.add("--quality", "N", flags.quality, "Quality of JPEG that is encoded, 1 to 100 (90)");
  group.add("--jpeg-tile", "N", flags.jpeg_tile,
            "MCUs (units of 8x8 or 16x16 pixels) in a tile; a crop decodes only its tiles; 0: keep files' "
            "bytes (4)");
  group.add("--part-samples", "N", flags.part_samples, "Images per part (auto: --part-bytes decides)");
}

void add_output_flags(CLI::App& app, PackImagesFlags& flags) {
  PackImagesSpec& spec = flags.spec;
  FlagGroup group(app, "Output");
  group.add("-o,--output", "FOLDER", flags.options.output,
            "Output folder (with a split: one subfolder per pack)");
  group.add("--container", "NAME", flags.container, "File format: hdf5, shard (hdf5; with own sizes shard)")
      ->check(one_of(container_names()));
  group.add("--layout", "NAME", flags.layout, "Axis order of samples: nhwc, nchw (nhwc)")
      ->check(one_of<Layout>());
  group.add("--codec", "NAME[:N]", spec.codec,
            "Lossless compression. hdf5: (none), deflate, zstd; shard: photo (auto: rgb), zstd (auto: "
            "others), none");
  group.add("--chunk-samples", "N", flags.chunk_samples, "Samples per chunk (auto)");
  group.add("--chunk-bytes", "SIZE", flags.chunk_bytes, "Maximum raw bytes per chunk (auto)");
  group.add("--part-bytes", "SIZE", flags.part_bytes, "Maximum raw bytes per part, at least one chunk (1G)");
  group.add("--order", "WORD", flags.order, "Order of samples: shuffle, input (shuffle)")
      ->check(one_of<Order>());
  group.add("--seed", "N", flags.seed, "Seed of the shuffle and the split (0)");
  group.add("--split", "SHARES", flags.split, "Stratified split into packs: train=0.9,val=0.1");
  group
      .add("--split-folders", "NAMES", spec.folders.split_folders,
           "One pack per named subfolder of ROOT, e.g. train,val")
      ->default_str("")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void add_run_flags(CLI::App& app, PackImagesFlags& flags) {
  FlagGroup group(app, "Run");
  group.add("--on-error", "WORD", flags.on_error, "Bad images: skip (listed in rejects.csv), fail (skip)")
      ->check(one_of<OnError>());
  group.add("--max-errors", "N|N%", flags.max_errors,
            "Maximum number or share of rejects (1%, at least 1 where there are several images)");
  group
      .add("--on-io-error", "WORD", flags.on_io_error,
           "Read errors: retry, then exit code 75; or reject the file (retry)")
      ->check(one_of<OnIoError>());
  group.add_switch("--trust-inputs", flags.options.trust_inputs,
                   "Resume without checking whether inputs changed");
  group.add("--threads", "N", flags.threads, "Worker threads (all available CPUs)");
  group.add("--memory", "SIZE", flags.memory, "Memory limit of the process (2G)");
  group.add("--progress", "WORD", flags.progress, "Progress output: auto, json, none (auto)")
      ->check(one_of({"auto", "json", "none"}));
  group
      .add("--plan", "TASKS", flags.plan,
           "Instead of packing, write a plan for pack-run, of at most TASKS tasks")
      ->configurable(false);
  group.add_switch("--dry-run", flags.dry_run, "Report what would be packed, write nothing")
      ->configurable(false);
  group
      .add("--sheet", "FILE.png", flags.options.sheet,
           "With --dry-run: draw 16 images before and after into this PNG")
      ->default_str("")
      ->configurable(false);
  // A recipe must not remove another user's pack.
  group.add_switch("--force", flags.options.force, "Delete the pack in --output first")->configurable(false);
  add_config_flag(app, "Run");
  group
      .add("--save-config", "FILE", flags.save_config, "Write all options, defaults included, to a TOML file")
      ->configurable(false);
}

}  // namespace

void add_pack_images_flags(CLI::App& app, PackImagesFlags& flags) {
  add_input_flags(app, flags);
  add_sample_flags(app, flags);
  add_own_sizes_flags(app, flags);
  add_output_flags(app, flags);
  add_run_flags(app, flags);
}

// What the flags mean, once they are parsed.

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
  } else if (flags.resize.find('x') != std::string::npos) {
    transform.resize = Resize::exact;
    std::tie(transform.resize_width, transform.resize_height) = parse_size("--resize", flags.resize);
  } else if (!flags.resize.empty()) {
    transform.resize = Resize::short_side;
    transform.resize_width = parse_size("--resize", flags.resize).first;
  }
}

TransformSpec transform_spec(const PackImagesFlags& flags) {
  TransformSpec transform;
  set_resize(flags, transform);
  if (!flags.crop.empty())
    std::tie(transform.crop_width, transform.crop_height) = parse_size("--crop", flags.crop);
  transform.pad_color = parse_color("--pad-color", flags.pad_color);
  if (!flags.background.empty()) transform.background = parse_color("--background", flags.background);
  transform.resample = parse_choice<Filter>(flags.resample);
  transform.channels = parse_choice<Channels>(flags.channels);
  transform.layout = parse_choice<Layout>(flags.layout);
  transform.fast_decode = flags.decode == "fast";
  return transform;
}

void set_own_sizes(const PackImagesFlags& flags, PackImagesSpec& spec) {
  OwnSizesSpec& own = spec.own_sizes;
  spec.sizes = parse_choice<Sizes>(flags.sizes);
  if (!flags.max_side.empty()) own.max_side = parse_side("--max-side", flags.max_side);
  if (!flags.short_side.empty()) own.short_side = parse_side("--short-side", flags.short_side);
  own.store = parse_choice<Store>(flags.store);
  own.others = parse_choice<Others>(flags.others);
  own.quality = static_cast<std::uint32_t>(parse_count("--quality", flags.quality, {1, 100}));
  own.jpeg_tile = static_cast<std::uint32_t>(parse_count("--jpeg-tile", flags.jpeg_tile, {0, 8192}));
  if (flags.part_samples != "auto")
    own.part_samples = parse_count("--part-samples", flags.part_samples, {.least = 1});
  spec.container = flags.container != "auto" ? flags.container : spec.sizes == Sizes::own ? "shard" : "hdf5";
}

}  // namespace

PackImagesSpec pack_images_spec(const PackImagesFlags& flags) {
  PackImagesSpec spec = flags.spec;
  if (!flags.delimiter.empty()) spec.columns.delimiter = parse_delimiter("--delimiter", flags.delimiter);
  spec.transform = transform_spec(flags);
  set_own_sizes(flags, spec);
  spec.exif = parse_choice<Exif>(flags.exif);
  spec.check = parse_choice<Check>(flags.check);
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
  spec.order = parse_choice<Order>(flags.order);
  spec.seed = parse_count("--seed", flags.seed, {});
  spec.split = parse_split("--split", flags.split);
  // A recipe has an empty text where nothing is given.
  std::erase(spec.folders.include, "");
  std::erase(spec.columns.keep_columns, "");
  std::erase(spec.folders.split_folders, "");
  spec.columns.label_type = parse_choice<LabelType>(flags.label_type);
  spec.classes_extra = parse_choice<ClassesExtra>(flags.classes_extra);
  return spec;
}

PackImagesOptions pack_images_options(const PackImagesFlags& flags) {
  PackImagesOptions options = flags.options;
  std::erase(options.inputs, "");  // of a recipe without inputs
  if (flags.threads != "all")
    options.threads = static_cast<std::uint32_t>(parse_count("--threads", flags.threads, {1, 4096}));
  options.memory_bytes = parse_bytes("--memory", flags.memory);
  options.on_error = parse_choice<OnError>(flags.on_error);
  options.on_io_error = parse_choice<OnIoError>(flags.on_io_error);
  options.max_errors = parse_error_limit("--max-errors", flags.max_errors);
  return options;
}

}  // namespace chunkhit
