#include "store/hdf5/matrix_arrays.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "store/hdf5/attributes.h"
#include "store/hdf5/columns.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kValuesAtOnce = 1 << 20;
// Chunks may cover all rows of a few columns: then several reads decode each.
constexpr std::uint64_t kMaxValuesAtOnce = 1 << 26;
// Each row has at least a byte of indptr or of names, and deflate makes 1,032 bytes of one.
constexpr std::uint64_t kMaxRowsOfByte = 1100;
// From this on not every whole number is an f32.
constexpr float kMaxExact = 1 << 24;

/// A matrix by rows or by columns, as it is stored.
struct CompressedMatrix {
  bool by_rows = true;
  std::uint64_t row_count = 0;
  std::uint64_t column_count = 0;
  CsrRows lines;
};

/// More rows than a file of that size can have are a damaged number; memory would be taken for each.
void check_sides(const Hdf5Source& source, const std::string& path, std::uint64_t rows,
                 std::uint64_t columns) {
  if (rows / kMaxRowsOfByte > source.byte_count() || columns == 0 || columns > UINT32_MAX)
    source.check().refuse("/" + path + " has " + std::to_string(rows) + " rows and " +
                          std::to_string(columns) + " columns");
}

/// Values in one chunk of a column; 1 where it has none.
std::uint64_t chunk_values(const Hdf5Check& check, hid_t dataset, std::size_t rank) {
  const Hdf5Handle list(check(H5Dget_create_plist(dataset), "ask for an array's storage"), H5Pclose);
  if (H5Pget_layout(list.get()) != H5D_CHUNKED) return 1;
  std::vector<hsize_t> chunk(rank);
  check(H5Pget_chunk(list.get(), static_cast<int>(rank), chunk.data()), "ask for the chunk's shape");
  return std::max<hsize_t>(chunk[0], 1);
}

/// Calls `step(first, numbers)` for numbers of a column as they lie, whole chunks at a time, so that HDF5
/// decompresses each once. `width`: numbers of a row, 1 for a column of one dimension.
template <class Number, class Step>
void for_each_block(const Hdf5Check& check, const Hdf5Column& column, hid_t type, std::uint64_t width,
                    Step step) {
  const std::uint64_t rows = column.dimensions[0];
  const std::uint64_t chunk = chunk_values(check, column.dataset.get(), column.dimensions.size());
  const std::uint64_t wanted = std::max<std::uint64_t>(kValuesAtOnce / width, 1);
  const std::uint64_t most = std::max<std::uint64_t>(kMaxValuesAtOnce / width, 1);
  const std::uint64_t at_once = std::min({rows, (wanted / chunk + 1) * chunk, most});
  std::vector<Number> block(at_once * width);
  for (std::uint64_t first = 0; first < rows; first += at_once) {
    const std::vector<hsize_t> from{first, 0};
    std::vector<hsize_t> count{std::min(at_once, rows - first), width};
    const Hdf5Handle stored(check(H5Dget_space(column.dataset.get()), "ask for an array's space"), H5Sclose);
    check(H5Sselect_hyperslab(stored.get(), H5S_SELECT_SET, from.data(), nullptr, count.data(), nullptr),
          "select a part of an array");
    const auto rank = static_cast<int>(column.dimensions.size());
    const Hdf5Handle memory(check(H5Screate_simple(rank, count.data(), nullptr), "create a dataspace"),
                            H5Sclose);
    check(H5Dread(column.dataset.get(), type, memory.get(), stored.get(), H5P_DEFAULT, block.data()),
          "read an array");
    step(first, std::span<const Number>(block).first(count[0] * width));
  }
}

Hdf5Column open_line(const Hdf5Check& check, hid_t file, const std::string& path, bool whole) {
  Hdf5Column column = open_column(check, file, path.c_str());
  if (column.dimensions.size() != 1) check.refuse("/" + path + " has not one dimension");
  if (whole && column.is_floating) check.refuse("/" + path + " does not hold whole numbers");
  return column;
}

/// Throws for what is no rating, or not the number that the file has.
void check_values(const Hdf5Check& check, const std::string& path, std::span<const float> values,
                  bool is_floating) {
  for (const float value : values) {
    if (!std::isfinite(value)) check.refuse("/" + path + " holds a value that is not a finite f32");
    if (!is_floating && std::abs(value) >= kMaxExact)
      check.refuse("/" + path + " holds a whole number of 2^24 or more, which an f32 may not hold exactly");
  }
}

std::vector<float> read_values(const Hdf5Check& check, hid_t file, const std::string& path) {
  const Hdf5Column column = open_line(check, file, path, false);
  std::vector<float> values;
  values.reserve(column.count());
  for_each_block<float>(check, column, H5T_NATIVE_FLOAT, 1, [&](std::uint64_t, std::span<const float> block) {
    check_values(check, path, block, column.is_floating);
    values.insert(values.end(), block.begin(), block.end());
  });
  return values;
}

std::vector<std::uint32_t> read_indices(const Hdf5Check& check, hid_t file, const std::string& path,
                                        std::uint64_t bound) {
  const Hdf5Column column = open_line(check, file, path, true);
  std::vector<std::uint32_t> indices;
  indices.reserve(column.count());
  for_each_block<std::int64_t>(
      check, column, H5T_NATIVE_INT64, 1, [&](std::uint64_t, std::span<const std::int64_t> block) {
        for (const std::int64_t index : block) {
          if (index < 0 || static_cast<std::uint64_t>(index) >= bound)
            check.refuse("/" + path + ": index " + std::to_string(index) + " of " + std::to_string(bound));
          indices.push_back(static_cast<std::uint32_t>(index));
        }
      });
  return indices;
}

std::vector<std::uint64_t> read_indptr(const Hdf5Check& check, hid_t file, const std::string& path,
                                       std::uint64_t line_count, std::uint64_t nnz) {
  const Hdf5Column column = open_line(check, file, path, true);
  if (column.count() != line_count + 1)
    check.refuse("/" + path + " has " + std::to_string(column.count()) + " numbers, expected " +
                 std::to_string(line_count + 1));
  const auto found = read_column<std::int64_t>(check, column);
  if (found.front() != 0 || !std::ranges::is_sorted(found) || found.back() != static_cast<std::int64_t>(nnz))
    check.refuse("/" + path + " does not rise from 0 to the number of entries, " + std::to_string(nnz));
  return {found.begin(), found.end()};
}

/// What AnnData calls the kind and the shape of a matrix, now and before 0.7.
CompressedMatrix read_form(const Hdf5Source& source, const std::string& path) {
  const Hdf5Check& check = source.check();
  const Hdf5Handle group = open_object(check, source.file(), path.c_str());
  std::string kind = read_text_attribute(check, group.get(), "encoding-type");
  if (kind.empty()) kind = read_text_attribute(check, group.get(), "h5sparse_format");
  auto shape = read_attribute<std::int64_t>(check, group.get(), "shape");
  if (shape.empty()) shape = read_attribute<std::int64_t>(check, group.get(), "h5sparse_shape");
  CompressedMatrix matrix;
  matrix.by_rows = kind == "csr_matrix" || kind == "csr";
  if (!matrix.by_rows && kind != "csc_matrix" && kind != "csc")
    check.refuse("/" + path + " has encoding-type \"" + kind + "\", expected csr_matrix or csc_matrix");
  if (shape.size() != 2 || shape[0] < 0 || shape[1] < 0) check.refuse("/" + path + " has no shape");
  matrix.row_count = static_cast<std::uint64_t>(shape[0]);
  matrix.column_count = static_cast<std::uint64_t>(shape[1]);
  check_sides(source, path, matrix.row_count, matrix.column_count);
  return matrix;
}

CompressedMatrix read_compressed(const Hdf5Source& source, const std::string& path) {
  const Hdf5Check& check = source.check();
  const hid_t file = source.file();
  CompressedMatrix matrix = read_form(source, path);
  const std::uint64_t lines = matrix.by_rows ? matrix.row_count : matrix.column_count;
  const std::uint64_t bound = matrix.by_rows ? matrix.column_count : matrix.row_count;
  matrix.lines.values = read_values(check, file, path + "/data");
  matrix.lines.indices = read_indices(check, file, path + "/indices", bound);
  if (matrix.lines.indices.size() != matrix.lines.values.size())
    check.refuse("/" + path + " has " + std::to_string(matrix.lines.indices.size()) + " indices of " +
                 std::to_string(matrix.lines.values.size()) + " values");
  matrix.lines.indptr = read_indptr(check, file, path + "/indptr", lines, matrix.lines.nnz());
  return matrix;
}

/// Rows from columns; they come sorted.
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

/// Sorts what is not, and refuses a column that is twice in a row.
void sort_rows(const Hdf5Check& check, const std::string& path, CsrRows& rows) {
  std::vector<std::pair<std::uint32_t, float>> entries;
  for (std::size_t row = 0; row < rows.row_count(); ++row) {
    const auto begin = rows.indices.begin() + static_cast<std::ptrdiff_t>(rows.indptr[row]);
    const auto end = rows.indices.begin() + static_cast<std::ptrdiff_t>(rows.indptr[row + 1]);
    if (!std::is_sorted(begin, end)) sort_row(rows, rows.indptr[row], rows.indptr[row + 1], entries);
    const auto twice = std::adjacent_find(begin, end);
    if (twice != end)
      check.refuse("/" + path + ": row " + std::to_string(row) + " has column " + std::to_string(*twice) +
                   " twice");
  }
}

SizedRows read_array(const Hdf5Source& source, const std::string& path) {
  const Hdf5Check& check = source.check();
  const Hdf5Column column = open_column(check, source.file(), path.c_str());
  if (column.dimensions.size() != 2) check.refuse("/" + path + " has not two dimensions");
  const std::uint64_t width = column.dimensions[1];
  check_sides(source, path, column.dimensions[0], width);
  SizedRows matrix{width, {}};
  CsrRows& rows = matrix.rows;
  rows.indptr.reserve(column.dimensions[0] + 1);
  for_each_block<float>(check, column, H5T_NATIVE_FLOAT, width,
                        [&](std::uint64_t, std::span<const float> block) {
                          check_values(check, path, block, column.is_floating);
                          for (std::size_t at = 0; at < block.size(); ++at) {
                            if (block[at] != 0) {
                              rows.indices.push_back(static_cast<std::uint32_t>(at % width));
                              rows.values.push_back(block[at]);
                            }
                            if ((at + 1) % width == 0) rows.indptr.push_back(rows.indices.size());
                          }
                        });
  return matrix;
}

}  // namespace

SizedRows read_matrix(const Hdf5Source& source, const std::string& path) {
  if (!has_object(source.check(), source.file(), path.c_str()))
    source.check().refuse("has no matrix /" + path);
  if (!has_group(source.check(), source.file(), path)) return read_array(source, path);
  CompressedMatrix matrix = read_compressed(source, path);
  SizedRows sized{matrix.column_count, {}};
  sized.rows = matrix.by_rows ? std::move(matrix.lines) : transpose(matrix.lines, matrix.row_count);
  sort_rows(source.check(), path, sized.rows);
  return sized;
}

}  // namespace chunkhit
