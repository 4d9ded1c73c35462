#include "unfinished_packs.h"

#include <cstdio>
#include <vector>

#include "base/words.h"
#include "cli.h"

namespace chunkhit {

std::string warned_text(std::uint64_t warned) {
  return warned == 0 ? "" : ", " + count_text(warned) + " packed with warnings";
}

void print_unfinished(const UnfinishedPack& pack) {
  std::printf("%s: unfinished, last written %s\n", printable_text(pack.path).c_str(),
              pack.last_write.c_str());
  std::printf("parts      %s finished: %s done, %s packed, %s rejected%s; %s\n",
              count_text(pack.parts).c_str(), count_text(pack.rows, "row").c_str(),
              count_text(pack.samples).c_str(), count_text(pack.rejected).c_str(),
              warned_text(pack.warned).c_str(), bytes_text(static_cast<double>(pack.bytes)).c_str());
  for (const std::string& file : pack.begun) std::printf("begun      %s\n", printable_text(file).c_str());
  if (pack.has_rejects)
    std::printf("rejects    see %s (rows so far)\n", printable_text(pack.path + "/rejects.csv").c_str());
  std::printf("next: rerun the same command to finish it%s\n",
              pack.has_rejects ? "; where rejects ended it, mend them or raise --max-errors" : "");
}

namespace {

/// "17,103-104", as sbatch --array and pack-run --task take them.
std::string task_list(const std::vector<std::uint64_t>& tasks) {
  std::string text;
  for (std::size_t first = 0; first < tasks.size();) {
    std::size_t last = first;
    while (last + 1 < tasks.size() && tasks[last + 1] == tasks[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(tasks[first]);
    if (last > first) text += "-" + std::to_string(tasks[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace

void print_plan_status(const PlanStatus& status) {
  const std::string path = printable_text(status.path);
  std::printf("%s: plan of %s, %s in %s\n", path.c_str(), count_text(status.rows, "row").c_str(),
              count_text(status.parts, "part").c_str(), count_text(status.tasks, "task").c_str());
  std::printf("parts      %s done, %s missing\n", count_text(status.parts_done).c_str(),
              count_text(status.parts - status.parts_done).c_str());
  std::printf("rejected   %s of %s allowed\n", count_text(status.rejected, "row").c_str(),
              count_text(status.max_rejected).c_str());
  for (const std::string& file : status.begun) std::printf("begun      %s\n", printable_text(file).c_str());
  const std::string missing = task_list(status.missing_tasks);
  const std::string folder = printable_text(shell_word(status.path));
  if (!missing.empty()) std::printf("missing    tasks %s; some of them may be running\n", missing.c_str());
  if (status.rejected > status.max_rejected)
    std::printf(
        "next: too many images are rejected: repair them, then run the pack-images command without --plan\n");
  else if (!missing.empty())
    std::printf("next, once no task runs: sbatch --array=%s …, or pack-run %s\n", missing.c_str(),
                folder.c_str());
  else
    std::printf("next: pack-run %s finishes it\n", folder.c_str());
}

}  // namespace chunkhit
