#include "ratings/text_blocks.h"

#include <algorithm>
#include <utility>

namespace chunkhit {

/// Gives a block of whole lines; the begun line at its end is kept for the next block.
bool TextBlocks::next(ByteBuffer& text) {
  std::swap(text, rest_);
  rest_.clear();
  if (at_end_) return !text.empty();
  for (;;) {
    const bool is_first = byte_count_ == 0;
    read_more(text);
    if (is_first && as_text(text).starts_with("\xef\xbb\xbf")) text.erase(text.begin(), text.begin() + 3);
    if (at_end_) return !text.empty();
    const std::size_t cut = last_cut(text);
    if (cut > 0) {
      rest_.assign(text.begin() + static_cast<std::ptrdiff_t>(cut), text.end());
      text.resize(cut);
      return true;
    }
    // The CR of a CRLF does not count towards the length of a line.
    if (text.size() > kMaxLineBytes + 1) at_end_ = true;
    if (at_end_) return true;
  }
}

void TextBlocks::read_more(ByteBuffer& text) {
  const std::size_t before = text.size();
  std::size_t filled = before;
  // Blocks of one size, so that buffers need not grow for what was left of the last block. At least 4 bytes,
  // so that a byte order mark is never divided.
  text.resize(before < block_bytes_ / 2 ? std::max<std::size_t>(block_bytes_, before + 4)
                                        : before + std::max<std::size_t>(block_bytes_, 4));
  while (!at_end_ && filled < text.size()) {
    const std::size_t count = stream_.read(MutableBytes(text).subspan(filled));
    filled += count;
    at_end_ = count == 0;
  }
  text.resize(filled);
  hash_.update(Bytes(text).subspan(before));
  byte_count_ += filled - before;
  if (filled > before) last_byte_ = text.back();
}

// Returns where the last whole line ends, or 0. In quoted text a line break counts only outside quotes,
// that is after an even number of them.
std::size_t TextBlocks::last_cut(const ByteBuffer& text) const {
  const std::string_view view = as_text(text);
  if (quoting_ != TextQuoting::double_quote) return view.rfind('\n') + 1;
  bool is_even = std::count(view.begin(), view.end(), '"') % 2 == 0;
  for (std::size_t at = view.size(); at > 0; --at) {
    if (view[at - 1] == '\n' && is_even) return at;
    if (view[at - 1] == '"') is_even = !is_even;
  }
  return 0;
}

}  // namespace chunkhit
