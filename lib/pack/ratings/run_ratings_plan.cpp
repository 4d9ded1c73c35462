#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <compare>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/aside_name.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "chunkhit/pack.h"
#include "listing/root_folder.h"
#include "manifest/id_list.h"
#include "manifest/plan.h"
#include "pack/images/plan_rows.h"
#include "pack/output_folder.h"
#include "pack/pack_folder.h"
#include "pack/ratings/id_lists.h"
#include "pack/ratings/matrix_pack_writer.h"
#include "pack/ratings/pack_sparse_spec.h"
#include "pack/ratings/ratings_plan.h"
#include "pack/ratings/ratings_stages.h"
#include "pack/ratings/sparse_run.h"
#include "ratings/id_map.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

/// Reads a sealed file of this plan; nothing where it is missing, damaged or of another plan: it is then made
/// again.
template <class Parse>
auto read_stage_file(const std::string& path, const RatingsPlan& plan, Parse parse)
    -> std::optional<decltype(parse(std::string_view(), path))> {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    auto found = parse(as_text(read_file(path, kMaxManifestBytes)), path);
    if (found.plan_id == plan.id()) return found;
  } catch (const Error& failure) {
    if (failure.code() != ErrorCode::bad_data) throw;
  }
  return std::nullopt;
}

/// Removes a folder that was not renamed.
struct AsideFolder {
  std::string path;
  AsideFolder(std::string made) : path(std::move(made)) {}
  AsideFolder(const AsideFolder&) = delete;
  AsideFolder& operator=(const AsideFolder&) = delete;
  ~AsideFolder() {
    std::error_code error;
    fs::remove_all(path, error);
  }
};

/// The stages of a plan of ratings.
class RatingsRun {
 public:
  RatingsRun(const RunPlanOptions& options, const RatingsPlan& plan)
      : options_(options),
        plan_(plan),
        spec_(spec_of_plan()),
        stages_(stage_folder(options.folder, plan)),
        root_(options.root.empty() ? plan.root : options.root),
        tasks_(options.tasks.begin(), options.tasks.end()),
        start_(start_run()) {}

  RunPlanReport run() {
    make_folders(stages_);
    if (options_.stage == PlanStage::count) {
      count_inputs();
    } else if (options_.stage == PlanStage::columns) {
      make_columns();
    } else {
      const std::optional<PlanColumns> columns =
          options_.stage == PlanStage::pack ? columns_of_pack() : make_columns();
      if (columns) pack_inputs(*columns);
      if (columns && options_.stage == PlanStage::all && !report_.interrupted) finish(*columns);
    }
    report_.seconds = start_.seconds();
    return std::move(report_);
  }

 private:
  [[nodiscard]] PackSparseSpec spec_of_plan() {
    try {
      return sparse_spec_of(plan_.spec, given_ids_);
    } catch (const Error& error) {
      throw Error(ErrorCode::bad_data, std::string(kPlanName) + ": " + error.what());
    }
  }

  /// The inputs of this run's tasks.
  [[nodiscard]] std::vector<std::uint64_t> inputs_to_do() const {
    std::vector<std::uint64_t> inputs;
    for (std::uint64_t input = 0; input < plan_.inputs.size(); ++input)
      if (tasks_.empty() || tasks_.contains(input % plan_.tasks)) inputs.push_back(input);
    return inputs;
  }

  /// The path of an input; throws try_again where it is not there, bad_data where it is another file.
  [[nodiscard]] std::string input_path(std::uint64_t index) const {
    const PlannedInput& input = plan_.inputs[index];
    std::string path = root_ + "/" + input.file;
    std::error_code error;
    const std::uint64_t bytes = fs::file_size(path, error);
    if (error)
      throw Error(ErrorCode::try_again, path + ": " + error.message() +
                                            "; is its file system mounted on this machine? `root` names the "
                                            "folder of the inputs where it is another one here");
    if (bytes != input.bytes)
      throw Error(ErrorCode::bad_data, path + ": has " + count_text(bytes, "byte") + ", " +
                                           count_text(input.bytes) + " when it was planned; plan again");
    return path;
  }

  [[nodiscard]] PackSparseOptions run_options(std::uint64_t input) {
    PackSparseOptions options;
    options.inputs = {input_path(input)};
    options.threads = options_.threads;
    options.memory_bytes = options_.memory_bytes;
    options.on_error = plan_.skips_bad_lines ? OnError::skip : OnError::fail;
    options.max_errors = {plan_.max_error_share, plan_.max_errors};
    options.command_line = plan_.command_line;
    options.stop = options_.stop;
    options.on_progress = [this](const PackSparseProgress&) { tell(); };
    return options;
  }

  /// Calls `work`; an error of the input names it.
  template <class Work>
  auto with_input_name(std::uint64_t input, Work work) const {
    const std::string& file = plan_.inputs[input].file;
    try {
      return work();
    } catch (const Error& error) {
      const std::string text = error.what();
      if (error.code() != ErrorCode::bad_data || text.find(file) != std::string::npos) throw;
      throw Error(ErrorCode::bad_data, file + ": " + text);
    }
  }

  void tell() const {
    if (options_.on_progress) options_.on_progress(progress_);
  }

  void begin(const char* stage, std::size_t inputs) {
    progress_ = {};
    progress_.phase = PackProgress::Phase::packing;
    progress_.pack = std::string(stage) + " " + options_.folder;
    progress_.counts_inputs = true;
    progress_.rows_total = inputs;
    tell();
  }

  /// Notes that a stage is done for an input; the report counts it once.
  void note_done(std::uint64_t input) {
    done_now_.insert(input);
    report_.inputs_done_now = done_now_.size();
  }

  [[nodiscard]] std::optional<PlanCount> read_count(std::uint64_t input) const {
    const std::string path = stages_ + "/" + numbered("count", input);
    const auto parse = [](std::string_view text, const std::string& name) {
      return parse_plan_count(text, name);
    };
    std::optional<PlanCount> count = read_stage_file(path + ".json", plan_, parse);
    const bool is_kept =
        count && is_whole(path + ".csv", count->items) && is_whole(path + ".users", count->users);
    return is_kept ? count : std::nullopt;
  }

  /// Counts the inputs of this run's tasks that are not counted.
  void count_inputs() {
    const std::vector<std::uint64_t> inputs = inputs_to_do();
    begin("counting", inputs.size());
    for (const std::uint64_t input : inputs) {
      if (!read_count(input)) count_input(input);
      if (report_.interrupted) return;
      ++progress_.rows_done;
      tell();
    }
  }

  /// The file of the given columns; throws bad_data where they are not those that were planned.
  [[nodiscard]] std::string given_items() const {
    std::string path = stages_ + "/" + std::string(kGivenItemsName);
    if (hash_of_ids(read_item_ids(path)) != given_ids_.reuse_ids)
      throw Error(ErrorCode::bad_data, path + ": is not what was planned; plan again with `force`");
    return path;
  }

  void count_input(std::uint64_t input) {
    PackSparseSpec spec = spec_;
    spec.packs.item_order = ItemOrder::first;
    spec.packs.rules.min_item = 0;  // known only when all inputs are counted
    if (plan_.reuses_items) spec.reuse_ids = given_items();
    PackSparseOptions options = run_options(input);
    options.output = stages_;
    const InputCount found = with_input_name(input, [&] { return count_sparse(spec, options); });
    report_.interrupted = found.interrupted;
    if (found.interrupted) return;
    IdListWriter list(stages_, numbered("count", input) + ".csv", kItemsHeader);
    for (std::size_t item = 0; item < found.items.size(); ++item)
      list.add(found.item_ratings[item], found.items[item]);
    CompleteList items = list.complete();
    items.file.publish();
    PlanCount count{plan_.id(),
                    found.input_xxh3,
                    found.lines,
                    found.bad_lines,
                    found.columns_text,
                    found.values.all_one(),
                    {},
                    found.rows,
                    found.ratings,
                    found.longest_row,
                    items.record,
                    write_hashes(stages_, numbered("count", input) + ".users", found.users)};
    for (const ValueFit::Scale& scale : found.values.scales())
      count.value_scales.push_back(scale.fits ? std::optional(scale.largest) : std::nullopt);
    publish_file(stages_ + "/" + numbered("count", input) + ".json", plan_count_text(count));
    note_done(input);
  }

  [[nodiscard]] std::optional<PlanColumns> read_columns() const {
    const auto parse = [](std::string_view text, const std::string& name) {
      return parse_plan_columns(text, name);
    };
    std::optional<PlanColumns> columns =
        read_stage_file(stages_ + "/" + std::string(kColumnsName), plan_, parse);
    const bool is_kept = columns && is_whole(stages_ + "/" + std::string(kItemsName), columns->items);
    return is_kept ? columns : std::nullopt;
  }

  /// The columns, which a task of the stage `pack` does not make itself: every task would count all inputs.
  [[nodiscard]] PlanColumns columns_of_pack() const {
    std::optional<PlanColumns> columns = read_columns();
    if (!columns)
      throw Error(ErrorCode::try_again,
                  stages_ + "/" + std::string(kColumnsName) + ": is missing; run `stage` columns first");
    return *std::move(columns);
  }

  /// Counts what is not counted, and makes the columns of all counts.
  std::optional<PlanColumns> make_columns() {
    if (std::optional<PlanColumns> columns = read_columns()) return columns;
    tasks_.clear();
    count_inputs();
    if (report_.interrupted) return std::nullopt;
    ItemCounts items;
    std::vector<UserOfInput> users;
    PlanColumns columns{plan_.id(), {}, 0, {}, false};
    PlanCount all;
    ValueFit values;
    for (std::uint64_t input = 0; input < plan_.inputs.size(); ++input) {
      const std::optional<PlanCount> count = read_count(input);
      const std::string path = stages_ + "/" + numbered("count", input);
      if (!count) throw Error(ErrorCode::try_again, path + ".json: was removed meanwhile");
      add_count(*count, input, all);
      values.add(value_fit(*count, path + ".json"));
      add_items(path + ".csv", count->items, items);
      add_users(path + ".users", count->users, input, users);
    }
    check_users(users);
    check_bad_lines(all);
    columns.values = spec_.packs.rules.values.value_or(values.stored());
    columns.items = write_columns(items);
    columns.chunk_rows = chunk_rows(all, columns.values, items.ratings.size());
    columns.lacks_users =
        lacks_users(planned_table(stages_, kUserColumnsName, given_ids_.user_columns), users);
    publish_file(stages_ + "/" + std::string(kColumnsName), plan_columns_text(columns));
    return columns;
  }

  /// Sums up counts; throws bad_data where two inputs are read differently.
  void add_count(const PlanCount& count, std::uint64_t input, PlanCount& all) const {
    if (input == 0) all.columns_text = count.columns_text;
    if (count.columns_text != all.columns_text)
      throw Error(ErrorCode::bad_data,
                  plan_.inputs[input].file + ": " + count.columns_text + "; " + plan_.inputs[0].file + ": " +
                      all.columns_text +
                      "; expected the same: plan again with `header`, `user`, `item`, `value`, "
                      "`delimiter` and `quote`");
    all.lines += count.lines;
    all.bad_lines += count.bad_lines;
    all.rows += count.rows;
    all.ratings += count.ratings;
    all.longest_row = std::max(all.longest_row, count.longest_row);
  }

  /// Throws bad_data where a user is in two inputs: rules and split would see a part of the user's ratings.
  void check_users(std::vector<UserOfInput>& users) const {
    std::ranges::sort(users);
    const auto twice = std::ranges::adjacent_find(users, {}, &UserOfInput::id);
    if (twice == users.end()) return;
    throw Error(ErrorCode::bad_data,
                plan_.inputs[twice->input].file + ", " + plan_.inputs[(twice + 1)->input].file +
                    ": have users in common; expected each user in one input alone. Group "
                    "the ratings by user (samples/jobs/group_dask.py) and plan again");
  }

  /// Each input kept to the limit by itself; a count is for all of them together.
  void check_bad_lines(const PlanCount& all) const {
    if (plan_.max_errors == 0 || all.bad_lines <= plan_.max_errors) return;
    throw Error(ErrorCode::too_many_rejects, count_text(all.bad_lines, "bad line") + " of " +
                                                 count_text(all.lines) + " in all inputs, `max_errors` is " +
                                                 count_text(plan_.max_errors));
  }

  /// Writes items.csv: the columns in their order, and their ratings in all inputs.
  FileRecord write_columns(const ItemCounts& items) const {
    std::vector<std::uint32_t> order(items.ratings.size());
    std::iota(order.begin(), order.end(), 0u);
    if (!plan_.reuses_items) {
      if (spec_.packs.item_order == ItemOrder::sorted) order = items.ids.sorted();
      if (spec_.packs.item_order == ItemOrder::popularity)
        std::ranges::stable_sort(order, std::ranges::greater(),
                                 [&](auto item) { return items.ratings[item]; });
      const std::uint64_t min_ratings = std::max<std::uint64_t>(1, spec_.packs.rules.min_item);
      std::erase_if(order, [&](auto item) { return items.ratings[item] < min_ratings; });
    }
    if (order.empty()) throw Error(ErrorCode::bad_data, "no item is left, in any input");
    IdListWriter list(stages_, kItemsName, kItemsHeader);
    for (const std::uint32_t item : order) list.add(items.ratings[item], items.ids.text(item));
    CompleteList complete = list.complete();
    complete.file.publish();
    return complete.record;
  }

  [[nodiscard]] std::uint64_t chunk_rows(const PlanCount& all, const StoredValues& values,
                                         std::uint64_t item_count) const {
    if (spec_.container != "shard" || spec_.chunk_rows > 0) return spec_.chunk_rows;
    PackStats stats;
    stats.x = {all.ratings, all.longest_row};
    const std::uint32_t matrices = spec_.packs.split.kind == SplitKind::none ? 1 : 2;
    return plan_chunk_rows(stats, all.rows, {item_count, matrices, values.type, values.scale});
  }

  [[nodiscard]] std::string packed_path(std::uint64_t input) const {
    return stages_ + "/" + numbered("pack", input);
  }

  [[nodiscard]] bool is_packed(std::uint64_t input) const {
    std::error_code error;
    return fs::is_directory(packed_path(input), error);
  }

  /// Packs the inputs of this run's tasks that are not packed.
  void pack_inputs(const PlanColumns& columns) {
    if (options_.stage == PlanStage::all) tasks_.clear();
    const std::vector<std::uint64_t> inputs = inputs_to_do();
    begin("packing", inputs.size());
    PackSparseSpec spec = spec_;
    spec.reuse_ids = stages_ + "/" + std::string(kItemsName);
    const bool are_chosen = plan_.reuses_items || spec_.packs.rules.min_item > 0;
    const PlannedValues planned{!are_chosen, columns.values, columns.lacks_users};
    spec.item_columns = planned_table(stages_, kItemColumnsName, given_ids_.item_columns);
    spec.user_columns = planned_table(stages_, kUserColumnsName, given_ids_.user_columns);
    spec.packs.rules.min_item = 0;  // the columns keep to it
    spec.chunk_rows = columns.chunk_rows;
    for (const std::uint64_t input : inputs) {
      if (!is_packed(input)) pack_input(spec, planned, input);
      if (report_.interrupted) return;
      ++progress_.rows_done;
      tell();
    }
  }

  /// Packs into a folder of this process alone; the first of several that is renamed stays.
  void pack_input(const PackSparseSpec& spec, const PlannedValues& planned, std::uint64_t input) {
    const AsideFolder aside(make_aside_path(packed_path(input)));
    PackSparseOptions options = run_options(input);
    options.output = aside.path;
    report_.interrupted =
        with_input_name(input, [&] { return pack_sparse_input(spec, options, planned); }).interrupted;
    if (report_.interrupted) return;
    check_unchanged(aside.path, input);
    if (!fs::exists(stages_)) throw Error(ErrorCode::try_again, stages_ + ": was removed meanwhile");
    make_folders(aside.path);  // also where no pack has rows
    if (::rename(aside.path.c_str(), packed_path(input).c_str()) != 0 && !is_packed(input))
      throw_write_error(packed_path(input), "cannot rename", errno);
    note_done(input);
  }

  /// Throws bad_data where an input is not what was counted: its items may have no columns.
  void check_unchanged(const std::string& packed, std::uint64_t input) const {
    const std::optional<PlanCount> count = read_count(input);
    for (const std::string& name : pack_names(spec_.packs.split)) {
      const auto pack = OutputFolder::finished_matrix_pack(name.empty() ? packed : packed + "/" + name);
      if (count && pack && pack->input_xxh3 != count->input_xxh3)
        throw Error(ErrorCode::bad_data,
                    plan_.inputs[input].file + ": changed since it was counted; plan again with `force`");
    }
  }

  /// The packs of all inputs that belong to a pack of the split; inputs without rows for it have none.
  [[nodiscard]] MergeOptions packs_of(const std::string& name,
                                      const std::vector<std::uint64_t>& item_ratings) const {
    MergeOptions merge;
    merge.output = name.empty() ? options_.folder : options_.folder + "/" + name;
    merge.planned_item_ratings = item_ratings;
    for (const SpecEntry& entry : recorded_spec(spec_, given_ids_, name))
      merge.planned_spec.emplace_back(entry.name, entry.value);
    const std::vector<std::string> names = pack_names(spec_.packs.split);
    if (name != names.front()) merge.planned_stats = options_.folder + "/" + names.front();
    merge.command_line = plan_.command_line;
    merge.stop = options_.stop;
    for (std::uint64_t input = 0; input < plan_.inputs.size(); ++input) {
      std::string pack = packed_path(input) + (name.empty() ? "" : "/" + name);
      std::error_code error;
      if (fs::is_directory(pack, error) && !fs::is_empty(pack, error)) merge.packs.push_back(std::move(pack));
    }
    if (merge.packs.empty())
      throw Error(ErrorCode::usage, "`split_by`: " + name + " gets no rows from any input");
    return merge;
  }

  /// Merges; waits for another process that finishes the same packs, unless the machine stays in the way.
  [[nodiscard]] MergeReport merge_with_retries(const MergeOptions& merge) const {
    constexpr auto kPause = std::chrono::milliseconds(100);
    constexpr int kTries = 300;
    for (int tries = 1;; ++tries) {
      try {
        return merge_packs(merge);
      } catch (const Error& error) {
        const bool is_stopped = options_.stop != nullptr && *options_.stop;
        if (error.code() != ErrorCode::try_again || tries == kTries || is_stopped) throw;
      }
      std::this_thread::sleep_for(kPause);
    }
  }

  /// Merges the packs of all inputs, and removes the plan.
  void finish(const PlanColumns& columns) {
    ItemCounts items;
    add_items(stages_ + "/" + std::string(kItemsName), columns.items, items);
    std::vector<MergeOptions> merges;
    for (const std::string& name : pack_names(spec_.packs.split))
      merges.push_back(packs_of(name, items.ratings));
    for (const MergeOptions& merge : merges) {
      MergeReport merged = merge_with_retries(merge);
      report_.interrupted = merged.interrupted;
      if (report_.interrupted) return;
      report_.merged.push_back(std::move(merged));
    }
    remove_plan(options_.folder);
    remove_stage_folders(options_.folder);
    report_.finished = true;
  }

  const RunPlanOptions& options_;
  const RatingsPlan& plan_;
  RecordedIds given_ids_;
  PackSparseSpec spec_;
  std::string stages_;
  std::string root_;
  std::set<std::uint64_t> tasks_;
  std::set<std::uint64_t> done_now_;  ///< inputs that this run counted or packed
  RunStart start_;
  PackProgress progress_;
  RunPlanReport report_;
};

}  // namespace

RunPlanReport run_ratings_plan(const RunPlanOptions& options, const RatingsPlan& plan) {
  if (options.stage == PlanStage::all && !options.tasks.empty())
    throw Error(ErrorCode::usage,
                "`task`: tasks of a plan of ratings need `stage`: count; then columns, once; then pack");
  if (options.stage == PlanStage::columns && !options.tasks.empty())
    throw Error(ErrorCode::usage, "`task`: the stage columns is done once, for all tasks");
  return RatingsRun(options, plan).run();
}

}  // namespace chunkhit
