// Pixels of images of their own sizes, kept in memory for as many images as there is room for.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "cache/chunk_buffers.h"
#include "cache/chunk_set.h"

namespace chunkhit {

/// Keeps the pixels of some images once they are decoded. Any thread may call anything.
class DecodedImages {
 public:
  /// What all images need that are not stored as pixels.
  [[nodiscard]] static std::uint64_t bytes_of_all(const ChunkSet& chunks);
  /// Chooses images evenly, the same ones for equal sources, as long as they fit into `bytes`. Throws
  /// std::bad_alloc.
  DecodedImages(const ChunkSet& chunks, std::uint64_t bytes);
  DecodedImages() = default;  ///< chooses none

  /// How many were chosen.
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// The upright pixels of an image, row by row. `decode` writes them where a chosen image has none yet; it
  /// may throw. Null where the image was not chosen, or another thread decodes it now.
  template <class Decode>
  [[nodiscard]] const std::uint8_t* find(std::uint64_t sample, Decode decode) {
    if (offsets_.empty() || offsets_[sample] == kNotChosen) return nullptr;
    std::atomic<State>& state = states_[sample];
    std::uint8_t* const pixels = memory_.data() + offsets_[sample];
    if (state.load(std::memory_order_acquire) == State::ready) return pixels;
    State expected = State::absent;
    if (!state.compare_exchange_strong(expected, State::decoding)) return nullptr;
    try {
      decode(pixels);
    } catch (...) {
      state = State::absent;
      throw;
    }
    state.store(State::ready, std::memory_order_release);
    return pixels;
  }

 private:
  enum class State : std::uint8_t { absent, decoding, ready };
  static constexpr std::uint64_t kNotChosen = ~std::uint64_t{0};

  std::vector<std::uint64_t> offsets_;  // of each sample; empty where none is chosen
  std::vector<std::atomic<State>> states_;
  MemoryMap memory_;
  std::uint64_t count_ = 0;
};

}  // namespace chunkhit
