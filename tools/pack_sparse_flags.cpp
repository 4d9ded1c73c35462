#include "pack_sparse_flags.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/words.h"
#include "chunkhit/error.h"
#include "cli.h"
#include "pack/ratings/pack_sparse_spec.h"
#include "ratings/rating_fields.h"
#include "ratings/rating_format.h"
#include "ratings/rating_packs.h"
#include "ratings/rating_table.h"
#include "ratings/stored_values.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

using Names = std::vector<std::string>;

Names format_names() {
  Names names{"auto"};
  names.insert(names.end(), kEnumWords<RatingFormat>.begin(), kEnumWords<RatingFormat>.end());
  return names;
}

void add_input_flags(CLI::App& app, PackSparseFlags& flags) {
  RatingTableSpec& table = flags.spec.input.table;
  app.add_option("INPUT", flags.options.inputs,
                 "Rating files, all of one format, or folders of packs; - reads stdin")
      ->option_text("...");
  FlagGroup group(app, "Input");
  group
      .add("--format", "WORD", flags.format,
           "(auto), text, user-items, netflix, matrix-market, svmlight, npz, hdf5, pack")
      ->check(one_of(format_names()));
  group.add("--delimiter", "TEXT", table.delimiter, "Field delimiter: , :: tab blanks ... (detected)");
  group.add("--header", "WORD", flags.header, "Whether the first line is a header: (auto), yes, no")
      ->check(one_of<Header>());
  group.add("--user", "NAME|N", table.user, "User column: a name, or a number from 1 (detected)");
  group.add("--item", "NAME|N", table.item, "Item column, likewise");
  group.add("--value", "NAME|N", table.value,
            "Value column; the word none: implicit feedback, every rating is 1");
  group.add("--time", "NAME|N", table.time, "Time column; the word none: ignore times");
  group.add("--quote", "WORD", flags.quote, "Quoting of fields: (auto), none, double: \"...\"")
      ->check(one_of<Quoting>());
  group.add("--comment", "TEXT", table.comment, "Skip lines that start with TEXT");
  group.add_switch("--transpose", flags.transpose,
                   "Matrix inputs have items as rows, users as columns (detected)");
  group.add("--layer", "NAME", flags.spec.input.layer, "hdf5: name of an AnnData layer, or the word raw (X)");
  group
      .add("--shared-rows", "WORD", flags.shared_rows,
           "Row names of several matrices: (error), join, file-name: put it before")
      ->check(one_of<SharedRows>());
  group.add("--encoding", "WORD", flags.encoding, "Encoding of ratings and tables: (utf-8), latin-1")
      ->check(one_of<Encoding>());
}

void add_rating_flags(CLI::App& app, PackSparseFlags& flags) {
  FlagGroup group(app, "Ratings");
  group
      .add("--preset", "vae-cf", flags.preset,
           "Mult-VAE: binarize > 3.5, 5 per user, 10,000 validation and test users")
      ->check(one_of({"", "vae-cf"}));
  group
      .add("--duplicates", "WORD", flags.duplicates,
           "Ratings of one user and item: (error), sum, max, last, first (by time)")
      ->check(one_of<Duplicates>());
  group.add("--zeros", "WORD", flags.zeros, "Ratings of 0: (drop), keep")->check(one_of<Zeros>());
  group.add("--above", "V", flags.above, "Keep ratings > V");
  group.add("--values", "TYPE", flags.values,
            "Stored type: (auto), none, u8, u16, u8:SCALE, u16:SCALE, f32 (rounds)");
  group.add_switch("--binarize", flags.binarize, "Replace every rating by 1");
  group.add("--min-user", "N", flags.min_user, "Minimum ratings per user (0)");
  group.add("--min-item", "N", flags.min_item, "Minimum ratings per item; with --min-user: k-core (0)");
}

void add_files(FlagGroup& group, const std::string& flag, std::vector<std::string>& files,
               const std::string& words) {
  group.add(flag, "FILE", files, words)->default_str("")->allow_extra_args(false);
}

void add_split_flags(CLI::App& app, PackSparseFlags& flags) {
  RatingSplitSpec& split = flags.spec.packs.split;
  FlagGroup group(app, "Split");
  group
      .add("--split-by", "WORD", flags.split_by,
           "Held out: users, users-by-id, ratio, leave-one-out, time, given (none)")
      ->check(one_of<SplitKind>());
  group.add("--validation", "N|SHARE", flags.validation,
            "Size of validation: of users a number or share; else a share of ratings");
  group.add("--test", "N|SHARE", flags.test, "Size of test, likewise");
  group.add("--fold-in", "SHARE", flags.fold_in,
            "users, users-by-id: share of a held-out user's items used as input (0.8)");
  group
      .add("--split-order", "WORD", flags.split_order,
           "random, time, input (ratio: random; leave-one-out: time)")
      ->check(one_of<SplitOrder>());
  group.add_switch("--hide-validation", split.hide_validation,
                   "X of test lacks the ratings of validation, not of --split-by users");
  group.add("--before", "TIME", flags.before, "time: start of the test period, a number or YYYY-MM-DD");
  group.add("--validation-users", "FILE", split.validation_users,
            "users: hold out those of a list, one id per line, for validation");
  group.add("--test-users", "FILE", split.test_users, "users: the same for test");
  add_files(group, "--train-file", flags.train_files,
            "given: training ratings, instead of INPUT; repeatable");
  add_files(group, "--validation-file", flags.validation_files, "given: validation ratings; repeatable");
  add_files(group, "--test-file", flags.test_files, "given: test ratings; repeatable");
}

void add_output_flags(CLI::App& app, PackSparseFlags& flags) {
  PackSparseSpec& spec = flags.spec;
  FlagGroup group(app, "Output");
  group.add("-o,--output", "FOLDER", flags.options.output,
            "Output folder (with --split-by: one subfolder per pack)");
  group.add("--id-order", "WORD", flags.id_order, "Order of columns: (popularity), first, sorted")
      ->check(one_of<ItemOrder>());
  group.add("--reuse-ids", "PACK", spec.reuse_ids, "Use the item columns of another pack or its items.csv");
  group.add("--item-columns", "FILE", spec.item_columns,
            "Keep columns of a CSV of items (ids: column of the ratings' name, or first)");
  group.add("--user-columns", "FILE", spec.user_columns, "The same of users");
  group
      .add("--table-header", "WORD", flags.table_header,
           "Whether their first line is a header: (auto), yes, no: columns are numbered")
      ->check(one_of<Header>());
  group.add("--table-quote", "WORD", flags.table_quote, "Quoting of their fields: (auto), none, double")
      ->check(one_of<Quoting>());
  group.add_switch("--keep-times", spec.packs.keep_times, "Keep the time of each rating");
  group.add("--order", "WORD", flags.order, "Order of rows: shuffle, input (shuffle)")
      ->check(one_of<Order>());
  group.add("--seed", "N", flags.seed, "Seed of the shuffle and the split (0)");
  group.add("--container", "NAME", spec.container, "File format: shard, hdf5 as AnnData (shard)")
      ->check(one_of({"shard", "hdf5"}));
  group.add("--codec", "NAME[:N]", spec.codec,
            "Codec and its level. shard: (zstd), none; hdf5: (deflate), none");
  group.add("--chunk-rows", "N", flags.chunk_rows, "shard: rows per block (auto)");
  group.add("--part-bytes", "SIZE", flags.part_bytes, "Maximum raw bytes per part, at least one chunk (1G)");
}

void add_run_flags(CLI::App& app, PackSparseFlags& flags) {
  FlagGroup group(app, "Run");
  group.add("--on-error", "WORD", flags.on_error, "Bad lines: (fail), skip")->check(one_of<OnError>());
  group.add("--max-errors", "N|N%", flags.max_errors,
            "Maximum number or share of bad lines to skip (1%, at least 1)");
  group.add("--threads", "N", flags.threads, "Worker threads (all available CPUs)");
  group.add("--memory", "SIZE", flags.memory, "Memory limit (2G); ratings spill to disk, ids must fit");
  group.add("--progress", "WORD", flags.progress, "Progress output: auto, json, none (auto)")
      ->check(one_of({"auto", "json", "none"}));
  group
      .add_switch("--count-items", flags.count_items,
                  "Instead of packing, write the items to the file -o: --reuse-ids of parts")
      ->configurable(false);
  group.add_switch("--dry-run", flags.dry_run, "Report what would be packed, write nothing; needs no -o")
      ->configurable(false);
  // A recipe must not remove another user's pack.
  group.add_switch("--force", flags.options.force, "Delete the pack in --output first")->configurable(false);
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

/// A preset changes defaults only: flags that are given win.
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

// What the flags of pack-sparse mean, once they are parsed.

namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::usage, message); }

/// Returns the files without empty names, which a recipe has for an empty list.
std::vector<std::string> named(std::vector<std::string> files) {
  std::erase(files, "");
  return files;
}

/// Parses a limit on values; nullopt for an empty text or `none`.
std::optional<float> parse_limit(const std::string& flag, const std::string& text) {
  if (text.empty() || text == "none") return std::nullopt;
  float limit = 0;
  if (!parse_value(text, limit)) refuse(flag + ": expected a number, found '" + text + "'");
  return limit;
}

/// "10000", "0.1" or "10%".
SplitAmount parse_amount(const std::string& flag, const std::string& text) {
  if (text.find_first_not_of("0123456789") == std::string::npos) return {parse_count(flag, text, {}), 0};
  SplitAmount amount;
  const bool percent = text.ends_with('%');
  const char* end = text.data() + text.size() - (percent ? 1 : 0);
  const auto read = std::from_chars(text.data(), end, amount.share);
  if (percent) amount.share /= 100;
  if (read.ec != std::errc() || read.ptr != end || !(amount.share >= 0 && amount.share < 1))
    refuse(flag + ": expected a count or a share like 0.1, found '" + text + "'");
  return amount;
}

double parse_share(const std::string& flag, const std::string& text) {
  const SplitAmount amount = parse_amount(flag, text);
  if (amount.share <= 0) refuse(flag + ": expected a share above 0 and below 1, found '" + text + "'");
  return amount.share;
}

std::optional<std::int64_t> parse_moment(const std::string& flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::int64_t time = 0;
  if (!parse_time(text, time))
    refuse(flag + ": expected a time as the input has it, YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS, found '" + text +
           "'");
  return time;
}

RatingInputSpec input_spec(const PackSparseFlags& flags) {
  RatingInputSpec input = flags.spec.input;
  if (flags.format != "auto") input.format = flags.format;
  if (input.table.delimiter == "tab" || input.table.delimiter == "\\t") input.table.delimiter = "\t";
  input.table.header = parse_choice<Header>(flags.header);
  input.table.quoting = parse_choice<Quoting>(flags.quote);
  if (flags.transpose) input.transpose = Transpose::yes;
  input.shared_rows = parse_choice<SharedRows>(flags.shared_rows);
  input.encoding = parse_choice<Encoding>(flags.encoding);
  return input;
}

RatingRules rating_rules(const PackSparseFlags& flags) {
  RatingRules rules;
  rules.zeros = parse_choice<Zeros>(flags.zeros);
  rules.duplicates = parse_choice<Duplicates>(flags.duplicates);
  rules.above = parse_limit("--above", flags.above);
  rules.binarize = flags.binarize;
  rules.values = parse_stored_values(flags.values);
  rules.min_user = parse_count("--min-user", flags.min_user, {});
  rules.min_item = parse_count("--min-item", flags.min_item, {});
  return rules;
}

RatingSplitSpec split_spec(const PackSparseFlags& flags) {
  RatingSplitSpec split = flags.spec.packs.split;
  split.kind = parse_choice<SplitKind>(flags.split_by);
  split.files = {named(flags.train_files).size(), named(flags.validation_files).size(),
                 named(flags.test_files).size()};
  if (split.files.count() > 0) {
    if (split.kind != SplitKind::none && split.kind != SplitKind::given)
      refuse("--train-file, --validation-file, --test-file: are a split of their own, found --split-by " +
             flags.split_by);
    split.kind = SplitKind::given;
  }
  split.validation = parse_amount("--validation", flags.validation);
  split.test = parse_amount("--test", flags.test);
  split.fold_in = parse_share("--fold-in", flags.fold_in);
  split.order = parse_choice<SplitOrder>(flags.split_order);
  split.before = parse_moment("--before", flags.before);
  return split;
}

}  // namespace

PackSparseSpec pack_sparse_spec(const PackSparseFlags& flags) {
  PackSparseSpec spec = flags.spec;
  spec.input = input_spec(flags);
  spec.packs.rules = rating_rules(flags);
  spec.packs.split = split_spec(flags);
  spec.packs.item_order = parse_choice<ItemOrder>(flags.id_order);
  spec.packs.shuffles_rows = flags.order == "shuffle";
  spec.packs.seed = parse_count("--seed", flags.seed, {});
  spec.table_header = parse_choice<Header>(flags.table_header);
  spec.table_quoting = parse_choice<Quoting>(flags.table_quote);
  if (flags.chunk_rows != "auto")
    spec.chunk_rows = parse_count("--chunk-rows", flags.chunk_rows, {1, UINT32_MAX});
  spec.part_bytes = parse_bytes("--part-bytes", flags.part_bytes);
  return spec;
}

PackSparseOptions pack_sparse_options(const PackSparseFlags& flags) {
  PackSparseOptions options = flags.options;
  options.inputs = named(options.inputs);
  for (const auto* given : {&flags.train_files, &flags.validation_files, &flags.test_files}) {
    const std::vector<std::string> files = named(*given);
    if (!files.empty() && !named(flags.options.inputs).empty())
      refuse("INPUT: found " + flags.options.inputs[0] +
             " beside a split given as files; give it as --train-file");
    options.inputs.insert(options.inputs.end(), files.begin(), files.end());
  }
  if (flags.threads != "all")
    options.threads = static_cast<std::uint32_t>(parse_count("--threads", flags.threads, {1, 4096}));
  options.memory_bytes = parse_bytes("--memory", flags.memory);
  options.on_error = parse_choice<OnError>(flags.on_error);
  if (options.on_error == OnError::fail && flags.max_errors != PackSparseFlags().max_errors)
    refuse("--max-errors is for bad lines that are left out: give --on-error skip");
  options.max_errors = parse_error_limit("--max-errors", flags.max_errors);
  return options;
}

}  // namespace chunkhit
