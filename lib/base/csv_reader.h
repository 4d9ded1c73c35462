// CSV: its rows one after the other, and its fields as text (RFC 4180; what is accepted beyond it is in
// schemas/label-csv.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace chunkhit {

/// Gives the next bytes of a stream: fills the front of the buffer and returns how many bytes, 0 at the end.
using ByteSource = std::function<std::size_t(MutableBytes)>;

/// Gives the bytes of a text that outlives the source.
[[nodiscard]] ByteSource source_of(std::string_view text);

/// Splits a stream into rows of fields. Holds one row and the bytes read ahead, never the table.
class CsvReader {
 public:
  static constexpr std::size_t kMaxFieldBytes = std::size_t{1} << 20;
  static constexpr std::size_t kMaxRowBytes = std::size_t{16} << 20;

  /// Reads the first bytes; throws bad_data when they are no UTF-8 text. `name` stands in messages.
  /// `delimiter` 0 means the one of comma, tab, `;` and `|` that the first row has, the first of several;
  /// else a comma.
  CsvReader(std::string name, ByteSource source, char delimiter);

  /// Gives the fields of the next row that is not blank, unquoted; they are valid until the next call. False
  /// at the end. Throws bad_data, with line and column, for what cannot be split.
  [[nodiscard]] bool next_row(std::vector<std::string_view>& fields);

  /// Ends the message on text behind a closing quote: the way out.
  void advise(std::string quote_advice) { quote_advice_ = std::move(quote_advice); }

  /// The line, from 1, where the row that was given last begins.
  [[nodiscard]] std::uint64_t line() const { return line_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] char delimiter() const { return delimiter_; }

 private:
  void skip_byte_order_mark();
  [[nodiscard]] char guess_delimiter() const;
  void read_more();
  [[nodiscard]] bool scan_row(std::vector<std::string_view>& fields);
  [[nodiscard]] std::size_t scan_plain_field(std::size_t begin, std::string_view& field) const;
  [[nodiscard]] std::size_t scan_quoted_field(std::size_t begin, std::string_view& field,
                                              bool& doubled_quotes) const;
  [[nodiscard]] std::size_t line_end_bytes(std::size_t at) const;
  [[nodiscard]] std::string_view unquote(std::string_view field);
  [[nodiscard]] std::string location(std::size_t at) const;
  [[noreturn]] void fail(std::size_t at, const std::string& what) const;
  void check_field_bytes(std::size_t begin, std::size_t field_bytes) const;

  std::string name_;
  std::string quote_advice_ = "; a quote inside a quoted field must be doubled";
  ByteSource source_;
  char delimiter_;
  std::array<bool, 256> stops_{};  // bytes that may end a plain field
  ByteBuffer buffer_;
  std::size_t filled_ = 0;     // bytes of the stream in buffer_
  std::size_t row_begin_ = 0;  // of the row being split, in buffer_
  std::size_t row_end_ = 0;    // behind its line end
  bool at_end_ = false;        // the stream holds nothing behind `filled_`
  bool row_has_quotes_ = false;
  std::uint64_t line_ = 1;
  std::uint64_t next_line_ = 1;
  std::vector<std::size_t> doubled_;  // fields of the row in which quotes are doubled
};

/// Appends a field to a row that is being written, quoted where RFC 4180 asks for it.
void append_csv_field(std::string& row, std::string_view field);

/// Writes a path that a spreadsheet would take for a formula as "./path", which names the same file.
[[nodiscard]] std::string harmless_path(std::string_view path);

}  // namespace chunkhit
