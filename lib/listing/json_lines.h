// JSON lines, an object on each, as a table: the keys are its columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/text_stream.h"
#include "listing/sample_list.h"

namespace chunkhit {

/// Whether a text begins with an object of JSON.
[[nodiscard]] bool is_json_lines(Bytes head);

/// Gives the rows of JSON lines as CSV. The columns are the keys of the first 1,000 lines; a key that a line
/// lacks, or that is null, is an empty field.
class JsonLines {
 public:
  /// `columns`: those that are used, whose values are texts, numbers or truth values; a label may be a list
  /// of texts where there is a `label_separator`.
  JsonLines(TextStream& stream, const LabelColumns& columns);
  /// Fills the front of `out` and returns how many bytes, 0 at the end. Throws bad_data, with the line, for
  /// what is no object, and for lists and objects in columns that are used.
  [[nodiscard]] std::size_t read(MutableBytes out);

 private:
  struct Line {
    std::uint64_t number = 0;
    std::string text;
  };
  static constexpr std::size_t kMaxKeys = 10'000;

  void write_header();
  void write_row(const Line& line);
  void add_cell(std::string_view text);
  [[nodiscard]] bool next_line(Line& line);
  void read_more();
  [[noreturn]] void fail(const Line& line, const std::string& what) const;

  TextStream& stream_;
  std::string label_;      // the one label column; empty: none, or several
  std::string separator_;  // of its lists
  std::vector<std::string> used_;
  std::vector<std::string> keys_;
  std::vector<Line> probed_;  // lines of the header's keys, which are rows, too
  std::size_t probed_at_ = 0;
  std::string row_;            // CSV that was not yet given
  std::size_t row_begin_ = 0;  // of the rest of it
  std::string buffer_;         // of the stream
  std::size_t buffer_begin_ = 0;
  std::size_t searched_ = 0;  // no line ends before it
  std::uint64_t line_ = 0;
  bool at_end_ = false;
};

}  // namespace chunkhit
