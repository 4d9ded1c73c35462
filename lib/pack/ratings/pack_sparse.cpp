#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/resources.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/pack.h"
#include "manifest/plan.h"
#include "manifest/split_packs.h"
#include "pack/ratings/id_lists.h"
#include "pack/ratings/matrix_pack_writer.h"
#include "pack/ratings/pack_ratings.h"
#include "pack/ratings/pack_sparse_spec.h"
#include "pack/ratings/sparse_input.h"
#include "pack/ratings/sparse_outputs.h"
#include "pack/ratings/sparse_run.h"
#include "pack/run_fields.h"
#include "ratings/rating_fields.h"
#include "store/part.h"

namespace chunkhit {
namespace {

using Phase = PackSparseProgress::Phase;

/// Rows of the dense batch whose size is reported.
constexpr std::uint64_t kBatchRows = 500;

GivenIds read_given_ids(const PackSparseSpec& spec, const SparseMemory& memory) {
  const RatingSplitSpec& split = spec.packs.split;
  GivenIds ids;
  if (!spec.reuse_ids.empty()) ids.items = read_item_ids(spec.reuse_ids, {"`reuse_ids`", &memory});
  if (!split.validation_users.empty())
    ids.validation_users = read_user_ids(split.validation_users, {"`validation_users`", &memory});
  if (!split.test_users.empty()) ids.test_users = read_user_ids(split.test_users, {"`test_users`", &memory});
  return ids;
}

/// The spec records hashes of the lists: the same command with another list is another pack.
RecordedIds recorded_ids(const GivenIds& ids, const ColumnTables& columns) {
  RecordedIds recorded;
  columns.record(recorded);
  if (ids.items) recorded.reuse_ids = hash_of_items(*ids.items);
  if (!ids.validation_users.empty()) recorded.validation_users = hash_of_ids(ids.validation_users);
  if (!ids.test_users.empty()) recorded.test_users = hash_of_ids(ids.test_users);
  return recorded;
}

void add_read(const InputRead& read, PackSparseReport& report) {
  report.notices = read.notices;
  report.input_bytes = read.stats.total().bytes;
  constexpr std::size_t kFirstLines = 5;
  std::set<std::string> kinds;
  for (const InputBadLine& bad : read.stats.first_bad_lines())
    if (kinds.insert(bad.line.problem.expected).second || report.bad_lines.size() < kFirstLines)
      report.bad_lines.push_back(bad_line_text(bad));
}

/// Warns where more than a tenth of a pack's ratings is left out: what is left is another test.
void warn_of_lost(const PackRows& pack, const RatingPacksSpec& spec, PackSparseReport& report) {
  const PackStats& stats = pack.stats();
  const std::uint64_t kept = stats.held_out.nnz + (spec.split.is_by_user() ? stats.x.nnz : 0);
  const std::string lost = lost_ratings_text(pack.name(), report.stats, kept);
  if (!pack.has_held_out() || lost.empty()) return;
  std::string text = "warning: " + lost + ": ";
  if (stats.unseen_ratings > 0) text += count_text(stats.unseen_ratings) + " of items that training lacks";
  if (stats.unseen_ratings > 0 && stats.ratings_left_out > 0) text += " and ";
  if (stats.ratings_left_out > 0)
    text += count_text(stats.ratings_left_out) + " of users without both given and held-out ratings";
  if (stats.users_left_out > 0)
    text += "; " + count_text(stats.users_left_out, "user") + (stats.users_left_out == 1 ? " is" : " are") +
            " left out";
  // New items are not rare ones: a limit does not drop them.
  constexpr std::uint64_t kMinItem = 5;
  const bool drops_rare = spec.rules.min_item < kMinItem && spec.split.split_by != SplitKind::time;
  if (stats.unseen_ratings > 0 && drops_rare)
    text += "; `min_item` " + std::to_string(kMinItem) + ", say, drops rare items before the split";
  report.notices.push_back(std::move(text));
}

void add_packs(const RatingPacks& packs, const ReadStats& read, const RatingPacksSpec& spec,
               PackSparseReport& report) {
  report.stats = make_rating_stats(read, packs);
  report.values = packs.stored;
  for (const PackRows& pack : packs.packs) warn_of_lost(pack, spec, report);
  const double batch_bytes =
      static_cast<double>(dense_batch_bytes(kBatchRows, packs.columns().items.size(), sizeof(float)));
  std::string text =
      "a dense f32 batch of " + std::to_string(kBatchRows) + " rows is " + bytes_text(batch_bytes);
  if (batch_bytes > static_cast<double>(1 << 30)) text += ": read CSR batches instead";
  report.notices.push_back(text);
}

MatrixPackReport finished_report(const SparseOutput& output) {
  const MatrixManifest& finished = *output.finished->ratings;
  MatrixPackReport report{output.pack.path(),
                          finished.rows,
                          finished.columns,
                          finished.matrices,
                          finished.parts.size(),
                          finished.chunk_rows,
                          0,
                          true};
  for (const PartRecord& part : finished.parts) report.bytes += part.bytes;
  return report;
}

void check_inputs(const PackSparseSpec& spec, const PackSparseOptions& options) {
  if (options.inputs.empty()) throw_usage("`inputs` is required: one or more files of ratings");
  if (std::count(options.inputs.begin(), options.inputs.end(), "-") > 1)
    throw_usage("stdin can be read only once");
  for (const std::string& path : options.inputs) check_local_input("`inputs`", path);
  // Checked before the output folder is made and before other inputs are read.
  for (const std::string& path : options.inputs)
    if (path != "-" && ::access(path.c_str(), R_OK) != 0)
      throw_failed_read(path, "cannot be opened: ", errno);
  const RatingSplitSpec& split = spec.packs.split;
  if (split.split_by == SplitKind::given && split.files.count() != options.inputs.size())
    throw_usage("split given: expected " + count_text(split.files.count(), "input") + ", found " +
                count_text(options.inputs.size()));
}

constexpr std::int64_t kFirstWithUnit = 100'000'000;  // seconds: 1973

/// A time as a number, with its date in UTC where it is one of seconds since 1970.
std::string moment_text(std::int64_t time) {
  constexpr std::int64_t kLastWithDate = 253'402'300'799;  // in the year 9999
  std::string text = std::to_string(time);
  if (time < kFirstWithUnit || time > kLastWithDate) return text;
  const std::time_t seconds = time;
  std::tm date{};
  ::gmtime_r(&seconds, &date);
  std::array<char, 32> shown{};
  std::strftime(shown.data(), shown.size(), time % 86'400 == 0 ? "%Y-%m-%d" : "%Y-%m-%dT%H:%M:%S", &date);
  return text + " (" + shown.data() + ")";
}

/// Says why a split gives a pack no rating at all.
std::string without_ratings_text(const RatingPacks& packs, const std::string& name,
                                 const RatingSplitSpec& split) {
  const PackStep& left = packs.steps.back();
  const SplitAmount& amount = name == "test" ? split.test : split.validation;
  const bool is_share = amount.count == 0;
  const std::string asked =
      "`" + name + "` " + (is_share ? number_text(amount.share) : count_text(amount.count));
  const std::uint64_t longest = packs.packs[0].stats().x.longest_row;
  switch (split.split_by) {
    case SplitKind::given:
      return "its files hold no rating that the rules leave";
    case SplitKind::leave_one_out:
      return "no user has more than " + count_text(name == "test" ? 1 : 2, "rating");
    case SplitKind::ratio:
      return asked + " of each user's ratings is less than 1; the largest user has " + count_text(longest);
    case SplitKind::users:
      return asked + " of " + count_text(left.users, "user") + " is none";
    default:
      break;
  }
  const std::optional<LatestTime>& latest = packs.source->split.latest();
  const std::int64_t latest_seconds = latest ? without_scale(latest->time, packs.source->time_scale) : 0;
  const std::string last = latest ? "; the latest time, " + moment_text(latest_seconds) + ", has " +
                                        count_text(latest->count, "rating")
                                  : "";
  if (split.before && name == "test")
    return "no rating is at or after `before` " + moment_text(*split.before) + last +
           (latest && latest_seconds < kFirstWithUnit
                ? "; such times have no unit: give `before` as one of them"
                : "");
  if (amount.of(left.ratings) == 0) return asked + " of " + count_text(left.ratings, "rating") + " is none";
  return asked + " of " + count_text(left.ratings, "rating") + " is " + count_text(amount.of(left.ratings)) +
         ", and more have equal times, which stay together" + last;
}

/// Throws usage where a pack has no rows, with the counts that are known.
void check_has_rows(const RatingPacks& packs, const PackRows& rows, const RatingSplitSpec& split) {
  if (rows.row_count() > 0) return;
  const PackStats& stats = rows.stats();
  std::string text = "`split_by` " + name_of(split.split_by) + ": " + rows.name() + " gets no rows: ";
  if (stats.users_left_out == 0)
    text += without_ratings_text(packs, rows.name(), split);
  else if (split.split_by == SplitKind::users)
    text += "none of its " + count_text(stats.users_left_out, "user") + " has " +
            std::to_string(kMinItemsToFold) +
            " items that training has, of which 1 - `fold_in` makes one or more";
  else
    text += "of its " + count_text(stats.users_left_out, "user") +
            " none has both given and held-out ratings: training lacks the items of " +
            count_text(stats.unseen_ratings, "rating") + ", and " +
            count_text(stats.ratings_left_out, "rating") + (stats.ratings_left_out == 1 ? " has" : " have") +
            " no earlier one of the user";
  if (split.split_by == SplitKind::time)
    text += "; a later start (`before`, or a smaller `" + rows.name() +
            "`) leaves more to train with, and `split_by` ratio tests users that train";
  throw_usage(text);
}

bool has_any_rows(const RatingPacks& packs) {
  return std::ranges::any_of(packs.packs, [](const PackRows& rows) { return rows.row_count() > 0; });
}

/// Throws usage where the output would be written over a pack that is an input: it is cleared before that is
/// read.
void check_inputs_outside(const PackSparseOptions& options) {
  if (options.output.empty()) return;
  std::error_code error;
  const std::filesystem::path output = std::filesystem::weakly_canonical(options.output, error);
  for (const std::string& path : options.inputs) {
    if (path == "-" || !is_pack_path(path)) continue;
    const std::filesystem::path input = std::filesystem::weakly_canonical(pack_folder_of(path), error);
    const auto [end, at] = std::ranges::mismatch(output, input);
    if (end == output.end())
      throw_usage("`output`: " + options.output + " is or holds the input " + path +
                  "; choose another folder");
  }
}

/// One run of pack_sparse or preview_sparse: read the input, sort and split the ratings, write the packs.
class SparseRun {
 public:
  SparseRun(const PackSparseSpec& spec, const PackSparseOptions& options)
      : spec_(spec), options_(options), frame_("pack-sparse", options.command_line, options.stop) {}

  /// Does `work`, one of the functions below, with the run's threads.
  template <class... Arguments>
  PackSparseReport run(void (SparseRun::*work)(Arguments...), Arguments... arguments) {
    frame_.execute(options_.threads, [&] { (this->*work)(arguments...); });
    report_.seconds = frame_.seconds();
    return std::move(report_);
  }

  void pack(RatingReader* reader) {
    GivenIds ids = read_given();
    SparseOutputs outputs(spec_, options_, recorded_ids(ids, columns_));
    SparseInput input(spec_, options_, options_.threads, outputs.outputs()[0]->pack.path(), std::move(ids));
    const std::optional<InputRead> read = this->read(input, reader);
    if (!read) return;
    outputs.compare(read->xxh3);
    if (!outputs.all_finished()) return write(input, *read, outputs);
    for (const auto& output : outputs.outputs()) report_.packs.push_back(finished_report(*output));
  }

  /// Writes the items.csv that packs of the input would have, or the sum of lists that parts had so.
  void count_items() {
    const std::filesystem::path output(options_.output);
    const std::string folder = output.has_parent_path() ? output.parent_path().string() : ".";
    make_folders(folder);
    // No tables are read: items need none.
    const SparseMemory memory(options_.memory_bytes, options_.threads);
    const std::string name = output.filename().string();
    if (are_item_lists(options_.inputs))
      return write_counts(sum_item_lists(options_.inputs, spec_.packs, memory), folder, name);
    GivenIds ids = read_given_ids(spec_, memory);
    ids.counts_items = true;
    SparseInput input(spec_, options_, options_.threads, folder, std::move(ids));
    const std::optional<InputRead> read = this->read(input);
    if (!read) return;
    tell(Phase::sorting);
    MadePacks made = input.make_packs(columns_);
    if (made.item_ids.empty() && made.unseen.empty())
      report_.notices.push_back("no ratings are left: the list has no items");
    report_.stats = make_rating_stats(read->stats, made.packs);
    report_.values = made.packs.stored;
    ItemIds items{std::move(made.item_ids), std::move(made.unseen)};
    write_counts({std::move(items), made.packs.columns().counts}, folder, name);
  }

  void preview() {
    GivenIds ids = read_given();
    const RecordedIds recorded = recorded_ids(ids, columns_);
    if (!options_.output.empty()) SparseOutputs::check(spec_, options_, recorded, std::nullopt);
    SparseInput input(spec_, options_, options_.threads, std::filesystem::temp_directory_path(),
                      std::move(ids));
    const std::optional<InputRead> read = this->read(input);
    if (!read) return;
    if (!options_.output.empty()) SparseOutputs::check(spec_, options_, recorded, read->xxh3);
    foresee(make_packs(input, *read));
  }

 private:
  /// Reads the input, of a reader unless it is null; empty: the run was stopped.
  std::optional<InputRead> read(SparseInput& input, RatingReader* reader = nullptr) {
    std::optional<InputRead> read = input.read(reader);
    report_.interrupted = !read;
    report_.read_seconds = frame_.seconds();
    if (read) add_read(*read, report_);
    return read;
  }

  GivenIds read_given() {
    const SparseMemory memory(options_.memory_bytes, options_.threads);
    GivenIds ids = read_given_ids(spec_, memory);
    read_columns(memory);
    ids.column_bytes = columns_.held_bytes();
    return ids;
  }

  void read_columns(const SparseMemory& memory) {
    if (spec_.item_columns.empty() && spec_.user_columns.empty()) return;
    columns_ = ColumnTables::read(spec_, id_column_names(spec_.input, options_.inputs), &memory);
  }

  void tell(Phase phase) {
    progress_.phase = phase;
    if (options_.on_progress) options_.on_progress(progress_);
  }

  void write_counts(const ItemCounts& counts, const std::string& folder, const std::string& name) {
    write_item_counts(folder, name, counts);
    report_.items_counted = counts.ratings.size();
    if (!counts.ids.unseen.empty())
      report_.notices.push_back(count_text(counts.ids.unseen.size(), "item") +
                                " without a column: all their ratings are held out");
  }

  void write(SparseInput& input, const InputRead& read, SparseOutputs& outputs) {
    tell(Phase::sorting);
    const MadePacks made = make_packs(input, read);
    const RatingPacks& packs = made.packs;
    for (const PackRows& rows : packs.packs) progress_.rows_total += rows.row_count();
    const MatrixRun run{spec_,
                        options_,
                        made.users,
                        packs,
                        made.item_ids,
                        made.labels,
                        columns_,
                        report_.stats,
                        made.times,
                        read.xxh3,
                        made.work_bytes,
                        frame_,
                        [this](std::uint64_t rows) {
                          progress_.rows_done += rows;
                          tell(Phase::packing);
                        }};
    for (const PackRows& rows : packs.packs) {
      write_pack(run, rows, outputs.find(rows.name()));
      if (report_.interrupted) return;
    }
    tell(Phase::finishing);
  }

  /// Makes the packs of what was read, and fills the report with their counts.
  MadePacks make_packs(SparseInput& input, const InputRead& read) {
    MadePacks made = input.make_packs(columns_);
    report_.notices.insert(report_.notices.end(), made.notices.begin(), made.notices.end());
    add_packs(made.packs, read.stats, spec_.packs, report_);
    if (may_be_empty() && !has_any_rows(made.packs)) {
      if (spec_.reuse_ids.empty()) throw_bad_data("no ratings are left, in any pack");
      return made;  // tables have no rows to be asked for
    }
    // Before any pack is written: a finished one would be in the way of the corrected command.
    if (!may_be_empty())
      for (const PackRows& rows : made.packs.packs) check_has_rows(made.packs, rows, spec_.packs.split);
    columns_.finish(made.item_ids, made.users, made.packs, report_.stats);
    for (const std::string& notice : columns_.notices(report_.stats)) report_.notices.push_back(notice);
    report_.codec = codec_choice(spec_).codec;
    return made;
  }

  /// Whether a pack of the split may get no rows: the input may be a part, whose packs others complete.
  [[nodiscard]] bool may_be_empty() const {
    const RatingSplitSpec& split = spec_.packs.split;
    return split.split_by == SplitKind::users_by_id ||
           (!spec_.reuse_ids.empty() && problem_of_counting(split).empty());
  }

  /// Whether a pack of this input gets no rows and needs none; a notice says so.
  [[nodiscard]] bool leaves_out(const PackRows& rows) {
    if (!may_be_empty() || rows.row_count() > 0) return false;
    const std::string name = rows.name().empty() ? "the pack" : rows.name();
    report_.notices.push_back(name + " gets no rows of this input, and is not written");
    return true;
  }

  void write_pack(const MatrixRun& run, const PackRows& rows, SparseOutput& output) {
    if (output.finished) {
      report_.packs.push_back(finished_report(output));
      return;
    }
    if (leaves_out(rows)) return;
    progress_.pack = output.pack.path();
    MatrixPackWriter writer(run, rows, output.pack);
    report_.packs.push_back(writer.write());
    report_.interrupted = writer.interrupted();
    for (std::string& notice : output.pack.notices()) report_.notices.push_back(std::move(notice));
  }

  /// Fills the report of a dry run with the same counts that packing would give.
  void foresee(const MadePacks& made) {
    const RatingPacks& packs = made.packs;
    for (const PackRows& rows : packs.packs) {
      if (leaves_out(rows)) continue;
      const MatrixShape shape = matrix_shape(packs, rows);
      MatrixPackReport pack;
      pack.path = foreseen_path(rows.name());
      pack.rows = rows.row_count();
      pack.columns = shape.column_count;
      pack.matrices = matrix_records(rows);
      if (container(spec_.container).holds_row_blocks)
        pack.chunk_rows =
            spec_.chunk_rows > 0 ? spec_.chunk_rows : plan_chunk_rows(rows.stats(), pack.rows, shape);
      report_.packs.push_back(std::move(pack));
    }
  }

  [[nodiscard]] std::string foreseen_path(const std::string& name) const {
    if (options_.output.empty()) return name.empty() ? "the pack" : name;
    return pack_path(options_.output, name);
  }

  const PackSparseSpec& spec_;
  const PackSparseOptions& options_;
  RunFrame frame_;
  ColumnTables columns_;
  PackSparseProgress progress_;
  PackSparseReport report_;
};

/// Returns the number of threads that `memory_bytes` has room for, unless a number is given; throws usage if
/// it has no room for one, or for those that are given.
std::uint32_t fitting_threads(const PackSparseOptions& options) {
  constexpr std::uint64_t kMiB = 1 << 20;
  constexpr std::uint64_t kProgramBytes = 28 * kMiB;  // with its libraries
  constexpr std::uint64_t kThreadBytes = 4 * kMiB;    // with the smallest blocks of text
  const std::uint64_t threads = std::max<std::uint32_t>(1, options.threads);
  const std::uint64_t needed = kProgramBytes + threads * kThreadBytes;
  if (options.memory_bytes < needed)
    throw_usage("`memory_bytes`: " + bytes_text(static_cast<double>(options.memory_bytes)) +
                " cannot hold the program and " + count_text(threads, "thread") + ", which need at least " +
                std::to_string(needed / kMiB) + "M in all; raise `memory_bytes`" +
                (threads > 1 ? ", or lower `threads`" : ""));
  if (options.threads > 0) return options.threads;
  const std::uint64_t fitting = (options.memory_bytes - kProgramBytes) / kThreadBytes;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(fitting, allowed_cpus()));
}

/// Throws cannot_write where the output holds a plan: pack-run makes its packs.
void check_no_plan(const PackSparseOptions& options) {
  if (!options.force && file_exists(options.output + "/" + std::string(kPlanName)))
    throw_cannot_write(options.output + ": holds a plan, whose tasks may be running; pack-run " +
                       "finishes it, `force` removes it");
}

/// Checks spec and options, beside the inputs where a reader gives the ratings.
PackSparseOptions checked_options(const PackSparseSpec& spec, PackSparseOptions options,
                                  bool has_reader = false) {
  check_spec(spec);
  check_error_limit(options, "bad lines");
  if (!has_reader) check_inputs(spec, options);
  while (options.output.size() > 1 && options.output.ends_with('/')) options.output.pop_back();
  check_inputs_outside(options);
  if (!options.output.empty()) {
    check_outside_packs(options.output);
    check_no_plan(options);
  }
  options.threads = fitting_threads(options);
  return options;
}

}  // namespace

PackSparseReport pack_sparse(const PackSparseSpec& spec, const PackSparseOptions& given) {
  const PackSparseOptions options = checked_options(spec, given);
  if (options.output.empty()) throw_usage("`output` is required: a folder for the pack");
  return SparseRun(spec, options).run(&SparseRun::pack, static_cast<RatingReader*>(nullptr));
}

PackSparseReport pack_sparse_reader(const PackSparseSpec& spec, const PackSparseOptions& given,
                                    RatingReader& reader) {
  const PackSparseOptions options = checked_options(spec, given, true);
  return SparseRun(spec, options).run(&SparseRun::pack, &reader);
}

PackSparseReport preview_sparse(const PackSparseSpec& spec, const PackSparseOptions& given) {
  const PackSparseOptions options = checked_options(spec, given);
  return SparseRun(spec, options).run(&SparseRun::preview);
}

PackSparseReport count_items(const PackSparseSpec& spec, const PackSparseOptions& given) {
  check_countable(spec, given);
  const PackSparseOptions options = checked_options(spec, given);
  PackSparseSpec counted = spec;
  counted.packs.keep_times = false;  // which does not change the items
  return SparseRun(counted, options).run(&SparseRun::count_items);
}

}  // namespace chunkhit
