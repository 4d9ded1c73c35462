#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/resources.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/pack.h"
#include "manifest/plan.h"
#include "pack/images/image_input.h"
#include "pack/images/mask_decoder.h"
#include "pack/images/pack_task.h"
#include "pack/images/plan_rows.h"
#include "pack/images/rejects.h"
#include "pack/output_pack.h"
#include "pack/run_frame.h"

namespace chunkhit {
namespace {

/// Returns whether all packs are finished already.
bool are_finished(const ImageRun& run, const ImageInput& input) {
  return !run.options.force && std::ranges::all_of(input.packs, [&](const PackSamples& samples) {
    const auto finished = finished_pack(pack_path(run.options.output, samples.name), kImagePacks);
    const PackIdentity wanted = image_pack(run.spec, input.first.sample, input.list, samples);
    return finished && finished->manifest().pack_id == wanted.pack_id;
  });
}

/// The containers below the root; throws usage for one that other machines could not read.
std::vector<PlannedContainer> planned_containers(const PackImagesOptions& options, const SampleList& list) {
  std::vector<PlannedContainer> planned;
  const auto root = std::filesystem::canonical(options.root);
  for (const SampleContainer& container : list.containers) {
    const std::string& path = container.file.path();
    if (container.listed != container.stamp)
      throw_usage("`plan`: " + path +
                  ": is read from a copy on this machine; tasks on others need plain "
                  "tars: unpack it to one");
    planned.push_back({(std::filesystem::canonical(std::filesystem::absolute(path).parent_path()) /
                        std::filesystem::path(path).filename())
                           .lexically_relative(root)
                           .string(),
                       container.file.byte_count()});
  }
  return planned;
}

/// Fills what plan.json says of the list; its packs and the file of rows follow.
PackPlan plan_of(const PackImagesOptions& options, const RunRecord& run, const SampleList& list,
                 const FirstImage& first) {
  PackPlan plan;
  plan.tool = run.tool;
  plan.libraries = run.libraries;
  plan.command_line = run.command_line;
  plan.root = std::filesystem::canonical(options.root).string();
  plan.input_xxh3 = list.xxh3;
  plan.rows = list.row_count;
  plan.max_rejected = RejectLimit(options, list.row_count).allowed();
  plan.sample = first.sample;
  plan.first_file = first.file;
  plan.first_file_bytes = first.bytes;
  plan.file_column = list.file_column;
  plan.class_labels = list.label_kind == LabelKind::class_id;
  plan.label_columns = list.label_columns;
  plan.columns = column_types(list.columns);
  plan.classes = list.classes;
  plan.containers = planned_containers(options, list);
  return plan;
}

/// Writes the rows of all parts, then plan.json, whose existence makes the folder a plan.
void write_plan(const ImageRun& run, const ImageInput& input, PackPlan plan, PlanReport& report) {
  const auto& [spec, options, source] = run;
  make_folders(options.output);
  remove_plan_left_overs(options.output);
  PlanRowsWriter rows(options.output);
  for (const PackSamples& samples : input.packs) {
    const std::span<const std::uint32_t> all(samples.indices);
    const ChunkPlan chunks = plan_pack(spec, plan.sample, all.size());
    rows.add_parts(input.list, all, chunks.part_samples);
    const PackIdentity pack = image_pack(spec, plan.sample, input.list, samples);
    plan.packs.push_back({samples.name, pack.pack_id, pack.spec, all.size(), chunks.part_count});
  }
  for (const PackSamples& samples : input.packs) rows.add_rejects(samples.rejects);
  plan.rows_file = rows.publish();
  if (plan.tasks > plan.parts())
    report.notices.push_back("`plan` " + count_text(plan.tasks) + ": the packs have " +
                             count_text(plan.parts(), "part") +
                             ", which is the most tasks that they can have; a smaller "
                             "`part_bytes` makes more parts");
  plan.tasks = std::min(plan.tasks, plan.parts());
  const std::string text = plan_text(plan);
  publish_file(options.output + "/" + std::string(kPlanName), text);
  report.tasks = plan.tasks;
  report.parts = plan.parts();
  report.bytes = plan.rows_file.bytes + text.size();
}

}  // namespace

PlanReport plan_images(const PackImagesSpec& given_spec, const PackImagesOptions& given,
                       std::uint64_t tasks) {
  ImageRun run = checked_run(given_spec, given);
  const auto& [spec, options, source] = run;
  if (tasks < 1) throw_usage("`plan`: expected at least one task");
  RunFrame frame("pack-images", options.command_line, options.stop);
  if (options.on_progress) options.on_progress({});
  PlanReport report{.path = options.output};
  std::optional<ImageInput> input = read_image_input(run);
  report.interrupted = !input;
  if (!input) return report;
  count_part_samples(run, input->list);
  report.rows = input->list.row_count;
  report.rejected = input->list.rejects.size();
  report.notices = std::move(input->notices);
  report.labels = std::move(input->labels);
  RejectLimit rejects(options, input->list.row_count);
  for (const Reject& reject : input->list.rejects) rejects.add(reject);
  const std::vector<std::string> stale = check_outputs(run, *input);
  for (const PackSamples& samples : input->packs)
    check_earlier_pack(spec, options, input->list, input->first.sample, samples);
  report.already_finished = are_finished(run, *input);
  if (report.already_finished) return report;
  for (const std::string& path : stale) OutputPack(kImagePacks, path, false).remove();
  for (const PackSamples& samples : input->packs)
    OutputPack(kImagePacks, pack_path(options.output, samples.name), options.force);
  PackPlan plan = plan_of(options, frame.record, input->list, input->first);
  const RootFolder root(options.root, spec.follow_symlinks);
  for (const FieldPlace& pair : pairs_of(spec))
    plan.masks.push_back(std::filesystem::canonical(pair.place).string());
  for (const PairFolder& pair : pair_folders(spec, plan.sample.pairs))
    if (pair.folder)
      plan.masks_xxh3.push_back(with_retries(
          [&] { return pair_hash(root, pair, input->list, input->packs.front().indices.front()); }));
  plan.tasks = tasks;
  if (const auto before = read_plan(options.output); before && before->tasks != tasks)
    report.notices.push_back("replaces a plan of " + count_text(before->tasks, "task") +
                             ": numbers of its tasks mean other parts now");
  frame.execute(options.threads > 0 ? options.threads : allowed_cpus(),
                [&] { write_plan(run, *input, std::move(plan), report); });
  report.seconds = frame.seconds();
  return report;
}

}  // namespace chunkhit
