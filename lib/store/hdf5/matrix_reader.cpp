#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "base/hash.h"
#include "store/hdf5/attributes.h"
#include "store/hdf5/columns.h"
#include "store/hdf5/external.h"
#include "store/hdf5/external_check.h"
#include "store/hdf5/handle.h"
#include "store/hdf5/index.h"
#include "store/hdf5/matrix.h"
#include "store/hdf5/matrix_arrays.h"
#include "store/hdf5/matrix_writer.h"

namespace chunkhit {
namespace {

template <class Number>
Number one_number(const Hdf5Check& check, hid_t file, const char* name) {
  const auto found = read_attribute<Number>(check, file, name);
  if (found.size() != 1) check.refuse(std::string("attribute ") + name + " is not one number");
  return found[0];
}

ValueType read_value_type(const Hdf5Check& check, hid_t file) {
  const std::string name = read_text_attribute(check, file, kValueTypeAttribute);
  const auto found = std::ranges::find(kValueTypeNames, name);
  if (found == kValueTypeNames.end()) check.refuse("unknown value type \"" + name + "\"");
  return static_cast<ValueType>(found - kValueTypeNames.begin());
}

/// What the root of a part of ours says.
PartSpec read_spec(const Hdf5Check& check, hid_t file, std::uint64_t column_count) {
  const auto version = one_number<std::uint64_t>(check, file, kMatrixVersionAttribute);
  if (version != kMatrixVersion)
    check.refuse("matrices of version " + std::to_string(version) + ", this reader knows version " +
                 std::to_string(kMatrixVersion));
  PartSpec spec;
  spec.matrix = {.column_count = column_count,
                 .matrix_count = static_cast<std::uint32_t>(
                     std::min<std::uint64_t>(one_number<std::uint64_t>(check, file, kMatricesAttribute), 3)),
                 .value_type = read_value_type(check, file),
                 .scale = one_number<double>(check, file, kScaleAttribute)};
  spec.chunk_samples = one_number<std::uint64_t>(check, file, kChunkRowsAttribute);
  const auto part_index = one_number<std::uint64_t>(check, file, kPartIndexAttribute);
  if (spec.chunk_samples == 0 || part_index > UINT32_MAX) check.refuse("a part's attribute is out of range");
  spec.part_index = static_cast<std::uint32_t>(part_index);
  if (!parse_hash(read_text_attribute(check, file, kPackIdAttribute), spec.pack_id))
    check.refuse("attribute pack_id is not 16 hexadecimal digits");
  try {
    check_matrix_shape(*spec.matrix);
  } catch (const Error& error) {
    check.refuse(error.what());
  }
  return spec;
}

std::vector<std::string> list_of(const Names& names) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < names.count(); ++i) list.emplace_back(names[i]);
  return list;
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
      const auto numbers = read_column<float>(check, open_column(check, file, path.c_str()));
      check_length(check, "/" + path, numbers.size(), row_count);
      // Not before the first column was seen to be there.
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

/// A dense part keeps stored numbers.
void apply_scale(CsrRows& rows, double scale) {
  for (float& value : rows.values) value = static_cast<float>(value * scale);
}

CsrRows read_held_out(const Hdf5Source& source, bool dense, const SizedRows& x) {
  SizedRows held_out = read_matrix(source, dense ? kDenseHeldOutName : kHeldOutName);
  if (held_out.column_count != x.column_count || held_out.rows.row_count() != x.rows.row_count())
    source.check().refuse("held_out has another shape than the matrix");
  return std::move(held_out.rows);
}

/// Names the filter of an array of cells, or of a compressed matrix's columns.
std::string filter_of(const Hdf5Source& source, const std::string& path) {
  const std::string array = has_group(source.check(), source.file(), path) ? path + "/indices" : path;
  return codec_name(source.check(), open_dataset(source.check(), source.file(), array.c_str()).get());
}

/// Fills what only parts of ours have.
void read_own_part(const Hdf5Source& source, bool dense, Hdf5Matrix& matrix) {
  const Hdf5Check& check = source.check();
  const hid_t file = source.file();
  PartSpec spec = read_spec(check, file, matrix.column_count);
  spec.codec = matrix.codec;
  const std::uint64_t row_count = matrix.x.row_count();
  if (matrix.held_out.has_value() != (spec.matrix->matrix_count == 2))
    check.refuse("other matrices than it says");
  if (dense) apply_scale(matrix.x, spec.matrix->scale);
  if (dense && matrix.held_out) apply_scale(*matrix.held_out, spec.matrix->scale);
  ByteBuffer numbers;
  check_ratings(check, matrix.x, *spec.matrix, numbers);
  if (matrix.held_out) check_ratings(check, *matrix.held_out, *spec.matrix, numbers);
  matrix.samples.labels = read_labels(check, file, row_count, spec);
  matrix.samples.rows = read_column<std::uint64_t>(check, open_column(check, file, kRowName));
  check_length(check, std::string("/") + kRowName, matrix.samples.rows.size(), row_count);
  check_length(check, "/obs", matrix.samples.files.count(), row_count);
  check_length(check, "/var", matrix.column_names.size(), matrix.column_count);
  if (has_object(check, file, kItemCountsName)) {
    matrix.item_counts = read_column<std::uint64_t>(check, open_column(check, file, kItemCountsName));
    check_length(check, std::string("/") + kItemCountsName, matrix.item_counts.size(), matrix.column_count);
  }
  spec.classes = matrix.column_names;
  matrix.spec = std::move(spec);
}

/// Fills what an external file has: names where they fit, rows by their order.
void read_external_names(const Hdf5Source& source, const std::string& x, Hdf5Matrix& matrix) {
  PartSamples& samples = matrix.samples;
  const std::uint64_t row_count = matrix.x.row_count();
  const bool is_raw = x.starts_with("raw/");
  samples.files = read_row_names(source.check(), source.file(), "obs");
  matrix.column_names = list_of(read_row_names(source.check(), source.file(), is_raw ? "raw/var" : "var"));
  if (samples.files.count() != row_count) samples.files = {};
  if (matrix.column_names.size() != matrix.column_count) matrix.column_names.clear();
  samples.rows.resize(row_count);
  std::iota(samples.rows.begin(), samples.rows.end(), std::uint64_t{0});
  samples.labels.ids.assign(row_count, -1);
}

}  // namespace

Hdf5Matrix read_matrix_hdf5(const std::string& path, const Hdf5MatrixNames& names) {
  const QuietHdf5 quiet;
  const InputFile input(path);
  const Hdf5Check check(ErrorCode::bad_data, path);
  const Hdf5Source source(check, input);
  const std::string x = names.x.substr(std::min(names.x.find_first_not_of('/'), names.x.size()));
  const bool ours = x == kXName && attribute_count(check, source.file(), kMatrixVersionAttribute) != 0;
  if (ours) refuse_damaged_index(source, input, kMatrixVersionAttribute);
  const bool dense = ours && has_object(check, source.file(), kDenseName);
  SizedRows sized = read_matrix(source, dense ? kDenseName : x);
  Hdf5Matrix matrix;
  if (ours && has_object(check, source.file(), dense ? kDenseHeldOutName : kHeldOutName))
    matrix.held_out = read_held_out(source, dense, sized);
  matrix.codec = filter_of(source, dense ? kDenseName : x);
  matrix.column_count = sized.column_count;
  matrix.x = std::move(sized.rows);
  read_external_names(source, x, matrix);
  if (ours) read_own_part(source, dense, matrix);
  return matrix;
}

bool is_matrix_hdf5(const std::string& path, bool checks) {
  const InputFile input(path);
  if (const auto trailer = read_hdf5_trailer(input)) return trailer->kind == SampleKind::matrices;
  if (checks) check_external_file(path, {});
  const QuietHdf5 quiet;
  const Hdf5Source source(Hdf5Check(ErrorCode::bad_data, path), input);
  return holds_matrix(source.check(), source.file());
}

}  // namespace chunkhit
