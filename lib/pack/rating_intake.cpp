#include "pack/rating_intake.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "chunkhit/error.h"
#include "input/bad_line.h"
#include "input/text_blocks.h"
#include "input/user_items_text.h"

namespace chunkhit {
namespace {

/// A block on its way through the pipeline.
struct Work {
  ByteBuffer text;
  std::optional<std::int64_t> netflix_item;  ///< that its first lines are below
  RatingBlock block;
  std::size_t file_index = 0;               ///< that the block is of
  std::vector<std::uint32_t> user_numbers;  ///< of the block's users
  std::vector<std::uint32_t> item_numbers;
  std::exception_ptr
      error;  ///< of reading or parsing it; thrown when its turn comes, so that the first one is
};

void rewrite(std::vector<std::uint32_t>& ids, const std::vector<std::uint32_t>& numbers) {
  for (std::uint32_t& id : ids) id = numbers[id];
}

}  // namespace

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
    } catch (...) {
      work.error = std::current_exception();
    }
  }

  void number(Work& work) {
    if (work.error) std::rethrow_exception(work.error);
    go_to_file(work.file_index);
    intake_.stats_.add(work.block, has_line_offsets ? lines_ : 0);
    intake_.times_.add(work.block.times);
    lines_ += work.block.line_count;
    work.user_numbers = intake_.users_.add(work.block.users);
    work.item_numbers = intake_.items_.add(work.block.items);
    if (!intake_.options_.on_ids) return;
    numbered_.input = files.empty() ? progress.input : files[work.file_index].name;
    numbered_.bytes_total = progress.bytes_total;
    numbered_.bytes_done += work.text.size();
    numbered_.kept_bytes = work.block.kept_bytes;
    intake_.options_.on_ids(intake_.users_, intake_.items_, numbered_);
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
    progress.bytes_done += work.text.size();
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
    : spec_(std::move(spec)), options_(std::move(options)), sink_(std::move(sink)), stats_(options_.limit) {}

void RatingIntake::read_text(TextStream& input, RatingFormat format) {
  if (format > RatingFormat::netflix)
    throw Error(ErrorCode::usage, input.name() + ": is " +
                                      std::string(kRatingFormatNames[static_cast<std::size_t>(format)]) +
                                      ", expected lines of ratings");
  if (format == RatingFormat::text) {
    const Bytes head = input.head();
    table_ = detect_rating_table({as_text(head), head.size() < TextStream::kHeadBytes, spec_.comment}, spec_,
                                 input.name(), table_ ? &*table_ : nullptr);
  }
  const Quoting quoting = format == RatingFormat::text ? table_->text.quoting : Quoting::none;
  TextBlocks blocks(input, quoting, options_.block_bytes);
  std::optional<std::int64_t> item;
  const auto fill = [&](Work& work) {
    if (!blocks.next(work.text)) return false;
    work.netflix_item = item;
    if (format == RatingFormat::netflix) item = last_netflix_item(as_text(work.text), item);
    return true;
  };
  const auto parse = [&](Work& work) {
    const std::string_view text = as_text(work.text);
    if (format == RatingFormat::netflix)
      parse_netflix(text, work.netflix_item, work.block);
    else if (format == RatingFormat::user_items)
      parse_user_items(text, work.block);
    else
      parse_rating_text(text, table_->text, work.block);
  };
  Pipeline pipeline(*this, fill, parse);
  const RatingInput before = stats_.total();
  pipeline.progress = {input.name(), 0, input.byte_count(), before.rating_count, before.bad_lines};
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
  options_.on_progress({name, bytes, std::nullopt, before.rating_count, before.bad_lines});
}

void RatingIntake::read_blocks(std::span<const MatrixFile> files, RatingReader& input) {
  const auto fill = [&](Work& work) {
    const bool is_ready = input.next(work.block);
    work.file_index = input.file_index();
    return is_ready;
  };
  Pipeline pipeline(*this, fill, [](Work&) {});
  const RatingInput before = stats_.total();
  pipeline.progress = {files[0].name, 0, std::nullopt, before.rating_count, before.bad_lines};
  pipeline.files = files;
  stats_.begin(files[0].name);
  pipeline.run();
  pipeline.go_to_file(files.size() - 1);
  stats_.end(files.back().bytes, 0);
  times_.end(files.back().name);
}

}  // namespace chunkhit
