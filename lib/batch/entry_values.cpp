#include "batch/entry_values.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/bytes.h"
#include "batch/wide_rows.h"

namespace chunkhit {
namespace {

/// The factor by which every stored byte gives its entry of the table, if there is one.
std::optional<float> factor_of(const std::vector<float>& table) {
  for (std::size_t stored = 0; stored < table.size(); ++stored)
    if (static_cast<float>(stored) * table[1] != table[stored]) return std::nullopt;
  return table[1];
}

void prefetch_bytes(const std::uint8_t* bytes, std::size_t count) {
  constexpr std::size_t kLineBytes = 64;
  for (std::size_t at = 0; at < count; at += kLineBytes) __builtin_prefetch(bytes + at);
}

template <class Stored>
void scale_stored(const StoredRow& row, const EntryFormat& format, std::span<float> values) {
  for (std::size_t i = 0; i < row.nnz; ++i) {
    const auto stored = load_little<Stored>(row.values + i * sizeof(Stored));
    values[i] = static_cast<float>(stored * format.stored_scale) * format.scale;
  }
}

float norm_of(std::span<const float> values, RowNorm kind) {
  double sum = 0;
  for (const float value : values)
    sum += kind == RowNorm::l1 ? std::abs(double{value}) : double{value} * value;
  return static_cast<float>(kind == RowNorm::l1 ? sum : std::sqrt(sum));
}

}  // namespace

void prefetch_row(const StoredRow& row, const EntryFormat& format) {
  prefetch_bytes(row.ids, row.nnz * format.id_bytes);
  if (row.values != nullptr) prefetch_bytes(row.values, row.nnz * value_bytes(format.value_type));
}

EntryValues::EntryValues(const EntryFormat& format) : format_(format) {
  if (format_.binarize) format_.value_type = ValueType::none;
  if (format_.value_type == ValueType::none) table_ = {format.scale};
  if (format_.value_type != ValueType::u8) return;
  for (int stored = 0; stored < 256; ++stored)
    table_.push_back(static_cast<float>(stored * format.stored_scale) * format.scale);
  factor_ = factor_of(table_);
}

void EntryValues::look_up(const StoredRow& row, std::span<float> values) const {
  switch (format_.value_type) {
    case ValueType::none:
      for (float& value : values) value = table_[0];
      return;
    case ValueType::u8:
      if (factor_) return scale_bytes(row.values, *factor_, row.nnz, values.data());
      for (std::size_t i = 0; i < row.nnz; ++i) values[i] = table_[row.values[i]];
      return;
    case ValueType::u16:
      return scale_stored<std::uint16_t>(row, format_, values);
    case ValueType::f32:
      return scale_stored<float>(row, format_, values);
  }
}

void EntryValues::calculate(const StoredRow& row, std::span<float> values) const {
  look_up(row, values);
  if (format_.normalize == RowNorm::none) return;
  const float norm = norm_of(values, format_.normalize);
  if (norm == 0) return;
  for (float& value : values) value /= norm;
}

std::uint16_t half_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  constexpr std::uint32_t kInfinity = 0x7f800000;
  constexpr std::uint32_t kRoundsToInfinity = 0x477ff000;  // 65520
  constexpr std::uint32_t kSmallestNormal = 0x38800000;    // 2^-14
  if (magnitude > kInfinity) return static_cast<std::uint16_t>(sign | 0x7e00);
  if (magnitude >= kRoundsToInfinity) return static_cast<std::uint16_t>(sign | 0x7c00);
  // Adding 2^-1, whose last bit is worth a subnormal half's last bit, lets the processor round.
  if (magnitude < kSmallestNormal) {
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000));
  }
  const std::uint32_t is_odd = magnitude >> 13 & 1;
  const std::uint32_t rounded = magnitude + 0xfff + is_odd;
  constexpr std::uint32_t kExponentShift = (127 - 15) << 23;
  return static_cast<std::uint16_t>(sign | ((rounded - kExponentShift) >> 13));
}

}  // namespace chunkhit
