#include "pack/read_stats.h"

#include <algorithm>
#include <utility>

#include "base/words.h"
#include "chunkhit/error.h"
#include "input/bad_line.h"
#include "input/rating_text.h"

namespace chunkhit {

void ReadStats::begin(std::string input) {
  inputs_.emplace_back();
  inputs_.back().name = std::move(input);
}

void ReadStats::add(const RatingBlock& block, std::uint64_t line_offset) {
  RatingInput& input = inputs_.back();
  input.line_count += block.line_count;
  input.blank_lines += block.blank_lines;
  input.comment_lines += block.comment_lines;
  input.header_lines += block.header_lines;
  input.bad_lines += bad_line_count(block);
  input.rating_count += block.size();
  if (!block.bad_lines.empty()) add_bad_lines(block, line_offset);
}

void ReadStats::add_bad_lines(const RatingBlock& block, std::uint64_t line_offset) {
  const std::uint64_t allowed = limit_.fail_on_error ? 0 : limit_.max_error_count;
  const bool is_limited = limit_.fail_on_error || limit_.max_error_count > 0;
  for (const BadLine& line : block.bad_lines) {
    InputBadLine bad{inputs_.back().name, line};
    bad.line.line += line_offset;
    const std::string text = bad_line_text(bad);
    if (line.reason == kLongLine) throw Error(ErrorCode::bad_data, text);
    if (limit_.fail_on_error) throw Error(ErrorCode::too_many_rejects, text + " (--on-error fail)");
    if (is_limited && bad_lines_ >= allowed)
      throw Error(ErrorCode::too_many_rejects, "more than " + count_text(allowed, "bad line") +
                                                   ", which --max-errors allows; the last: " + text);
    ++bad_lines_;
    ++bad_kinds_[bad_line_kind(line.reason)];
    if (first_.size() < kMaxBadLines) first_.push_back(std::move(bad));
  }
  for (const auto& [kind, count] : block.more_bad_lines) {
    bad_lines_ += count;
    bad_kinds_[kind] += count;
    if (kind == bad_line_kind(kLongLine))
      throw Error(ErrorCode::bad_data, inputs_.back().name + ":" +
                                           std::to_string(line_offset + block.line_count) + ": " +
                                           std::string(kLongLine));
  }
  if (is_limited && bad_lines_ > allowed)
    throw Error(ErrorCode::too_many_rejects, "more than " + count_text(allowed, "bad line") +
                                                 ", which --max-errors allows; the last in " +
                                                 inputs_.back().name);
}

void ReadStats::end(std::uint64_t bytes, std::uint64_t xxh3) {
  inputs_.back().bytes = bytes;
  inputs_.back().xxh3 = xxh3;
}

void ReadStats::finish() const {
  if (limit_.fail_on_error || limit_.max_error_count > 0 || bad_lines_ == 0) return;
  const std::uint64_t lines = total().line_count;
  const auto share = static_cast<std::uint64_t>(limit_.max_error_share * static_cast<double>(lines));
  // One bad line must not end the run of a short file.
  const std::uint64_t allowed = limit_.max_error_share > 0 ? std::max<std::uint64_t>(1, share) : 0;
  if (bad_lines_ <= allowed) return;
  throw Error(ErrorCode::too_many_rejects, count_text(bad_lines_, "bad line") + " of " + count_text(lines) +
                                               ", --max-errors allows " + count_text(allowed) +
                                               "; the first: " + bad_line_text(first_.front()));
}

RatingInput ReadStats::total() const {
  RatingInput sum;
  for (const RatingInput& input : inputs_) {
    sum.bytes += input.bytes;
    sum.line_count += input.line_count;
    sum.blank_lines += input.blank_lines;
    sum.comment_lines += input.comment_lines;
    sum.header_lines += input.header_lines;
    sum.bad_lines += input.bad_lines;
    sum.rating_count += input.rating_count;
  }
  return sum;
}

std::string bad_line_text(const InputBadLine& bad) {
  return bad.input + ":" + std::to_string(bad.line.line) + ":" + std::to_string(bad.line.column) + ": " +
         bad.line.reason;
}

}  // namespace chunkhit
