#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "chunkhit/pack.h"
#include "listing/root_folder.h"
#include "manifest/plan.h"
#include "manifest/split_packs.h"
#include "pack/images/mask_decoder.h"
#include "pack/images/memory_plan.h"
#include "pack/images/pack_spec.h"
#include "pack/images/pack_task.h"
#include "pack/images/pack_writer.h"
#include "pack/images/plan_rows.h"
#include "pack/output_pack.h"
#include "pack/run_frame.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

/// Throws bad_data for another version than the one that planned: its pixels may differ.
void check_version(const PackPlan& plan, const std::string& folder) {
  const std::string difference = version_difference(plan);
  if (!difference.empty())
    throw_bad_data(folder + ": " + difference + ": contents could differ; use the version that planned");
}

/// What to say where libraries differ: the parts of all builds have equal contents, and raw ones equal bytes.
std::vector<std::string> library_notices(const PackPlan& plan, const std::string& folder) {
  const std::string differences = library_differences(plan);
  if (differences.empty()) return {};
  return {folder + ": " + differences + ": compressed chunks may have other bytes, with the same contents"};
}

/// Reads a finished pack; throws bad_data where a part of it is not there in its size.
PackManifest checked_pack(const std::string& folder) {
  const std::optional<AnyManifest> held = held_pack(folder, kImagePacks);
  if (!held)
    throw Error(ErrorCode::try_again, folder + ": another process removed this pack; run the command again");
  PackManifest finished = held->manifest();
  for (const PartRecord& part : finished.parts) {
    if (has_size(folder + "/" + part.file, part.bytes)) continue;
    throw_bad_data(folder + "/" + part.file + ": is missing, or not of its " +
                   count_text(part.bytes, "byte") +
                   ", in a finished pack; pack-verify says how to repair it");
  }
  return finished;
}

/// Throws bad_data if the plan that a task began with was replaced or removed: its parts then belong to no
/// pack.
void check_plan(const std::string& folder, const PackPlan& plan) {
  const std::optional<PackPlan> now = read_plan(folder);
  const auto same_id = [](const PlannedPack& a, const PlannedPack& b) { return a.pack_id == b.pack_id; };
  if (now && version_difference(*now).empty() && std::ranges::equal(now->packs, plan.packs, same_id)) return;
  if (!now && are_finished(folder, plan)) return;
  throw_bad_data(folder + ": the plan was " + (now ? "replaced" : "removed") +
                 " while this task ran; its unpublished parts are dropped");
}

/// Whether a file was deleted: its folder is there, and not as empty as a mount point.
bool is_deleted(const RootFolder& root, const std::string& file) {
  if (!root.open(file).error.is_missing() || !root.lacks(file)) return false;
  root.check_mounted(file);
  return true;
}

[[noreturn]] void throw_elsewhere(const std::string& found, const std::string& flag) {
  throw Error(ErrorCode::try_again, found + "; is its file system mounted on this machine? " + flag +
                                        " where it is another one here");
}

/// Opens the folder of the images and checks that it is the planned one by the size of the first file: a
/// machine on which it is not mounted would otherwise reject every image. If that was deleted, it is a
/// reject.
RootFolder open_root(const PackPlan& plan, const PackImagesOptions& options, const PackImagesSpec& spec) {
  const std::string path = options.root + "/" + plan.first_file;
  std::string found;
  try {
    RootFolder root(options.root, spec.follow_symlinks);
    if (!plan.containers.empty()) return root;  // they are compared when they are opened
    const RootFolder::File file = with_retries([&] { return root.open(plan.first_file); });
    if (!file.error && file.bytes == plan.first_file_bytes) return root;
    if (is_deleted(root, plan.first_file)) return root;
    found = file.error ? file.error.reason()
                       : "has " + count_text(file.bytes, "byte") + ", " + count_text(plan.first_file_bytes) +
                             " when it was planned";
  } catch (const Error& error) {
    found = error.what();
  }
  throw_elsewhere(path + ": " + found, "`root` names the folder of the images");
}

/// Throws try_again where the folder of a field is not there, or is given and lacks the file of the first
/// image, or of the first row where rows name files; usage where it has another file there.
void check_masks(const RunPlanOptions& given, const PackPlan& plan, const PackImagesSpec& spec,
                 const PlanRows& rows, const RootFolder& root) {
  constexpr const char* kAdvice = "`pair` names the folder of the field";
  std::size_t field = 0;
  try {
    const std::vector<PairFolder> pairs = pair_folders(spec, plan.sample.pairs);
    if (given.pair.empty() || !plan.containers.empty() || is_deleted(root, plan.first_file)) return;
    const SampleList first = rows.part(0);
    for (; field < pairs.size(); ++field) {
      const bool is_listed = first.find_field(pairs[field].field.name) != nullptr;
      static_cast<void>(is_listed ? open_pair(root, pairs[field], first, 0)
                                  : open_pair(root, pairs[field], plan.first_file));
      const std::uint64_t planned = plan.masks_xxh3.empty() ? 0 : plan.masks_xxh3[field];
      const std::uint64_t found =
          planned == 0 ? 0 : with_retries([&] { return pair_hash(root, pairs[field], first, 0); });
      if (found != planned)
        throw Error(ErrorCode::usage,
                    "`pair`: " + pairs_of(spec)[field].place + ": the " + pairs[field].field.name + " of " +
                        std::string(first.file(0)) +
                        (found == 0 ? " is not there" : " is another file than when it was planned") +
                        "; each field needs its own folder");
    }
  } catch (const ImageError& error) {
    throw_elsewhere(pairs_of(spec)[field].place + ": " + plan.first_file + " " + error.reason(), kAdvice);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::usage) throw;
    throw_elsewhere(error.what(), kAdvice);
  }
}

PackImagesOptions run_options(const RunPlanOptions& given, const PackPlan& plan) {
  PackImagesOptions options;
  options.root = given.root.empty() ? plan.root : given.root;
  options.output = given.folder;
  options.threads = given.threads;
  options.memory_bytes = given.memory_bytes;
  options.trust_inputs = true;               // the list is frozen, and finishing reads metadata alone
  options.command_line = plan.command_line;  // run.json says how to make the pack again
  options.on_progress = given.on_progress;
  options.stop = given.stop;
  return options;
}

/// Describes one pack of the plan; `first_part` is the number of its first part among all parts of the plan.
PackTask planned_pack(const RunPlanOptions& given, const PackPlan& plan, const PlanRows& rows,
                      std::size_t pack_index, std::uint64_t first_part, std::uint64_t part_samples) {
  const PlannedPack& pack = plan.packs[pack_index];
  PackTask task;  // not by braces: see "How to work here"
  task.name = pack.name;
  task.identity.spec = pack.spec;
  task.identity.pack_id = pack.pack_id;
  task.sample_count = pack.samples;
  task.rejects = rows.rejects(pack_index);
  task.identity.check_plan = [&given, &plan] { check_plan(given.folder, plan); };
  task.rows = [&rows, first_part, part_samples](std::uint64_t first, std::uint64_t count) {
    auto list = std::make_shared<const SampleList>(rows.part(first_part + first / part_samples));
    if (list->size() != count)
      throw_bad_data("plan.rows: part " + std::to_string(first_part + first / part_samples) + ": expected " +
                     count_text(count, "row") + ", found " + count_text(list->size()));
    std::vector<std::uint32_t> indices(count);
    std::iota(indices.begin(), indices.end(), 0u);
    const SampleList* const samples = list.get();
    return PartRows{samples, std::move(indices), std::move(list)};
  };
  return task;
}

/// The fields with their folders on this machine: the given ones, or the plan's, which may be that of the
/// images.
std::vector<std::string> pairs_here(const RunPlanOptions& given, const PackPlan& plan) {
  const std::vector<SampleField>& fields = plan.sample.pairs;
  if (plan.masks.empty() && !given.pair.empty())
    throw_usage(!fields.empty() ? "`pair`: the plan's masks are members of tars, below `root`"
                                : "`pair`: the plan's images have no masks");
  std::vector<FieldPlace> pairs;
  for (std::size_t i = 0; i < plan.masks.size(); ++i) {
    const bool is_root = plan.masks[i] == plan.root && !given.root.empty();
    pairs.push_back({fields[i], is_root ? given.root : plan.masks[i]});
  }
  PackImagesSpec spec;
  spec.pair = given.pair;
  for (const FieldPlace& input : pairs_of(spec)) {
    const auto has_name = [&](const FieldPlace& pair) { return pair.field.name == input.field.name; };
    const auto pair = std::ranges::find_if(pairs, has_name);
    if (pair != pairs.end())
      pair->place = input.place;
    else if (pairs.size() == 1 && has_usual_name(input.field))
      pairs.front().place = input.place;
    else
      throw_usage("`pair`: the plan has no field '" + input.field.name + "', but " +
                  joined(fields, ", ", &SampleField::name));
  }
  return field_texts(pairs);
}

/// Parses the specs of the packs.
std::vector<PackImagesSpec> pack_specs(const RunPlanOptions& given, const PackPlan& plan) {
  const std::vector<std::string> pairs = pairs_here(given, plan);
  std::vector<PackImagesSpec> specs;
  for (const PlannedPack& pack : plan.packs) {
    try {
      specs.push_back(spec_of(pack.spec));
      specs.back().pair = pairs;
    } catch (const Error& error) {
      throw_bad_data(std::string("plan.json: ") + error.what());
    }
  }
  return specs;
}

/// Plans the chunks of the packs; throws bad_data if they divide into other parts than the plan says.
std::vector<ChunkPlan> pack_chunks(const PackPlan& plan, const std::vector<PackImagesSpec>& specs) {
  std::vector<ChunkPlan> chunks;
  for (std::size_t index = 0; index < specs.size(); ++index) {
    const PlannedPack& pack = plan.packs[index];
    chunks.push_back(plan_pack(specs[index], plan.sample, pack.samples));
    if (chunks.back().part_count != pack.parts)
      throw_bad_data("plan.json: packs: " + std::to_string(pack.parts) + " parts, expected " +
                     std::to_string(chunks.back().part_count));
  }
  return chunks;
}

/// Packs the parts of some tasks, or everything that is missing.
class PlanRun {
 public:
  PlanRun(const RunPlanOptions& given, const PackPlan& plan)
      : given_(given),
        plan_(plan),
        options_(run_options(given, plan)),
        frame_("pack-images", plan.command_line, given.stop),
        specs_(pack_specs(given, plan)),
        chunks_(pack_chunks(plan, specs_)),
        rows_(given.folder, plan, options_.root),
        root_(open_root(plan, options_, specs_.front())),
        tasks_(given.tasks.begin(), given.tasks.end()) {
    check_masks(given, plan, specs_.front(), rows_, root_);
  }

  RunPlanReport run() {
    frame_.record.tool = plan_.tool;
    frame_.root = absolute_root(options_.root);
    // Memory is planned for the pack with the largest chunks, which is enough for the others.
    const MemoryPlan memory =
        plan_memory(specs_.front(), options_, plan_.sample,
                    *std::ranges::max_element(chunks_, {}, &ChunkPlan::chunk_bytes), frame_.held_bytes());
    frame_.execute(memory.threads, [&] { run_packs(memory); });
    report_.finished = tasks_.empty() && !report_.interrupted;
    report_.seconds = frame_.seconds();
    return std::move(report_);
  }

 private:
  void run_packs(const MemoryPlan& memory) {
    const ImageSource source =
        PlanSource{enum_of<LabelSource>(plan_.packs.front().spec.get("labels")) == LabelSource::folders,
                   plan_.containers.empty() && is_deleted(root_, plan_.first_file)};
    RunContext run{frame_,
                   options_,
                   source,
                   rows_.header(),
                   DecoderContext{specs_.front(), root_, plan_.sample, plan_.first_file,
                                  MemoryBudget(memory.decode_bytes), memory.kept_bytes},
                   RejectLimit(plan_.max_rejected, plan_.rows),
                   PackProgress{.rows_total = rows_to_do()},
                   memory};
    std::uint64_t first_part = 0;
    for (std::size_t index = 0; index < plan_.packs.size() && !report_.interrupted; ++index) {
      run.progress.pack = pack_path(given_.folder, plan_.packs[index].name);
      run_pack(run, index, first_part);
      first_part += plan_.packs[index].parts;
    }
  }

  void run_pack(RunContext& run, std::size_t index, std::uint64_t first_part) {
    const PlannedPack& pack = plan_.packs[index];
    std::vector<std::uint64_t> parts;
    // Parts are dealt to the tasks in turn, so that every task gets about as many of every pack.
    for (std::uint64_t part = 0; part < pack.parts; ++part)
      if (tasks_.contains((first_part + part) % plan_.tasks)) parts.push_back(part);
    if (!tasks_.empty() && parts.empty()) return;
    PackWriter writer(run, specs_[index],
                      planned_pack(given_, plan_, rows_, index, first_part, chunks_[index].part_samples));
    report_.packs.push_back(tasks_.empty() ? writer.write() : writer.write_parts(parts));
    report_.samples_packed_now += writer.samples_packed_now();
    report_.interrupted = writer.interrupted();
  }

  /// Counts the rows of this run's tasks, for the progress display.
  [[nodiscard]] std::uint64_t rows_to_do() const {
    std::uint64_t rows = 0;
    std::uint64_t part = 0;
    for (std::size_t index = 0; index < plan_.packs.size(); ++index) {
      const PlannedPack& pack = plan_.packs[index];
      const std::uint64_t part_samples = chunks_[index].part_samples;
      for (std::uint64_t at = 0; at < pack.parts; ++at, ++part)
        if (tasks_.empty() || tasks_.contains(part % plan_.tasks))
          rows += std::min(part_samples, pack.samples - at * part_samples);
    }
    return rows;
  }

  const RunPlanOptions& given_;
  const PackPlan& plan_;
  PackImagesOptions options_;
  RunFrame frame_;
  std::vector<PackImagesSpec> specs_;
  std::vector<ChunkPlan> chunks_;  ///< of each pack
  PlanRows rows_;
  RootFolder root_;
  std::set<std::uint64_t> tasks_;
  RunPlanReport report_;
};

/// Removes the temporary files of killed tasks, then the plan.
void clean_up(const std::string& folder, const PackPlan& plan) {
  for (const PlannedPack& pack : plan.packs)
    OutputPack(kImagePacks, pack_path(folder, pack.name), false, true).remove_left_overs();
  remove_plan_left_overs(folder);
  remove_plan(folder);
}

/// Whether all packs of the split of which `pack` is the one called `own_name` are finished; others may have
/// been appended to them.
bool is_split_finished(const std::string& folder, const std::string& own_name, const SourcePack& pack) {
  const std::vector<std::string> names = split_pack_names(pack.spec);
  const auto is_there = [&](const std::string& name) {
    const std::string path = folder + "/" + name;
    if (!holds_pack(path, kImagePacks)) return false;
    const PackManifest manifest = checked_pack(path);
    return std::ranges::any_of(manifest.sources, [&](const SourcePack& other) {
      return other.input_xxh3 == pack.input_xxh3 && other.spec.get("split-name") == name;
    });
  };
  return std::ranges::find(names, own_name) != names.end() && std::ranges::all_of(names, is_there);
}

/// Whether a folder without a plan holds what some run finished: a pack, or all packs of a split.
bool holds_finished_packs(const std::string& folder) {
  if (holds_pack(folder, kImagePacks)) {
    static_cast<void>(checked_pack(folder));
    return true;
  }
  for (const std::string& name : folder_entries(folder)) {
    if (!holds_pack(folder + "/" + name, kImagePacks)) continue;
    const PackManifest found = checked_pack(folder + "/" + name);
    return std::ranges::any_of(found.sources,
                               [&](const SourcePack& pack) { return is_split_finished(folder, name, pack); });
  }
  return false;
}

/// Reads the plan in a folder; none if its packs are finished. Retries, because a shared file system may
/// show what another machine wrote a second or two late; none once `stop` is true. Throws bad_data if there
/// is neither.
std::optional<PackPlan> await_plan(const std::string& folder, const std::atomic<bool>* stop) {
  constexpr int kTries = 4, kLooks = 20;
  const auto is_stopped = [stop] { return stop != nullptr && *stop; };
  for (int tries = 1;; ++tries) {
    std::optional<PackPlan> plan = read_plan(folder);
    if (plan || holds_finished_packs(folder)) return plan;
    if (tries == kTries)
      throw_bad_data(folder + ": holds no " + std::string(kPlanName) + "; `plan` of pack-images writes one");
    for (int look = 0; look < kLooks && !is_stopped(); ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(1000) / kLooks);
    if (is_stopped()) return std::nullopt;
  }
}

void check_tasks(const std::vector<std::uint64_t>& tasks, std::uint64_t planned) {
  for (const std::uint64_t task : tasks)
    if (task >= planned)
      throw_usage("`task`: found " + std::to_string(task) + ", expected 0 to " + std::to_string(planned - 1) +
                  ", as the plan has " + count_text(planned, "task"));
}

}  // namespace

RunPlanReport run_plan(const RunPlanOptions& options) {
  const std::optional<PackPlan> plan = await_plan(options.folder, options.stop);
  RunPlanReport done;
  done.interrupted = !plan && options.stop != nullptr && *options.stop;
  done.finished = !done.interrupted;
  if (!plan) return done;
  check_tasks(options.tasks, plan->tasks);
  if (are_finished(options.folder, *plan)) {
    for (const PlannedPack& pack : plan->packs)
      static_cast<void>(checked_pack(pack_path(options.folder, pack.name)));
    if (options.tasks.empty()) clean_up(options.folder, *plan);
    return done;
  }
  check_version(*plan, options.folder);
  try {
    RunPlanReport report = PlanRun(options, *plan).run();
    report.notices = library_notices(*plan, options.folder);
    if (report.finished) clean_up(options.folder, *plan);
    return report;
  } catch (const Error& error) {
    // Another process finished the packs meanwhile and removed the plan.
    if (error.code() == ErrorCode::usage || !are_finished(options.folder, *plan)) throw;
    return done;
  }
}

}  // namespace chunkhit
