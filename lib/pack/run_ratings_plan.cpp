#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <system_error>
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
#include "pack/matrix_pack_writer.h"
#include "pack/output_folder.h"
#include "pack/pack_folder.h"
#include "pack/pack_sparse_spec.h"
#include "pack/plan_rows.h"
#include "pack/ratings_plan.h"
#include "pack/sparse_run.h"
#include "ratings/id_map.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kColumnsName = "columns.json";

/// "count-00017"
std::string numbered(const std::string& kind, std::uint64_t index) {
  return kind + part_stem(index).substr(std::string("part").size());
}

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

/// Whether a list is on disk as its record says.
bool is_there(const std::string& path, const FileRecord& record) {
  std::error_code error;
  return fs::file_size(path, error) == record.bytes && !error;
}

/// The items of all inputs by their first appearance, and the ratings of each.
struct ItemCounts {
  IdMap ids;
  std::vector<std::uint64_t> ratings;
};

/// Adds the list of one input; throws try_again where it is not what was counted: another process may be
/// replacing it.
void add_items(const std::string& path, const FileRecord& record, ItemCounts& items) {
  const ByteBuffer bytes = read_file(path, record.bytes);
  if (bytes.size() != record.bytes || xxh3(bytes) != record.xxh3)
    throw Error(ErrorCode::try_again,
                path + ": is not what count-NNNNN.json says; remove both and count again");
  std::size_t taken = 0;
  IdListReader list(path, [&](MutableBytes out) {
    const std::size_t count = std::min(out.size(), bytes.size() - taken);
    std::copy_n(bytes.data() + taken, count, out.data());
    taken += count;
    return count;
  });
  while (list.next()) {
    const std::size_t number = items.ids.add(std::string(list.id()));
    if (number == items.ratings.size()) items.ratings.push_back(0);
    items.ratings[number] += list.ratings();
  }
}

ValueFit value_fit(const PlanCount& count, const std::string& path) {
  std::array<ValueFit::Scale, ValueFit::kScales.size()> scales{};
  if (count.value_scales.size() != scales.size())
    throw Error(ErrorCode::bad_data, path + ": value_scales: expected " + std::to_string(scales.size()));
  for (std::size_t at = 0; at < scales.size(); ++at)
    scales[at] = {count.value_scales[at].has_value(), count.value_scales[at].value_or(0)};
  return {count.all_one, scales};
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
      if (options_.stage == PlanStage::all && !report_.interrupted) finish();
    }
    report_.seconds = start_.seconds();
    return std::move(report_);
  }

 private:
  [[nodiscard]] PackSparseSpec spec_of_plan() const {
    try {
      RecordedIds ids;
      return sparse_spec_of(plan_.spec, ids);
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
                                            "; is its file system mounted on this machine? `root`, where the "
                                            "inputs have another folder here");
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

  [[nodiscard]] std::optional<PlanCount> read_count(std::uint64_t input) const {
    const std::string path = stages_ + "/" + numbered("count", input);
    const auto parse = [](std::string_view text, const std::string& name) {
      return parse_plan_count(text, name);
    };
    std::optional<PlanCount> count = read_stage_file(path + ".json", plan_, parse);
    return count && is_there(path + ".csv", count->items) ? count : std::nullopt;
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

  void count_input(std::uint64_t input) {
    PackSparseSpec spec = spec_;
    spec.packs.item_order = ItemOrder::first;
    spec.packs.rules.min_item = 0;  // known only when all inputs are counted
    if (plan_.reuses_items) spec.reuse_ids = stages_ + "/" + std::string(kGivenItemsName);
    const InputCount found = count_sparse(spec, run_options(input));
    report_.interrupted = found.interrupted;
    if (found.interrupted) return;
    IdListWriter list(stages_, numbered("count", input) + ".csv", kItemsHeader);
    for (std::size_t item = 0; item < found.items.size(); ++item)
      list.add(found.item_ratings[item], found.items[item]);
    CompleteList items = list.complete();
    items.file.publish();
    PlanCount count{plan_.id(), found.lines, found.bad_lines, found.columns_text, found.values.all_one(),
                    {},         found.rows,  found.ratings,   found.longest_row,  items.record};
    for (const ValueFit::Scale& scale : found.values.scales())
      count.value_scales.push_back(scale.fits ? std::optional(scale.largest) : std::nullopt);
    publish_file(stages_ + "/" + numbered("count", input) + ".json", plan_count_text(count));
    ++report_.inputs_done_now;
  }

  [[nodiscard]] std::optional<PlanColumns> read_columns() const {
    const auto parse = [](std::string_view text, const std::string& name) {
      return parse_plan_columns(text, name);
    };
    std::optional<PlanColumns> columns =
        read_stage_file(stages_ + "/" + std::string(kColumnsName), plan_, parse);
    return columns && is_there(stages_ + "/" + std::string(kItemsName), columns->items) ? columns
                                                                                        : std::nullopt;
  }

  /// The columns, which a task of the stage `pack` does not make itself: every task would count all inputs.
  [[nodiscard]] PlanColumns columns_of_pack() const {
    std::optional<PlanColumns> columns = read_columns();
    if (!columns)
      throw Error(ErrorCode::try_again,
                  stages_ + "/" + std::string(kColumnsName) + ": is not there yet; `stage` columns makes it");
    return *std::move(columns);
  }

  /// Counts what is not counted, and makes the columns of all counts.
  std::optional<PlanColumns> make_columns() {
    if (std::optional<PlanColumns> columns = read_columns()) return columns;
    tasks_.clear();
    count_inputs();
    if (report_.interrupted) return std::nullopt;
    ItemCounts items;
    PlanColumns columns{plan_.id(), {}, 0, {}};
    PlanCount all;
    ValueFit values;
    for (std::uint64_t input = 0; input < plan_.inputs.size(); ++input) {
      const std::optional<PlanCount> count = read_count(input);
      const std::string path = stages_ + "/" + numbered("count", input);
      if (!count) throw Error(ErrorCode::try_again, path + ".json: was removed meanwhile");
      add_count(*count, input, all);
      values.add(value_fit(*count, path + ".json"));
      add_items(path + ".csv", count->items, items);
    }
    check_bad_lines(all);
    columns.values = spec_.packs.rules.values.value_or(values.stored());
    columns.items = write_columns(items);
    columns.chunk_rows = chunk_rows(all, columns.values, items.ratings.size());
    publish_file(stages_ + "/" + std::string(kColumnsName), plan_columns_text(columns));
    return columns;
  }

  /// Sums up counts; throws bad_data where two inputs are read differently.
  void add_count(const PlanCount& count, std::uint64_t input, PlanCount& all) const {
    if (input == 0) all.columns_text = count.columns_text;
    if (count.columns_text != all.columns_text)
      throw Error(ErrorCode::bad_data, plan_.inputs[input].file + ": " + count.columns_text + "; " +
                                           plan_.inputs[0].file + ": " + all.columns_text +
                                           "; expected the same: give `header`, `user`, `item` and `value`");
    all.lines += count.lines;
    all.bad_lines += count.bad_lines;
    all.rows += count.rows;
    all.ratings += count.ratings;
    all.longest_row = std::max(all.longest_row, count.longest_row);
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
    spec.packs.rules.values = columns.values;
    spec.packs.rules.min_item = 0;  // the columns keep to it
    spec.chunk_rows = columns.chunk_rows;
    for (const std::uint64_t input : inputs) {
      if (!is_packed(input)) pack_input(spec, input);
      if (report_.interrupted) return;
      ++progress_.rows_done;
      tell();
    }
  }

  /// Packs into a folder of this process alone; the first of several that is renamed stays.
  void pack_input(const PackSparseSpec& spec, std::uint64_t input) {
    const AsideFolder aside(make_aside_path(packed_path(input)));
    PackSparseOptions options = run_options(input);
    options.output = aside.path;
    report_.interrupted = pack_sparse_input(spec, options).interrupted;
    if (report_.interrupted) return;
    make_folders(aside.path);  // also where no pack has rows
    if (::rename(aside.path.c_str(), packed_path(input).c_str()) != 0 && !is_packed(input))
      throw_write_error(packed_path(input), "cannot rename", errno);
    ++report_.inputs_done_now;
  }

  /// Merges the packs of all inputs, and removes the plan.
  void finish() {
    for (const std::string& name : pack_names(spec_.packs.split)) {
      MergeOptions merge;
      merge.output = name.empty() ? options_.folder : options_.folder + "/" + name;
      merge.finishes_plan = true;
      merge.command_line = plan_.command_line;
      merge.stop = options_.stop;
      for (std::uint64_t input = 0; input < plan_.inputs.size(); ++input) {
        std::string pack = packed_path(input) + (name.empty() ? "" : "/" + name);
        if (!held_format(pack).empty()) merge.packs.push_back(std::move(pack));
      }
      if (merge.packs.empty())
        throw Error(ErrorCode::usage, "`split_by`: " + name + " gets no rows; give it more");
      MergeReport merged = merge_inputs(merge);
      report_.interrupted = merged.interrupted;
      if (report_.interrupted) return;
      report_.merged.push_back(std::move(merged));
    }
    remove_plan(options_.folder);
    remove_stage_folders(options_.folder);
    report_.finished = true;
  }

  [[nodiscard]] static MergeReport merge_inputs(const MergeOptions& merge) {
    try {
      return merge_packs(merge);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      throw Error(ErrorCode::bad_data, std::string(error.what()) +
                                           "; pack-NNNNN is of the input of this number, from 0: each user "
                                           "must be in one input alone");
    }
  }

  const RunPlanOptions& options_;
  const RatingsPlan& plan_;
  PackSparseSpec spec_;
  std::string stages_;
  std::string root_;
  std::set<std::uint64_t> tasks_;
  RunStart start_;
  PackProgress progress_;
  RunPlanReport report_;
};

}  // namespace

std::optional<RatingsPlan> read_ratings_plan(const std::string& folder) {
  const std::string path = folder + "/" + std::string(kPlanName);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const ByteBuffer bytes = with_retries([&] { return read_file(path, kMaxManifestBytes); });
  if (manifest_format(as_text(bytes), path) != kRatingsPlanFormat) return std::nullopt;
  return parse_ratings_plan(as_text(bytes), path);
}

std::string stage_folder(const std::string& folder, const RatingsPlan& plan) {
  return folder + "/" + std::string(kStageFolderBegin) + hash_text(plan.id());
}

RunPlanReport run_ratings_plan(const RunPlanOptions& options, const RatingsPlan& plan) {
  if (options.stage == PlanStage::all && !options.tasks.empty())
    throw Error(ErrorCode::usage,
                "`task`: tasks of a plan of ratings need `stage`: count; then columns, once; then pack");
  if (options.stage == PlanStage::columns && !options.tasks.empty())
    throw Error(ErrorCode::usage, "`task`: the stage columns is done once, for all tasks");
  return RatingsRun(options, plan).run();
}

PlanStatus ratings_plan_status(const std::string& folder, const RatingsPlan& plan) {
  PlanStatus status{.path = folder, .tasks = plan.tasks, .parts = plan.inputs.size()};
  const std::string stages = stage_folder(folder, plan);
  std::error_code error;
  const bool has_columns = fs::exists(stages + "/" + std::string(kColumnsName), error);
  std::set<std::uint64_t> missing;
  for (std::uint64_t input = 0; input < plan.inputs.size(); ++input) {
    const bool is_packed = fs::exists(stages + "/" + numbered("pack", input), error);
    const bool is_counted = fs::exists(stages + "/" + numbered("count", input) + ".json", error);
    status.parts_done += is_packed ? 1 : 0;
    if (has_columns ? !is_packed : !is_counted) missing.insert(input % plan.tasks);
  }
  status.missing_tasks.assign(missing.begin(), missing.end());
  status.stage = has_columns ? PlanStage::pack : missing.empty() ? PlanStage::columns : PlanStage::count;
  for (const std::string& name : folder_entries(stages))
    if (!name_written_aside(name).empty()) status.begun.push_back(begun_text(name));
  std::ranges::sort(status.begun);
  return status;
}

}  // namespace chunkhit
