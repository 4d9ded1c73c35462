#include "input/text_blocks.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace chunkhit {

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
    // The CR of a line's end is not one of its bytes.
    if (text.size() > kMaxLineBytes + 1) at_end_ = true;
    if (at_end_) return true;
  }
}

void TextBlocks::read_more(ByteBuffer& text) {
  const std::size_t before = text.size();
  std::size_t filled = before;
  // A byte order mark must come whole.
  text.resize(before + std::max<std::size_t>(block_bytes_, 4));
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

// Where the last whole line ends; 0 where none does.
std::size_t TextBlocks::last_cut(const ByteBuffer& text) const {
  const std::string_view view = as_text(text);
  if (quoting_ != Quoting::double_quote) return view.rfind('\n') + 1;
  bool is_even = std::count(view.begin(), view.end(), '"') % 2 == 0;
  for (std::size_t at = view.size(); at > 0; --at) {
    if (view[at - 1] == '\n' && is_even) return at;
    if (view[at - 1] == '"') is_even = !is_even;
  }
  return 0;
}

}  // namespace chunkhit
