#include "chunkhit/rating_writer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "pack/ratings/pack_sparse_spec.h"
#include "pack/ratings/read_inputs.h"
#include "pack/ratings/sparse_run.h"
#include "ratings/id_map.h"
#include "ratings/rating_reader.h"

namespace chunkhit {
namespace {

/// Hands blocks from the thread that adds ratings to the one that packs them, one at a time.
class BlockQueue : public RatingReader {
 public:
  /// Waits until the block before was taken, and swaps; false where nobody takes blocks any more.
  [[nodiscard]] bool put(RatingBlock& block) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_full_ || is_closed_; });
    if (is_closed_) return false;
    std::swap(block_, block);
    is_full_ = true;
    changed_.notify_all();
    return true;
  }
  /// After the last block.
  void end(const RoundedValues& rounded) {
    const std::lock_guard lock(mutex_);
    facts_.rounded = rounded;
    is_ended_ = true;
    changed_.notify_all();
  }
  /// Lets `next` throw.
  void abandon() {
    const std::lock_guard lock(mutex_);
    is_abandoned_ = true;
    changed_.notify_all();
  }
  /// The packing thread has ended.
  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }

  [[nodiscard]] bool next(RatingBlock& block) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_full_ || is_ended_ || is_abandoned_; });
    if (is_abandoned_) throw_usage("the writer was destroyed before `finish`");
    if (!is_full_) return false;
    std::swap(block_, block);
    is_full_ = false;
    changed_.notify_all();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  RatingBlock block_;
  bool is_full_ = false;
  bool is_ended_ = false;
  bool is_abandoned_ = false;
  bool is_closed_ = false;
};

std::size_t size_of(const auto& spans) {
  return std::visit([](const auto& span) { return span.size(); }, spans);
}

/// The part of a span, or of one of several kinds; of an empty one nothing.
template <class Number>
std::span<const Number> part_of(std::span<const Number> all, std::size_t first, std::size_t count) {
  return all.empty() ? all : all.subspan(first, count);
}
template <class... Spans>
std::variant<Spans...> part_of(const std::variant<Spans...>& all, std::size_t first, std::size_t count) {
  return std::visit([&](const auto& span) { return std::variant<Spans...>(part_of(span, first, count)); },
                    all);
}

RatingEntries part_of(const RatingEntries& all, std::size_t first, std::size_t count) {
  return {part_of(all.users, first, count), part_of(all.items, first, count),
          part_of(all.values, first, count), part_of(all.times, first, count)};
}

[[noreturn]] void refuse_entry(std::uint64_t entry, const std::string& what) {
  throw_bad_data("entry " + std::to_string(entry) + ", counted from 0: " + what);
}

void check_ids(const RatingIds& ids, const char* what, std::uint64_t first_entry) {
  const auto* const texts = std::get_if<std::span<const std::string_view>>(&ids);
  if (texts == nullptr) return;
  for (std::size_t at = 0; at < texts->size(); ++at) {
    const std::string_view id = (*texts)[at];
    if (!is_utf8(id) || id.find('\0') != std::string_view::npos)
      refuse_entry(first_entry + at,
                   std::string(what) + ": expected UTF-8 without NUL, found \"" + printable_text(id) + "\"");
    if (is_missing_id(id))
      refuse_entry(first_entry + at, std::string(what) + ": expected an id, found " +
                                         (id.empty() ? "nothing" : "\"" + std::string(id) + "\""));
  }
}

/// Values that are no rating in any file are errors here, too.
void check_values(const RatingValues& values, bool rounds, std::uint64_t first_entry) {
  std::visit(
      [&](const auto& all) {
        for (std::size_t at = 0; at < all.size(); ++at) {
          const auto nearest = static_cast<float>(all[at]);
          if (!std::isfinite(nearest))
            refuse_entry(first_entry + at,
                         "value: expected a finite number that a 32-bit float can hold, found " +
                             number_text(static_cast<double>(all[at])));
          if (!rounds && is_lost(all[at], nearest))
            refuse_entry(first_entry + at, "value: expected a number that a 32-bit float holds, found " +
                                               number_text(static_cast<double>(all[at])) +
                                               "; `values` f32 takes the nearest");
        }
      },
      values);
}

void check_length(const char* what, std::size_t found, std::size_t expected, bool may_be_empty) {
  if (found == expected || (found == 0 && may_be_empty)) return;
  throw_usage(std::string(what) + ": found " + count_text(found) + ", expected " + count_text(expected) +
              ", one for each entry");
}

/// Checks all of a CSR block but what it has in common with COO.
void check_rows(const CsrEntries& rows) {
  const std::size_t row_count = size_of(rows.users);
  if (rows.indptr.size() != row_count + 1)
    throw_usage("indptr: found " + count_text(rows.indptr.size(), "number") + ", expected " +
                count_text(row_count + 1) + ", one more than users");
  if (rows.indptr.front() != 0 || !std::ranges::is_sorted(rows.indptr))
    throw_usage("indptr: expected numbers that begin with 0 and do not descend");
  check_length("items", size_of(rows.items), rows.indptr.back(), false);
}

/// The user of each entry.
template <class Id>
std::vector<Id> expand(std::span<const Id> users, std::span<const std::uint64_t> indptr) {
  std::vector<Id> expanded;
  expanded.reserve(indptr.back());
  for (std::size_t row = 0; row < users.size(); ++row)
    expanded.insert(expanded.end(), indptr[row + 1] - indptr[row], users[row]);
  return expanded;
}

void check_options(const PackSparseSpec& spec, const PackSparseOptions& options) {
  const std::string writer = ": has no meaning for a RatingWriter, which reads no files";
  if (!options.inputs.empty()) throw_usage("`inputs`" + writer);
  if (const char* const flag = given_input_flag(spec.input)) throw_usage(flag + writer);
  if (spec.packs.split.split_by == SplitKind::given) throw_usage("`split_by` given" + writer);
  if (options.output.empty()) throw_usage("`output` is required: a folder for the pack");
}

}  // namespace

/// Gathers entries into blocks as large as those of matrix files, so that equal entries make equal packs.
struct RatingWriter::Impl {
  Impl(PackSparseSpec given_spec, PackSparseOptions given_options)
      : spec(std::move(given_spec)), options(std::move(given_options)) {
    check_options(spec, options);
    check_spec(spec);
    run = std::async(std::launch::async, [this] {
            struct Close {
              BlockQueue& queue;
              ~Close() { queue.close(); }
            } close{queue};
            return pack_sparse_reader(spec, options, queue);
          }).share();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    queue.abandon();
    run.wait();
  }

  void add(const RatingEntries& entries) {
    check(entries);
    const std::size_t count = size_of(entries.users);
    for (std::size_t first = 0; first < count;) {
      const std::size_t taken = std::min(count - first, kBlockRatings - block.values.size());
      append(part_of(entries, first, taken));
      first += taken;
      if (block.values.size() == kBlockRatings) hand_over();
    }
  }

  void check(const RatingEntries& entries) {
    require_own_process(process, "writer");
    if (is_finished) throw_usage("the writer is finished: nothing can be added");
    if (run.wait_for(std::chrono::seconds(0)) == std::future_status::ready) run.get();
    const std::size_t count = size_of(entries.users);
    check_length("items", size_of(entries.items), count, false);
    check_length("values", size_of(entries.values), count, true);
    check_length("times", entries.times.size(), count, true);
    check_ids(entries.users, "user", entries.first_entry);
    check_ids(entries.items, "item", entries.first_entry);
    check_values(entries.values, spec.packs.rules.rounds_values(), entries.first_entry);
    if (count == 0) return;
    if (has_times.value_or(!entries.times.empty()) != !entries.times.empty())
      throw_usage("times: expected for all entries or for none");
    has_times = !entries.times.empty();
  }

  void append(const RatingEntries& entries) {
    std::visit([this](const auto& ids) { users.add(ids, block.users.of_rating); }, entries.users);
    std::visit([this](const auto& ids) { items.add(ids, block.items.of_rating); }, entries.items);
    const auto take = [this](const auto& values) {
      for (const auto value : values) block.values.push_back(rounded.take(value));
    };
    std::visit(take, entries.values);
    block.values.resize(block.users.of_rating.size(), 1);
    block.times.insert(block.times.end(), entries.times.begin(), entries.times.end());
  }

  void hand_over() {
    if (std::ranges::all_of(block.values, [](float value) { return value == 1; })) block.values.clear();
    users.move_to(block.users);
    items.move_to(block.items);
    // A run that ended has failed, which this throws, or was stopped.
    if (!queue.put(block)) run.get();
    clear_block(block);
  }

  PackSparseReport finish() {
    require_own_process(process, "writer");
    if (is_finished) throw_usage("the writer is finished");
    is_finished = true;
    if (block.users.of_rating.size() > 0) hand_over();
    queue.end(rounded);
    return run.get();
  }

  PackSparseSpec spec;
  PackSparseOptions options;
  BlockQueue queue;
  std::shared_future<PackSparseReport> run;
  RatingBlock block;  ///< is being filled; its ids are in `users` and `items`
  IdMap users;
  IdMap items;
  RoundedValues rounded;
  std::optional<bool> has_times;
  bool is_finished = false;
  pid_t process = ::getpid();
};

RatingWriter::RatingWriter(PackSparseSpec spec, PackSparseOptions options)
    : impl_(std::make_unique<Impl>(std::move(spec), std::move(options))) {}
RatingWriter::RatingWriter(RatingWriter&&) noexcept = default;
RatingWriter& RatingWriter::operator=(RatingWriter&& other) noexcept {
  release();
  impl_ = std::move(other.impl_);
  return *this;
}
RatingWriter::~RatingWriter() { release(); }

void RatingWriter::release() {
  if (impl_ && impl_->process != ::getpid()) static_cast<void>(impl_.release());
}

void RatingWriter::add(const RatingEntries& entries) { impl_->add(entries); }

void RatingWriter::add(const CsrEntries& rows) {
  check_rows(rows);
  std::visit(
      [&](const auto& users) {
        const auto expanded = expand(users, rows.indptr);
        impl_->add({std::span(expanded), rows.items, rows.values, rows.times});
      },
      rows.users);
}

PackSparseReport RatingWriter::finish() { return impl_->finish(); }

}  // namespace chunkhit
