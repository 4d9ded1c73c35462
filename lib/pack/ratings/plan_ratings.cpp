#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "chunkhit/pack.h"
#include "chunkhit/version.h"
#include "manifest/id_list.h"
#include "manifest/plan.h"
#include "pack/output_folder.h"
#include "pack/pack_folder.h"
#include "pack/ratings/column_table.h"
#include "pack/ratings/id_lists.h"
#include "pack/ratings/pack_ratings.h"
#include "pack/ratings/pack_sparse_spec.h"
#include "pack/ratings/ratings_plan.h"
#include "pack/ratings/read_inputs.h"
#include "pack/ratings/sparse_outputs.h"
#include "ratings/rating_format.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

/// Throws usage for what tasks that see one input each cannot do.
void check_planned(const PackSparseSpec& spec) {
  const RatingRules& rules = spec.packs.rules;
  const RatingSplitSpec& split = spec.packs.split;
  const std::string otherwise =
      "; choose the items elsewhere and give them as `reuse_ids`, or pack without `plan`";
  if (rules.min_item > 0 && rules.min_user > 0)
    throw_usage("`min_item` with `min_user`: each changes what the other counts, in all inputs" + otherwise);
  if (rules.min_item > 0 && (split.kind != SplitKind::none || !spec.reuse_ids.empty()))
    throw_usage("`min_item` in a plan: only without `split_by` and `reuse_ids`" + otherwise);
  if (split.kind == SplitKind::given)
    throw_usage("`split_by` given: the inputs of a plan are for all packs; give another `split_by`");
  if (!split.validation_users.empty() || !split.test_users.empty())
    throw_usage("`validation_users`, `test_users`: a plan takes shares; give `validation` and `test`");
  if (split.kind == SplitKind::users && split.validation.count + split.test.count > 0)
    throw_usage("`validation`, `test`: a plan takes shares of the users, as 0.1: no task sees all users");
  if (split.kind == SplitKind::time && !split.validation.is_none())
    throw_usage(
        "`validation` with `split_by` time: the latest ratings of all inputs, of which no task sees all");
  if (split.kind == SplitKind::time && !split.before)
    throw_usage("`split_by` time: a plan takes the time as `before`: no task sees all ratings");
}

/// The folder that all inputs are in.
fs::path common_folder(const std::vector<fs::path>& inputs) {
  fs::path common = inputs[0].parent_path();
  for (const fs::path& input : inputs)
    while (!common.empty() && common != common.root_path() &&
           std::mismatch(common.begin(), common.end(), input.begin(), input.end()).first != common.end())
      common = common.parent_path();
  return common;
}

void add_inputs(const std::vector<std::string>& given, RatingsPlan& plan) {
  std::vector<fs::path> paths;
  for (const std::string& path : given) {
    std::error_code error;
    if (path == "-" || is_pack_path(path) || !fs::is_regular_file(path, error))
      throw_usage("`inputs`: " + path + ": expected a file of ratings; each user is in one file alone");
    paths.push_back(fs::canonical(path));
  }
  const fs::path root = common_folder(paths);
  plan.root = root.string();
  for (const fs::path& path : paths)
    plan.inputs.push_back({path.lexically_relative(root).string(), fs::file_size(path),
                           fs::last_write_time(path).time_since_epoch().count()});
  std::vector<fs::path> sorted = paths;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) throw_usage("`inputs`: " + twice->string() + " is repeated");
}

/// Throws usage for several inputs whose users are the numbers of their rows: row 0 of each would be one
/// user.
void check_ids(const PackSparseSpec& spec, const std::vector<std::string>& inputs) {
  if (inputs.size() < 2) return;
  const RatingFormat format = input_format(spec.input, inputs.front());
  if (format == RatingFormat::svmlight || format == RatingFormat::matrix_market ||
      format == RatingFormat::npz)
    throw_usage("`inputs`: " + inputs.front() + ": is " + name_of(format) +
                ", whose users are names or numbers of one file, maybe the same in every input; a plan needs "
                "ids: write the "
                "ratings as tables of user, item and value, or pack without `plan`");
}

RatingsPlan plan_of(const PackSparseSpec& spec, const PackSparseOptions& options, const RecordedIds& recorded,
                    std::uint64_t tasks) {
  RatingsPlan plan;
  plan.tool = "pack-sparse " + version();
  for (const auto& [name, number] : library_versions()) plan.libraries.push_back({name, number});
  plan.command_line = options.command_line;
  plan.skips_bad_lines = options.on_error == OnError::skip;
  plan.max_errors = options.max_errors.count;
  plan.max_error_share = options.max_errors.share;
  plan.reuses_items = !recorded.reuse_ids.empty();
  plan.spec = recorded_spec(spec, recorded, "");
  add_inputs(options.inputs, plan);
  check_ids(spec, options.inputs);
  plan.tasks = std::min<std::uint64_t>(tasks, plan.inputs.size());
  return plan;
}

ColumnTables read_columns(const PackSparseSpec& spec, const PackSparseOptions& options) {
  if (spec.item_columns.empty() && spec.user_columns.empty()) return {};
  return ColumnTables::read(spec, id_column_names(spec.input, options.inputs), nullptr);
}

/// Writes the given columns where the tasks find them.
void write_given_items(const std::string& folder, const std::vector<std::string>& ids) {
  make_folders(folder);
  IdListWriter list(folder, kGivenItemsName, kItemsHeader);
  for (const std::string& id : ids) list.add(0, id);
  CompleteList complete = list.complete();
  complete.file.publish();
}

/// Throws cannot_write where the output holds the plan of other packs: its tasks may be running.
void check_earlier_plan(const PackSparseOptions& options, const RatingsPlan& plan) {
  std::error_code error;
  if (options.force || !fs::exists(options.output + "/" + std::string(kPlanName), error)) return;
  const std::optional<RatingsPlan> before = read_ratings_plan(options.output);
  if (before && before->id() == plan.id()) return;
  throw Error(ErrorCode::cannot_write,
              options.output + ": holds the plan of " +
                  (before ? "other settings or of inputs that changed" : "packs of images") +
                  ", whose tasks may be running; `force` removes it with all that was packed");
}

}  // namespace

PlanReport plan_sparse(const PackSparseSpec& given_spec, const PackSparseOptions& given,
                       std::uint64_t tasks) {
  PackSparseSpec spec = given_spec;
  spec.packs.split.users_by_id = spec.packs.split.kind == SplitKind::users;
  PackSparseOptions options = given;
  while (options.output.size() > 1 && options.output.ends_with('/')) options.output.pop_back();
  if (tasks < 1) throw_usage("`plan`: expected at least one task");
  if (options.output.empty()) throw_usage("`output` is required: a folder for the plan and its packs");
  if (options.inputs.empty()) throw_usage("`inputs` is required: one or more files of ratings");
  check_planned(spec);
  check_spec(spec);
  const RunStart start = start_run();
  std::vector<std::string> items;
  if (!spec.reuse_ids.empty()) items = read_item_ids(spec.reuse_ids, {"`reuse_ids`"});
  RecordedIds recorded;
  if (!items.empty()) recorded.reuse_ids = hash_of_ids(items);
  const ColumnTables columns = read_columns(spec, options);
  columns.record(recorded);
  const RatingsPlan plan = plan_of(spec, options, recorded, tasks);
  check_outside_packs(options.output);
  check_earlier_plan(options, plan);
  // Checks what the output holds, and removes packs with `force`.
  static_cast<void>(SparseOutputs(spec, options, {}));
  PlanReport report{.path = options.output};
  make_folders(options.output);
  const std::optional<RatingsPlan> before = read_ratings_plan(options.output);
  if (before && before->tasks != plan.tasks)
    report.notices.push_back("replaces a plan of " + count_text(before->tasks, "task") +
                             ": numbers of its tasks mean other inputs now");
  if (tasks > plan.tasks)
    report.notices.push_back("`plan` " + count_text(tasks) + ": there are " +
                             count_text(plan.inputs.size(), "input") +
                             ", which is the most tasks that the plan can have");
  remove_stage_folders(options.output, options.force ? "" : stage_folder(options.output, plan));
  const std::string stages = stage_folder(options.output, plan);
  if (!items.empty()) write_given_items(stages, items);
  if (columns.items || columns.users) make_folders(stages);
  if (columns.items) columns.items->write(stages, kItemColumnsName);
  if (columns.users) columns.users->write(stages, kUserColumnsName);
  const std::string text = ratings_plan_text(plan);
  publish_file(options.output + "/" + std::string(kPlanName), text);
  report.tasks = plan.tasks;
  report.parts = plan.inputs.size();
  report.bytes = text.size();
  report.seconds = start.seconds();
  return report;
}

}  // namespace chunkhit
