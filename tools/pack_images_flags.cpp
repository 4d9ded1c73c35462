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
  app.add_option("ROOT", flags.options.root, "Root folder of the images (the folder of --labels)")
      ->option_text(" ");
  FlagGroup group(app, "Input");
  group.add("--labels", "FILE.csv", flags.spec.labels,
            "CSV of files and labels, - for stdin (none: first folder is the class)");
  group.add("--file-column", "NAME", columns.file_column,
            "CSV column of the file paths, relative to ROOT (file)");
  group
      .add("--label-column", "NAME", columns.label_columns,
           "CSV column of the labels; repeat it for float labels (label)")
      ->default_str(columns.label_columns[0])  // a recipe would hold "[label]" else
      ->allow_extra_args(false);               // and it would swallow ROOT
  group.add("--classes", "FILE|PACK", flags.spec.classes,
            "Take class ids from a list (one name per line) or a pack");
  group
      .add("--classes-extra", "WORD", flags.classes_extra,
           "Classes of images that --classes lacks: error, append (error)")
      ->check(one_of(kClassesExtraNames));
  group
      .add("--include", "GLOB", flags.spec.folders.include,
           "Without --labels: pack only file names that match (all images)")
      ->default_str("")
      ->delimiter(',')
      ->allow_extra_args(false);
  group.add_switch("--follow-symlinks", flags.spec.follow_symlinks,
                   "Follow links to folders and out of ROOT (DVC, git-annex, Hugging Face)");
  group.add("--delimiter", "CHAR", flags.delimiter, "Field delimiter (comma or tab, detected)");
  group.add("--exif", "WORD", flags.exif, "Orientation of EXIF: apply, ignore (apply)")
      ->check(one_of(kExifNames));
  group
      .add("--decode", "WORD", flags.decode, "exact: as Pillow; fast: JPEG is scaled while decoding (exact)")
      ->check(CLI::IsMember(Names{"exact", "fast"}));
  group
      .add("--check", "WORD", flags.check,
           "Decode whole: all of the file; region: JPEG to the last row used (whole)")
      ->check(one_of(kCheckNames));
  group.add_switch("--accept-warnings", flags.spec.accept_warnings,
                   "Accept images that decode with warnings (not PNG)");
  group.add("--max-seconds-per-image", "N", flags.max_seconds_per_image,
            "CPU time limit for decoding; 0: none (10)");
  group.add("--max-pixels", "N", flags.max_pixels, "Reject images of more pixels (256M)");
  group.add("--max-input-bytes", "SIZE", flags.max_input_bytes, "Reject larger files (256M)");
  group.add("--max-decode-bytes", "SIZE", flags.max_decode_bytes,
            "Reject images that need more memory to decode (1G)");
}

void add_sample_flags(CLI::App& app, PackImagesFlags& flags) {
  FlagGroup group(app, "Samples");
  group.add("--resize", "WxH|N", flags.resize, "Resize to WxH, or the short side to N");
  group.add("--resize-long", "N", flags.resize_long, "Resize the long side to N");
  group.add("--fit", "WxH", flags.fit, "Resize to fit into WxH, pad with --pad-color");
  group.add("--pad-color", "COLOR", flags.pad_color, "Padding: black, white, #rrggbb or r,g,b (black)");
  group
      .add("--resample", "NAME", flags.resample,
           "Resample filter: (bilinear), bicubic, lanczos, box, hamming, nearest")
      ->check(one_of(kFilterNames));
  group.add("--crop", "WxH|N", flags.crop, "Center crop; N: NxN");
  group.add("--channels", "NAME", flags.channels, "rgb, gray, rgba, keep (rgb)")
      ->check(one_of(kChannelsNames));
}

void add_output_flags(CLI::App& app, PackImagesFlags& flags) {
  PackImagesSpec& spec = flags.spec;
  FlagGroup group(app, "Output");
  group.add("-o,--output", "FOLDER", flags.options.output,
            "Output folder (with a split: one subfolder per pack)");
  group.add("--container", "NAME", spec.container, "File format: hdf5, shard (hdf5)")
      ->check(CLI::IsMember(container_names()));
  group.add("--layout", "NAME", flags.layout, "Axis order of samples: nhwc, nchw (nhwc)")
      ->check(one_of(kLayoutNames));
  group.add("--codec", "NAME[:N]", spec.codec,
            "Lossless. hdf5: (none), deflate, zstd; shard: (photo: rgb), zstd, none");
  group.add("--chunk-samples", "N", flags.chunk_samples, "Samples per chunk (auto)");
  group.add("--chunk-bytes", "SIZE", flags.chunk_bytes, "Maximum raw bytes per chunk (auto)");
  group.add("--part-bytes", "SIZE", flags.part_bytes, "Maximum raw bytes per part (1G)");
  group.add("--order", "WORD", flags.order, "Order of samples: shuffle, input (shuffle)")
      ->check(one_of(kOrderNames));
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
      ->check(CLI::IsMember(Names{"skip", "fail"}));
  group.add("--max-errors", "N|N%", flags.max_errors, "Maximum number or share of rejects (1%, at least 1)");
  group
      .add("--on-io-error", "WORD", flags.on_io_error,
           "Read errors: retry, then stop with exit code 75; or reject (retry)")
      ->check(CLI::IsMember(Names{"retry", "reject"}));
  group.add_switch("--trust-inputs", flags.options.trust_inputs,
                   "Resume without checking whether inputs changed");
  group.add("--threads", "N", flags.threads, "Worker threads (all available CPUs)");
  group.add("--memory", "SIZE", flags.memory, "Memory limit of the process (2G)");
  group.add("--progress", "WORD", flags.progress, "Progress output: auto, json, none (auto)")
      ->check(CLI::IsMember(Names{"auto", "json", "none"}));
  group.add_switch("--dry-run", flags.dry_run, "Report what would be packed, write nothing")
      ->configurable(false);
  // A recipe must not remove what somebody else packed.
  group.add_switch("--force", flags.options.force, "Overwrite the pack in --output")->configurable(false);
  add_config_flag(app, "Run");
  group
      .add("--save-config", "FILE", flags.save_config, "Write all options, defaults included, to a TOML file")
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
