#include "chunk/matrix_shape.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

[[noreturn]] void throw_bad(const std::string& what) { throw Error(ErrorCode::bad_data, what); }

template <class Number>
Number stored_number(float rating, double scale) {
  const double number = std::nearbyint(rating / scale);
  if (!(number >= 0 && number <= double{static_cast<Number>(-1)}) ||
      static_cast<float>(number * scale) != rating)
    throw_bad("rating " + std::to_string(rating) + " is no number of " + std::to_string(8 * sizeof(Number)) +
              " bits times " + std::to_string(scale));
  return static_cast<Number>(number);
}

template <class Number>
void encode_numbers(std::span<const float> ratings, double scale, MutableBytes numbers) {
  const std::size_t count = numbers.size() / sizeof(Number);
  for (std::size_t i = 0; i < count; ++i)
    store_little(numbers.data() + i * sizeof(Number),
                 stored_number<Number>(ratings.empty() ? 1.0f : ratings[i], scale));
}

void encode_floats(std::span<const float> ratings, MutableBytes numbers) {
  if (ratings.empty()) {
    for (std::size_t at = 0; at < numbers.size(); at += sizeof(float)) store_little(&numbers[at], 1.0f);
    return;
  }
  std::ranges::copy(Bytes(reinterpret_cast<const std::uint8_t*>(ratings.data()), ratings.size_bytes()),
                    numbers.begin());
  check_finite(numbers);
}

}  // namespace

void check_matrix_shape(const MatrixShape& shape) {
  if (shape.column_count == 0 || shape.column_count > UINT32_MAX)
    throw_bad(std::to_string(shape.column_count) + " columns, expected 1 to 2^32 - 1");
  if (shape.matrix_count != 1 && shape.matrix_count != 2)
    throw_bad(std::to_string(shape.matrix_count) + " matrices, expected 1 or 2");
  const auto type = static_cast<std::size_t>(shape.value_type);
  if (type >= kValueTypeNames.size()) throw_bad("unknown value type " + std::to_string(type));
  const bool is_scaled = shape.value_type == ValueType::u8 || shape.value_type == ValueType::u16;
  if (is_scaled ? !std::isfinite(shape.scale) || shape.scale <= 0 : shape.scale != 1)
    throw_bad("scale " + std::to_string(shape.scale) + " of values of type " +
              std::string(kValueTypeNames[type]));
}

void encode_ratings(std::span<const float> ratings, const MatrixShape& shape, MutableBytes numbers) {
  switch (shape.value_type) {
    case ValueType::none:
      if (std::ranges::any_of(ratings, [](float rating) { return rating != 1; }))
        throw_bad("a rating is not 1, and there is no place for its value");
      return;
    case ValueType::u8:
      return encode_numbers<std::uint8_t>(ratings, shape.scale, numbers);
    case ValueType::u16:
      return encode_numbers<std::uint16_t>(ratings, shape.scale, numbers);
    case ValueType::f32:
      return encode_floats(ratings, numbers);
  }
}

void check_finite(Bytes numbers) {
  bool finite = true;
  for (std::size_t at = 0; at < numbers.size(); at += sizeof(float))
    finite &= (load_little<std::uint32_t>(numbers.data() + at) & 0x7f800000u) != 0x7f800000u;
  if (!finite) throw_bad("a value is not a finite number");
}

}  // namespace chunkhit
