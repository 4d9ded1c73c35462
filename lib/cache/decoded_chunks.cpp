#include "cache/decoded_chunks.h"

#include <mutex>

namespace chunkhit {

void DecodedChunks::load(std::size_t chunk, ByteBuffer& scratch) {
  if (arena_.fill(chunk, scratch)) return;
  std::unique_lock lock(mutex_);
  std::uint8_t* const memory = buffers_.take();
  lock.unlock();
  try {
    const ChunkSet::Location location = reads_.chunks().find(chunk);
    read(chunk, {memory, reads_.chunks().decoded_bytes(location)}, scratch);
  } catch (...) {
    lock.lock();
    buffers_.give_back(memory);
    throw;
  }
  own_[chunk] = memory;
}

}  // namespace chunkhit
