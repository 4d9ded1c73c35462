// Random numbers as a function of seed and purpose, without state: the same for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace chunkhit {

/// Mixes 64 bits so that every input bit changes half of the output bits (the finaliser of SplitMix64,
/// Steele, Lea and Flood 2014).
[[nodiscard]] constexpr std::uint64_t mix_bits(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

/// What a random number is drawn for; two purposes never share numbers.
enum class Purpose : std::uint64_t {
  pack_order = 1,
  split = 2,
  epoch_order = 3,   ///< order of the samples (global) or chunks (window)
  window_order = 4,  ///< order of the samples inside a window
  echo_order = 5,    ///< order of a block's samples in each of its passes
  flip = 6,
  crop = 7,
  fold_in = 8,          ///< which items of a held-out user are held out
  held_out = 9,         ///< which ratings of a user are held out
  negatives = 10,       ///< items that a row does not have
  rare_negatives = 11,  ///< the same, for rows that have nearly all
  resized_crop = 12,    ///< size and position of a box of an image
  decoded_images = 13,  ///< which images of their own sizes stay decoded
  draw = 14,            ///< samples that are drawn with replacement
  choice = 15,          ///< samples that are drawn without replacement
  mixture = 16,         ///< order of a mixture's sources
  rank_order = 17,      ///< which rank has which block of a mixture
  stream_order = 18,    ///< order inside the windows of a stream
  flip_vertical = 19,   ///< whether an image is mirrored top to bottom
  quarter_turns = 20,   ///< how often an image is turned by 90 degrees
  sequence_cut = 21,    ///< which window of a row's items is its sequence
  pair_negatives = 22,  ///< items that are given with a rating, which its row does not have
};

/// Gives 64 random bits for one position: (seed, purpose, index).
[[nodiscard]] constexpr std::uint64_t random_bits(std::uint64_t seed, Purpose purpose, std::uint64_t index) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;
  const std::uint64_t key = mix_bits(seed + kGolden * (static_cast<std::uint64_t>(purpose) + 1));
  return mix_bits(mix_bits(key ^ (index + 1) * kGolden) + key);
}

/// Gives a number in [0, count) for one position, each equally likely to within 2^-64 · count.
[[nodiscard]] constexpr std::uint64_t random_below(std::uint64_t count, std::uint64_t seed, Purpose purpose,
                                                   std::uint64_t index) {
  return static_cast<std::uint64_t>(
      (static_cast<unsigned __int128>(random_bits(seed, purpose, index)) * count) >> 64);
}

/// Permutes values in place (Fisher and Yates) by (seed, purpose).
template <class Value>
void shuffle(std::span<Value> values, std::uint64_t seed, Purpose purpose) {
  for (std::size_t left = values.size(); left > 1; --left)
    std::swap(values[left - 1], values[random_below(left, seed, purpose, left)]);
}

}  // namespace chunkhit
