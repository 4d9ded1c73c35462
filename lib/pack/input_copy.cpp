#include "pack/input_copy.h"

#include <cstddef>
#include <utility>

#include "base/bytes.h"

namespace chunkhit {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

}  // namespace

InputCopy::InputCopy(TextStream& stream, const std::string& folder, const std::atomic<bool>* stop,
                     const std::function<void(std::uint64_t)>& on_bytes)
    : file_(folder), name_(stream.name()), path_(file_.open_path()) {
  ByteBuffer piece(kPieceBytes);
  while (stop == nullptr || !*stop) {
    const std::size_t count = stream.read(piece);
    if (count == 0) break;
    file_.append(Bytes(piece).first(count));
    byte_count_ += count;
    on_bytes(byte_count_);
  }
}

std::string InputCopy::own_words(std::string message) const {
  for (std::size_t at = message.find(path_); at != std::string::npos; at = message.find(path_, at + 1)) {
    const std::size_t end = at + path_.size();
    const bool is_longer = end < message.size() && message[end] >= '0' && message[end] <= '9';
    if (!is_longer) message.replace(at, path_.size(), name_);
  }
  return message;
}

}  // namespace chunkhit
