#include "batch/sparse_values.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/half_float.h"
#include "base/text.h"
#include "base/words.h"
#include "batch/wide_rows.h"
#include "chunkhit/error.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

/// The factor by which every stored byte gives its entry of the table, if there is one.
std::optional<float> factor_of(const std::vector<float>& table) {
  for (std::size_t stored = 0; stored < table.size(); ++stored)
    if (static_cast<float>(stored) * table[1] != table[stored]) return std::nullopt;
  return table[1];
}

// Always inlined: GCC takes a function that only prefetches for one without effect, and drops calls of it.
[[gnu::always_inline]] inline void prefetch_bytes(const std::uint8_t* bytes, std::size_t count) {
  constexpr std::size_t kLineBytes = 64;
  for (std::size_t at = 0; at < count; at += kLineBytes) __builtin_prefetch(bytes + at);
}

/// Asks for the memory of a row that is needed soon.
[[gnu::always_inline]] inline void prefetch_row(const StoredRow& row, const EntryFormat& format) {
  prefetch_bytes(row.ids, row.nnz * format.id_bytes);
  if (row.values != nullptr) prefetch_bytes(row.values, row.nnz * value_bytes(format.value_type));
  if (format.has_times)
    prefetch_bytes(reinterpret_cast<const std::uint8_t*>(row.times), row.nnz * sizeof(std::int64_t));
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

EntryValues::EntryValues(const EntryFormat& format) : format_(format) {
  if (format_.binarize) format_.value_type = ValueType::none;
  if (format_.value_type == ValueType::none) table_ = {format.scale};
  if (format_.value_type != ValueType::u8) return;
  for (int stored = 0; stored < 256; ++stored)
    table_.push_back(static_cast<float>(stored * format.stored_scale) * format.scale);
  factor_ = factor_of(table_);
}

void EntryValues::scale(const StoredRow& row, std::span<float> values) const {
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
  scale(row, values);
  normalize(values);
}

void EntryValues::normalize(std::span<float> values) const {
  if (format_.normalize == RowNorm::none) return;
  const float norm = norm_of(values, format_.normalize);
  if (norm == 0) return;
  for (float& value : values) value /= norm;
}

namespace {

constexpr std::size_t kAlignment = 64;
/// How many rows ahead memory is asked for: a row is some lines of columns and some of values.
constexpr std::size_t kRowsAhead = 4;

std::size_t indices_offset(std::size_t rows) {
  return round_up((rows + 1) * sizeof(std::int32_t), kAlignment);
}

std::size_t values_offset(std::size_t rows, std::size_t nnz) {
  return indices_offset(rows) + round_up(nnz * sizeof(std::int32_t), kAlignment);
}

std::size_t times_offset(std::size_t rows, std::size_t nnz) {
  return values_offset(rows, nnz) + round_up(nnz * sizeof(float), kAlignment);
}

void copy_ids(const StoredRow& row, std::size_t id_bytes, std::int32_t* indices) {
  if (id_bytes == sizeof(std::uint16_t))
    widen_ids(reinterpret_cast<const std::uint16_t*>(row.ids), row.nnz, indices);
  else if (row.nnz != 0)
    std::memcpy(indices, row.ids, row.nnz * sizeof(std::int32_t));
}

}  // namespace

std::size_t csr_block_bytes(std::size_t rows, std::uint64_t nnz, bool with_times) {
  if (nnz > INT32_MAX || rows >= INT32_MAX)
    throw Error(ErrorCode::usage, "batch_size: a batch of " + count_text(rows, "row") + " may have " +
                                      std::to_string(nnz) + " entries, at most 2147483647 are handed out");
  return with_times ? times_offset(rows, nnz) + nnz * sizeof(std::int64_t)
                    : values_offset(rows, nnz) + nnz * sizeof(float);
}

CsrBatch write_csr_batch(std::span<const StoredRow> rows, const EntryValues& values, std::uint8_t* block) {
  std::size_t nnz = 0;
  for (const StoredRow& row : rows) nnz += row.nnz;
  auto* const indptr = reinterpret_cast<std::int32_t*>(block);
  auto* const indices = reinterpret_cast<std::int32_t*>(block + indices_offset(rows.size()));
  auto* const numbers = reinterpret_cast<float*>(block + values_offset(rows.size(), nnz));
  const bool has_times = values.format().has_times;
  auto* const times =
      has_times ? reinterpret_cast<std::int64_t*>(block + times_offset(rows.size(), nnz)) : nullptr;
  std::size_t at = 0;
  indptr[0] = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (row + kRowsAhead < rows.size()) prefetch_row(rows[row + kRowsAhead], values.format());
    copy_ids(rows[row], values.format().id_bytes, indices + at);
    values.calculate(rows[row], {numbers + at, rows[row].nnz});
    if (has_times) std::copy_n(rows[row].times, rows[row].nnz, times + at);
    at += rows[row].nnz;
    indptr[row + 1] = static_cast<std::int32_t>(at);
  }
  return {.indptr = {indptr, rows.size() + 1},
          .indices = {indices, nnz},
          .values = {numbers, nnz},
          .times = {times, has_times ? nnz : 0},
          .block = {block, csr_block_bytes(rows.size(), nnz, has_times)}};
}

namespace {

/// How many rows ahead memory is asked for: a row is some lines of columns and some of values.

/// Appends the columns of a row.
void append_ids(const StoredRow& row, std::size_t id_bytes, std::vector<std::uint32_t>& ids) {
  const std::size_t from = ids.size();
  ids.resize(from + row.nnz);
  if (id_bytes == sizeof(std::uint32_t)) {
    if (row.nnz != 0) std::memcpy(ids.data() + from, row.ids, row.nnz * id_bytes);
    return;
  }
  widen_ids(reinterpret_cast<const std::uint16_t*>(row.ids), row.nnz,
            reinterpret_cast<std::int32_t*>(ids.data() + from));
}

[[noreturn]] void refuse_half(float number) {
  throw Error(ErrorCode::usage, "`format`: dense_f16 holds numbers up to 65504, the values go up to " +
                                    number_text(number) + "; take dense_f32, or a smaller scale");
}

/// The sums of repeated ratings may be no bytes.
void check_bytes(std::span<const float> numbers) {
  for (const float number : numbers)
    if (number > UINT8_MAX)
      throw Error(ErrorCode::usage,
                  "`format`: dense_u8 holds numbers up to 255, the ratings of a user and item add up to " +
                      number_text(number) + "; take dense_f32");
}

/// Adds up the ratings of each column, or takes the first of each; returns how many columns there are.
std::size_t join_columns(std::span<std::uint32_t> columns, std::span<float> values, bool adds) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < columns.size(); ++at) {
    if (count > 0 && columns[at] == columns[count - 1]) {
      if (adds) values[count - 1] += values[at];
      continue;
    }
    columns[count] = columns[at];
    values[count++] = values[at];
  }
  return count;
}

}  // namespace

std::size_t cell_bytes(SparseFormat form) {
  switch (form) {
    case SparseFormat::dense_f32:
      return 4;
    case SparseFormat::dense_f16:
      return 2;
    case SparseFormat::dense_u8:
      return 1;
    case SparseFormat::csr:
    case SparseFormat::sequences:
    case SparseFormat::pairs:
      break;
  }
  return 0;
}

void check_half_values(float magnitude, const EntryFormat& format) {
  if (format.normalize != RowNorm::none) return;
  const float served = (format.binarize ? 1 : magnitude) * std::abs(format.scale);
  if (served >= kHalfOverflow) refuse_half(served);
}

void check_dense_batch(SparseFormat form, std::uint64_t rows, std::uint64_t columns,
                       const EntryFormat& format) {
  if (form == SparseFormat::dense_u8) {
    if (format.value_type != ValueType::u8 && format.value_type != ValueType::none)
      throw Error(ErrorCode::usage, "`format`: dense_u8 needs values that are stored as u8, these are " +
                                        name_of(format.value_type) + "; take dense_f32");
    if (format.scale != 1 || format.normalize != RowNorm::none)
      throw Error(
          ErrorCode::usage,
          "`format`: dense_u8 hands out numbers as they are stored; scale and `normalize` need dense_f32");
  }
  const std::uint64_t row_bytes = columns * cell_bytes(form);
  if (row_bytes == 0 || rows <= kMaxDenseBatchBytes / row_bytes) return;
  throw Error(ErrorCode::usage, "`format`: a dense batch of " + count_text(rows, "row") + " and " +
                                    count_text(columns, "column") + " has " +
                                    bytes_text(static_cast<double>(rows) * static_cast<double>(row_bytes)) +
                                    ", at most 1 GiB is handed out; take csr, or a smaller `batch_size`");
}

// The room of the largest batch, so that no later one allocates.
DenseBatch::DenseBatch(SparseFormat form, std::size_t rows, std::size_t columns, std::uint64_t max_entries,
                       std::uint8_t* cells)
    : form_(form), rows_(rows), columns_(columns), cells_(cells) {
  for (Set* set : {&before_, &now_}) {
    set->columns.reserve(max_entries);
    set->row_ends.reserve(rows);
  }
  values_.resize(std::min<std::uint64_t>(columns, max_entries));
}

void DenseBatch::restore_zeros() {
  stream_zeros(cells_, rows_ * columns_ * cell_bytes(form_));
  before_.columns.clear();
  before_.row_ends.clear();
  is_spoiled_ = false;
}

void DenseBatch::replace(std::span<const StoredRow> rows, const EntryValues& values) {
  if (is_spoiled_) restore_zeros();
  now_.columns.clear();
  now_.row_ends.clear();
  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (at + kRowsAhead < rows.size()) prefetch_row(rows[at + kRowsAhead], values.format());
    clear(at);
    write(at, rows[at], values);
  }
  for (std::size_t at = rows.size(); at < before_.row_ends.size(); ++at) clear(at);
  std::swap(before_, now_);
  assert(is_clean());
}

void DenseBatch::clear(std::size_t at) {
  if (at >= before_.row_ends.size()) return;
  const std::size_t bytes = cell_bytes(form_);
  std::uint8_t* const row = cells_ + at * columns_ * bytes;
  const std::span<const std::uint32_t> columns = before_.row(at);
  switch (form_) {
    case SparseFormat::dense_f32:
      for (const std::uint32_t column : columns) reinterpret_cast<float*>(row)[column] = 0;
      break;
    case SparseFormat::dense_f16:
      for (const std::uint32_t column : columns) reinterpret_cast<std::uint16_t*>(row)[column] = 0;
      break;
    case SparseFormat::dense_u8:
    case SparseFormat::csr:
    case SparseFormat::sequences:
    case SparseFormat::pairs:
      for (const std::uint32_t column : columns) row[column] = 0;
  }
}

template <class Cell, class Convert>
void DenseBatch::scatter(std::size_t at, const Convert& convert) {
  Cell* const cells = reinterpret_cast<Cell*>(cells_) + at * columns_;
  const std::span<const std::uint32_t> columns = now_.row(at);
  for (std::size_t i = 0; i < columns.size(); ++i) cells[columns[i]] = convert(i);
}

void DenseBatch::write_sums(std::size_t at, const StoredRow& row, const EntryValues& values) {
  const EntryFormat& format = values.format();
  const std::size_t first = now_.columns.size();
  append_ids(row, format.id_bytes, now_.columns);
  values_.resize(std::max(values_.size(), row.nnz));
  std::span<float> numbers = std::span(values_).first(row.nnz);
  if (form_ != SparseFormat::dense_u8)
    values.scale(row, numbers);
  else if (format.value_type == ValueType::u8)
    std::copy_n(row.values, row.nnz, numbers.begin());
  else
    std::ranges::fill(numbers, 1.0F);
  numbers = numbers.first(join_columns(std::span(now_.columns).subspan(first), numbers, !format.binarize));
  now_.columns.resize(first + numbers.size());
  now_.row_ends.push_back(now_.columns.size());
  values.normalize(numbers);
  if (form_ == SparseFormat::dense_f32) {
    scatter<float>(at, [numbers](std::size_t i) { return numbers[i]; });
  } else if (form_ == SparseFormat::dense_f16) {
    write_halves(at, numbers);
  } else {
    check_bytes(numbers);
    scatter<std::uint8_t>(at, [numbers](std::size_t i) { return static_cast<std::uint8_t>(numbers[i]); });
  }
}

void DenseBatch::write(std::size_t at, const StoredRow& row, const EntryValues& values) {
  if (values.format().has_repeats) return write_sums(at, row, values);
  append_ids(row, values.format().id_bytes, now_.columns);
  now_.row_ends.push_back(now_.columns.size());
  if (form_ == SparseFormat::dense_u8) {
    const std::uint8_t* const stored = values.format().value_type == ValueType::u8 ? row.values : nullptr;
    return scatter<std::uint8_t>(
        at, [stored](std::size_t i) { return stored != nullptr ? stored[i] : std::uint8_t{1}; });
  }
  const std::span<float> numbers = std::span(values_).first(row.nnz);
  values.calculate(row, numbers);
  if (form_ == SparseFormat::dense_f32)
    scatter<float>(at, [numbers](std::size_t i) { return numbers[i]; });
  else
    write_halves(at, numbers);
}

void DenseBatch::write_halves(std::size_t at, std::span<const float> numbers) {
  constexpr std::uint16_t kInfinity = 0x7c00;
  std::uint16_t largest = 0;
  scatter<std::uint16_t>(at, [&](std::size_t i) {
    const std::uint16_t half = half_float(numbers[i]);
    largest = std::max<std::uint16_t>(largest, half & 0x7fff);
    return half;
  });
  if (largest < kInfinity) return;
  spoil();  // nobody knows of this batch's cells
  const auto is_too_large = [](float number) { return !(std::abs(number) < kHalfOverflow); };
  refuse_half(*std::find_if(numbers.begin(), numbers.end(), is_too_large));
}

bool DenseBatch::is_clean() const {
  const std::size_t bytes = cell_bytes(form_);
  for (std::size_t at = 0; at < rows_; ++at) {
    const std::uint8_t* const row = cells_ + at * columns_ * bytes;
    const auto set = at < before_.row_ends.size() ? before_.row(at) : std::span<const std::uint32_t>();
    std::size_t next = 0;
    for (std::size_t column = 0; column < columns_; ++column) {
      const bool was_set = next < set.size() && set[next] == column;
      next += was_set ? 1 : 0;
      const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
      if (!was_set && !std::all_of(row + column * bytes, row + (column + 1) * bytes, is_zero)) return false;
    }
  }
  return true;
}

}  // namespace chunkhit
