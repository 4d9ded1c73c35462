// pack-sparse: user-item ratings → packs of matrices. Flags → spec → pack_sparse → report.
#include <malloc.h>

#include <algorithm>
#include <string>
#include <vector>

#include "chunkhit/error.h"
#include "chunkhit/pack.h"
#include "cli.h"
#include "field_flags.h"
#include "pack/ratings/sparse_fields.h"
#include "pack_sparse_report.h"
#include "progress.h"
#include "ratings/rating_packs.h"

namespace chunkhit {
namespace {

constexpr const char* kDescription =
    "Packs user-item ratings, once, into compressed shards of row blocks or AnnData HDF5.\nDefaults are in "
    "(parentheses).";
constexpr const char* kExamples =
    "Examples:\n"
    "  pack-sparse ratings.csv --user userId --item movieId --value rating -o ml20m\n"
    "  pack-sparse ratings.csv --preset vae-cf -o ml20m";

void add_flags(Command& command) {
  command.add_argument("INPUT", "Rating files, all of one format, or folders of packs; - reads stdin", false,
                       Flag::Takes::list);
  visit_fields<FlagAdder>(command, PackSparseSpec());
  command.group("Ratings");
  command.add({"--preset", "vae-cf", "Mult-VAE paper: > 3.5 is 1, min-user 5, 10,000 users each held out"})
      .words = {"", "vae-cf"};
  command.group("Split");
  command.add(
      {"--train-file", "FILE", "given: training ratings, instead of INPUT; repeatable", Flag::Takes::list});
  command.add({"--validation-file", "FILE", "given: validation ratings; repeatable", Flag::Takes::list});
  command.add({"--test-file", "FILE", "given: test ratings; repeatable", Flag::Takes::list});
  visit_fields<FlagAdder>(command, PackSparseOptions());
  command.group("Run");
  command.add_progress_flag();
  command
      .add_switch("--count-items", "Write only a list of items to -o, for --reuse-ids of parts; lists add up")
      .in_recipes = false;
  command.add_switch("--dry-run", "Report what would be packed, write nothing; needs no -o").in_recipes =
      false;
  command.add_config_flags();
}

/// Gives what is wanted, a preset where flags say nothing; throws usage naming the flag.
PackSparseSpec spec_of(Command& command, std::vector<std::string>& inputs) {
  const auto flag = [&](const char* field) -> const Flag& { return command["--" + dashed(field)]; };
  const auto read = [&](PackSparseSpec& spec) { visit_fields<FlagReader>(command, spec); };
  PackSparseSpec spec = read_sparse_spec(
      !command["--preset"].text().empty(), [&](const char* field) { return flag(field).is_given(); },
      [&](const char* field) { return flag(field).list(); }, read, inputs);
  visit_fields<DefaultSetter>(command, spec);
  return spec;
}

ShownProgress shown(const PackSparseProgress& progress, bool is_from_stdin) {
  ShownProgress shown;
  shown.subject = progress.pack;
  shown.problems = progress.bad_lines;
  shown.problem_name = "bad lines";
  switch (progress.phase) {
    case PackSparseProgress::Phase::reading:
      shown.phase = "reading", shown.is_first = true;
      shown.words = is_from_stdin ? "reading the input, from standard input …" : "reading the input …";
      if (progress.bytes_done > 0) shown.things = "bytes", shown.rate = "a second", shown.subject = "reading";
      shown.done = progress.bytes_done, shown.total = progress.bytes_total;
      break;
    case PackSparseProgress::Phase::sorting:
      shown.phase = "sorting", shown.words = "sorting the ratings …";
      break;
    case PackSparseProgress::Phase::packing:
      shown.phase = "packing", shown.things = "rows", shown.rate = "rows/s";
      shown.done = progress.rows_done, shown.total = progress.rows_total;
      break;
    case PackSparseProgress::Phase::finishing:
      shown.phase = "finishing", shown.words = "finishing the packs …";
      break;
  }
  return shown;
}

/// Whether a message names a flag that was not given.
bool names_other_flag(Command& command, const std::string& message) {
  const std::string text = flag_text(message);
  return std::ranges::any_of(command.flags(), [&](const Flag& flag) {
    const std::string name = flag.names().back();
    const std::size_t at = text.find(name);
    if (flag.is_given() || !name.starts_with("--") || at == std::string::npos) return false;
    return text.find_first_of("abcdefghijklmnopqrstuvwxyz-", at + name.size()) != at + name.size();
  });
}

/// Calls `work`; an error of flags that a preset gave names the preset, too.
template <class Work>
auto naming_preset(Command& command, Work work) {
  const std::string& preset = command["--preset"].text();
  try {
    return work();
  } catch (const Error& error) {
    if (preset.empty() || error.code() != ErrorCode::usage || !names_other_flag(command, error.what())) throw;
    throw Error(error.code(),
                std::string(error.what()) + "; what was not given comes from --preset " + preset);
  }
}

int run_pack_sparse(Command& command, const std::string& command_line) {
  PackSparseOptions options;
  visit_fields<FlagReader>(command, options);
  options.inputs = command["INPUT"].list();
  const PackSparseSpec spec = spec_of(command, options.inputs);
  options.command_line = command_line;
  const bool counts = command["--count-items"].is_on(), is_dry = command["--dry-run"].is_on();
  if (counts && is_dry) throw Error(ErrorCode::usage, "--count-items and --dry-run exclude each other");
  command.save_recipe();
  const bool is_from_stdin = std::ranges::find(options.inputs, "-") != options.inputs.end();
  const auto show = [&](const PackSparseProgress& progress) { return shown(progress, is_from_stdin); };
  const ProgressStyle style = progress_style(command["--progress"].text());
  const PackSparseReport report = naming_preset(command, [&] {
    return with_progress(style, options, show, [&](const PackSparseOptions& how) {
      if (counts) return count_items(spec, how);
      return is_dry ? preview_sparse(spec, how) : pack_sparse(spec, how);
    });
  });
  counts ? print_counted(options.output, report) : print_report(report, is_dry);
  return exit_code(report.interrupted);
}

}  // namespace
}  // namespace chunkhit

// glibc keeps what large buffers leave behind, beyond --memory-bytes, unless they are always mapped.
// Smaller ones are used again: their pages, mapped again for each block of the input, took a fifth of the
// time.
static void give_large_buffers_back() {
#ifdef M_MMAP_THRESHOLD
  constexpr int kLargeBytes = 2 << 20, kGrowBytes = 1 << 20, kKeptBytes = 8 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  ::mallopt(M_TOP_PAD, kGrowBytes);
  ::mallopt(M_TRIM_THRESHOLD, kKeptBytes);
#endif
}

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): only without memory for the flags
  using namespace chunkhit;
  give_large_buffers_back();
  Command command("pack-sparse", kDescription, kExamples);
  add_flags(command);
  return command.run(argc, argv, [&] { return run_pack_sparse(command, command_line(argc, argv)); });
}
