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
  app.add_option("INPUT", flags.options.inputs, "Rating files, all of one format; - reads stdin")
      ->option_text("...");
  FlagGroup group(app, "Input");
  group
      .add("--format", "WORD", flags.format,
           "(auto), text, user-items, netflix, matrix-market, svmlight, npz, hdf5")
      ->check(CLI::IsMember(format_names()));
  group.add("--delimiter", "TEXT", table.delimiter, "Field delimiter: , :: tab blanks ... (detected)");
  group.add("--header", "WORD", flags.header, "Whether the first line is a header: (auto), yes, no")
      ->check(one_of(kHeaderNames));
  group.add("--user", "NAME|N", table.user, "User column: a name, or a number from 1 (detected)");
  group.add("--item", "NAME|N", table.item, "Item column");
  group.add("--value", "NAME|N", table.value, "Value column; none: implicit feedback, every rating is 1");
  group.add("--time", "NAME|N", table.time, "Time column; none: ignore times");
  group.add("--quote", "WORD", flags.quote, "Quoting of fields: (auto), none, double: \"...\"")
      ->check(one_of(kQuotingNames));
  group.add("--comment", "TEXT", table.comment, "Skip lines that start with TEXT");
  group.add("--decimal", "CHAR", flags.decimal, "Decimal mark of values: (.) ,")
      ->check(CLI::IsMember(Names{".", ","}));
  group
      .add("--values", "WORD", flags.values,
           "Values that float32 cannot hold: auto: an error; f32: rounded (auto)")
      ->check(CLI::IsMember(Names{"auto", "f32"}));
  group.add_switch("--transpose", flags.transpose,
                   "Matrix inputs have items as rows, users as columns (detected)");
  group.add_switch("--no-transpose", flags.no_transpose,
                   "Matrix inputs have users as rows, items as columns");
  group.add("--layer", "NAME", flags.spec.input.layer, "hdf5: name of an AnnData layer, or the word raw (X)");
  group.add("--index-base", "WORD", flags.index_base, "svmlight: index of the first column: (auto), 0, 1")
      ->check(CLI::IsMember(Names{"auto", "0", "1"}));
}

void add_rating_flags(CLI::App& app, PackSparseFlags& flags) {
  FlagGroup group(app, "Ratings");
  group
      .add("--preset", "vae-cf", flags.preset,
           "Mult-VAE: ratings >3.5 as 1, 5+ a user, 10k users each held out")
      ->check(CLI::IsMember(Names{"", "vae-cf"}));
  group
      .add("--duplicates", "WORD", flags.duplicates,
           "Repeated pairs: (error), sum, max, last, first (by time if there is one)")
      ->check(one_of(kDuplicatesNames));
  group.add("--zeros", "WORD", flags.zeros, "Ratings of 0: (drop), keep")->check(one_of(kZerosNames));
  group.add("--min-value", "V", flags.min_value, "Keep ratings >= V");
  group.add("--above", "V", flags.above, "Keep ratings > V");
  group.add_switch("--binarize", flags.binarize, "Replace every rating by 1");
  group.add("--min-user", "N", flags.min_user, "Minimum ratings per user (0)");
  group.add("--min-item", "N", flags.min_item, "Minimum ratings per item; with --min-user: k-core (0)");
  group.add_switch("--filter-once", flags.filter_once, "Apply --min-item, then --min-user, once each");
}

void add_files(FlagGroup& group, const std::string& flag, std::vector<std::string>& files,
               const std::string& words) {
  group.add(flag, "FILE", files, words)->default_str("")->allow_extra_args(false);
}

void add_split_flags(CLI::App& app, PackSparseFlags& flags) {
  RatingSplitSpec& split = flags.spec.packs.split;
  FlagGroup group(app, "Split");
  group.add("--split", "WORD", flags.split, "Split: users, ratio, leave-one-out, time, given (none)")
      ->check(one_of(kSplitKindNames));
  group.add("--validation", "N|SHARE", flags.validation, "Validation: number of users, or share of ratings");
  group.add("--test", "N|SHARE", flags.test, "Test: number of users, or share of ratings");
  group.add("--fold-in", "SHARE", flags.fold_in,
            "users: share of a held-out user's items used as input (0.8)");
  group
      .add("--split-order", "WORD", flags.split_order,
           "random, time, input (ratio: random; leave-one-out: time)")
      ->check(one_of(kSplitOrderNames));
  group.add("--before", "TIME", flags.before, "time: start of the test period, a number or YYYY-MM-DD");
  group.add("--validation-users", "FILE", split.validation_users,
            "users: hold out the users of a list, one id per line");
  group.add("--test-users", "FILE", split.test_users, "The same for the test");
  add_files(group, "--train-file", flags.train_files,
            "given: training ratings, instead of INPUT; repeatable");
  add_files(group, "--validation-file", flags.validation_files, "given: validation ratings; repeatable");
  add_files(group, "--test-file", flags.test_files, "given: test ratings; repeatable");
}

void add_output_flags(CLI::App& app, PackSparseFlags& flags) {
  PackSparseSpec& spec = flags.spec;
  FlagGroup group(app, "Output");
  group.add("-o,--output", "FOLDER", flags.options.output,
            "Output folder (with --split: one subfolder per pack)");
  group.add("--id-order", "WORD", flags.id_order, "Order of columns: (popularity), first, sorted")
      ->check(one_of(kItemOrderNames));
  group.add("--reuse-ids", "PACK", spec.reuse_ids, "Use the item columns of another pack or its items.csv");
  group.add("--order", "WORD", flags.order, "Order of rows: shuffle, input (shuffle)")
      ->check(one_of(kRowOrderNames));
  group.add("--seed", "N", flags.seed, "Seed of the shuffle and the split (0)");
  group.add("--container", "NAME", spec.container, "File format: shard, hdf5 as AnnData (shard)")
      ->check(CLI::IsMember(Names{"shard", "hdf5"}));
  group.add("--codec", "NAME[:N]", spec.codec,
            "Codec and its level. shard: (zstd), none; hdf5: (deflate), none");
  group.add("--layout", "WORD", flags.layout, "hdf5: store X as (csr), dense")
      ->check(one_of(kMatrixLayoutNames));
  group.add("--chunk-rows", "N", flags.chunk_rows, "shard: rows per block (auto)");
  group.add("--part-bytes", "SIZE", flags.part_bytes, "Maximum raw bytes per part (1G)");
}

void add_run_flags(CLI::App& app, PackSparseFlags& flags) {
  FlagGroup group(app, "Run");
  group.add("--on-error", "WORD", flags.on_error, "Bad lines: (fail), skip")
      ->check(CLI::IsMember(Names{"skip", "fail"}));
  group.add("--max-errors", "N|N%", flags.max_errors,
            "Maximum number or share of bad lines to skip (1%, at least 1)");
  group.add("--threads", "N", flags.threads, "Worker threads (all available CPUs)");
  group.add("--memory", "SIZE", flags.memory, "Memory limit (2G); ratings spill to disk, ids must fit");
  group.add("--progress", "WORD", flags.progress, "Progress output: auto, json, none (auto)")
      ->check(CLI::IsMember(Names{"auto", "json", "none"}));
  group.add_switch("--dry-run", flags.dry_run, "Report what would be packed, write nothing; needs no -o")
      ->configurable(false);
  // A recipe must not remove what somebody else packed.
  group.add_switch("--force", flags.options.force, "Overwrite the pack in --output")->configurable(false);
  add_config_flag(app, "Run");
  group
      .add("--save-config", "FILE", flags.save_config, "Write all options, defaults included, to a TOML file")
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
