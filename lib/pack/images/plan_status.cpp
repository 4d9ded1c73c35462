// How far the packs of a plan are.
#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/aside_name.h"
#include "base/hash.h"
#include "base/throw_error.h"
#include "chunkhit/pack.h"
#include "manifest/plan.h"
#include "pack/images/plan_rows.h"
#include "pack/output_pack.h"
#include "pack/parallel_files.h"

namespace chunkhit {
namespace {

/// Returns whether a pack of the plan is finished, also when others were appended to it; throws bad_data if
/// another pack is in its folder.
bool is_finished(const std::string& folder, const PlannedPack& pack) {
  const std::string path = pack_path(folder, pack.name);
  const std::optional<AnyManifest> held = held_pack(path, kImagePacks);
  if (!held) return false;
  const PackManifest& finished = held->manifest();
  if (std::ranges::find(finished.sources, pack.pack_id, &SourcePack::pack_id) == finished.sources.end())
    throw_bad_data(path + ": holds a finished pack, " + hash_text(finished.pack_id) +
                   ", that is not the plan's, " + hash_text(pack.pack_id));
  return true;
}

}  // namespace

bool are_finished(const std::string& folder, const PackPlan& plan) {
  const auto unfinished =
      std::ranges::count_if(plan.packs, [&](const auto& pack) { return !is_finished(folder, pack); });
  return unfinished == 0;
}

namespace {

/// Counts the finished parts of a pack and collects the tasks of the missing ones.
void add_pack(const std::string& folder, const PlannedPack& pack, std::uint64_t first_part,
              std::set<std::uint64_t>& missing, PlanStatus& status) {
  const std::string path = pack_path(folder, pack.name);
  std::mutex mutex;
  for_each_file(pack.parts, [&](std::size_t part) {
    const std::optional<PartManifest> found = planned_part(path, kImagePacks, pack.pack_id, part);
    const std::lock_guard lock(mutex);
    if (!found) missing.insert((first_part + part) % status.tasks);
    status.parts_done += found ? 1 : 0;
    status.rejected += found ? found->part.rejects.size() : 0;
  });
  for (const std::string& name : folder_entries(path))
    if (is_left_over(name))
      status.begun.push_back((pack.name.empty() ? "" : pack.name + "/") + begun_text(path, name));
}

}  // namespace

bool has_plan(const std::string& folder) {
  const std::optional<PackPlan> plan = read_plan(folder);
  return plan && !are_finished(folder, *plan);
}

PlanStatus read_plan_status(const std::string& folder) {
  const std::optional<PackPlan> plan = read_plan(folder);
  if (!plan) throw_bad_data(folder + ": holds no " + std::string(kPlanName));
  PlanStatus status{.path = folder,
                    .rows = plan->rows,
                    .tasks = plan->tasks,
                    .parts = plan->parts(),
                    .max_rejected = plan->max_rejected};
  const PlanRows rows(folder, *plan);
  std::set<std::uint64_t> missing;
  std::uint64_t first_part = 0;
  for (std::size_t index = 0; index < plan->packs.size(); ++index) {
    add_pack(folder, plan->packs[index], first_part, missing, status);
    status.rejected += rows.rejects(index).size();
    first_part += plan->packs[index].parts;
  }
  status.missing_tasks.assign(missing.begin(), missing.end());
  std::ranges::sort(status.begun);
  return status;
}

}  // namespace chunkhit
