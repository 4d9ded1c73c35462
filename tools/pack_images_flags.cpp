#include "pack_images_flags.h"

#include "cli.h"
#include "flag_group.h"
#include "store/part.h"

namespace chunkhit {
namespace {

using Names = std::vector<std::string>;

Names container_names() {
  Names names;
  for (const Container& container : containers()) names.emplace_back(container.name);
  return names;
}

void add_input_flags(CLI::App& app, PackImagesFlags& flags) {
  LabelCsvSpec& columns = flags.spec.columns;
  app.add_option("ROOT", flags.options.root, "Folder of the pictures (the folder of --labels)")
      ->option_text(" ");
  FlagGroup group(app, "Input");
  group.add("--labels", "FILE.csv", flags.spec.labels,
            "Files and labels; - for stdin (class = first folder)");
  group.add("--file-column", "NAME", columns.file_column, "Column of the files, relative to ROOT (file)");
  group
      .add("--label-column", "NAME", columns.label_columns,
           "Column of the labels; given several times: floats (label)")
      ->default_str(columns.label_columns[0])  // a recipe would hold "[label]" else
      ->allow_extra_args(false);               // and it would swallow ROOT
  group.add("--classes", "FILE|PACK", flags.spec.classes,
            "Number classes as this list (a name a line) or pack does");
  group
      .add("--classes-extra", "WORD", flags.classes_extra,
           "error: stop at other classes; append: add them (error)")
      ->check(one_of(kClassesExtraNames));
  group
      .add("--include", "GLOB", flags.spec.folders.include,
           "Class folders: files with such names (all but .txt and the like)")
      ->default_str("")
      ->delimiter(',')
      ->allow_extra_args(false);
  group.add_switch("--follow-symlinks", flags.spec.follow_symlinks,
                   "Also to folders, and out of ROOT (DVC, git-annex, Hugging Face)");
  group.add("--delimiter", "CHAR", flags.delimiter,
            "Between the fields (comma or tab, as the header has it)");
  group.add("--exif", "WORD", flags.exif, "apply: upright pictures; ignore (apply)")
      ->check(one_of(kExifNames));
  group.add("--decode", "WORD", flags.decode, "exact: as Pillow does; fast: JPEG shrinks (exact)")
      ->check(CLI::IsMember(Names{"exact", "fast"}));
  group.add("--check", "WORD", flags.check, "whole: all; region: JPEG to the last row needed (whole)")
      ->check(one_of(kCheckNames));
  group.add_switch("--accept-warnings", flags.spec.accept_warnings,
                   "Pack damaged images (never PNG) as far as they go");
  group.add("--max-seconds-per-image", "N", flags.max_seconds_per_image,
            "CPU time of decoding; 0: no limit (10)");
  group.add("--max-pixels", "N", flags.max_pixels, "Reject larger pictures (256M)");
  group.add("--max-input-bytes", "SIZE", flags.max_input_bytes, "Reject larger files (256M)");
  group.add("--max-decode-bytes", "SIZE", flags.max_decode_bytes, "Reject images that need more memory (1G)");
}

void add_sample_flags(CLI::App& app, PackImagesFlags& flags) {
  FlagGroup group(app, "Samples");
  group.add("--resize", "WxH|N", flags.resize, "To exactly WxH; to N on the short side");
  group.add("--resize-long", "N", flags.resize_long, "To N on the long side");
  group.add("--fit", "WxH", flags.fit, "To fit inside WxH, padded with --pad-color");
  group.add("--pad-color", "COLOR", flags.pad_color, "black, white, #rrggbb or r,g,b (black)");
  group.add("--filter", "NAME", flags.filter, "(bilinear), bicubic, lanczos, box, hamming, nearest")
      ->check(one_of(kFilterNames));
  group.add("--crop", "WxH|N", flags.crop, "Keep the centre; N: a square");
  group.add("--channels", "NAME", flags.channels, "rgb, gray, rgba, keep (rgb)")
      ->check(one_of(kChannelsNames));
}

void add_output_flags(CLI::App& app, PackImagesFlags& flags) {
  PackImagesSpec& spec = flags.spec;
  FlagGroup group(app, "Output");
  group.add("-o,--output", "FOLDER", flags.options.output, "Of the pack, or of the packs of a split");
  group.add("--container", "NAME", spec.container, "hdf5, shard (hdf5)")
      ->check(CLI::IsMember(container_names()));
  group.add("--layout", "NAME", flags.layout, "nhwc, nchw (nhwc)")->check(one_of(kLayoutNames));
  group.add("--compress", "NAME[:N]", spec.compress,
            "(none), deflate, zstd; shard: (photo: rgb), zstd, none");
  group.add("--chunk-samples", "N", flags.chunk_samples, "Samples a chunk (auto)");
  group.add("--chunk-bytes", "SIZE", flags.chunk_bytes, "Raw bytes a chunk, at most (auto)");
  group.add("--part-bytes", "SIZE", flags.part_bytes, "Raw bytes a part, at most (1G)");
  group.add("--order", "WORD", flags.order, "shuffle: by --seed; input: as listed (shuffle)")
      ->check(one_of(kOrderNames));
  group.add("--seed", "N", flags.seed, "Of the order and the split (0)");
  group.add("--split", "SHARES", flags.split, "A pack each, every class divided: train=0.9,val=0.1");
  group
      .add("--split-folders", "NAMES", spec.folders.split_folders,
           "A pack for each of ROOT's folders, of class folders: train,val")
      ->default_str("")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void add_run_flags(CLI::App& app, PackImagesFlags& flags) {
  FlagGroup group(app, "Run");
  group.add("--on-error", "WORD", flags.on_error, "skip: to rejects.csv; fail: stop (skip)")
      ->check(CLI::IsMember(Names{"skip", "fail"}));
  group.add("--max-errors", "N|N%", flags.max_errors, "Stop above this count or share of rejects (1%, or 1)");
  group.add("--on-io-error", "WORD", flags.on_io_error, "retry: then exit 75; reject: as bad images (retry)")
      ->check(CLI::IsMember(Names{"retry", "reject"}));
  group.add_switch("--trust-inputs", flags.options.trust_inputs, "Do not look whether packed files changed");
  group.add("--threads", "N", flags.threads, "At work (all allowed CPUs)");
  group.add("--memory", "SIZE", flags.memory, "What the process may hold (2G)");
  group.add("--progress", "WORD", flags.progress, "auto, json, none (auto)")
      ->check(CLI::IsMember(Names{"auto", "json", "none"}));
  group.add_switch("--dry-run", flags.dry_run, "Say what would be packed, write nothing")
      ->configurable(false);
  // A recipe must not remove what somebody else packed.
  group.add_switch("--force", flags.options.force, "Remove the pack in --output, start afresh")
      ->configurable(false);
  add_config_flag(app, "Run");
  group.add("--save-config", "FILE", flags.save_config, "Write the recipe, defaults included")
      ->configurable(false);
}

}  // namespace

void add_pack_images_flags(CLI::App& app, PackImagesFlags& flags) {
  add_input_flags(app, flags);
  add_sample_flags(app, flags);
  add_output_flags(app, flags);
  add_run_flags(app, flags);
}

}  // namespace chunkhit
