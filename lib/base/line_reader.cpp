#include "base/line_reader.h"

#include <cstring>
#include <utility>

#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {
namespace {

constexpr std::size_t kFirstBufferBytes = std::size_t{256} << 10;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

LineReader::LineReader(const std::string& path, std::size_t max_line_bytes)
    : LineReader(std::make_unique<TextStream>(path), max_line_bytes) {}

LineReader::LineReader(std::unique_ptr<TextStream> stream, std::size_t max_line_bytes)
    : stream_(std::move(stream)), max_line_bytes_(max_line_bytes), buffer_(kFirstBufferBytes) {}

bool LineReader::next(std::string_view& line) {
  std::size_t searched = 0;
  for (;;) {
    const std::uint8_t* const from = buffer_.data() + begin_;
    const std::size_t there = filled_ - begin_;
    const void* const end =
        there == searched ? nullptr : std::memchr(from + searched, '\n', there - searched);
    if (end == nullptr && !at_end_) {
      searched = there;
      read_more();
      continue;
    }
    if (there == 0) return false;
    const std::size_t bytes =
        end == nullptr ? there : static_cast<std::size_t>(static_cast<const std::uint8_t*>(end) - from);
    line = as_text({from, bytes});
    const std::size_t given = bytes + (end == nullptr ? 0 : 1);
    begin_ += given;
    bytes_done_ += given;
    ++line_number_;
    if (line_number_ == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
    if (line.ends_with('\r')) line.remove_suffix(1);
    return true;
  }
}

void LineReader::read_more() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, filled_ - begin_);
  filled_ -= begin_;
  begin_ = 0;
  if (filled_ > max_line_bytes_) {
    ++line_number_;
    fail("a line of more than " + bytes_text(static_cast<double>(max_line_bytes_)));
  }
  if (filled_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  const std::size_t count = stream_->read(MutableBytes(buffer_).subspan(filled_));
  filled_ += count;
  at_end_ = count == 0;
}

void LineReader::fail(const std::string& what) const {
  throw_bad_data(name() + ":" + std::to_string(line_number_) + ": " + what);
}

void LineReader::fail(std::uint64_t column, const std::string& what) const {
  throw_bad_data(name() + ":" + std::to_string(line_number_) + ":" + std::to_string(column) + ": " + what);
}

}  // namespace chunkhit
