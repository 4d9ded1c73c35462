#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "chunk/row_block.h"
#include "chunkhit/error.h"
#include "store/hdf5/anndata.h"
#include "store/hdf5/attributes.h"
#include "store/hdf5/external.h"
#include "store/hdf5/external_check.h"
#include "store/hdf5/index.h"
#include "store/hdf5/matrix.h"
#include "store/hdf5/matrix_arrays.h"
#include "store/hdf5/numbers.h"
#include "store/part_index.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kNumbersAtOnce = 1 << 20;
// Each row has at least a byte of indptr or of names, and deflate makes 1,032 bytes of one.
constexpr std::uint64_t kMaxRowsOfByte = 1100;
// Whole numbers from here on may not be exact as f32.
constexpr float kMaxExact = 1 << 24;

/// Rejects more rows than a file of its size can have: a damaged number, for which memory would be allocated.
void check_sides(const Hdf5Source& source, const CsrFacts& facts) {
  if (facts.column_count == UINT64_MAX) source.check().refuse(facts.path + " does not say its shape");
  if (facts.row_count / kMaxRowsOfByte > source.byte_count() || facts.column_count == 0 ||
      facts.column_count > UINT32_MAX)
    source.check().refuse(facts.path + " has " + std::to_string(facts.row_count) + " rows and " +
                          std::to_string(facts.column_count) + " columns");
}

/// Calls `step` with all numbers that `read` fills, some whole multiples of `step_size` at a time.
template <class Number, class Read, class Step>
void for_each_block(std::uint64_t count, std::uint64_t step_size, Read read, Step step) {
  const std::uint64_t at_once = std::max<std::uint64_t>(kNumbersAtOnce / step_size, 1) * step_size;
  std::vector<Number> block(std::min(count, at_once));
  for (std::uint64_t first = 0; first < count; first += block.size()) {
    const std::span<Number> numbers =
        std::span(block).first(std::min<std::uint64_t>(block.size(), count - first));
    read(numbers);
    step(std::span<const Number>(numbers));
  }
}

/// Calls `step` with all values; throws for what is no rating, or not the number that the file has.
template <class Step>
void for_each_value_block(const Hdf5Check& check, AnnDataMatrix& matrix, std::uint64_t width, Step step) {
  const CsrFacts& facts = matrix.facts();
  for_each_block<float>(
      facts.entry_count, width, [&](std::span<float> block) { matrix.read_values(block); },
      [&](std::span<const float> block) {
        for (const float value : block) {
          if (!std::isfinite(value)) check.refuse(facts.path + " holds a value that is not a finite f32");
          if (!matrix.is_floating() && std::abs(value) >= kMaxExact)
            check.refuse(facts.path +
                         " holds a whole number of 2^24 or more, which an f32 may not hold exactly");
        }
        step(block);
      });
}

/// Reads the row (or column) pointers; they must ascend from 0 to the number of entries.
std::vector<std::uint64_t> read_indptr(const Hdf5Check& check, AnnDataMatrix& matrix, std::uint64_t lines) {
  const CsrFacts& facts = matrix.facts();
  std::vector<std::int64_t> found(lines + 1);
  matrix.read_indptr(found);
  if (found.front() != 0 || !std::ranges::is_sorted(found) ||
      static_cast<std::uint64_t>(found.back()) != facts.entry_count)
    check.refuse(facts.path + "/indptr does not rise from 0 to the number of entries, " +
                 std::to_string(facts.entry_count));
  return {found.begin(), found.end()};
}

/// Reads the compressed lines, which are rows of CSR or columns of CSC, and checks every index.
CsrRows read_lines(const Hdf5Check& check, AnnDataMatrix& matrix) {
  const CsrFacts& facts = matrix.facts();
  const bool by_rows = facts.storage == CsrStorage::csr;
  const std::uint64_t bound = by_rows ? facts.column_count : facts.row_count;
  CsrRows lines;
  lines.indptr = read_indptr(check, matrix, by_rows ? facts.row_count : facts.column_count);
  lines.indices.reserve(facts.entry_count);
  lines.values.reserve(facts.entry_count);
  for_each_block<std::int64_t>(
      facts.entry_count, 1, [&](std::span<std::int64_t> block) { matrix.read_indices(block); },
      [&](std::span<const std::int64_t> block) {
        for (const std::int64_t index : block) {
          if (index < 0 || static_cast<std::uint64_t>(index) >= bound)
            check.refuse(facts.path + "/indices: index " + std::to_string(index) + " of " +
                         std::to_string(bound));
          lines.indices.push_back(static_cast<std::uint32_t>(index));
        }
      });
  for_each_value_block(check, matrix, 1, [&](std::span<const float> block) {
    lines.values.insert(lines.values.end(), block.begin(), block.end());
  });
  return lines;
}

/// Turns columns into rows by a counting sort; the columns of each row come out ascending.
CsrRows transpose(const CsrRows& columns, std::uint64_t row_count) {
  CsrRows rows;
  rows.indptr.assign(row_count + 1, 0);
  for (const std::uint32_t row : columns.indices) ++rows.indptr[row + 1];
  for (std::uint64_t row = 0; row < row_count; ++row) rows.indptr[row + 1] += rows.indptr[row];
  rows.indices.resize(columns.nnz());
  rows.values.resize(columns.nnz());
  std::vector<std::uint64_t> next(rows.indptr.begin(), rows.indptr.end() - 1);
  for (std::size_t column = 0; column < columns.row_count(); ++column) {
    for (std::uint64_t at = columns.indptr[column]; at < columns.indptr[column + 1]; ++at) {
      const std::uint64_t to = next[columns.indices[at]]++;
      rows.indices[to] = static_cast<std::uint32_t>(column);
      rows.values[to] = columns.values[at];
    }
  }
  return rows;
}

void sort_row(CsrRows& rows, std::uint64_t begin, std::uint64_t end,
              std::vector<std::pair<std::uint32_t, float>>& entries) {
  entries.clear();
  for (std::uint64_t at = begin; at < end; ++at) entries.emplace_back(rows.indices[at], rows.values[at]);
  std::ranges::sort(entries, {}, [](const auto& entry) { return entry.first; });
  for (std::uint64_t at = begin; at < end; ++at)
    std::tie(rows.indices[at], rows.values[at]) = entries[at - begin];
}

/// Sorts the rows that are not sorted; throws bad_data if a row has a column twice.
void sort_rows(const Hdf5Check& check, const std::string& path, CsrRows& rows) {
  std::vector<std::pair<std::uint32_t, float>> entries;
  for (std::size_t row = 0; row < rows.row_count(); ++row) {
    const auto begin = rows.indices.begin() + static_cast<std::ptrdiff_t>(rows.indptr[row]);
    const auto end = rows.indices.begin() + static_cast<std::ptrdiff_t>(rows.indptr[row + 1]);
    if (!std::is_sorted(begin, end)) sort_row(rows, rows.indptr[row], rows.indptr[row + 1], entries);
    const auto twice = std::adjacent_find(begin, end);
    if (twice != end)
      check.refuse(path + ": row " + std::to_string(row) + " has column " + std::to_string(*twice) +
                   " twice");
  }
}

/// How the rows of a part must lie: times are by entry, in the file's order.
enum class RowOrder { any, ascending, repeating };

/// Our own parts with times: their rows are not sorted.
void check_sorted(const Hdf5Check& check, const std::string& path, RowOrder order, const CsrRows& rows) {
  const auto is_wrong = [order](std::uint32_t before, std::uint32_t column) {
    return order == RowOrder::repeating ? before > column : before >= column;
  };
  for (std::size_t row = 0; row < rows.row_count(); ++row) {
    const auto begin = rows.indices.begin() + static_cast<std::ptrdiff_t>(rows.indptr[row]);
    const auto end = rows.indices.begin() + static_cast<std::ptrdiff_t>(rows.indptr[row + 1]);
    if (std::adjacent_find(begin, end, is_wrong) != end)
      check.refuse(path + ": row " + std::to_string(row) + ": its columns do not ascend");
  }
}

/// Keeps the nonzero cells only. Blocks are whole rows, so that `at` modulo the width is the column.
CsrRows read_dense(const Hdf5Check& check, AnnDataMatrix& matrix) {
  const std::uint64_t width = matrix.facts().column_count;
  CsrRows rows;
  rows.indptr.reserve(matrix.facts().row_count + 1);
  for_each_value_block(check, matrix, width, [&](std::span<const float> block) {
    for (std::size_t at = 0; at < block.size(); ++at) {
      if (block[at] != 0) {
        rows.indices.push_back(static_cast<std::uint32_t>(at % width));
        rows.values.push_back(block[at]);
      }
      if ((at + 1) % width == 0) rows.indptr.push_back(rows.indices.size());
    }
  });
  return rows;
}

/// Reads all rows, sorted; where they must be sorted in the file, others are refused. Throws bad_data where
/// numbers do not fit each other, or a row has a column twice that must not.
CsrRows read_rows(const Hdf5Source& source, AnnDataMatrix& matrix, RowOrder order) {
  const CsrFacts& facts = matrix.facts();
  check_sides(source, facts);
  if (facts.storage == CsrStorage::dense) return read_dense(source.check(), matrix);
  CsrRows rows = read_lines(source.check(), matrix);
  if (facts.storage == CsrStorage::csc) rows = transpose(rows, facts.row_count);
  if (order != RowOrder::any)
    check_sorted(source.check(), facts.path, order, rows);
  else
    sort_rows(source.check(), facts.path, rows);
  return rows;
}

template <class Number>
Number one_number(const Hdf5Check& check, hid_t file, const char* name) {
  const auto found = read_attribute<Number>(check, file, name);
  if (found.size() != 1) check.refuse(std::string("attribute ") + name + " is not one number");
  return found[0];
}

RowOrder row_order(const Hdf5Check& check, hid_t file) {
  switch (one_number<std::uint64_t>(check, file, kMatrixVersionAttribute)) {
    case kTimedMatrixVersion:
      return RowOrder::ascending;
    case kRepeatingMatrixVersion:
      return RowOrder::repeating;
    default:
      return RowOrder::any;
  }
}

ValueType read_value_type(const Hdf5Check& check, hid_t file) {
  const std::string name = read_text_attribute(check, file, kValueTypeAttribute);
  const std::optional<ValueType> found = enum_of<ValueType>(name);
  if (!found) check.refuse("unknown value type \"" + name + "\"");
  return *found;
}

/// Reads the attributes at the root of our own parts.
PartSpec read_spec(const Hdf5Check& check, hid_t file, std::uint64_t column_count) {
  const auto version = one_number<std::uint64_t>(check, file, kMatrixVersionAttribute);
  if (version < kMatrixVersion || version > kRepeatingMatrixVersion)
    check.refuse("matrices of version " + std::to_string(version) + ", this reader knows versions " +
                 std::to_string(kMatrixVersion) + " to " + std::to_string(kRepeatingMatrixVersion));
  PartSpec spec;
  spec.samples.emplace<RowBlocks>().matrix = {
      .column_count = column_count,
      .matrix_count = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(one_number<std::uint64_t>(check, file, kMatricesAttribute), 3)),
      .value_type = read_value_type(check, file),
      .scale = one_number<double>(check, file, kScaleAttribute),
      .has_times = version >= kTimedMatrixVersion,
      .has_repeats = version == kRepeatingMatrixVersion};
  spec.chunk_samples = one_number<std::uint64_t>(check, file, kChunkRowsAttribute);
  const auto part_index = one_number<std::uint64_t>(check, file, kPartIndexAttribute);
  if (spec.chunk_samples == 0 || part_index > UINT32_MAX) check.refuse("a part's attribute is out of range");
  spec.part_index = static_cast<std::uint32_t>(part_index);
  if (!parse_hash(read_text_attribute(check, file, kPackIdAttribute), spec.pack_id))
    check.refuse("attribute pack_id is not 16 hexadecimal digits");
  try {
    check_matrix_shape(spec.rows().matrix);
  } catch (const Error& error) {
    check.refuse(error.what());
  }
  return spec;
}

void check_length(const Hdf5Check& check, const std::string& what, std::uint64_t found,
                  std::uint64_t expected) {
  if (found != expected)
    check.refuse(what + " has " + std::to_string(found) + " entries, expected " + std::to_string(expected));
}

/// Labels of a part of ours: whole numbers, columns of numbers, or none.
Labels read_labels(const Hdf5Check& check, hid_t file, std::uint64_t row_count, PartSpec& spec) {
  Labels labels;
  if (has_object(check, file, kLabelColumnsName)) {
    spec.label_columns = list_of(read_text_column(check, file, kLabelColumnsName));
    const std::vector<std::string> names = label_column_names(spec.label_columns);
    for (std::size_t column = 0; column < names.size(); ++column) {
      const std::string path = "obs/" + names[column];
      const auto numbers = read_column<float>(check, open_column(check, file, path));
      check_length(check, "/" + path, numbers.size(), row_count);
      // Allocated only after the first column was found to have the expected length.
      labels.values.resize(row_count * names.size());
      for (std::size_t row = 0; row < row_count; ++row)
        labels.values[row * names.size() + column] = numbers[row];
    }
    return labels;
  }
  labels.ids.assign(row_count, -1);
  if (!has_object(check, file, kLabelName)) return labels;
  labels.ids = read_column<std::int64_t>(check, open_column(check, file, kLabelName));
  check_length(check, std::string("/") + kLabelName, labels.ids.size(), row_count);
  return labels;
}

/// Every rating must be one that the part's value type can hold.
void check_ratings(const Hdf5Check& check, const CsrRows& rows, const MatrixShape& shape,
                   ByteBuffer& numbers) {
  numbers.resize(rows.nnz() * value_bytes(shape.value_type));
  try {
    encode_ratings(rows.values, shape, numbers);
  } catch (const Error& error) {
    check.refuse(error.what());
  }
}

/// The held-out matrix has the rows and columns of X.
CsrRows read_held_out(const Hdf5Source& source, RowOrder order, const CsrFacts& x) {
  AnnDataMatrix matrix(source, kHeldOutName);
  const CsrFacts& facts = matrix.facts();
  if (facts.column_count != x.column_count || facts.row_count != x.row_count)
    source.check().refuse("held_out has another shape than the matrix");
  return read_rows(source, matrix, order);
}

/// Names the filter of an array of cells, or of a compressed matrix's columns.
std::string codec_of(const Hdf5Source& source, const std::string& path) {
  const std::string array = has_group(source.check(), source.file(), path) ? path + "/indices" : path;
  return codec_name(source.check(), open_dataset(source.check(), source.file(), array).get());
}

/// Reads a number of each entry.
template <class Number>
std::vector<Number> read_layer(const Hdf5Check& check, hid_t file, const std::string& path,
                               std::uint64_t nnz) {
  std::vector<Number> numbers = read_column<Number>(check, open_column(check, file, path + "/data"));
  check_length(check, "/" + path + "/data", numbers.size(), nnz);
  return numbers;
}

/// Throws bad_data for a position among equal times that its row does not have.
void check_ties(const Hdf5Check& check, const std::string& path, const CsrRows& rows) {
  for (std::size_t row = 0; row < rows.row_count(); ++row) {
    const std::uint64_t begin = rows.indptr[row];
    const std::uint64_t length = rows.indptr[row + 1] - begin;
    const auto ties = std::span(rows.ties).subspan(begin, length);
    const auto beyond = std::ranges::find_if(ties, [=](std::uint32_t tie) { return tie >= length; });
    if (beyond != ties.end())
      check.refuse("/" + path + ": row " + std::to_string(row) + ": position " + std::to_string(*beyond) +
                   " among equal times, expected one below its " + std::to_string(length) + " entries");
  }
}

/// Reads the time of each entry, and the ties where there are some.
void read_times(const Hdf5Check& check, hid_t file, const char* times, const char* ties, CsrRows& rows) {
  rows.times = read_layer<std::int64_t>(check, file, times, rows.nnz());
  if (!has_object(check, file, ties)) return;
  rows.ties = read_layer<std::uint32_t>(check, file, ties, rows.nnz());
  check_ties(check, ties, rows);
}

/// Fills what only parts of ours have.
void read_own_part(const Hdf5Source& source, Hdf5Matrix& matrix) {
  const Hdf5Check& check = source.check();
  const hid_t file = source.file();
  PartSpec spec = read_spec(check, file, matrix.column_count);
  spec.codec = matrix.codec;
  const std::uint64_t row_count = matrix.x.row_count();
  if (matrix.held_out.has_value() != (spec.rows().matrix.matrix_count == 2))
    check.refuse("other matrices than it says");
  ByteBuffer numbers;
  check_ratings(check, matrix.x, spec.rows().matrix, numbers);
  if (matrix.held_out) check_ratings(check, *matrix.held_out, spec.rows().matrix, numbers);
  if (spec.rows().matrix.has_times) read_times(check, file, kTimesName, kTiesName, matrix.x);
  if (spec.rows().matrix.has_times && matrix.held_out)
    read_times(check, file, kHeldOutTimesName, kHeldOutTiesName, *matrix.held_out);
  matrix.samples.labels = read_labels(check, file, row_count, spec);
  matrix.samples.rows = read_column<std::uint64_t>(check, open_column(check, file, kRowName));
  check_length(check, std::string("/") + kRowName, matrix.samples.rows.size(), row_count);
  if (matrix.samples.row_ids.size() != row_count || matrix.column_names.size() != matrix.column_count)
    check.refuse("rows or columns without names");
  if (has_object(check, file, kItemCountsName)) {
    matrix.item_counts = read_column<std::uint64_t>(check, open_column(check, file, kItemCountsName));
    check_length(check, std::string("/") + kItemCountsName, matrix.item_counts.size(), matrix.column_count);
  }
  spec.rows().item_ids = matrix.column_names;
  matrix.spec = std::move(spec);
}

}  // namespace

Hdf5Matrix read_matrix_hdf5(const InputFile& input, const Hdf5MatrixNames& names) {
  const Hdf5Session session;
  const Hdf5Source source(input);
  const Hdf5Check& check = source.check();
  const std::string x = hdf5_path(names.x);
  const bool ours =
      x == hdf5_path(kXName) && attribute_count(check, source.file(), kMatrixVersionAttribute) != 0;
  if (ours) refuse_damaged_index(source, input, kMatrixVersionAttribute);
  AnnDataMatrix found(source, x);
  const CsrFacts& facts = found.facts();
  Hdf5Matrix matrix;
  matrix.column_count = facts.column_count;
  const RowOrder order = ours ? row_order(check, source.file()) : RowOrder::any;
  matrix.x = read_rows(source, found, order);
  found.read_names();
  if (ours && has_object(check, source.file(), kHeldOutName))
    matrix.held_out = read_held_out(source, order, facts);
  matrix.codec = codec_of(source, facts.path);
  matrix.samples.row_ids = found.take_row_names();
  matrix.column_names = list_of(facts.column_names);
  matrix.samples.rows.resize(facts.row_count);
  std::iota(matrix.samples.rows.begin(), matrix.samples.rows.end(), std::uint64_t{0});
  matrix.samples.labels.ids.assign(facts.row_count, -1);
  if (ours) read_own_part(source, matrix);
  return matrix;
}

bool is_matrix_hdf5(const std::string& path) {
  const InputFile input(path);
  if (const auto trailer = read_hdf5_trailer(input)) return trailer->kind == SampleKind::matrices;
  check_external_file(path, {});
  const Hdf5Session session;
  const Hdf5Source source(input);
  return holds_matrix(source.check(), source.file());
}

}  // namespace chunkhit
