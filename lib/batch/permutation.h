// A permutation as a function: no table, any place in constant time. Part of the order, which is a format:
// schemas/order.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace chunkhit {

/// A keyed permutation of [0, count): a Feistel network over a · b ≥ count numbers, a a power of two near the
/// root of count, b as small as it may be, walked in cycles until it lands inside (Black and Rogaway 2002,
/// method 3). The steps add instead of xor, so that odd permutations are as likely as even ones. Two keys
/// give two unrelated permutations.
class Permutation {
 public:
  Permutation(std::uint64_t count, std::uint64_t key);
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Where `index` < count() goes.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t index) const;
  /// Which index goes to `place` < count().
  [[nodiscard]] std::uint64_t inverse(std::uint64_t place) const;

 private:
  // Of few numbers each step can choose little, so more are needed until every permutation is equally likely.
  static constexpr std::uint64_t kFewNumbers = 64;
  static constexpr std::size_t kStepsOfFew = 32;
  static constexpr std::size_t kSteps = 10;
  [[nodiscard]] std::uint64_t apply_steps(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t undo_steps(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t high_shift(std::uint64_t low, std::uint64_t step_key) const;

  std::uint64_t count_;
  std::size_t step_count_;
  std::uint32_t low_bits_;    // a = 2^low_bits_
  std::uint64_t low_mask_;    // a - 1
  std::uint64_t high_count_;  // b
  std::array<std::uint64_t, kStepsOfFew> step_keys_;
};

}  // namespace chunkhit
