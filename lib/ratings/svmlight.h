// svmlight / libsvm files: "label[,label...] [qid:N] index:value ... [# comment]", a row a line.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/line_reader.h"
#include "ratings/entry_collector.h"
#include "ratings/rating_reader.h"
#include "types/rating_block.h"

namespace chunkhit {

/// Reads files one after the other as one matrix. Its first column is 0 if that index is anywhere in the
/// files, else 1: programs that guess it file by file shift training against test data. A user's id is the
/// number of its row, from 0 over all files, blank lines not counted; an item's id is its index as written,
/// so that nothing depends on the base but the number of columns. Zeros that are written are given.
class SvmlightReader : public RatingReader {
 public:
  /// Opens the first file; throws what opening throws. `rounds_values`: a value that keeps_value denies is
  /// the nearest float, else its line is bad. `opened`: the stream of "-" where its head was read already, or
  /// null.
  SvmlightReader(std::vector<std::string> paths, bool rounds_values,
                 std::unique_ptr<TextStream> opened = nullptr);
  [[nodiscard]] bool next(RatingBlock& block) override;
  [[nodiscard]] std::size_t file_index() const override { return next_path_ - 1; }
  [[nodiscard]] std::optional<std::uint64_t> text_bytes() const override { return text_bytes_; }
  /// Moves the labels of the rows so far out; a bad line is a row without labels.
  [[nodiscard]] RowLabels take_row_labels() { return std::move(labels_); }

 private:
  struct Entry {
    std::uint64_t index = 0;
    float value = 0;
  };
  [[nodiscard]] bool open_next();
  void read_lines(RatingBlock& block);
  void read_row(std::string_view line, RatingBlock& block);
  [[nodiscard]] bool parse_row(std::string_view line);
  [[nodiscard]] bool parse_labels(std::string_view field, std::uint64_t column);
  [[nodiscard]] bool parse_group(std::string_view text, std::uint64_t column);
  [[nodiscard]] bool parse_entry(std::string_view field, std::uint64_t column);
  /// Keeps what is wrong with the line, and where; gives false.
  bool fail_at(std::uint64_t column, const char* expected, std::string_view found);
  void keep_labels();
  void detect_shape();

  std::vector<std::string> paths_;
  bool rounds_values_;
  std::unique_ptr<TextStream> opened_;
  std::size_t next_path_ = 0;
  std::optional<std::uint64_t> text_bytes_;  // of a single file
  std::unique_ptr<LineReader> lines_;
  EntryCollector collector_;
  RowLabels labels_;
  std::vector<Entry> row_;         // of the line that is being read
  std::vector<float> row_labels_;  // of that line
  std::int64_t row_group_ = RowLabels::kNoGroup;
  LineProblem error_;
  std::uint64_t error_column_ = 0;
  std::uint64_t row_count_ = 0;
  std::uint64_t lowest_index_ = UINT64_MAX;
  std::uint64_t highest_index_ = 0;
};

}  // namespace chunkhit
