#include "pack_sparse_flags.h"

#include <algorithm>

#include "cli.h"
#include "flag_group.h"
#include "pack/pack_sparse_spec.h"

namespace chunkhit {
namespace {

using Names = std::vector<std::string>;

Names format_names() {
  Names names{"auto"};
  names.insert(names.end(), kRatingFormatNames.begin(), kRatingFormatNames.end());
  return names;
}

void add_input_flags(CLI::App& app, PackSparseFlags& flags) {
  RatingTableSpec& table = flags.spec.input.table;
  app.add_option("INPUT", flags.options.inputs, "Files of ratings, all of one kind; - for stdin")
      ->option_text("...");
  FlagGroup group(app, "Input");
  group
      .add("--format", "WORD", flags.format,
           "(auto), text, user-items, netflix, matrix-market, svmlight, npz, hdf5")
      ->check(CLI::IsMember(format_names()));
  group.add("--delimiter", "TEXT", table.delimiter, "Between fields: , :: tab blanks ... (detected)");
  group.add("--header", "WORD", flags.header, "(auto), yes, no")->check(one_of(kHeaderNames));
  group.add("--user", "NAME|N", table.user, "Column by name or from 1 (usual names are detected)");
  group.add("--item", "NAME|N", table.item, "The same");
  group.add("--value", "NAME|N", table.value, "The same; none: every rating is 1");
  group.add("--time", "NAME|N", table.time, "The same; none");
  group.add("--quote", "WORD", flags.quote, "(auto), none, double: fields may stand in \"\"")
      ->check(one_of(kQuotingNames));
  group.add("--comment", "TEXT", table.comment, "Skip lines that begin so");
  group.add("--decimal", "CHAR", flags.decimal, "Point of values: (.) or ,")
      ->check(CLI::IsMember(Names{".", ","}));
  group
      .add("--values", "WORD", flags.values, "(auto): an error where f32 is another value; f32: the nearest")
      ->check(CLI::IsMember(Names{"auto", "f32"}));
  group.add_switch("--transpose", flags.transpose, "Matrices: rows are items, columns users (detected)");
  group.add_switch("--no-transpose", flags.no_transpose, "Rows are users, whatever lies beside the file");
  group.add("--layer", "NAME", flags.spec.input.layer, "hdf5: a layer, or raw (X)");
  group.add("--index-base", "WORD", flags.index_base, "svmlight: first column is 0, 1 (auto)")
      ->check(CLI::IsMember(Names{"auto", "0", "1"}));
}

void add_rating_flags(CLI::App& app, PackSparseFlags& flags) {
  FlagGroup group(app, "Ratings");
  group.add("--preset", "vae-cf", flags.preset, "Above 3.5 as 1, users with 5, 10,000 held out twice")
      ->check(CLI::IsMember(Names{"", "vae-cf"}));
  group
      .add("--duplicates", "WORD", flags.duplicates,
           "(error), sum, max; last, first: by time where there are times")
      ->check(one_of(kDuplicatesNames));
  group.add("--zeros", "WORD", flags.zeros, "(drop), keep")->check(one_of(kZerosNames));
  group.add("--min-value", "V", flags.min_value, "Keep values >= V");
  group.add("--above", "V", flags.above, "Keep values > V");
  group.add_switch("--binarize", flags.binarize, "Values become 1");
  group.add("--min-user", "N", flags.min_user, "Minimum ratings per user (0)");
  group.add("--min-item", "N", flags.min_item,
            "Minimum ratings per item; with --min-user: repeated until both hold");
  group.add_switch("--filter-once", flags.filter_once, "Apply each filter once: items, then users");
}

void add_files(FlagGroup& group, const std::string& flag, std::vector<std::string>& files,
               const std::string& words) {
  group.add(flag, "FILE", files, words)->default_str("")->allow_extra_args(false);
}

void add_split_flags(CLI::App& app, PackSparseFlags& flags) {
  RatingSplitSpec& split = flags.spec.packs.split;
  FlagGroup group(app, "Split");
  group.add("--split", "WORD", flags.split, "A pack each: users, ratio, leave-one-out, time, given (none)")
      ->check(one_of(kSplitKindNames));
  group.add("--validation", "N|SHARE", flags.validation, "Held-out users, or share of ratings");
  group.add("--test", "N|SHARE", flags.test, "The same");
  group.add("--fold-in", "SHARE", flags.fold_in, "users: of the items, given (0.8)");
  group
      .add("--split-order", "WORD", flags.split_order,
           "ratio: (random); leave-one-out: (time); or input; auto: these")
      ->check(one_of(kSplitOrderNames));
  group.add("--before", "TIME", flags.before, "time: the test begins then; a number or YYYY-MM-DD");
  group.add("--validation-users", "FILE", split.validation_users,
            "users: hold out those of a list, an id a line");
  group.add("--test-users", "FILE", split.test_users, "The same");
  add_files(group, "--train-file", flags.train_files,
            "given: for training, instead of INPUT; may be repeated");
  add_files(group, "--validation-file", flags.validation_files, "given: held-out ratings");
  add_files(group, "--test-file", flags.test_files, "The same");
}

void add_output_flags(CLI::App& app, PackSparseFlags& flags) {
  PackSparseSpec& spec = flags.spec;
  FlagGroup group(app, "Output");
  group.add("-o,--output", "FOLDER", flags.options.output, "Of the pack, or of the packs of --split");
  group.add("--id-order", "WORD", flags.id_order, "Columns: (popularity), first, sorted")
      ->check(one_of(kItemOrderNames));
  group.add("--reuse-ids", "PACK", spec.reuse_ids, "Columns of another pack, or its items.csv");
  group.add("--order", "WORD", flags.order, "Rows: shuffle by --seed; input (shuffle)")
      ->check(one_of(kRowOrderNames));
  group.add("--seed", "N", flags.seed, "Of the order and the split (0)");
  group.add("--container", "NAME", spec.container, "shard, hdf5: AnnData (shard)")
      ->check(CLI::IsMember(Names{"shard", "hdf5"}));
  group.add("--compress", "NAME[:N]", spec.compress, "shard: (zstd), none; hdf5: (deflate), none");
  group.add("--layout", "WORD", flags.layout, "hdf5: (csr), dense")->check(one_of(kMatrixLayoutNames));
  group.add("--chunk-rows", "N", flags.chunk_rows, "shard: rows a block (auto)");
  group.add("--part-bytes", "SIZE", flags.part_bytes, "Raw bytes a part, at most (1G)");
}

void add_run_flags(CLI::App& app, PackSparseFlags& flags) {
  FlagGroup group(app, "Run");
  group.add("--on-error", "WORD", flags.on_error, "Bad lines: (fail), skip")
      ->check(CLI::IsMember(Names{"skip", "fail"}));
  group.add("--max-errors", "N|N%", flags.max_errors, "skip: at most so many bad lines (1%, or 1)");
  group.add("--threads", "N", flags.threads, "At work (all allowed CPUs)");
  group.add("--memory", "SIZE", flags.memory,
            "What the process may hold (2G); ratings spill to disk, ids must fit");
  group.add("--progress", "WORD", flags.progress, "auto, json, none (auto)")
      ->check(CLI::IsMember(Names{"auto", "json", "none"}));
  group.add_switch("--dry-run", flags.dry_run, "Read, say what would be packed, write nothing; -o may lack")
      ->configurable(false);
  // A recipe must not remove what somebody else packed.
  group.add_switch("--force", flags.options.force, "Remove the pack in --output, start afresh")
      ->configurable(false);
  add_config_flag(app, "Run");
  group.add("--save-config", "FILE", flags.save_config, "Write the recipe, defaults included")
      ->configurable(false);
}

}  // namespace

void add_pack_sparse_flags(CLI::App& app, PackSparseFlags& flags) {
  add_input_flags(app, flags);
  add_rating_flags(app, flags);
  add_split_flags(app, flags);
  add_output_flags(app, flags);
  add_run_flags(app, flags);
}

void apply_preset(CLI::App& app, const PackSparseFlags& flags) {
  if (flags.preset.empty()) return;
  const PackSparseSpec plain;
  PackSparseSpec preset = plain;
  preset.packs = vae_cf_spec();
  const std::vector<SpecEntry> defaults = recorded_spec(plain, {}, "");
  for (const SpecEntry& entry : recorded_spec(preset, {}, "")) {
    if (std::ranges::find(defaults, entry) != defaults.end()) continue;
    CLI::Option* option = app.get_option("--" + entry.name);
    const CLI::Option* list = app.get_option_no_throw("--" + entry.name + "-users");
    const bool is_listed = list != nullptr && list->count() > 0;
    if (option->count() == 0 && !is_listed) option->default_val(entry.value);
  }
}

}  // namespace chunkhit
