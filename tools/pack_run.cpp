// pack-run: the plan of packs → their parts, or the finished packs.
#include <malloc.h>

#include "chunkhit/error.h"
#include "chunkhit/pack.h"
#include "cli.h"
#include "pack/run_fields.h"
#include "pack_images_report.h"
#include "progress.h"

namespace chunkhit {
namespace {

constexpr int kMappedBlockBytes = 1 << 20;

constexpr const char* kDescription =
    "Packs what pack-images --plan planned: some tasks, or all that is missing.\nAny number of "
    "processes on any number of machines may work on one plan, also on the same task.";
constexpr const char* kExamples =
    "Without --task it packs what is missing and finishes the packs; a finished pack is left as it "
    "is.\n"
    "Exit code 75: this machine cannot read the inputs now; run the task again, there or elsewhere.\n"
    "Examples:\n"
    "  pack-run /data/train --task \"$SLURM_ARRAY_TASK_ID\"\n"
    "  pack-run /data/train --task 3,17,40-42\n"
    "  pack-run /data/train";

struct PackRunFlags {
  RunPlanOptions options;
  std::string task;
  std::string threads = "all";
  std::string memory = "2G";
  std::string progress = "auto";
};

void add_flags(CLI::App& app, PackRunFlags& flags) {
  app.add_option("FOLDER", flags.options.folder, "Folder of the plan (the --output that was planned)")
      ->required()
      ->option_text(" ");
  FlagGroup group(app, "Options");
  group.add("--task", "LIST", flags.task,
            "Pack only these tasks, counted from 0: 17 or 3,17,40-42 (all, then finish)");
  group.add("--root", "FOLDER", flags.options.root, "Folder of the inputs on this machine (as in the plan)");
  group.add("--threads", "N", flags.threads, "Worker threads (all available CPUs)");
  group.add("--memory-bytes", "SIZE", flags.memory, "Memory limit of the process (2G)");
  group.add("--progress", "WORD", flags.progress, "Progress output: auto, json, none (auto)")
      ->check(one_of({"auto", "json", "none"}));
}

RunPlanOptions run_options(const CLI::App& app, const PackRunFlags& flags) {
  RunPlanOptions options = flags.options;
  if (app.count("--task") > 0) options.tasks = parse_tasks("--task", flags.task);
  if (flags.threads != "all")
    options.threads = static_cast<std::uint32_t>(parse_count("--threads", flags.threads, 1, kMaxThreads));
  options.memory_bytes = parse_bytes("--memory-bytes", flags.memory);
  options.folder = plan_folder(options.folder);
  return options;
}

/// Calls `work`; an error that names flags which pack-run has not says whose they are.
template <class Work>
auto naming_planner(const CLI::App& app, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    const std::string text = error.what();
    std::string flags;
    for (std::size_t open = text.find('`'); open != std::string::npos; open = text.find('`', open)) {
      const std::size_t close = text.find('`', open + 1);
      if (close == std::string::npos) break;
      const std::string flag = flag_text(text.substr(open, close + 1 - open));
      if (flag.starts_with("--") && app.get_option_no_throw(flag) == nullptr)
        flags.append(flags.empty() ? "" : ", ").append(flag);
      open = close + 1;
    }
    if (flags.empty()) throw;
    throw Error(error.code(), text + "; " + flags + " belongs to the command that planned");
  }
}

int run_pack_run(const CLI::App& app, const PackRunFlags& flags) {
  const RunPlanOptions options = run_options(app, flags);
  const auto show = [](const PackProgress& progress) { return shown(progress, false); };
  const RunPlanReport report = naming_planner(app, [&] {
    return with_progress(progress_style(flags.progress), options, show,
                         [](const RunPlanOptions& how) { return run_plan(how); });
  });
  print_report(options, report);
  return exit_code(report.interrupted);
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): only without memory for the flags
  using namespace chunkhit;
  // Freed buffers of images go back to the system at once, whatever was freed before: --memory-bytes counts
  // on it.
  mallopt(M_MMAP_THRESHOLD, kMappedBlockBytes);
  CLI::App app(kDescription, "pack-run");
  PackRunFlags flags;
  add_flags(app, flags);
  add_common_flags(app);
  app.footer(kExamples);
  return run_command(app, argc, argv, [&] { return run_pack_run(app, flags); });
}
