#include "pack/chunk_assembler.h"

#include <cstring>

namespace chunkhit {

void ChunkAssembler::take(const std::shared_ptr<ChunkBuffer>& buffer, std::uint64_t slot) {
  // A new chunk begins in the buffer that the sample lies in: its slot is never before the sample's own, and
  // what stood there was taken already.
  if (current_.buffer == nullptr) current_ = {buffer, 0};
  const std::uint8_t* from = buffer->bytes.data() + slot * sample_bytes_;
  std::uint8_t* to = current_.buffer->bytes.data() + current_.sample_count * sample_bytes_;
  if (from != to) std::memmove(to, from, sample_bytes_);
  if (++current_.sample_count == chunk_samples_) filled_.push_back(std::exchange(current_, {}));
}

void ChunkAssembler::finish() {
  if (current_.buffer != nullptr) filled_.push_back(std::exchange(current_, {}));
}

}  // namespace chunkhit
