#include "ratings/rating_intake.h"

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <limits>
#include <utility>

#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "ratings/json_fields.h"
#include "ratings/json_lines.h"
#include "ratings/rating_fields.h"
#include "ratings/rating_text.h"
#include "ratings/stored_values.h"
#include "ratings/text_blocks.h"

namespace chunkhit {
namespace {

constexpr std::int64_t kEndOfSeconds = 100'000'000'000;
// Seconds to 1973. What is nearer to 0 stands for no time, or is a counter, and tells no unit.
constexpr std::int64_t kMinTime = 100'000'000;

}  // namespace

RatingTable detect_columns(RatingFormat format, const TextHead& head, const RatingTableSpec& spec,
                           std::string_view name, const RatingTable* earlier) {
  return format == RatingFormat::json_lines ? detect_json_fields(head, spec, name, earlier)
                                            : detect_rating_table(head, spec, name, earlier);
}

TimeUnit time_unit(std::int64_t time) {
  std::size_t unit = 0;
  // Dividing, not multiplying the bound: -2^63 has no absolute value.
  for (; unit + 1 < kEnumWords<TimeUnit>.size() && (time >= kEndOfSeconds || time <= -kEndOfSeconds); ++unit)
    time /= 1000;
  return static_cast<TimeUnit>(unit);
}

std::int64_t in_unit(std::int64_t time, TimeUnit unit) {
  constexpr std::array<std::int64_t, 4> kFactors{1, 1000, 1'000'000, 1'000'000'000};
  const int steps = static_cast<int>(unit) - static_cast<int>(time_unit(time));
  const std::int64_t factor = kFactors[static_cast<std::size_t>(std::abs(steps))];
  if (steps < 0) return time / factor - (time % factor < 0 ? 1 : 0);
  std::int64_t scaled = 0;
  if (!__builtin_mul_overflow(time, factor, &scaled)) return scaled;
  return time < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

void TimeUnits::add(std::span<const std::int64_t> times, std::uint64_t cut_count, std::int64_t scale) {
  cut_count_ += cut_count;
  // All times of most inputs are seconds from 1973 on, which are counted without branches.
  const auto is_second = [](std::int64_t time) {
    return static_cast<std::uint64_t>(time) - kMinTime < kEndOfSeconds - kMinTime;
  };
  const auto second_count = static_cast<std::size_t>(std::ranges::count_if(times, is_second));
  if (scale == 1 && second_count == times.size()) {
    counts_[static_cast<std::size_t>(TimeUnit::seconds)] += second_count;
    return;
  }
  for (const std::int64_t scaled : times)
    if (const std::int64_t time = scale == 1 ? scaled : without_scale(scaled, scale);
        time >= kMinTime || time <= -kMinTime)
      ++counts_[static_cast<std::size_t>(time_unit(time))];
}

void TimeUnits::end(const std::string& input) {
  std::string units;
  for (std::size_t unit = 0; unit < counts_.size(); ++unit)
    if (counts_[unit] > 0) units.append(units.empty() ? "" : " and ").append(kEnumWords<TimeUnit>[unit]);
  const auto unit = static_cast<TimeUnit>(std::ranges::max_element(counts_) - counts_.begin());
  counts_ = {};
  if (units.empty()) return;
  if (difference_.empty() && units.find(' ') != std::string::npos)
    difference_ = input + ": times are " + units;
  if (!unit_) {
    unit_ = unit;
    input_ = input;
  } else if (unit != *unit_ && difference_.empty()) {
    difference_ = input + ": times are " + name_of(unit) + ", those of " + input_ + " are " + name_of(*unit_);
  }
}

void ReadStats::begin(std::string input) {
  inputs_.emplace_back();
  inputs_.back().file = std::move(input);
}

void ReadStats::add(const RatingBlock& block, std::uint64_t line_offset) {
  RatingInput& input = inputs_.back();
  input.lines += block.line_count;
  input.blank_lines += block.blank_lines;
  input.comment_lines += block.comment_lines;
  input.header_lines += block.header_lines;
  input.bad_lines += bad_line_count(block);
  input.ratings += block.size();
  if (!block.bad_lines.empty()) add_bad_lines(block, line_offset);
}

void ReadStats::add_bad_lines(const RatingBlock& block, std::uint64_t line_offset) {
  const std::uint64_t allowed = limit_.on_error == OnError::fail ? 0 : limit_.max_errors.count;
  const bool is_limited = limit_.on_error == OnError::fail || limit_.max_errors.count > 0;
  for (const BadLine& line : block.bad_lines) {
    InputBadLine bad{inputs_.back().file, line};
    bad.line.line += line_offset;
    const std::string text = bad_line_text(bad);
    const bool is_last = &line == &block.bad_lines.back() && block.more_bad_lines.empty();
    if (is_last && block.ends_with_long_line) throw_bad_data(text);
    if (limit_.on_error == OnError::fail)
      throw Error(ErrorCode::too_many_rejects, text + "; `on_error` skip leaves such lines out");
    if (is_limited && bad_lines_ >= allowed)
      throw Error(ErrorCode::too_many_rejects, "more than " + count_text(allowed, "bad line") +
                                                   ", which `max_errors` allows; the last: " + text);
    ++bad_lines_;
    const bool is_first_of_kind = ++bad_kinds_[line.problem.expected] == 1;
    if (first_.size() < kMaxBadLines || is_first_of_kind) first_.push_back(std::move(bad));
  }
  for (const auto& [kind, count] : block.more_bad_lines) {
    bad_lines_ += count;
    bad_kinds_[kind] += count;
  }
  if (block.ends_with_long_line)
    throw_bad_data(inputs_.back().file + ":" + std::to_string(line_offset + block.line_count) +
                   ": line: expected at most 1 MiB, found more");
  if (is_limited && bad_lines_ > allowed)
    throw Error(ErrorCode::too_many_rejects, "more than " + count_text(allowed, "bad line") +
                                                 ", which `max_errors` allows; the last in " +
                                                 inputs_.back().file);
}

void ReadStats::end(std::uint64_t bytes, std::uint64_t xxh3) {
  inputs_.back().bytes = bytes;
  inputs_.back().xxh3 = xxh3;
}

void ReadStats::finish() const {
  if (limit_.on_error == OnError::fail || limit_.max_errors.count > 0 || bad_lines_ == 0) return;
  const std::uint64_t lines = total().lines;
  const auto share = static_cast<std::uint64_t>(limit_.max_errors.share * static_cast<double>(lines));
  // One bad line must not end the run of a short file.
  const std::uint64_t allowed = limit_.max_errors.share > 0 ? std::max<std::uint64_t>(1, share) : 0;
  if (bad_lines_ <= allowed) return;
  throw Error(ErrorCode::too_many_rejects, count_text(bad_lines_, "bad line") + " of " + count_text(lines) +
                                               ", `max_errors` allows " + count_text(allowed) +
                                               "; the first: " + bad_line_text(first_.front()));
}

RatingInput ReadStats::total() const {
  RatingInput sum;
  for (const RatingInput& input : inputs_) {
    sum.bytes += input.bytes;
    sum.lines += input.lines;
    sum.blank_lines += input.blank_lines;
    sum.comment_lines += input.comment_lines;
    sum.header_lines += input.header_lines;
    sum.bad_lines += input.bad_lines;
    sum.ratings += input.ratings;
  }
  return sum;
}

std::string bad_line_text(const InputBadLine& bad) {
  return bad.input + ":" + std::to_string(bad.line.line) + ":" + std::to_string(bad.line.column) + ": " +
         bad.line.problem.reason();
}

namespace {

/// A block on its way through the pipeline.
struct Work {
  ByteBuffer text;
  std::optional<std::int64_t> netflix_item;  ///< that its first lines are below
  RatingBlock block;
  std::size_t file_index = 0;               ///< that the block is of
  std::optional<std::size_t> misfit;        ///< rating whose value the rules' type cannot hold
  std::vector<std::uint32_t> user_numbers;  ///< of the block's users
  std::vector<std::uint32_t> item_numbers;
  std::exception_ptr
      error;  ///< of reading or parsing it; thrown when its turn comes, so that the first one is
};

void rewrite(std::vector<std::uint32_t>& ids, const std::vector<std::uint32_t>& numbers) {
  for (std::uint32_t& id : ids) id = id < BlockIds::kKnown ? numbers[id] : id - BlockIds::kKnown;
}

}  // namespace

/// Returns the line, from 1, of a text's rating `index`: the first one behind which there are as many
/// ratings.
std::uint64_t line_of_rating(Work& work, std::size_t index, const std::function<void(Work&)>& parse) {
  const ByteBuffer text = std::move(work.text);
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < text.size(); ++at)
    if (text[at] == '\n') ends.push_back(at + 1);
  const auto has_fewer = [&](std::size_t end) {
    work.text.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end));
    parse(work);
    return work.block.size() <= index;
  };
  return static_cast<std::uint64_t>(std::ranges::partition_point(ends, has_fewer) - ends.begin()) + 1;
}

/// Names the user or item of a rating.
std::string id_text(const BlockIds& ids, std::size_t rating) {
  const std::uint32_t id = ids.of_rating[rating];
  return ids.are_text() ? std::string(ids.texts[id]) : std::to_string(ids.numbers[id]);
}

/// Puts a prefix before each id of a block.
void add_prefix(const std::string& prefix, BlockIds& ids) {
  TextList named;
  const std::size_t count = ids.are_text() ? ids.texts.size() : ids.numbers.size();
  for (std::size_t id = 0; id < count; ++id)
    named.add(prefix + (ids.are_text() ? std::string(ids.texts[id]) : std::to_string(ids.numbers[id])));
  ids.texts = std::move(named);
  ids.numbers.clear();
}

/// Takes one input through the intake. Blocks are used again and again: no more are under way than there are,
/// and they leave in order. What oneTBB passes on are pointers, so that nothing is lost when it gives up.
class RatingIntake::Pipeline {
 public:
  Pipeline(RatingIntake& intake, std::function<bool(Work&)> fill, std::function<void(Work&)> parse)
      : intake_(intake), fill_(std::move(fill)), parse_(std::move(parse)), works_(2 * threads() + 1) {}

  bool has_line_offsets = false;  ///< bad lines of a block are numbered from 1
  IntakeProgress progress;
  std::span<const MatrixFile> files;  ///< of a reader

  void run() {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads());
    tbb::task_arena arena(static_cast<int>(threads()));
    arena.execute([this] { run_steps(); });
    if (failed_) std::rethrow_exception(error_);
  }

  /// Ends the files before one; those that no block came from have no lines.
  void go_to_file(std::size_t index) {
    for (; file_ < index; ++file_) {
      intake_.stats_.end(files[file_].bytes, 0);
      intake_.times_.end(files[file_].name);
      intake_.stats_.begin(files[file_ + 1].name);
    }
  }

 private:
  [[nodiscard]] std::size_t threads() const { return std::max<std::uint32_t>(1, intake_.options_.threads); }

  void run_steps() {
    using tbb::filter_mode;
    const auto step = [this](filter_mode mode, void (Pipeline::*work_on)(Work&)) {
      return tbb::make_filter<Work*, Work*>(mode, [this, work_on](Work* work) {
        unless_failed([&] { (this->*work_on)(*work); });
        return work;
      });
    };
    tbb::parallel_pipeline(
        works_.size(), tbb::make_filter<void, Work*>(filter_mode::serial_in_order,
                                                     [this](tbb::flow_control& flow) { return next(flow); }) &
                           step(filter_mode::parallel, &Pipeline::parse) &
                           step(filter_mode::serial_in_order, &Pipeline::number) &
                           step(filter_mode::parallel, &Pipeline::renumber) &
                           tbb::make_filter<Work*, void>(filter_mode::serial_in_order, [this](Work* work) {
                             unless_failed([&] { hand_over(*work); });
                           }));
  }

  /// Runs one step on one block. Keeps the first exception and makes every later step do nothing, so that the
  /// pipeline runs empty.
  template <class Step>
  void unless_failed(Step step) {
    if (failed_) return;
    try {
      step();
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
  }

  Work* next(tbb::flow_control& flow) {
    const std::atomic<bool>* stop = intake_.options_.stop;
    const bool stopped = stop != nullptr && stop->load(std::memory_order_relaxed);
    if (stopped) intake_.interrupted_ = true;
    Work& work = works_[next_work_];
    if (stopped || failed_ || ended_ || !fill(work)) {
      flow.stop();
      return nullptr;
    }
    next_work_ = (next_work_ + 1) % works_.size();
    return &work;
  }

  bool fill(Work& work) {
    work.error = nullptr;
    try {
      return fill_(work);
    } catch (...) {
      work.error = std::current_exception();
      ended_ = true;
      return true;
    }
  }

  void parse(Work& work) {
    if (work.error) return;
    try {
      parse_(work);
      const std::size_t misfit = find_misfit(work.block.values, intake_.rules());
      work.misfit = misfit < work.block.values.size() ? std::optional(misfit) : std::nullopt;
    } catch (...) {
      work.error = std::current_exception();
    }
  }

  void number(Work& work) {
    if (work.error) std::rethrow_exception(work.error);
    go_to_file(work.file_index);
    if (work.misfit) refuse_misfit(work);
    intake_.stats_.add(work.block, has_line_offsets ? lines_ : 0);
    intake_.times_.add(work.block.times, work.block.cut_times, intake_.time_scale());
    lines_ += work.block.line_count;
    work.user_numbers = intake_.users_.add(work.block.users);
    for (const std::uint32_t user : work.user_numbers)
      if (user < intake_.shared_users_.size()) intake_.shared_users_[user] = 1;
    work.item_numbers = intake_.items_.add(work.block.items);
    if (!intake_.options_.on_ids) return;
    numbered_.input = files.empty() ? progress.input : files[work.file_index].name;
    numbered_.bytes_total = progress.bytes_total;
    numbered_.bytes_done += work.text.size() + work.block.text_bytes;
    numbered_.kept_bytes = work.block.kept_bytes;
    intake_.options_.on_ids(intake_.users_, intake_.items_, numbered_);
  }

  [[noreturn]] void refuse_misfit(Work& work) {
    const StoredValues& values = *intake_.rules().values;
    const std::size_t rating = *work.misfit;
    const std::string found = number_text(work.block.values[rating]);
    const std::string at =
        files.empty() ? progress.input + ":" + std::to_string(lines_ + line_of_rating(work, rating, parse_))
                      : files[work.file_index].name + ": user " + id_text(work.block.users, rating) +
                            ", item " + id_text(work.block.items, rating);
    throw_bad_data(at + ": value: expected " + expected_rating_text(values) + " (`values` " +
                   stored_values_text(values) + "), found " + found);
  }

  void renumber(Work& work) {
    rewrite(work.block.users.of_rating, work.user_numbers);
    rewrite(work.block.items.of_rating, work.item_numbers);
  }

  void hand_over(Work& work) {
    const RatingBlock& block = work.block;
    if (block.size() > 0)
      intake_.sink_(block.users.of_rating, block.items.of_rating, block.values, block.times);
    if (!files.empty()) progress.input = files[work.file_index].name;
    progress.bytes_done += work.text.size() + block.text_bytes;
    progress.rating_count += block.size();
    progress.bad_lines += bad_line_count(block);
    if (intake_.options_.on_progress) intake_.options_.on_progress(progress);
  }

  RatingIntake& intake_;
  std::function<bool(Work&)> fill_;
  std::function<void(Work&)> parse_;
  std::vector<Work> works_;
  std::size_t next_work_ = 0;
  std::uint64_t lines_ = 0;
  IntakeProgress numbered_;
  std::size_t file_ = 0;  ///< of `files`
  bool ended_ = false;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  ///< written once, by the step that sets failed_; read when all steps have ended
};

RatingIntake::RatingIntake(RatingTableSpec spec, IntakeOptions options, RatingSink sink)
    : spec_(std::move(spec)),
      options_(std::move(options)),
      sink_(std::move(sink)),
      users_(options_.small_ids),
      items_(options_.small_ids),
      stats_(options_.limit) {}

namespace {

/// Ratings of 1 among those of another input would be no ratings at all.
void check_values_alike(const RatingTable& before, const RatingTable& table, const std::string& name) {
  const bool has_values = table.text.columns.value.has_value();
  const bool was_empty = before.text.column_count == 0;
  if (was_empty || has_values == before.text.columns.value.has_value()) return;
  throw_bad_data(name + ": line 1: " + (has_values ? "a column of values" : "no column of values") +
                 ", expected " + (has_values ? "none" : "one") +
                 " as in the input before; give `value`: a column that all inputs have, or none, which takes "
                 "every rating as 1");
}

}  // namespace

void RatingIntake::read_text(TextStream& input, RatingFormat format) {
  if (format > RatingFormat::json_lines)
    throw_usage(input.name() + ": is " + name_of(format) + ", expected lines of ratings");
  if (has_columns(format)) {
    const Bytes bytes = input.head();
    const TextHead head{as_text(bytes), bytes.size() < TextStream::kHeadBytes, spec_.comment};
    RatingTable table = detect_columns(format, head, spec_, input.name(), table_ ? &*table_ : nullptr);
    if (table_) check_values_alike(*table_, table, input.name());
    table_ = std::move(table);
    table_->text.rounds_values = rules().rounds_values();
    if (tables_.empty() || tables_.back().second != *table_) tables_.emplace_back(input.name(), *table_);
  }
  const TextQuoting quoting = format == RatingFormat::text ? table_->text.quoting : TextQuoting::none;
  TextBlocks blocks(input, quoting, options_.block_bytes);
  std::optional<std::int64_t> item;
  const auto fill = [&](Work& work) {
    if (!blocks.next(work.text)) return false;
    work.netflix_item = item;
    if (format == RatingFormat::netflix) item = last_netflix_item(as_text(work.text), item);
    return true;
  };
  const SmallIds& known_users = users_.share_small();
  const SmallIds& known_items = items_.share_small();
  tbb::enumerable_thread_specific<BlockMaps> all_maps([&] { return BlockMaps{&known_users, &known_items}; });
  const auto parse = [&](Work& work) {
    const std::string_view text = as_text(work.text);
    BlockMaps& maps = all_maps.local();
    if (format == RatingFormat::netflix)
      parse_netflix(text, work.netflix_item, work.block, &maps);
    else if (format == RatingFormat::user_items)
      parse_user_items(text, work.block, &maps);
    else if (format == RatingFormat::json_lines)
      parse_json_lines(text, *table_, work.block, &maps);
    else
      parse_rating_text(text, table_->text, work.block, &maps);
  };
  Pipeline pipeline(*this, fill, parse);
  const RatingInput before = stats_.total();
  pipeline.progress = {input.name(), 0, input.byte_count(), before.ratings, before.bad_lines};
  pipeline.has_line_offsets = true;
  stats_.begin(input.name());
  pipeline.run();
  if (!interrupted_ && blocks.ends_within_line()) texts_without_end_.push_back(input.name());
  stats_.end(blocks.byte_count(), blocks.xxh3());
  times_.end(input.name());
}

void RatingIntake::report_copied(const std::string& name, std::uint64_t bytes) const {
  if (!options_.on_progress) return;
  const RatingInput before = stats_.total();
  options_.on_progress({name, bytes, std::nullopt, before.ratings, before.bad_lines});
}

void RatingIntake::read_blocks(std::span<const MatrixFile> files, RatingReader& input,
                               const std::string& user_prefix) {
  const auto fill = [&](Work& work) {
    const bool is_ready = input.next(work.block);
    work.file_index = input.file_index();
    return is_ready;
  };
  shared_users_.assign(users_.size(), 0);
  Pipeline pipeline(*this, fill, [&](Work& work) {
    if (!user_prefix.empty()) add_prefix(user_prefix, work.block.users);
  });
  const RatingInput before = stats_.total();
  pipeline.progress = {files[0].name, 0, input.text_bytes(), before.ratings, before.bad_lines};
  pipeline.files = files;
  stats_.begin(files[0].name);
  pipeline.run();
  pipeline.go_to_file(files.size() - 1);
  stats_.end(files.back().bytes, 0);
  times_.end(files.back().name);
}

}  // namespace chunkhit
