// The pipeline that takes ratings in: text → blocks → dense numbers of users and items → whoever keeps them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/rating_reader.h"
#include "input/id_map.h"
#include "input/rating_format.h"
#include "input/rating_table.h"
#include "input/text_stream.h"
#include "pack/read_stats.h"
#include "pack/time_unit.h"

namespace chunkhit {

/// Takes ratings in the input's order: users and items by number; no `values`: all are 1; no `times`: there
/// are none.
using RatingSink =
    std::function<void(std::span<const std::uint32_t> users, std::span<const std::uint32_t> items,
                       std::span<const float> values, std::span<const std::int64_t> times)>;

/// How far an input is read.
struct IntakeProgress {
  std::string input;
  std::uint64_t bytes_done = 0;              ///< of its text, undone
  std::optional<std::uint64_t> bytes_total;  ///< where that is known
  std::uint64_t rating_count = 0;            ///< of all inputs
  std::uint64_t bad_lines = 0;               ///< of all inputs
  std::uint64_t kept_bytes = 0;              ///< of memory that the input's reader keeps until the end
};

/// How to read; the result depends on none of it but the limit.
struct IntakeOptions {
  std::uint32_t threads = 1;
  std::size_t block_bytes = std::size_t{4} << 20;  ///< of text that is parsed at a time
  BadLineLimit limit;
  std::function<void(const IntakeProgress&)> on_progress;  ///< called by one thread at a time
  /// Called with the ids so far and the text that they are of, by one thread at a time, while ratings that
  /// were numbered before are handed over.
  std::function<void(const IdMap& users, const IdMap& items, const IntakeProgress&)> on_ids;
  const std::atomic<bool>* stop = nullptr;  ///< set to end after the blocks in hand
};

/// A file that is no text of ratings.
struct MatrixFile {
  std::string name;
  std::uint64_t bytes = 0;  ///< as it lies; 0: not known
};

/// Reads the inputs of a run, one after the other; all share one numbering of users and one of items. Holds
/// 2 · threads + 1 blocks, about 8 MiB each.
class RatingIntake {
 public:
  RatingIntake(RatingTableSpec spec, IntakeOptions options, RatingSink sink);
  /// Reads a text: format text, user_items or netflix. Throws what parsing, the limit or the sink throw.
  void read_text(TextStream& input, RatingFormat format);
  /// Reads files of another format, those of one reader; its blocks are made one after the other while
  /// Notes for that so many bytes of an input were made ready to be read.
  void report_copied(const std::string& name, std::uint64_t bytes) const;
  /// earlier ones are numbered.
  void read_blocks(std::span<const MatrixFile> files, RatingReader& input);
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
  /// How the last table was parsed; none where no input was one.
  [[nodiscard]] const std::optional<RatingTable>& table() const { return table_; }
  [[nodiscard]] const TimeUnits& times() const { return times_; }
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
  std::vector<std::string> texts_without_end_;
  bool interrupted_ = false;
};

}  // namespace chunkhit
