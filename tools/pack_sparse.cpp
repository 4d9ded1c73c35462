// pack-sparse: user-item ratings → packs of matrices. Flags → spec → pack_sparse → report.
#include <malloc.h>

#include <algorithm>

#include "chunkhit/error.h"
#include "chunkhit/pack.h"
#include "cli.h"
#include "pack_sparse_flags.h"
#include "pack_sparse_report.h"
#include "progress.h"

namespace chunkhit {
namespace {

constexpr const char* kDescription =
    "Packs user-item ratings, once, into compressed shards of row blocks or AnnData HDF5.\nDefaults are in "
    "(parentheses).";
constexpr const char* kExamples =
    "Examples:\n"
    "  pack-sparse ratings.csv --user userId --item movieId --value rating -o ml20m\n"
    "  pack-sparse ratings.csv --preset vae-cf -o ml20m";

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

/// Calls `work`; an error of flags that a preset gave names the preset, too.
template <class Work>
auto naming_preset(const std::string& preset, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    if (preset.empty() || error.code() != ErrorCode::usage) throw;
    throw Error(error.code(),
                std::string(error.what()) + "; what was not given comes from --preset " + preset);
  }
}

int run_pack_sparse(CLI::App& app, PackSparseFlags& flags, const std::string& command_line) {
  const PackSparseSpec spec = pack_sparse_spec(flags);
  PackSparseOptions options = pack_sparse_options(flags);
  options.command_line = command_line;
  if (flags.count_items && flags.dry_run)
    throw Error(ErrorCode::usage, "--count-items and --dry-run exclude each other");
  if (!flags.save_config.empty()) save_config(app, flags.save_config);
  const bool is_from_stdin = std::ranges::find(options.inputs, "-") != options.inputs.end();
  const auto show = [&](const PackSparseProgress& progress) { return shown(progress, is_from_stdin); };
  const PackSparseReport report = naming_preset(flags.preset, [&] {
    return with_progress(progress_style(flags.progress), options, show, [&](const PackSparseOptions& how) {
      if (flags.count_items) return count_items(spec, how);
      return flags.dry_run ? preview_sparse(spec, how) : pack_sparse(spec, how);
    });
  });
  flags.count_items ? print_counted(options.output, report) : print_report(report, flags.dry_run);
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
  CLI::App app(kDescription, "pack-sparse");
  PackSparseFlags flags(app);
  add_pack_sparse_flags(app, flags);
  add_common_flags(app, "Run");
  app.footer(kExamples);
  return run_command(app, argc, argv, [&] { return run_pack_sparse(app, flags, command_line(argc, argv)); });
}
