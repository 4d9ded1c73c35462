#include "chunk/row_block.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <type_traits>

#include "base/throw_error.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

/// Returns rating / scale; throws bad_data unless number · scale gives the rating exactly.
template <class Number>
Number stored_number(float rating, double scale) {
  Number number = 0;
  if (!find_stored_number(rating, scale, number))
    throw_bad_data("rating " + std::to_string(rating) + " is no number of " +
                   std::to_string(8 * sizeof(Number)) + " bits times " + std::to_string(scale));
  return number;
}

/// Writes the numbers of all ratings without a branch; false where one is none of them, or -0.
template <class Number>
bool encode_all_numbers(std::span<const float> ratings, double scale, MutableBytes numbers) {
  // Added to a number of up to 51 bits, this rounds it and leaves it in the lowest bits. A rating that is
  // number · scale is never near the middle of two numbers, where nearbyint may round to the other one.
  constexpr double kRounding = 0x1.8p52;
  constexpr int kBits = 8 * sizeof(Number);
  std::uint64_t beyond = 0;
  std::uint32_t differing = 0;
  for (std::size_t i = 0; i < ratings.size(); ++i) {
    const double rounding = ratings[i] / scale + kRounding;
    const std::uint64_t number =
        std::bit_cast<std::uint64_t>(rounding) - std::bit_cast<std::uint64_t>(kRounding);
    const auto rating = static_cast<float>((rounding - kRounding) * scale);
    beyond |= number >> kBits;
    differing |= std::bit_cast<std::uint32_t>(rating) ^ std::bit_cast<std::uint32_t>(ratings[i]);
    store_little(numbers.data() + i * sizeof(Number), static_cast<Number>(number));
  }
  return beyond == 0 && differing == 0;
}

template <class Number>
void encode_numbers(std::span<const float> ratings, double scale, MutableBytes numbers) {
  if (!ratings.empty() && encode_all_numbers<Number>(ratings, scale, numbers)) return;
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
    throw_bad_data(std::to_string(shape.column_count) + " columns, expected 1 to 2^32 - 1");
  if (shape.matrix_count != 1 && shape.matrix_count != 2)
    throw_bad_data(std::to_string(shape.matrix_count) + " matrices, expected 1 or 2");
  const auto type = static_cast<std::size_t>(shape.value_type);
  if (type >= kEnumWords<ValueType>.size()) throw_bad_data("unknown value type " + std::to_string(type));
  const bool is_scaled = shape.value_type == ValueType::u8 || shape.value_type == ValueType::u16;
  if (is_scaled ? !std::isfinite(shape.scale) || shape.scale <= 0 : shape.scale != 1)
    throw_bad_data("scale " + std::to_string(shape.scale) + " of values of type " +
                   name_of(shape.value_type));
  if (shape.has_repeats && !shape.has_times) throw_bad_data("items that repeat in a row, but no times");
}

void encode_ratings(std::span<const float> ratings, const MatrixShape& shape, MutableBytes numbers) {
  switch (shape.value_type) {
    case ValueType::none:
      if (std::ranges::any_of(ratings, [](float rating) { return rating != 1; }))
        throw_bad_data("a rating is not 1, but value type none stores no values");
      return;
    case ValueType::u8:
      return encode_numbers<std::uint8_t>(ratings, shape.scale, numbers);
    case ValueType::u16:
      return encode_numbers<std::uint16_t>(ratings, shape.scale, numbers);
    case ValueType::f32:
      return encode_floats(ratings, numbers);
  }
}

namespace {

template <class Number>
void decode_numbers(Bytes numbers, double scale, std::span<float> ratings) {
  for (std::size_t i = 0; i < ratings.size(); ++i)
    ratings[i] = static_cast<float>(load_little<Number>(numbers.data() + i * sizeof(Number)) * scale);
}

}  // namespace

void decode_ratings(Bytes numbers, const MatrixShape& shape, std::span<float> ratings) {
  switch (shape.value_type) {
    case ValueType::none:
      std::ranges::fill(ratings, 1.0F);
      return;
    case ValueType::u8:
      return decode_numbers<std::uint8_t>(numbers, shape.scale, ratings);
    case ValueType::u16:
      return decode_numbers<std::uint16_t>(numbers, shape.scale, ratings);
    case ValueType::f32:
      return decode_numbers<float>(numbers, 1, ratings);
  }
}

void check_finite(Bytes numbers) {
  bool finite = true;
  for (std::size_t at = 0; at < numbers.size(); at += sizeof(float))
    finite &= (load_little<std::uint32_t>(numbers.data() + at) & 0x7f800000u) != 0x7f800000u;
  if (!finite) throw_bad_data("a value is not a finite number");
}

// The layout's page is schemas/row-block.md.

namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kTimedVersion = 2;
constexpr std::uint8_t kTiedVersion = 3;
constexpr std::uint8_t kRepeatingVersion = 4;
constexpr std::size_t kTimeBytes = sizeof(std::int64_t);
constexpr std::size_t kTieBytes = sizeof(std::uint32_t);
/// Numbers whose bytes are gathered at a time, so that they stay in the nearest cache.
constexpr std::size_t kPlaneStep = 512;
constexpr std::size_t kHeaderBytes = 24;
constexpr std::size_t kMatrixHeaderBytes = 152;
constexpr std::size_t kGroupsAt = 24;  // in a matrix's header

/// Shorter pieces are joined with the next: a compressed block of their own would cost more.
constexpr std::size_t kMinPieceBytes = 64;

[[noreturn]] void throw_broken(const std::string& what) { throw_bad_data("row block: " + what); }

bool is_version_of(const MatrixShape& shape, std::uint8_t version) {
  if (shape.has_repeats) return version == kRepeatingVersion;
  return shape.has_times ? version == kTimedVersion || version == kTiedVersion : version == kVersion;
}

const char* versions_of(const MatrixShape& shape) {
  if (shape.has_repeats) return "4 in a part whose rows repeat items";
  return shape.has_times ? "2 or 3 in a part with times" : "1 in a part without times";
}

/// Writes the lowest byte of each number, then the next of each, and so on; returns the end.
template <class Number>
std::uint8_t* encode_planes(std::span<const Number> numbers, std::uint8_t* to) {
  for (std::size_t byte = 0; byte < sizeof(Number); ++byte)
    for (const Number number : numbers) *to++ = static_cast<std::uint8_t>(number >> 8 * byte);
  return to;
}

/// Adds numbers in planes to what is in `numbers`, modulo 2^64 or 2^32.
template <class Number>
void add_planes(Bytes planes, std::span<Number> numbers) {
  using Unsigned = std::make_unsigned_t<Number>;
  for (std::size_t first = 0; first < numbers.size(); first += kPlaneStep) {
    std::array<Unsigned, kPlaneStep> gathered{};
    const std::size_t count = std::min(kPlaneStep, numbers.size() - first);
    for (std::size_t byte = 0; byte < sizeof(Number); ++byte) {
      const std::uint8_t* const plane = planes.data() + byte * numbers.size() + first;
      for (std::size_t i = 0; i < count; ++i) gathered[i] |= Unsigned{plane[i]} << 8 * byte;
    }
    for (std::size_t i = 0; i < count; ++i)
      numbers[first + i] = static_cast<Number>(static_cast<Unsigned>(numbers[first + i]) + gathered[i]);
  }
}

/// Writes the earliest time of each row, and how much later each entry's is.
std::uint8_t* encode_times(const CsrView& rows, std::uint8_t* to) {
  if (rows.times.size() != rows.nnz())
    throw_bad_data(std::to_string(rows.times.size()) + " times of " + std::to_string(rows.nnz()) +
                   " ratings");
  std::vector<std::uint64_t> earliest(rows.row_count());
  std::vector<std::uint64_t> later(rows.nnz());
  for (std::size_t row = 0; row < rows.row_count(); ++row) {
    const std::uint64_t begin = rows.indptr[row] - rows.indptr[0];
    const auto times = rows.times.subspan(begin, rows.indptr[row + 1] - rows.indptr[row]);
    if (times.empty()) continue;
    earliest[row] = static_cast<std::uint64_t>(*std::ranges::min_element(times));
    for (std::size_t at = 0; at < times.size(); ++at)
      later[begin + at] = static_cast<std::uint64_t>(times[at]) - earliest[row];
  }
  return encode_planes(std::span<const std::uint64_t>(later),
                       encode_planes(std::span<const std::uint64_t>(earliest), to));
}

void decode_times(Bytes planes, std::span<const std::uint64_t> row_ends, std::uint64_t first_entry,
                  std::span<std::int64_t> times) {
  std::vector<std::int64_t> earliest(row_ends.size());
  add_planes(planes, std::span(earliest));
  std::uint64_t at = 0;
  for (std::size_t row = 0; row < row_ends.size(); ++row)
    for (; at < row_ends[row] - first_entry; ++at) times[at] = earliest[row];
  add_planes(planes.subspan(row_ends.size() * kTimeBytes), times);
}

/// Writes the ties, 0 where a matrix has none.
std::uint8_t* encode_ties(const CsrView& rows, std::uint8_t* to) {
  if (!rows.ties.empty()) return encode_planes(rows.ties, to);
  return std::fill_n(to, rows.nnz() * kTieBytes, std::uint8_t{0});
}

void decode_ties(Bytes planes, std::uint64_t longest_row, std::span<std::uint32_t> ties) {
  std::ranges::fill(ties, 0U);
  if (planes.empty()) return;
  add_planes(planes, ties);
  if (std::ranges::any_of(ties, [=](std::uint32_t tie) { return tie >= longest_row; }))
    throw_broken("a position among equal times that is beyond every row");
}

bool has_ties(std::span<const CsrView> matrices) {
  return std::ranges::any_of(matrices, [](const CsrView& rows) {
    return std::ranges::any_of(rows.ties, [](std::uint32_t tie) { return tie != 0; });
  });
}

/// Writes a matrix's planes to `to` and what its header says of them to `header`; returns the end of the
/// planes.
std::uint8_t* encode_matrix(const CsrView& rows, const MatrixShape& shape, bool with_ties,
                            std::uint8_t* header, std::uint8_t* to) {
  std::uint64_t longest = 0;
  const std::uint8_t* const lengths = to;
  for (std::size_t row = 0; row < rows.row_count(); ++row) {
    const std::uint64_t length = rows.indptr[row + 1] - rows.indptr[row];
    longest = std::max(longest, length);
    to = encode_leb128(static_cast<std::uint32_t>(length), to);
  }
  store_little(header, std::uint64_t{rows.nnz()});
  store_little(header + 8, longest);
  store_little(header + 16, static_cast<std::uint64_t>(to - lengths));
  const StepGroups groups = measure_columns(rows, shape.has_repeats);
  to = encode_columns(rows, shape.has_repeats, groups, to);
  header += kGroupsAt;
  for (const StepGroup& group : groups)
    for (const std::uint64_t bytes : {group.first_bytes, group.more_bytes}) {
      store_little(header, static_cast<std::uint32_t>(bytes));
      header += sizeof(std::uint32_t);
    }
  const std::size_t value_plane = rows.nnz() * value_bytes(shape.value_type);
  encode_ratings(rows.values, shape, {to, value_plane});
  to += value_plane;
  if (shape.has_times) to = encode_times(rows, to);
  return with_ties ? encode_ties(rows, to) : to;
}

/// Takes bytes from the front, never more than there are.
Bytes take(Bytes& left, std::uint64_t count, const char* what) {
  if (count > left.size())
    throw_broken(std::string("the plane of ") + what + " has " + std::to_string(count) + " bytes, only " +
                 std::to_string(left.size()) + " are left");
  const Bytes taken = left.first(count);
  left = left.subspan(count);
  return taken;
}

void check_shape(Bytes raw, const MatrixShape& shape) {
  if (raw.size() < kHeaderBytes + kMatrixHeaderBytes * shape.matrix_count)
    throw_broken("has " + std::to_string(raw.size()) + " bytes, fewer than its header");
  if (!is_version_of(shape, raw[4]))
    throw_broken("version " + std::to_string(raw[4]) + ", expected " + versions_of(shape));
  if (raw[5] != shape.matrix_count || raw[6] != static_cast<std::uint8_t>(shape.value_type) || raw[7] != 0 ||
      load_little<double>(raw.data() + 8) != shape.scale)
    throw_broken("other matrices, value type or scale than the part's");
}

/// Reads how the columns' plane is divided; returns its bytes.
std::uint64_t decode_groups(const std::uint8_t* from, RowBlockHeader::Matrix& matrix) {
  std::uint64_t steps = 0;
  std::uint64_t bytes = 0;
  for (StepGroup& group : matrix.groups) {
    group = {load_little<std::uint32_t>(from), load_little<std::uint32_t>(from + 4)};
    steps += group.first_bytes;
    bytes += group.first_bytes + group.more_bytes;
    from += 8;
  }
  if (steps != matrix.nnz) throw_broken("its steps are not as many as its entries");
  return bytes;
}

RowBlockHeader::Matrix decode_matrix_header(const std::uint8_t* from, std::uint32_t row_count,
                                            const MatrixShape& shape, bool with_ties, Bytes& planes) {
  RowBlockHeader::Matrix matrix;
  matrix.nnz = load_little<std::uint64_t>(from);
  matrix.longest_row = load_little<std::uint64_t>(from + 8);
  matrix.lengths = take(planes, load_little<std::uint64_t>(from + 16), "lengths");
  matrix.ids = take(planes, decode_groups(from + kGroupsAt, matrix), "columns");
  if (matrix.lengths.size() < row_count) throw_broken("a plane of lengths that is shorter than its rows");
  matrix.values = take(planes, matrix.nnz * value_bytes(shape.value_type), "values");
  if (shape.has_times) matrix.times = take(planes, (row_count + matrix.nnz) * kTimeBytes, "times");
  if (with_ties) matrix.ties = take(planes, matrix.nnz * kTieBytes, "ties");
  if (matrix.longest_row > (shape.has_repeats ? matrix.nnz : std::min(matrix.nnz, shape.column_count)))
    throw_broken("a row that is too long");
  return matrix;
}

/// Writes where each row ends; the lengths must be what the header says.
void decode_lengths(const RowBlockHeader::Matrix& matrix, std::uint64_t first_entry,
                    std::span<std::uint64_t> row_ends) {
  Bytes left = matrix.lengths;
  std::uint64_t at = 0;
  std::uint64_t longest = 0;
  for (std::uint64_t& end : row_ends) {
    const std::uint64_t length = decode_leb128(left);
    longest = std::max(longest, length);
    at += length;
    if (at > matrix.nnz) break;
    end = first_entry + at;
  }
  if (at != matrix.nnz || longest != matrix.longest_row || !left.empty())
    throw_broken("the rows' lengths are not what the header says");
}

}  // namespace

void encode_row_block(std::span<const CsrView> matrices, const MatrixShape& shape, std::uint64_t first_row,
                      ByteBuffer& raw) {
  const std::size_t row_count = matrices.front().row_count();
  const bool with_ties = shape.has_repeats || (shape.has_times && has_ties(matrices));
  std::size_t most = kHeaderBytes + kMatrixHeaderBytes * matrices.size();
  const std::size_t planes_at = most;
  for (const CsrView& rows : matrices)
    most += row_count * kMaxLeb128Bytes + rows.nnz() * (kMaxLeb128Bytes + value_bytes(shape.value_type)) + 1 +
            (shape.has_times ? (row_count + rows.nnz()) * kTimeBytes : 0) +
            (with_ties ? rows.nnz() * kTieBytes : 0);
  raw.resize(most);
  store_little(raw.data(), static_cast<std::uint32_t>(row_count));
  raw[4] = shape.has_repeats ? kRepeatingVersion
           : with_ties       ? kTiedVersion
           : shape.has_times ? kTimedVersion
                             : kVersion;
  raw[5] = static_cast<std::uint8_t>(matrices.size());
  raw[6] = static_cast<std::uint8_t>(shape.value_type);
  raw[7] = 0;
  store_little(raw.data() + 8, shape.scale);
  store_little(raw.data() + 16, first_row);
  std::uint8_t* to = raw.data() + planes_at;
  for (std::size_t i = 0; i < matrices.size(); ++i)
    to = encode_matrix(matrices[i], shape, with_ties, raw.data() + kHeaderBytes + i * kMatrixHeaderBytes, to);
  raw.resize(static_cast<std::size_t>(to - raw.data()));
}

RowBlockHeader decode_row_block_header(Bytes raw, const MatrixShape& shape) {
  check_shape(raw, shape);
  RowBlockHeader header;
  header.row_count = load_little<std::uint32_t>(raw.data());
  header.first_row = load_little<std::uint64_t>(raw.data() + 16);
  if (header.row_count == 0) throw_broken("no rows");
  Bytes planes = raw.subspan(kHeaderBytes + kMatrixHeaderBytes * shape.matrix_count);
  for (std::uint32_t i = 0; i < shape.matrix_count; ++i)
    header.matrices[i] = decode_matrix_header(raw.data() + kHeaderBytes + i * kMatrixHeaderBytes,
                                              header.row_count, shape, raw[4] >= kTiedVersion, planes);
  if (!planes.empty()) throw_broken(std::to_string(planes.size()) + " bytes too many");
  return header;
}

std::size_t row_block_header_bytes(const MatrixShape& shape) {
  return kHeaderBytes + kMatrixHeaderBytes * shape.matrix_count;
}

std::uint64_t decode_entry_count(Bytes header, const MatrixShape& shape, std::uint64_t row_count) {
  check_shape(header, shape);
  const auto rows = load_little<std::uint32_t>(header.data());
  if (rows != row_count)
    throw_broken("has " + std::to_string(rows) + " rows, expected " + std::to_string(row_count));
  const auto entries = load_little<std::uint64_t>(header.data() + kHeaderBytes);
  if (!shape.has_repeats && entries > row_count * shape.column_count)
    throw_broken(std::to_string(entries) + " entries in " + std::to_string(row_count) + " rows of " +
                 std::to_string(shape.column_count) + " columns");
  return entries;
}

std::vector<Bytes> row_block_pieces(Bytes raw, const MatrixShape& shape) {
  const RowBlockHeader header = decode_row_block_header(raw, shape);
  std::vector<std::uint64_t> piece_bytes;
  for (std::size_t i = 0; i < shape.matrix_count; ++i) {
    const RowBlockHeader::Matrix& matrix = header.matrices[i];
    piece_bytes.push_back(matrix.lengths.size());
    for (const StepGroup& group : matrix.groups)
      piece_bytes.insert(piece_bytes.end(), {group.first_bytes, group.more_bytes});
    piece_bytes.push_back(matrix.values.size());
    if (!shape.has_times) continue;
    piece_bytes.insert(piece_bytes.end(), kTimeBytes, header.row_count);
    piece_bytes.insert(piece_bytes.end(), kTimeBytes, matrix.nnz);
    if (!matrix.ties.empty()) piece_bytes.insert(piece_bytes.end(), kTieBytes, matrix.nnz);
  }
  std::vector<Bytes> pieces;
  std::uint64_t at = 0;
  std::uint64_t end = kHeaderBytes + kMatrixHeaderBytes * shape.matrix_count;
  for (const std::uint64_t bytes : piece_bytes) {
    end += bytes;
    if (end == at || (end - at < kMinPieceBytes && end != raw.size())) continue;
    pieces.push_back(raw.subspan(at, end - at));
    at = end;
  }
  return pieces;
}

template <class Id>
void decode_rows(const RowBlockHeader& header, std::size_t matrix_index, const MatrixShape& shape,
                 const RowBlockTarget<Id>& target) {
  const RowBlockHeader::Matrix& matrix = header.matrices[matrix_index];
  decode_lengths(matrix, target.first_entry, target.row_ends);
  decode_columns({matrix.ids, matrix.groups, shape.column_count, shape.has_repeats}, target.row_ends,
                 target.first_entry, target.ids);
  if (shape.value_type == ValueType::f32) check_finite(matrix.values);
  std::ranges::copy(matrix.values, target.values.begin());
  if (!target.times.empty()) decode_times(matrix.times, target.row_ends, target.first_entry, target.times);
  if (!target.ties.empty()) decode_ties(matrix.ties, matrix.longest_row, target.ties);
}

template void decode_rows(const RowBlockHeader&, std::size_t, const MatrixShape&,
                          const RowBlockTarget<std::uint16_t>&);
template void decode_rows(const RowBlockHeader&, std::size_t, const MatrixShape&,
                          const RowBlockTarget<std::uint32_t>&);

}  // namespace chunkhit
