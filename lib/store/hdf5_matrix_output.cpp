#include "store/hdf5_matrix_output.h"

#include <algorithm>
#include <array>
#include <utility>

#include "chunkhit/error.h"
#include "store/hdf5_attributes.h"
#include "store/hdf5_columns.h"
#include "store/hdf5_data_frame.h"
#include "store/hdf5_matrix.h"
#include "store/hdf5_matrix_names.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kChunkEntries = 65536;
constexpr std::uint64_t kDenseChunkBytes = 1 << 20;

/// The type of /X/data, which keeps ratings and not stored numbers.
ValueType type_of_data(const MatrixShape& shape) {
  if (shape.value_type == ValueType::none) return ValueType::u8;
  return shape.scale == 1 ? shape.value_type : ValueType::f32;
}

hid_t hdf5_type_of(ValueType type) {
  if (type == ValueType::u8) return H5T_STD_U8LE;
  return type == ValueType::u16 ? H5T_STD_U16LE : H5T_IEEE_F32LE;
}

class CsrGroup final : public MatrixOutput {
 public:
  explicit CsrGroup(const MatrixTarget& target)
      : check_(target.check),
        path_(target.path),
        shape_(target.shape),
        data_shape_(target.shape),
        group_(create_group(target.check, target.file, target.path, "csr_matrix", "0.1.0")),
        data_(array(target, "data", hdf5_type_of(type_of_data(target.shape)))),
        indices_(array(target, "indices", H5T_STD_I32LE)),
        indptr_(array(target, "indptr", H5T_STD_I32LE)) {
    data_shape_.value_type = type_of_data(shape_);
    data_shape_.scale = 1;
    indptr_.append(std::vector<std::int32_t>{0});
  }

  void append(const CsrView& rows) override {
    check_entries(indices_.row_count() + rows.nnz());
    ends_.clear();
    for (std::size_t row = 0; row < rows.row_count(); ++row)
      ends_.push_back(
          static_cast<std::int32_t>(indices_.row_count() + rows.indptr[row + 1] - rows.indptr[0]));
    numbers_.resize(rows.nnz() * value_bytes(data_shape_.value_type));
    encode_ratings(rows.values, data_shape_, numbers_);
    data_.append(numbers_);
    indices_.append({reinterpret_cast<const std::uint8_t*>(rows.indices.data()), rows.indices.size_bytes()});
    indptr_.append(ends_);
  }

  void finish() override {
    const std::array<std::int64_t, 2> shape{static_cast<std::int64_t>(indptr_.row_count() - 1),
                                            static_cast<std::int64_t>(shape_.column_count)};
    write_attribute(check_, group_.get(), "shape", H5T_STD_I64LE, AttributeShape::array, 2, shape.data());
    for (Hdf5GrowingArray* array : {&data_, &indices_, &indptr_}) array->finish();
    check_(group_.close(), ("close /" + path_).c_str());
  }

  void check_written(hid_t file) const override {
    for (const Hdf5GrowingArray* array : {&data_, &indices_, &indptr_}) array->check_written(file);
  }

  [[nodiscard]] std::uint64_t chunk_count() const override {
    return data_.chunk_count() + indices_.chunk_count();
  }

  [[nodiscard]] std::uint64_t stored_bytes() const override {
    return data_.stored_bytes() + indices_.stored_bytes() + indptr_.stored_bytes();
  }

 private:
  // scipy and anndata take rows of a matrix only where indices and indptr are of one type.
  static void check_entries(std::uint64_t count) {
    if (count > kMaxCsrEntries)
      throw Error(ErrorCode::bad_data, std::to_string(count) + " ratings in one part, more than the " +
                                           std::to_string(kMaxCsrEntries) +
                                           " that the 32-bit indptr of HDF5 parts can count: use shards");
  }

  static Hdf5GrowingArray array(const MatrixTarget& target, const char* name, hid_t type) {
    return {target.check,
            target.file,
            target.output,
            {.path = target.path + "/" + name,
             .type = type,
             .chunk_rows = kChunkEntries,
             .deflate_level = target.deflate_level}};
  }

  const Hdf5Check& check_;
  std::string path_;
  MatrixShape shape_;
  MatrixShape data_shape_;  // of the numbers in /X/data
  Hdf5Handle group_;
  Hdf5GrowingArray data_;
  Hdf5GrowingArray indices_;
  Hdf5GrowingArray indptr_;
  std::vector<std::int32_t> ends_;
  ByteBuffer numbers_;
};

class DenseArray final : public MatrixOutput {
 public:
  DenseArray(const MatrixTarget& target, std::uint64_t max_bytes)
      : path_(target.path),
        shape_(target.shape),
        max_bytes_(max_bytes),
        cells_(target.check, target.file, target.output,
               {.path = target.path,
                .type = H5T_STD_U8LE,
                .row_values = target.shape.column_count,
                .chunk_rows = std::max<std::uint64_t>(kDenseChunkBytes / target.shape.column_count, 1),
                .deflate_level = target.deflate_level}),
        row_(target.shape.column_count) {
    const Hdf5Handle array = open_dataset(target.check, target.file, path_.c_str());
    write_attribute(target.check, array.get(), kScaleAttribute, shape_.scale);
  }

  void append(const CsrView& rows) override {
    const std::uint64_t bytes = (cells_.row_count() + rows.row_count()) * shape_.column_count;
    if (bytes > max_bytes_)
      throw Error(ErrorCode::bad_data, "a dense matrix of " + std::to_string(bytes) +
                                           " cells and more, at most " + std::to_string(max_bytes_) +
                                           ": leave it sparse");
    numbers_.resize(rows.nnz());
    std::ranges::fill(numbers_, std::uint8_t{1});
    encode_ratings(rows.values, shape_,
                   MutableBytes(numbers_).first(rows.nnz() * value_bytes(shape_.value_type)));
    if (std::ranges::find(numbers_, std::uint8_t{0}) != numbers_.end())
      throw Error(ErrorCode::bad_data, "a rating of 0, which in a dense matrix means none");
    for (std::size_t row = 0; row < rows.row_count(); ++row) {
      std::ranges::fill(row_, std::uint8_t{0});
      for (std::uint64_t at = rows.indptr[row] - rows.indptr[0]; at < rows.indptr[row + 1] - rows.indptr[0];
           ++at)
        row_[rows.indices[at]] = numbers_[at];
      cells_.append(row_);
    }
  }

  void finish() override { cells_.finish(); }
  void check_written(hid_t file) const override { cells_.check_written(file); }
  [[nodiscard]] std::uint64_t chunk_count() const override { return cells_.chunk_count(); }
  [[nodiscard]] std::uint64_t stored_bytes() const override { return cells_.stored_bytes(); }

 private:
  std::string path_;
  MatrixShape shape_;
  std::uint64_t max_bytes_;
  Hdf5GrowingArray cells_;
  ByteBuffer row_;
  ByteBuffer numbers_;
};

}  // namespace

std::unique_ptr<MatrixOutput> start_csr_group(const MatrixTarget& target) {
  if (target.shape.column_count > INT32_MAX)
    throw Error(ErrorCode::bad_data,
                std::to_string(target.shape.column_count) +
                    " items, more than the 32-bit indices of HDF5 parts can name: use shards");
  return std::make_unique<CsrGroup>(target);
}

std::unique_ptr<MatrixOutput> start_dense_array(const MatrixTarget& target, std::uint64_t max_bytes) {
  const ValueType type = target.shape.value_type;
  if (type != ValueType::none && type != ValueType::u8)
    throw Error(ErrorCode::bad_data, "values of type " +
                                         std::string(kValueTypeNames[static_cast<std::size_t>(type)]) +
                                         " do not fit the 8 bits of a dense matrix");
  return std::make_unique<DenseArray>(target, max_bytes);
}

}  // namespace chunkhit
