#include "batch/permutation.h"

#include <bit>

#include "base/random.h"

namespace chunkhit {

namespace {
constexpr std::uint64_t kKeyStride = 0x9e3779b97f4a7c15u;  // SplitMix64's
}

Permutation::Permutation(std::uint64_t count, std::uint64_t key)
    : count_(count),
      step_count_(count <= kFewNumbers ? kStepsOfFew : kSteps),
      low_bits_(count == 0 ? 0 : static_cast<std::uint32_t>(std::bit_width(count - 1) + 1) / 2),
      low_mask_((std::uint64_t{1} << low_bits_) - 1),
      high_count_(count == 0 ? 1 : ((count - 1) >> low_bits_) + 1),
      step_keys_() {
  const std::uint64_t start = mix_bits(key);
  for (std::size_t step = 0; step < step_count_; ++step)
    step_keys_[step] = mix_bits(start + kKeyStride * (step + 1));
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  do index = apply_steps(index);
  while (index >= count_);
  return index;
}

std::uint64_t Permutation::inverse(std::uint64_t place) const {
  do place = undo_steps(place);
  while (place >= count_);
  return place;
}

std::uint64_t Permutation::apply_steps(std::uint64_t number) const {
  std::uint64_t low = number & low_mask_;
  std::uint64_t high = number >> low_bits_;
  for (std::size_t step = 0; step < step_count_; step += 2) {
    low = (low + mix_bits(step_keys_[step] ^ high)) & low_mask_;
    high += high_shift(low, step_keys_[step + 1]);
    high -= high >= high_count_ ? high_count_ : 0;
  }
  return high << low_bits_ | low;
}

std::uint64_t Permutation::undo_steps(std::uint64_t number) const {
  std::uint64_t low = number & low_mask_;
  std::uint64_t high = number >> low_bits_;
  for (std::size_t step = step_count_; step > 0; step -= 2) {
    const std::uint64_t shift = high_shift(low, step_keys_[step - 1]);
    high += high < shift ? high_count_ - shift : std::uint64_t{0} - shift;
    low = (low - mix_bits(step_keys_[step - 2] ^ high)) & low_mask_;
  }
  return high << low_bits_ | low;
}

std::uint64_t Permutation::high_shift(std::uint64_t low, std::uint64_t step_key) const {
  return static_cast<std::uint64_t>(
      (static_cast<unsigned __int128>(mix_bits(step_key ^ low)) * high_count_) >> 64);
}

}  // namespace chunkhit
