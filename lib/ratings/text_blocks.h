// A text of ratings, cut into blocks of whole lines.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/text_stream.h"
#include "chunkhit/sparse_spec.h"
#include "ratings/rating_text.h"

namespace chunkhit {

/// Cuts a text at line ends; where fields may be quoted, at line ends with an even number of quotes before
/// them.
class TextBlocks {
 public:
  /// Reads about `block_bytes` a block, at least 1.
  TextBlocks(TextStream& stream, TextQuoting quoting, std::size_t block_bytes)
      : stream_(stream), quoting_(quoting), block_bytes_(block_bytes) {}

  /// Replaces `text` by the next whole lines, without a byte order mark at the file's beginning; false at the
  /// end. The last line of the file may have no end. Where a line has more than kMaxLineBytes its beginning,
  /// more than as many bytes, ends the last block.
  [[nodiscard]] bool next(ByteBuffer& text);
  /// Bytes that were read, and their hash.
  [[nodiscard]] std::uint64_t byte_count() const { return byte_count_; }
  /// Whether what was read has a last line without a line break, as a file that was cut has.
  [[nodiscard]] bool ends_within_line() const { return byte_count_ > 0 && last_byte_ != '\n'; }
  [[nodiscard]] std::uint64_t xxh3() const { return hash_.value(); }

 private:
  void read_more(ByteBuffer& text);
  [[nodiscard]] std::size_t last_cut(const ByteBuffer& text) const;

  TextStream& stream_;
  TextQuoting quoting_;
  std::size_t block_bytes_;
  ByteBuffer rest_;  // of the last block, behind its last line end
  Xxh3Stream hash_;
  std::uint64_t byte_count_ = 0;
  bool at_end_ = false;
  std::uint8_t last_byte_ = 0;  // that was read
};

}  // namespace chunkhit
