// What became of the lines of ratings: counted, and the run ended when too many are bad.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "types/rating_block.h"

namespace chunkhit {

/// What was read of one input.
struct RatingInput {
  std::string name;
  std::uint64_t bytes = 0;  ///< of a text undone, of a matrix as the file lies; 0: not known
  std::uint64_t xxh3 = 0;   ///< of these bytes
  std::uint64_t line_count = 0;
  std::uint64_t blank_lines = 0;
  std::uint64_t comment_lines = 0;
  std::uint64_t header_lines = 0;
  std::uint64_t bad_lines = 0;
  std::uint64_t rating_count = 0;
};

/// A bad line and the input that has it.
struct InputBadLine {
  std::string input;
  BadLine line;
};

/// How many bad lines end the run.
struct BadLineLimit {
  bool fail_on_error = true;          ///< the first one does
  double max_error_share = 0.01;      ///< more of all lines do, once all are read (one is allowed) ...
  std::uint64_t max_error_count = 0;  ///< ... or, when not 0, more than this many
};

/// What was read of all inputs.
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
  /// The first bad lines, at most kMaxBadLines.
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

}  // namespace chunkhit
