#include "store/hdf5/matrix_writer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/hash.h"
#include "chunkhit/error.h"
#include "store/hdf5/attributes.h"
#include "store/hdf5/columns.h"
#include "store/hdf5/handle.h"
#include "store/hdf5/index.h"
#include "store/hdf5/matrix.h"

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

namespace {

constexpr std::uint64_t kMetadataBlockBytes = 16 << 10;
// Of one name: its reference, and its place in a heap.
constexpr std::uint64_t kNameBytes = 48;

Hdf5Check checked_shape(const std::string& path, const PartSpec& spec) {
  try {
    check_matrix_shape(spec.matrix.value());
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.what());
  }
  return {ErrorCode::cannot_write, path};
}

/// The items' own ids, or their columns where they have none.
Names item_names(const PartSpec& spec) {
  Names names;
  for (const std::string& name : spec.classes) names.add(name);
  for (std::uint64_t column = names.count(); column < spec.matrix->column_count; ++column)
    names.add(std::to_string(column));
  return names;
}

/// Columns of an item must ascend, or what is written is no CSR matrix.
void check_rows(const CsrView& rows, std::uint64_t column_count) {
  for (std::size_t row = 0; row < rows.row_count(); ++row) {
    std::uint64_t least = 0;
    for (std::uint64_t at = rows.indptr[row] - rows.indptr[0]; at < rows.indptr[row + 1] - rows.indptr[0];
         ++at) {
      if (rows.indices[at] < least || rows.indices[at] >= column_count)
        throw Error(ErrorCode::bad_data, "column " + std::to_string(rows.indices[at]) + " in row " +
                                             std::to_string(row) + ", expected ascending columns below " +
                                             std::to_string(column_count));
      least = std::uint64_t{rows.indices[at]} + 1;
    }
  }
}

void write_root(const Hdf5Check& check, hid_t file, const PartSpec& spec) {
  write_attribute(check, file, kMatrixVersionAttribute, kMatrixVersion);
  write_text_attribute(check, file, kPackIdAttribute, hash_text(spec.pack_id));
  write_attribute(check, file, kPartIndexAttribute, std::uint64_t{spec.part_index});
  write_attribute(check, file, kMatricesAttribute, std::uint64_t{spec.matrix->matrix_count});
  write_text_attribute(check, file, kValueTypeAttribute,
                       std::string(kValueTypeNames[static_cast<std::size_t>(spec.matrix->value_type)]));
  write_attribute(check, file, kScaleAttribute, spec.matrix->scale);
  write_attribute(check, file, kChunkRowsAttribute, spec.chunk_samples);
}

/// Labels that are all -1 are none.
void write_labels(DataFrameWriter& obs, const PartSpec& spec, const Labels& labels) {
  if (std::ranges::any_of(labels.ids, [](std::int64_t id) { return id != -1; })) obs.add("label", labels.ids);
  if (labels.values.empty()) return;
  const std::vector<std::string> names = label_column_names(spec.label_columns);
  std::vector<float> numbers(labels.values.size() / names.size());
  for (std::size_t column = 0; column < names.size(); ++column) {
    for (std::size_t row = 0; row < numbers.size(); ++row)
      numbers[row] = labels.values[row * names.size() + column];
    obs.add(names[column], numbers);
  }
}

/// What AnnData expects beside the matrix; `uns` also keeps the names of label columns.
void write_groups(const Hdf5Check& check, hid_t file, const PartSpec& spec, const PartSamples& samples) {
  for (const char* name : {"obsm", "obsp", "varm", "varp", "uns"})
    static_cast<void>(create_group(check, file, name, "dict", "0.1.0"));
  if (samples.labels.values.empty()) return;
  Names names;
  for (const std::string& name : spec.label_columns) names.add(name);
  write_text_column(check, file, kLabelColumnsName, names);
  write_encoding(check, open_dataset(check, file, kLabelColumnsName).get(), "string-array", "0.2.0");
}

bool same_names(const Names& a, const Names& b) { return a.text == b.text && a.ends == b.ends; }

}  // namespace

struct MatrixHdf5Writer::State {
  State(const std::string& path, const PartSpec& part_spec, MatrixHdf5Options writer_options)
      : spec(part_spec),
        options(std::move(writer_options)),
        check(checked_shape(path, spec)),
        items(item_names(spec)),
        pending(path) {
    reserve(pending, 0, kMetadataBlockBytes);
    file = create_hdf5_file(check, pending.aside_path(), kMetadataBlockBytes);
    if (options.storage == MatrixStorage::csr) {
      write_encoding(check, file.get(), "anndata", "0.1.0");
      static_cast<void>(create_group(check, file.get(), "layers", "dict", "0.1.0"));
    }
    write_root(check, file.get(), spec);
    const bool dense = options.storage == MatrixStorage::dense;
    matrices.push_back(start(dense ? kDenseName : kXName));
    if (spec.matrix->matrix_count == 2) matrices.push_back(start(dense ? kDenseHeldOutName : kHeldOutName));
  }

  std::unique_ptr<MatrixOutput> start(const char* name) {
    const MatrixTarget target{check, file.get(), pending, name, *spec.matrix, options.deflate_level};
    return options.storage == MatrixStorage::csr ? start_csr_group(target)
                                                 : start_dense_array(target, options.max_dense_bytes);
  }

  void check_samples(const PartSamples& samples) const {
    const bool whole = samples.rows.size() == row_count && samples.files.count() == row_count &&
                       items.count() == spec.matrix->column_count &&
                       (options.item_counts.empty() || options.item_counts.size() == items.count()) &&
                       (samples.labels.values.empty()
                            ? samples.labels.ids.size() == row_count
                            : samples.labels.values.size() == row_count * spec.label_columns.size());
    if (!whole)
      throw Error(ErrorCode::cannot_write,
                  pending.path() + ": users, items or labels are not as many as rows and columns");
  }

  void write_beside(const PartSamples& samples) {
    const std::uint64_t numbers = samples.rows.size() * (8 + 8 + 4 * spec.label_columns.size());
    reserve(pending, end_of_hdf5_file(check, file.get()),
            numbers + samples.files.text.size() + items.text.size() + 8 * options.item_counts.size() +
                kNameBytes * (samples.files.count() + items.count()) + 16 * kMetadataBlockBytes);
    DataFrameWriter obs(check, file.get(), "obs", samples.files);
    obs.add("row", samples.rows);
    write_labels(obs, spec, samples.labels);
    obs.finish();
    DataFrameWriter var(check, file.get(), "var", items);
    if (!options.item_counts.empty()) var.add("ratings", options.item_counts);
    var.finish();
    write_groups(check, file.get(), spec, samples);
  }

  /// HDF5 does not always tell when the disk was full, so what it wrote is read again.
  void check_written(const PartSamples& samples) const {
    const Hdf5Handle written = open_hdf5_file(check, pending.aside_path());
    for (const auto& matrix : matrices) matrix->check_written(written.get());
    const auto rows = read_column<std::uint64_t>(check, open_column(check, written.get(), kRowName));
    if (rows != samples.rows || !same_names(read_row_names(check, written.get(), "obs"), samples.files) ||
        !same_names(read_row_names(check, written.get(), "var"), items))
      check.refuse("what was written of users and items does not read back");
  }

  PartSpec spec;
  MatrixHdf5Options options;
  Hdf5Check check;
  Names items;
  PendingFile pending;
  Hdf5Handle file;
  std::vector<std::unique_ptr<MatrixOutput>> matrices;  // closed before the file
  std::uint64_t row_count = 0;
};

MatrixHdf5Writer::MatrixHdf5Writer(const std::string& path, const PartSpec& spec, MatrixHdf5Options options) {
  leave_files_alone_at_exit();
  const QuietHdf5 quiet;
  state_ = std::make_unique<State>(path, spec, std::move(options));
}

MatrixHdf5Writer::~MatrixHdf5Writer() {
  // What was not finished is thrown away; HDF5 may complain that it cannot write the rest.
  const QuietHdf5 quiet;
  state_.reset();
}

void MatrixHdf5Writer::append(const CsrView& x, const CsrView& held_out) {
  const QuietHdf5 quiet;
  State& state = *state_;
  const CsrView* const views[]{&x, &held_out};
  try {
    for (std::size_t i = 0; i < state.matrices.size(); ++i) {
      if (views[i]->row_count() != x.row_count())
        throw Error(ErrorCode::bad_data, "held_out has other rows than X");
      check_rows(*views[i], state.spec.matrix->column_count);
    }
    for (std::size_t i = 0; i < state.matrices.size(); ++i) state.matrices[i]->append(*views[i]);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    throw Error(error.code(), state.pending.path() + ": " + error.what());
  }
  state.row_count += x.row_count();
}

PartReport MatrixHdf5Writer::finish(const PartSamples& samples) {
  CompletePart part = complete(samples);
  part.file.publish();
  return part.report;
}

CompletePart MatrixHdf5Writer::complete(const PartSamples& samples) {
  const QuietHdf5 quiet;
  State& state = *state_;
  state.check_samples(samples);
  PartReport report{.sample_count = state.row_count};
  for (const auto& matrix : state.matrices) {
    matrix->finish();
    report.chunk_count += matrix->chunk_count();
    report.stored_bytes += matrix->stored_bytes();
  }
  state.write_beside(samples);
  state.check(H5Fflush(state.file.get(), H5F_SCOPE_GLOBAL), "flush");
  const std::uint64_t hdf5_bytes = end_of_hdf5_file(state.check, state.file.get());
  state.check(state.file.close(), "close");
  state.check_written(samples);
  give_back_reserved(state.pending, hdf5_bytes);
  append_hdf5_index(state.pending, SampleKind::matrices, {}, {});
  const InputFile written(state.pending.aside_path());
  const std::optional<Hdf5Trailer> trailer = read_hdf5_trailer(written);
  if (!trailer) state.check.refuse("what was written does not read back: no trailer");
  report.bytes = written.byte_count();
  report.xxh3 = trailer->xxh3;
  state.pending.flush();
  return {report, std::move(state.pending)};
}

}  // namespace chunkhit
