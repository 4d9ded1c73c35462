#include "input/text_pool.h"

#include <algorithm>
#include <limits>

#include "base/hash.h"
#include "chunkhit/error.h"

namespace chunkhit {

std::uint32_t TextPool::add(std::string_view text) {
  if ((ends_.size() + 1) * 4 > slots_.size() * 3) grow();
  const std::size_t slot = slot_of(text);
  if (slots_[slot] == 0) {
    if (count() == std::numeric_limits<std::uint32_t>::max() - 1)
      throw Error(ErrorCode::bad_data, "more than 4294967294 different labels");
    text_ += text;
    ends_.push_back(text_.size());
    slots_[slot] = count();
  }
  return slots_[slot] - 1;
}

std::string_view TextPool::operator[](std::uint32_t index) const {
  const std::uint64_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::string_view(text_).substr(begin, ends_[index] - begin);
}

std::size_t TextPool::capacity_bytes() const {
  return text_.capacity() + ends_.capacity() * sizeof ends_[0] + slots_.capacity() * sizeof slots_[0];
}

// Gives the slot that holds the text, or the free one where it belongs.
std::size_t TextPool::slot_of(std::string_view text) const {
  std::size_t slot = xxh3(as_bytes(text)) & (slots_.size() - 1);
  while (slots_[slot] != 0 && (*this)[slots_[slot] - 1] != text) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void TextPool::grow() {
  slots_.assign(std::max<std::size_t>(64, slots_.size() * 2), 0);
  for (std::uint32_t index = 0; index < count(); ++index) slots_[slot_of((*this)[index])] = index + 1;
}

}  // namespace chunkhit
