#include "store/hdf5/matrix_arrays.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/throw_error.h"
#include "codec/deflate.h"
#include "store/hdf5/attributes.h"
#include "store/hdf5/dataset.h"
#include "store/hdf5/matrix.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kChunkEntries = 65536;

/// How a growing array is stored.
struct GrowingArraySpec {
  std::string path;              ///< from the file's root; its group is there
  hid_t type = -1;               ///< of a value, fixed width, little-endian
  std::uint64_t row_values = 0;  ///< values of a row; 0: of one dimension, a row is a value
  std::uint64_t chunk_rows = 0;  ///< in every chunk; the last is filled with zeros
  int deflate_level = 4;         ///< 1..12; 0: stored raw
};

/// Shuffles bytes as HDF5's filter does: the first bytes of all values, then their second bytes, and so on.
void shuffle(Bytes raw, std::size_t value_bytes, ByteBuffer& shuffled) {
  shuffled.resize(raw.size());
  const std::size_t count = raw.size() / value_bytes;
  for (std::size_t byte = 0; byte < value_bytes; ++byte)
    for (std::size_t i = 0; i < count; ++i) shuffled[byte * count + i] = raw[i * value_bytes + byte];
}

Hdf5Handle create_array(const Hdf5Check& check, hid_t file, const GrowingArraySpec& spec,
                        const std::vector<hsize_t>& none, const std::vector<hsize_t>& chunk) {
  std::vector<hsize_t> most = none;
  most[0] = H5S_UNLIMITED;
  const auto rank = static_cast<int>(none.size());
  const Hdf5Handle space(check(H5Screate_simple(rank, none.data(), most.data()), "create a dataspace"),
                         H5Sclose);
  const Hdf5Handle list = make_creation_list(check);
  check(H5Pset_chunk(list.get(), rank, chunk.data()), "set the chunk's shape");
  check(H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER), "leave out filling");
  if (spec.deflate_level > 0) {
    if (H5Tget_size(spec.type) > 1) check(H5Pset_shuffle(list.get()), "set the shuffle filter");
    check(H5Pset_deflate(list.get(), static_cast<unsigned>(std::min(spec.deflate_level, 9))),
          "set the deflate filter");
  }
  return create_dataset(check, file, spec.path, spec.type, space, list);
}

/// An array that grows at its end. Writes chunks with shuffle (where a value has more than a byte) and
/// deflate.
class Hdf5GrowingArray {
 public:
  /// Creates the array without rows; throws cannot_write.
  Hdf5GrowingArray(Hdf5Output& output, GrowingArraySpec spec);
  /// Appends whole rows.
  void append(Bytes rows);
  template <class Number>
  void append(const std::vector<Number>& numbers) {
    append(Bytes(reinterpret_cast<const std::uint8_t*>(numbers.data()), numbers.size() * sizeof(Number)));
  }
  /// Writes what is left and closes the array.
  void finish();
  /// Reads every chunk back from the reopened file; throws cannot_write if one differs.
  void check_written(hid_t file) const;
  [[nodiscard]] std::uint64_t row_count() const { return row_count_; }
  [[nodiscard]] std::uint64_t chunk_count() const { return hashes_.size(); }
  [[nodiscard]] std::uint64_t stored_bytes() const { return stored_bytes_; }

 private:
  void encode_chunk();
  void write_chunk();
  [[nodiscard]] std::vector<hsize_t> sides(std::uint64_t rows) const;

  Hdf5Output& output_;
  const Hdf5Check& check_;
  GrowingArraySpec spec_;
  std::size_t value_bytes_;
  std::uint64_t row_bytes_;
  Hdf5Handle dataset_;
  ByteBuffer chunk_;  // as large as a chunk
  std::size_t filled_ = 0;
  ByteBuffer shuffled_;
  ByteBuffer stored_;
  std::uint64_t row_count_ = 0;
  std::uint64_t stored_bytes_ = 0;
  std::vector<std::uint64_t> hashes_;  // of the stored chunks
};

Hdf5GrowingArray::Hdf5GrowingArray(Hdf5Output& output, GrowingArraySpec spec)
    : output_(output),
      check_(output.check()),
      spec_(std::move(spec)),
      value_bytes_(H5Tget_size(spec_.type)),
      row_bytes_(value_bytes_ * std::max<std::uint64_t>(spec_.row_values, 1)),
      dataset_(create_array(check_, output.file(), spec_, sides(0), sides(spec_.chunk_rows))),
      chunk_(spec_.chunk_rows * row_bytes_) {}

std::vector<hsize_t> Hdf5GrowingArray::sides(std::uint64_t rows) const {
  if (spec_.row_values == 0) return {rows};
  return {rows, spec_.row_values};
}

void Hdf5GrowingArray::append(Bytes rows) {
  row_count_ += rows.size() / row_bytes_;
  while (!rows.empty()) {
    const std::size_t count = std::min(rows.size(), chunk_.size() - filled_);
    std::ranges::copy(rows.first(count), chunk_.begin() + static_cast<std::ptrdiff_t>(filled_));
    filled_ += count;
    rows = rows.subspan(count);
    if (filled_ == chunk_.size()) write_chunk();
  }
}

void Hdf5GrowingArray::encode_chunk() {
  if (spec_.deflate_level == 0) {
    stored_ = chunk_;
    return;
  }
  if (value_bytes_ > 1) shuffle(chunk_, value_bytes_, shuffled_);
  encode_deflate(value_bytes_ > 1 ? shuffled_ : chunk_, spec_.deflate_level, stored_);
}

void Hdf5GrowingArray::write_chunk() {
  const std::uint64_t first = hashes_.size() * spec_.chunk_rows;
  const std::array<hsize_t, 2> at{first, 0};
  encode_chunk();
  const std::vector<hsize_t> extent = sides(first + filled_ / row_bytes_);
  check_(H5Dset_extent(dataset_.get(), extent.data()), "make room in an array");
  output_.pending().write_at(output_.add_chunk(dataset_.get(), at, 0, stored_), stored_);
  hashes_.push_back(xxh3(stored_));
  stored_bytes_ += stored_.size();
  filled_ = 0;
}

void Hdf5GrowingArray::finish() {
  if (filled_ > 0) {
    const std::size_t filled = filled_;
    std::fill(chunk_.begin() + static_cast<std::ptrdiff_t>(filled), chunk_.end(), std::uint8_t{0});
    write_chunk();
  }
  check_(dataset_.close(), ("close /" + spec_.path).c_str());
  chunk_ = {};
  shuffled_ = {};
  stored_ = {};
}

void Hdf5GrowingArray::check_written(hid_t file) const {
  const Hdf5Handle dataset = open_dataset(check_, file, spec_.path);
  if (dataset_dimensions(check_, dataset.get()) != sides(row_count_))
    check_.refuse("/" + spec_.path + " was not written whole");
  ByteBuffer stored;
  for (std::size_t i = 0; i < hashes_.size(); ++i) {
    const std::array<hsize_t, 2> at{i * spec_.chunk_rows, 0};
    hsize_t bytes = 0;
    std::uint32_t mask = 0;
    check_(H5Dget_chunk_storage_size(dataset.get(), at.data(), &bytes), "look up a chunk");
    stored.resize(std::min<hsize_t>(bytes, stored_bytes_));
    check_(H5Dread_chunk(dataset.get(), H5P_DEFAULT, at.data(), &mask, stored.data()), "read a chunk");
    if (mask != 0 || xxh3(stored) != hashes_[i])
      check_.refuse("/" + spec_.path + ": chunk " + std::to_string(i) + " does not read back");
  }
}

/// Returns the type of /X/data, which has the ratings themselves: AnnData knows no scale.
ValueType type_of_data(const MatrixShape& shape) {
  if (shape.value_type == ValueType::none) return ValueType::u8;
  return shape.scale == 1 ? shape.value_type : ValueType::f32;
}

hid_t hdf5_type_of(ValueType type) {
  if (type == ValueType::u8) return H5T_STD_U8LE;
  return type == ValueType::u16 ? H5T_STD_U16LE : H5T_IEEE_F32LE;
}

/// Another number of each entry: a matrix of the same entries, whose hard links share the arrays that say
/// where those are.
class EntryLayer {
 public:
  EntryLayer(Hdf5Output& output, const std::string& path, hid_t type, int deflate_level)
      : check_(output.check()),
        group_(create_group(check_, output.file(), path, "csr_matrix", "0.1.0")),
        data_(output, {.path = path + "/data",
                       .type = type,
                       .chunk_rows = kChunkEntries,
                       .deflate_level = deflate_level}) {}
  template <class Number>
  void append(std::span<const Number> numbers) {
    data_.append({reinterpret_cast<const std::uint8_t*>(numbers.data()), numbers.size_bytes()});
  }
  /// Links the arrays of `of`, the group of the matrix.
  void finish(hid_t of, const std::array<std::int64_t, 2>& shape) {
    write_attribute(check_, group_.get(), "shape", H5T_STD_I64LE, AttributeShape::array, 2, shape.data());
    data_.finish();
    for (const char* name : {"indices", "indptr"})
      check_(H5Lcreate_hard(of, name, group_.get(), name, H5P_DEFAULT, H5P_DEFAULT),
             "link the arrays of a layer");
    check_(group_.close(), "close the group of a layer");
  }
  [[nodiscard]] const Hdf5GrowingArray& data() const { return data_; }

 private:
  const Hdf5Check& check_;
  Hdf5Handle group_;
  Hdf5GrowingArray data_;
};

class CsrGroup final : public MatrixOutput {
 public:
  explicit CsrGroup(const MatrixTarget& target)
      : target_(target),
        check_(target.output.check()),
        path_(target.path),
        shape_(target.shape),
        data_shape_(target.shape),
        group_(create_group(check_, target.output.file(), target.path, "csr_matrix", "0.1.0")),
        data_(array(target, "data", hdf5_type_of(type_of_data(target.shape)))),
        indices_(array(target, "indices", H5T_STD_I32LE)),
        indptr_(array(target, "indptr", H5T_STD_I32LE)) {
    if (shape_.has_times)
      times_.emplace(target.output, target.times_path, H5T_STD_I64LE, target.deflate_level);
    data_shape_.value_type = type_of_data(shape_);
    data_shape_.scale = 1;
    indptr_.append(std::vector<std::int32_t>{0});
  }

  void append(const CsrView& rows) override {
    const std::uint64_t before = indices_.row_count();
    check_entries(before + rows.nnz());
    ends_.clear();
    for (std::size_t row = 0; row < rows.row_count(); ++row)
      ends_.push_back(
          static_cast<std::int32_t>(indices_.row_count() + rows.indptr[row + 1] - rows.indptr[0]));
    numbers_.resize(rows.nnz() * value_bytes(data_shape_.value_type));
    encode_ratings(rows.values, data_shape_, numbers_);
    data_.append(numbers_);
    indices_.append({reinterpret_cast<const std::uint8_t*>(rows.indices.data()), rows.indices.size_bytes()});
    indptr_.append(ends_);
    if (!times_) return;
    if (rows.times.size() != rows.nnz())
      throw_bad_data(std::to_string(rows.times.size()) + " times of " + std::to_string(rows.nnz()) +
                     " ratings");
    times_->append(rows.times);
    append_ties(rows, before);
  }

  void finish() override {
    const std::array<std::int64_t, 2> shape{static_cast<std::int64_t>(indptr_.row_count() - 1),
                                            static_cast<std::int64_t>(shape_.column_count)};
    write_attribute(check_, group_.get(), "shape", H5T_STD_I64LE, AttributeShape::array, 2, shape.data());
    for (Hdf5GrowingArray* array : {&data_, &indices_, &indptr_}) array->finish();
    for (std::optional<EntryLayer>* layer : {&times_, &ties_})
      if (*layer) (*layer)->finish(group_.get(), shape);
    check_(group_.close(), ("close /" + path_).c_str());
  }

  void check_written(hid_t file) const override {
    for (const Hdf5GrowingArray* array : {&data_, &indices_, &indptr_}) array->check_written(file);
    for (const std::optional<EntryLayer>* layer : {&times_, &ties_})
      if (*layer) (*layer)->data().check_written(file);
  }

  [[nodiscard]] std::uint64_t chunk_count() const override {
    return data_.chunk_count() + indices_.chunk_count() + (times_ ? times_->data().chunk_count() : 0) +
           (ties_ ? ties_->data().chunk_count() : 0);
  }

  [[nodiscard]] std::uint64_t stored_bytes() const override {
    return data_.stored_bytes() + indices_.stored_bytes() + indptr_.stored_bytes() +
           (times_ ? times_->data().stored_bytes() : 0) + (ties_ ? ties_->data().stored_bytes() : 0);
  }

 private:
  // indptr has 32 bits like indices: scipy and anndata slice rows only if both have the same type.
  static void check_entries(std::uint64_t count) {
    if (count > kMaxCsrEntries)
      throw_bad_data(std::to_string(count) + " ratings in one part, more than the " +
                     std::to_string(kMaxCsrEntries) +
                     " that the 32-bit indptr of HDF5 parts can count: use shards");
  }

  /// The group of the ties is made once one is not 0, with 0 of the `before` entries that came before.
  void append_ties(const CsrView& rows, std::uint64_t before) {
    const bool has_some = std::ranges::any_of(rows.ties, [](std::uint32_t tie) { return tie != 0; });
    if (!ties_ && !has_some) return;
    if (!ties_) {
      ties_.emplace(target_.output, target_.ties_path, H5T_STD_U32LE, target_.deflate_level);
      for (std::uint64_t left = before; left > 0; left -= std::min(left, kChunkEntries)) {
        no_ties_.resize(std::min(left, kChunkEntries));
        ties_->append(std::span<const std::uint32_t>(no_ties_));
      }
    }
    no_ties_.resize(has_some ? 0 : rows.nnz());
    ties_->append(has_some ? rows.ties : std::span<const std::uint32_t>(no_ties_));
  }

  static Hdf5GrowingArray array(const MatrixTarget& target, const char* name, hid_t type) {
    return {target.output,
            {.path = target.path + "/" + name,
             .type = type,
             .chunk_rows = kChunkEntries,
             .deflate_level = target.deflate_level}};
  }

  MatrixTarget target_;
  const Hdf5Check& check_;
  std::string path_;
  MatrixShape shape_;
  MatrixShape data_shape_;  // of the numbers in /X/data
  Hdf5Handle group_;
  Hdf5GrowingArray data_;
  Hdf5GrowingArray indices_;
  Hdf5GrowingArray indptr_;
  std::optional<EntryLayer> times_;
  std::optional<EntryLayer> ties_;
  std::vector<std::uint32_t> no_ties_;  // only zeros
  std::vector<std::int32_t> ends_;
  ByteBuffer numbers_;
};

}  // namespace

std::unique_ptr<MatrixOutput> start_csr_group(const MatrixTarget& target) {
  if (target.shape.column_count > INT32_MAX)
    throw_bad_data(std::to_string(target.shape.column_count) +
                   " items, more than the 32-bit indices of HDF5 parts can name: use shards");
  return std::make_unique<CsrGroup>(target);
}

}  // namespace chunkhit
