#include "base/csv_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/throw_error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kFirstBufferBytes = std::size_t{64} << 10;
// Returned by the scanners where the bytes at hand end before the field does.
constexpr std::size_t kNeedsMore = static_cast<std::size_t>(-1);

bool starts_with(Bytes bytes, std::string_view mark) { return as_text(bytes).substr(0, mark.size()) == mark; }

bool looks_like_wide_characters(Bytes bytes) {
  if (starts_with(bytes, "\xff\xfe") || starts_with(bytes, "\xfe\xff")) return true;
  if (starts_with(bytes, std::string_view("\0\0\xfe\xff", 4))) return true;
  return bytes.size() > 1 && (bytes[0] == 0) != (bytes[1] == 0);
}

std::uint64_t count_lines(std::string_view text) {
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

ByteSource source_of(std::string_view text) {
  return [text](MutableBytes out) mutable {
    const std::size_t count = std::min(out.size(), text.size());
    std::copy_n(text.begin(), count, out.begin());
    text.remove_prefix(count);
    return count;
  };
}

CsvReader::CsvReader(std::string name, ByteSource source, char delimiter)
    : name_(std::move(name)), source_(std::move(source)), delimiter_(delimiter), buffer_(kFirstBufferBytes) {
  if (delimiter == '"' || delimiter == '\n' || delimiter == '\r')
    throw_usage("`delimiter`: must be neither a quote nor a line end");
  read_more();
  skip_byte_order_mark();
  if (delimiter_ == 0) delimiter_ = guess_delimiter();
  for (const char stop : {delimiter_, '\n', '\r', '\0'}) stops_[static_cast<std::uint8_t>(stop)] = true;
}

void CsvReader::skip_byte_order_mark() {
  const Bytes bytes = Bytes(buffer_).first(filled_);
  if (starts_with(bytes, "\xef\xbb\xbf")) row_end_ = 3;
  if (looks_like_wide_characters(bytes))
    throw_bad_data(name_ + ": line 1, column 1: looks like UTF-16 or UTF-32; save the table as UTF-8");
}

char CsvReader::guess_delimiter() const {
  constexpr std::string_view kDelimiters = ",\t;|";
  std::size_t found = kDelimiters.size();
  bool quoted = false;
  bool text = false;
  for (std::size_t at = row_end_; at < filled_; ++at) {
    const std::uint8_t byte = buffer_[at];
    if (byte == '"') quoted = !quoted;
    if (!quoted) found = std::min(found, kDelimiters.find(static_cast<char>(byte)));
    if (!quoted && byte == '\n' && text) break;
    text = text || (byte != '\r' && byte != '\n');
  }
  return found < kDelimiters.size() ? kDelimiters[found] : ',';
}

bool CsvReader::next_row(std::vector<std::string_view>& fields) {
  for (;;) {
    row_begin_ = row_end_;
    line_ = next_line_;
    while (!scan_row(fields)) read_more();
    if (row_end_ == row_begin_) return false;
    next_line_ +=
        row_has_quotes_ ? count_lines(as_text(Bytes(buffer_).subspan(row_begin_, row_end_ - row_begin_))) : 1;
    if (fields.size() == 1 && fields[0].empty() && !row_has_quotes_) continue;
    for (const std::size_t index : doubled_) fields[index] = unquote(fields[index]);
    return true;
  }
}

// Moves the row that is being split to the front of the buffer and fills the rest, so that a row is split
// again only when the bytes at hand have doubled.
void CsvReader::read_more() {
  std::memmove(buffer_.data(), buffer_.data() + row_begin_, filled_ - row_begin_);
  filled_ -= row_begin_;
  row_begin_ = 0;
  if (filled_ >= kMaxRowBytes) fail(0, "a row of more than 16 MiB");
  if (filled_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  while (!at_end_ && filled_ < buffer_.size()) {
    const std::size_t count = source_(MutableBytes(buffer_).subspan(filled_));
    filled_ += count;
    at_end_ = count == 0;
  }
}

// Splits the row at `row_begin_`; false when more bytes must be read first, and then it starts again.
bool CsvReader::scan_row(std::vector<std::string_view>& fields) {
  fields.clear();
  doubled_.clear();
  row_has_quotes_ = false;
  row_end_ = row_begin_;
  if (row_begin_ == filled_) return at_end_;
  for (std::size_t at = row_begin_;; ++at) {
    std::string_view field;
    bool doubled_quotes = false;
    if (at < filled_ && buffer_[at] == '"') {
      row_has_quotes_ = true;
      at = scan_quoted_field(at, field, doubled_quotes);
    } else {
      at = scan_plain_field(at, field);
    }
    if (at == kNeedsMore) return false;
    if (doubled_quotes) doubled_.push_back(fields.size());
    fields.push_back(field);
    if (at < filled_ && buffer_[at] == static_cast<std::uint8_t>(delimiter_)) continue;
    row_end_ = at + (at < filled_ ? line_end_bytes(at) : 0);
    return true;
  }
}

std::size_t CsvReader::scan_plain_field(std::size_t begin, std::string_view& field) const {
  std::size_t at = begin;
  for (;; ++at) {
    while (at < filled_ && !stops_[buffer_[at]]) ++at;
    if (at == filled_) break;
    if (buffer_[at] == 0) fail(at, "a NUL byte; is this a text file?");
    if (buffer_[at] != '\r' || line_end_bytes(at) != 0) break;
  }
  check_field_bytes(begin, at - begin);
  if (!at_end_ && (at == filled_ || line_end_bytes(at) == kNeedsMore)) return kNeedsMore;
  field = as_text(Bytes(buffer_).subspan(begin, at - begin));
  return at;
}

// Returns the text between the quotes; quotes inside stay doubled until the row is whole.
std::size_t CsvReader::scan_quoted_field(std::size_t begin, std::string_view& field,
                                         bool& doubled_quotes) const {
  std::size_t at = begin + 1;
  for (;; at += 2) {
    const void* quote = std::memchr(buffer_.data() + at, '"', filled_ - at);
    const std::size_t end =
        quote == nullptr ? filled_
                         : static_cast<std::size_t>(static_cast<const std::uint8_t*>(quote) - buffer_.data());
    if (const void* nul = std::memchr(buffer_.data() + at, 0, end - at); nul != nullptr)
      fail(static_cast<std::size_t>(static_cast<const std::uint8_t*>(nul) - buffer_.data()),
           "a NUL byte; is this a text file?");
    check_field_bytes(begin, end - begin - 1);
    if (quote == nullptr && at_end_) fail(begin, "the quote that opens here is never closed");
    if (quote == nullptr || (end + 1 == filled_ && !at_end_)) return kNeedsMore;
    at = end;
    if (at + 1 == filled_ || buffer_[at + 1] != '"') break;
    doubled_quotes = true;
  }
  field = as_text(Bytes(buffer_).subspan(begin + 1, at - begin - 1));
  ++at;
  if (at == filled_ || buffer_[at] == static_cast<std::uint8_t>(delimiter_)) return at;
  const std::size_t line_end = line_end_bytes(at);
  if (line_end == 0) fail(at, "text behind a closing quote" + quote_advice_);
  return line_end == kNeedsMore ? kNeedsMore : at;
}

// How many bytes the line end at `at` has: 0 where there is none, since a CR alone is data.
std::size_t CsvReader::line_end_bytes(std::size_t at) const {
  if (buffer_[at] == '\n') return 1;
  if (buffer_[at] != '\r') return 0;
  if (at + 1 == filled_) return at_end_ ? 1 : kNeedsMore;
  return buffer_[at + 1] == '\n' ? 2 : 0;
}

std::string_view CsvReader::unquote(std::string_view field) {
  auto* begin = buffer_.data() + (field.data() - reinterpret_cast<const char*>(buffer_.data()));
  auto* to = begin;
  for (const auto* from = begin; from != begin + field.size(); ++from) {
    *to++ = *from;
    if (*from == '"') ++from;
  }
  return field.substr(0, static_cast<std::size_t>(to - begin));
}

void CsvReader::check_field_bytes(std::size_t begin, std::size_t field_bytes) const {
  if (field_bytes <= kMaxFieldBytes) return;
  const bool quoted = buffer_[begin] == '"';
  fail(begin,
       std::string("a field of more than 1 MiB begins here") + (quoted ? "; is its quote closed?" : ""));
}

void CsvReader::fail(std::size_t at, const std::string& what) const {
  throw_bad_data(name_ + ": " + location(at) + ": " + what);
}

// Tells line and byte column, both from 1, of a byte in the row that is being split.
std::string CsvReader::location(std::size_t at) const {
  const std::string_view before = as_text(Bytes(buffer_).subspan(row_begin_, at - row_begin_));
  const std::size_t last = before.rfind('\n');
  const std::size_t column = last == std::string_view::npos ? before.size() : before.size() - last - 1;
  return "line " + std::to_string(line_ + count_lines(before)) + ", column " + std::to_string(column + 1);
}

void append_csv_field(std::string& row, std::string_view field) {
  // One comparison a character: find_first_of searches the set for each.
  const auto is_plain = [](char c) {
    return c > ',' || (c != ',' && c != '"' && c != '\r' && c != '\n' && c != '\t');
  };
  if (std::ranges::all_of(field, is_plain) && !field.starts_with(' ') && !field.ends_with(' ')) {
    row += field;
    return;
  }
  row += '"';
  for (const char c : field) row.append(c == '"' ? 2 : 1, c);
  row += '"';
}

std::string harmless_path(std::string_view path) {
  return (path.find_first_of("=+-@") == 0 ? "./" : "") + std::string(path);
}

}  // namespace chunkhit
