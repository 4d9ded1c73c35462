// Functions of real numbers that are the same on every machine: the C library's differ in the last bit.
// schemas/order.md fixes every operation.
#pragma once

#include <cmath>

namespace chunkhit {

inline constexpr double kLogOf2 = 0.6931471805599453;

/// The natural logarithm of x > 0.
[[nodiscard]] inline double log_of(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.7071067811865476) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), q = s * s;
  double sum = 1.0 / 23;
  for (int n = 21; n >= 1; n -= 2) sum = sum * q + 1.0 / n;
  return exponent * kLogOf2 + 2 * s * sum;
}

[[nodiscard]] inline double exp_of(double x) {
  const double k = std::floor(x * 1.4426950408889634 + 0.5), r = x - k * kLogOf2;
  double sum = 1;
  for (int n = 13; n >= 1; --n) sum = sum * r / n + 1;
  return std::ldexp(sum, static_cast<int>(k));
}

}  // namespace chunkhit
