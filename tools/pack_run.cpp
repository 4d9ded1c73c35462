// pack-run: the plan of packs → their parts, or the finished packs.
#include <malloc.h>

#include "chunkhit/error.h"
#include "chunkhit/pack.h"
#include "cli.h"
#include "field_flags.h"
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

void add_flags(Command& command) {
  command.add_argument("FOLDER", "Folder of the plan (the --output that was planned)");
  command.add(
      {"--task", "LIST", "Pack only these tasks, counted from 0: 17 or 3,17,40-42 (all, then finish)"});
  command.add({"--root", "FOLDER", "Folder of the inputs on this machine (as in the plan)"});
  Flag pair{"--pair", "[NAME=]FOLDER", "Folder of a field on this machine (as in the plan); may be repeated"};
  pair.takes = Flag::Takes::list;
  command.add(std::move(pair));
  command.add({"--threads", "N", "Worker threads (all available CPUs)"});
  command.add({"--memory-bytes", "SIZE", "Memory limit of the process (2G)"});
  command.add_progress_flag();
}

RunPlanOptions run_options(Command& command) {
  RunPlanOptions options;
  if (command["--task"].is_given()) options.tasks = parse_tasks("--task", command["--task"].text());
  options.root = command["--root"].text();
  options.pair = command["--pair"].given;
  read_flag(command["--threads"], options.threads, CountForm{1, kMaxThreads, "all"});
  read_flag(command["--memory-bytes"], options.memory_bytes, BytesForm{});
  options.folder = plan_folder(command["FOLDER"].text());
  return options;
}

/// Calls `work`; an error that names flags which pack-run has not says whose they are.
template <class Work>
auto naming_planner(Command& command, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    const std::string text = error.what();
    std::string flags;
    for (std::size_t open = text.find('`'); open != std::string::npos; open = text.find('`', open)) {
      const std::size_t close = text.find('`', open + 1);
      if (close == std::string::npos) break;
      const std::string flag = flag_text(text.substr(open, close + 1 - open));
      if (flag.starts_with("--") && command.find(flag) == nullptr)
        flags.append(flags.empty() ? "" : ", ").append(flag);
      open = close + 1;
    }
    if (flags.empty()) throw;
    throw Error(error.code(), text + "; " + flags + " belongs to the command that planned");
  }
}

int run_pack_run(Command& command) {
  const RunPlanOptions options = run_options(command);
  const auto show = [](const PackProgress& progress) { return shown(progress, false); };
  const RunPlanReport report = naming_planner(command, [&] {
    return with_progress(progress_style(command["--progress"].text()), options, show,
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
  root_name = "--root";
  Command command("pack-run", kDescription, kExamples);
  add_flags(command);
  return command.run(argc, argv, [&] { return run_pack_run(command); });
}
