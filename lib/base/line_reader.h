// Lines of a text file, plain or compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/text_stream.h"

namespace chunkhit {

/// Splits a file into lines that end with LF or CRLF; a byte order mark and the end of the last line may be
/// there or not.
class LineReader {
 public:
  /// Opens a file, or stdin for "-"; a line of more than `max_line_bytes` is refused.
  LineReader(const std::string& path, std::size_t max_line_bytes);
  /// Takes a stream of which nothing was read but its head.
  LineReader(std::unique_ptr<TextStream> stream, std::size_t max_line_bytes);
  /// Gives the next line, without its end, valid until the next call; false at the end of the file. Throws
  /// bad_data.
  [[nodiscard]] bool next(std::string_view& line);
  /// The number, from 1, of the line that was given last.
  [[nodiscard]] std::uint64_t line_number() const { return line_number_; }
  [[nodiscard]] const std::string& name() const { return stream_->name(); }
  /// Bytes of the lines that were given, with their ends.
  [[nodiscard]] std::uint64_t bytes_done() const { return bytes_done_; }
  /// Bytes of all lines, where that is known from the beginning.
  [[nodiscard]] std::optional<std::uint64_t> byte_count() const { return stream_->byte_count(); }
  /// Throws "NAME:LINE: what", or "NAME:LINE:COLUMN: what".
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail(std::uint64_t column, const std::string& what) const;

 private:
  void read_more();
  std::unique_ptr<TextStream> stream_;
  std::size_t max_line_bytes_;
  ByteBuffer buffer_;
  std::size_t begin_ = 0;   // of what was not given yet
  std::size_t filled_ = 0;  // bytes of the file in buffer_
  bool at_end_ = false;
  std::uint64_t line_number_ = 0;
  std::uint64_t bytes_done_ = 0;
};

}  // namespace chunkhit
