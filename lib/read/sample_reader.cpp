#include "read/sample_reader.h"

#include <algorithm>
#include <numeric>

#include "chunkhit/error.h"

namespace chunkhit {

void require_below(const std::string& what, std::uint64_t number, std::uint64_t count) {
  if (number >= count)
    throw Error(ErrorCode::usage, what + " " + std::to_string(number) + " of " + std::to_string(count));
}

std::vector<std::size_t> ascending_order(std::span<const std::uint64_t> numbers) {
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return numbers[a] < numbers[b]; });
  return order;
}

}  // namespace chunkhit
