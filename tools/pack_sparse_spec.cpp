// What the flags of pack-sparse mean, once they are parsed.
#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/cpu.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "chunkhit/version.h"
#include "cli.h"
#include "flag_values.h"
#include "input/rating_number.h"
#include "pack_sparse_flags.h"

namespace chunkhit {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::usage, message); }

/// The files that are given: a recipe has an empty name where there are none.
std::vector<std::string> named(std::vector<std::string> files) {
  std::erase(files, "");
  return files;
}

/// A limit on values; none where no text is given.
std::optional<float> parse_limit(const std::string& flag, const std::string& text) {
  if (text.empty() || text == "none") return std::nullopt;
  float limit = 0;
  if (!parse_value(text, '.', limit)) refuse(flag + ": expected a number, found '" + text + "'");
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
  if (!parse_time(text, '.', time))
    refuse(flag + ": expected a time as the input has it, YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS, found '" + text +
           "'");
  return time;
}

RatingInputSpec input_spec(const PackSparseFlags& flags) {
  RatingInputSpec input = flags.spec.input;
  if (flags.format != "auto") input.format = flags.format;
  if (input.table.delimiter == "tab" || input.table.delimiter == "\\t") input.table.delimiter = "\t";
  input.table.header = parse_choice<Header>(kHeaderNames, flags.header);
  input.table.quoting = parse_choice<Quoting>(kQuotingNames, flags.quote);
  input.table.decimal_point = flags.decimal[0];
  input.table.rounds_values = flags.values == "f32";
  if (flags.transpose && flags.no_transpose) refuse("--transpose and --no-transpose exclude each other");
  if (flags.transpose) input.transpose = Transpose::yes;
  if (flags.no_transpose) input.transpose = Transpose::no;
  if (flags.index_base != "auto") input.index_base = flags.index_base == "1" ? 1 : 0;
  return input;
}

RatingRules rating_rules(const PackSparseFlags& flags) {
  RatingRules rules;
  rules.zeros = parse_choice<Zeros>(kZerosNames, flags.zeros);
  rules.duplicates = parse_choice<Duplicates>(kDuplicatesNames, flags.duplicates);
  rules.min_value = parse_limit("--min-value", flags.min_value);
  rules.above = parse_limit("--above", flags.above);
  rules.binarize = flags.binarize;
  rules.rounds_values = flags.values == "f32";
  rules.min_user = parse_count("--min-user", flags.min_user, {});
  rules.min_item = parse_count("--min-item", flags.min_item, {});
  rules.filter_once = flags.filter_once;
  return rules;
}

RatingSplitSpec split_spec(const PackSparseFlags& flags) {
  RatingSplitSpec split = flags.spec.packs.split;
  split.kind = parse_choice<SplitKind>(kSplitKindNames, flags.split);
  split.files = {named(flags.train_files).size(), named(flags.validation_files).size(),
                 named(flags.test_files).size()};
  if (split.files.count() > 0) {
    if (split.kind != SplitKind::none && split.kind != SplitKind::given)
      refuse("--train-file, --validation-file, --test-file: are a split of their own, found --split " +
             flags.split);
    split.kind = SplitKind::given;
  }
  split.validation = parse_amount("--validation", flags.validation);
  split.test = parse_amount("--test", flags.test);
  split.fold_in = parse_share("--fold-in", flags.fold_in);
  split.order = parse_choice<SplitOrder>(kSplitOrderNames, flags.split_order);
  split.before = parse_moment("--before", flags.before);
  if (split.kind != SplitKind::users && split.fold_in != parse_share("--fold-in", PackSparseFlags().fold_in))
    refuse("--fold-in is for whole users that are held out: give --split users");
  return split;
}

/// Takes as many threads as --memory has room for where none are asked for; fails where it has none for one,
/// or for those that are.
void fit_threads(PackSparseOptions& options) {
  constexpr std::uint64_t kMiB = 1 << 20;
  constexpr std::uint64_t kProgramBytes = 28 * kMiB;  // with its libraries
  constexpr std::uint64_t kThreadBytes = 4 * kMiB;    // with the smallest blocks of text
  const std::uint64_t threads = std::max<std::uint32_t>(1, options.threads);
  const std::uint64_t needed = kProgramBytes + threads * kThreadBytes;
  if (options.memory_bytes < needed)
    refuse("--memory: " + bytes_text(static_cast<double>(options.memory_bytes)) +
           " cannot hold the program and " + count_text(threads, "thread") + ", which need at least " +
           std::to_string(needed / kMiB) + "M in all; raise --memory" +
           (threads > 1 ? ", or lower --threads" : ""));
  const std::uint64_t fitting = (options.memory_bytes - kProgramBytes) / kThreadBytes;
  if (options.threads == 0)
    options.threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(fitting, allowed_cpus()));
}

}  // namespace

PackSparseSpec pack_sparse_spec(const PackSparseFlags& flags) {
  PackSparseSpec spec = flags.spec;
  spec.input = input_spec(flags);
  spec.packs.rules = rating_rules(flags);
  spec.packs.split = split_spec(flags);
  spec.packs.item_order = parse_choice<ItemOrder>(kItemOrderNames, flags.id_order);
  spec.packs.shuffles_rows = flags.order == "shuffle";
  spec.packs.seed = parse_count("--seed", flags.seed, {});
  spec.layout = parse_choice<MatrixLayout>(kMatrixLayoutNames, flags.layout);
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
  if (options.inputs.empty()) refuse("INPUT is required: a file of ratings, or -; see pack-sparse --help");
  if (options.output.empty() && !flags.dry_run)
    refuse("--output is required: a folder for the pack; see pack-sparse --help");
  while (options.output.size() > 1 && options.output.ends_with('/')) options.output.pop_back();
  if (flags.threads != "all")
    options.threads = static_cast<std::uint32_t>(parse_count("--threads", flags.threads, {1, 4096}));
  options.memory_bytes = parse_bytes("--memory", flags.memory);
  fit_threads(options);
  options.fail_on_error = flags.on_error == "fail";
  if (options.fail_on_error && flags.max_errors != PackSparseFlags().max_errors)
    refuse("--max-errors is for bad lines that are left out: give --on-error skip");
  const ErrorLimit limit = parse_error_limit("--max-errors", flags.max_errors);
  options.max_error_share = limit.share;
  options.max_error_count = limit.count;
  options.tool = "pack-sparse " + version();
  return options;
}

}  // namespace chunkhit
