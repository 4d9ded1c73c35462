// The pipeline that takes ratings in: text → blocks → dense numbers of users and items → a sink; units of
// time, bad lines, statistics.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_stream.h"
#include "chunkhit/pack.h"
#include "chunkhit/pack_info.h"
#include "ratings/id_map.h"
#include "ratings/rating_format.h"
#include "ratings/rating_reader.h"
#include "ratings/rating_table.h"
#include "types/enum_names.h"
#include "types/rating_block.h"

namespace chunkhit {

/// Returns how a format that has columns is parsed (detect_rating_table, detect_json_fields).
[[nodiscard]] RatingTable detect_columns(RatingFormat format, const TextHead& head,
                                         const RatingTableSpec& spec, std::string_view name,
                                         const RatingTable* earlier = nullptr);

enum class TimeUnit : std::uint8_t { seconds, milliseconds, microseconds, nanoseconds };
constexpr Words<4> words_of(TimeUnit) { return {"seconds", "milliseconds", "microseconds", "nanoseconds"}; }

/// The unit that a time since 1970 has by its size: seconds below 1e11 (the year 5138), milliseconds below
/// 1e14, microseconds below 1e17. Counters of other things are seconds here.
[[nodiscard]] TimeUnit time_unit(std::int64_t time);

/// Gives a time in another unit than its size says, rounded down; what 64 bits do not hold
/// becomes their end.
[[nodiscard]] std::int64_t in_unit(std::int64_t time, TimeUnit unit);

/// Looks at the times of a run's inputs.
class TimeUnits {
 public:
  /// `cut_count`: how many of them had a fraction; times are multiplied by `scale`.
  void add(std::span<const std::int64_t> times, std::uint64_t cut_count = 0, std::int64_t scale = 1);
  /// Ends an input: its unit is that of most of its times. Those next to 0 have none.
  void end(const std::string& input);
  /// The unit of the first input that had times with one.
  [[nodiscard]] std::optional<TimeUnit> unit() const { return unit_; }
  /// What to say where an input had several units, or another one than the first; else empty.
  [[nodiscard]] const std::string& difference() const { return difference_; }
  [[nodiscard]] std::uint64_t cut_count() const { return cut_count_; }

 private:
  std::array<std::uint64_t, kEnumWords<TimeUnit>.size()> counts_{};  ///< times of the current input by unit
  std::optional<TimeUnit> unit_;
  std::string input_;  ///< input whose unit is `unit_`
  std::string difference_;
  std::uint64_t cut_count_ = 0;
};

/// Counts of one input.
struct RatingInput : InputStats {
  std::uint64_t xxh3 = 0;  ///< hash of the input's bytes
  std::uint64_t bad_lines = 0;
};

/// A bad line and the input that has it.
struct InputBadLine {
  std::string input;
  BadLine line;
};

/// How many bad lines end the run.
struct BadLineLimit {
  OnError on_error = OnError::fail;  ///< fail: the first one does
  ErrorLimit max_errors{};           ///< of all lines, once all are read
};

/// Counts of all inputs.
class ReadStats {
 public:
  explicit ReadStats(BadLineLimit limit) : limit_(limit) {}
  /// Begins with another input.
  void begin(std::string input);
  /// Counts a block; its bad lines are numbered from `line_offset` + 1. Throws too_many_rejects when the
  /// limit is passed, bad_data for a line that is too long.
  void add(const RatingBlock& block, std::uint64_t line_offset);
  /// Ends an input.
  void end(std::uint64_t bytes, std::uint64_t xxh3);
  /// Compares the share of bad lines, once all inputs were read; throws too_many_rejects.
  void finish() const;

  [[nodiscard]] const std::vector<RatingInput>& inputs() const { return inputs_; }
  /// The sum over all inputs.
  [[nodiscard]] RatingInput total() const;
  /// How many bad lines have each kind of reason.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& bad_kinds() const { return bad_kinds_; }
  /// The first bad lines, at most kMaxBadLines, and the first of each kind behind them.
  [[nodiscard]] const std::vector<InputBadLine>& first_bad_lines() const { return first_; }

 private:
  void add_bad_lines(const RatingBlock& block, std::uint64_t line_offset);

  BadLineLimit limit_;
  std::vector<RatingInput> inputs_;
  std::map<std::string, std::uint64_t> bad_kinds_;
  std::vector<InputBadLine> first_;
  std::uint64_t bad_lines_ = 0;
};

/// Reads "INPUT:LINE:COLUMN: reason".
[[nodiscard]] std::string bad_line_text(const InputBadLine& bad);

/// Takes ratings in the input's order: users and items by number; no `values`: all are 1; no `times`: there
/// are none.
using RatingSink =
    std::function<void(std::span<const std::uint32_t> users, std::span<const std::uint32_t> items,
                       std::span<const float> values, std::span<const std::int64_t> times)>;

/// How far an input is read.
struct IntakeProgress {
  std::string input;
  std::uint64_t bytes_done = 0;              ///< bytes of uncompressed text that are read
  std::optional<std::uint64_t> bytes_total;  ///< size of the text, where known
  std::uint64_t rating_count = 0;            ///< count over all inputs
  std::uint64_t bad_lines = 0;               ///< count over all inputs
  std::uint64_t kept_bytes = 0;              ///< memory that the input's reader keeps until the end
};

/// How to read; the result depends on none of it but the limit.
struct IntakeOptions {
  std::uint32_t threads = 1;
  std::size_t block_bytes = std::size_t{4} << 20;  ///< size of the text that is parsed at a time
  std::uint64_t small_ids = SmallIds::kMaxEnd;     ///< integers below it are found without a hash
  BadLineLimit limit;
  RatingRules rules{};                                     ///< says which values are an error; applied later
  std::function<void(const IntakeProgress&)> on_progress;  ///< called by one thread at a time
  /// Called with the ids so far and the text that they are of, by one thread at a time, while ratings that
  /// were numbered before are handed over.
  std::function<void(const IdMap& users, const IdMap& items, const IntakeProgress&)> on_ids;
  const std::atomic<bool>* stop = nullptr;  ///< set to end after the blocks in hand
};

/// A file that is no text of ratings.
struct MatrixFile {
  std::string name;
  std::uint64_t bytes = 0;  ///< size as stored; 0: not known
};

/// Reads the inputs of a run, one after the other; all share one numbering of users and one of items. Holds
/// 2 · threads + 1 blocks, about 8 MiB each.
class RatingIntake {
 public:
  RatingIntake(RatingTableSpec spec, IntakeOptions options, RatingSink sink);
  /// Reads a text: format text, user_items, netflix or json_lines. Throws what parsing, the limit or the sink
  /// throw, and bad_data for a value that does not fit the rules' type.
  void read_text(TextStream& input, RatingFormat format);
  /// Reports progress: so many bytes of an input were copied so that they can be read.
  void report_copied(const std::string& name, std::uint64_t bytes) const;
  /// Reads matrix files, all of one reader. Blocks are read one after the other, while earlier ones are
  /// numbered. `user_prefix` is put before each user's id.
  void read_blocks(std::span<const MatrixFile> files, RatingReader& input,
                   const std::string& user_prefix = "");
  /// Users of the last `read_blocks` that inputs before it had, by number: 1, else 0.
  [[nodiscard]] const std::vector<std::uint8_t>& shared_users() const { return shared_users_; }
  /// Looks at the share of bad lines, once all was read.
  void finish() const { stats_.finish(); }

  /// Frees what finds ids; nothing more can be read.
  void drop_id_index() {
    users_.drop_index();
    items_.drop_index();
  }
  [[nodiscard]] const IdMap& users() const { return users_; }
  [[nodiscard]] const IdMap& items() const { return items_; }
  [[nodiscard]] const ReadStats& stats() const { return stats_; }
  [[nodiscard]] const RatingRules& rules() const { return options_.rules; }
  /// How the last table was parsed; none where no input was one.
  [[nodiscard]] const std::optional<RatingTable>& table() const { return table_; }
  /// What each text input was read as, by its name.
  [[nodiscard]] const std::vector<std::pair<std::string, RatingTable>>& tables() const { return tables_; }
  [[nodiscard]] const TimeUnits& times() const { return times_; }
  /// By what all times were multiplied.
  [[nodiscard]] std::int64_t time_scale() const { return table_ ? table_->text.time_scale : 1; }
  /// Texts whose last line has no line break.
  [[nodiscard]] const std::vector<std::string>& texts_without_end() const { return texts_without_end_; }
  /// `stop` was seen: not all was read.
  [[nodiscard]] bool interrupted() const { return interrupted_; }

 private:
  class Pipeline;

  RatingTableSpec spec_;
  IntakeOptions options_;
  RatingSink sink_;
  IdMap users_;
  IdMap items_;
  ReadStats stats_;
  TimeUnits times_;
  std::optional<RatingTable> table_;
  std::vector<std::pair<std::string, RatingTable>> tables_;
  std::vector<std::string> texts_without_end_;
  std::vector<std::uint8_t> shared_users_;
  bool interrupted_ = false;
};

}  // namespace chunkhit
