// Any bytes as a row block: they end in rows that are such as they must be, or in an Error. The first byte
// chooses the matrices' shape; with every other one the block's own header says what the shape is, so that
// more is reached.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "batch/sparse_values.h"
#include "chunk/row_block.h"
#include "chunkhit/error.h"
#include "types/enum_names.h"

namespace {

using namespace chunkhit;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_rows(const std::vector<std::uint64_t>& row_ends, const auto& ids, const MatrixShape& shape) {
  std::uint64_t at = 0;
  for (const std::uint64_t end : row_ends) {
    require(end >= at && end <= ids.size());
    for (std::uint64_t least = 0; at < end; ++at) {
      require(ids[at] >= least && ids[at] < shape.column_count);
      least = std::uint64_t{ids[at]} + (shape.has_repeats ? 0 : 1);
    }
  }
  require(at == ids.size());
}

template <class Id>
void decode_matrix(const RowBlockHeader& header, std::size_t index, const MatrixShape& shape) {
  const std::uint64_t nnz = header.matrices[index].nnz;
  std::vector<std::uint64_t> row_ends(header.row_count);
  std::vector<Id> ids(nnz);
  std::vector<std::uint8_t> values(nnz * value_bytes(shape.value_type));
  std::vector<float> ratings(nnz);
  std::vector<std::int64_t> times(shape.has_times ? nnz : 0);
  std::vector<std::uint32_t> ties(shape.has_times ? nnz : 0);
  decode_rows<Id>(header, index, shape, {row_ends, 0, ids, values, times, ties});
  check_rows(row_ends, ids, shape);
  const EntryValues calculator(
      {.id_bytes = sizeof(Id), .value_type = shape.value_type, .stored_scale = shape.scale});
  calculator.calculate({reinterpret_cast<const std::uint8_t*>(ids.data()), values.data(), nnz}, ratings);
}

void read(Bytes raw, const MatrixShape& shape) {
  try {
    check_matrix_shape(shape);
    const RowBlockHeader header = decode_row_block_header(raw, shape);
    for (std::size_t i = 0; i < shape.matrix_count; ++i) {
      decode_matrix<std::uint32_t>(header, i, shape);
      if (shape.column_count <= 65536) decode_matrix<std::uint16_t>(header, i, shape);
    }
  } catch (const Error& error) {
    require(error.code() == ErrorCode::bad_data);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::vector<std::uint8_t> raw(data + 1, data + size);
  constexpr std::uint64_t kWidths[]{1, 300, 700, 65536, 65537, UINT32_MAX};
  MatrixShape shape{.column_count = kWidths[data[0] / 2 % 6], .value_type = ValueType::u8};
  if (data[0] % 2 != 0 && raw.size() >= 16) {
    shape.matrix_count = raw[5];
    shape.value_type = static_cast<ValueType>(raw[6] % kEnumWords<ValueType>.size());
    shape.scale = load_little<double>(raw.data() + 8);
    shape.has_times = raw[4] >= 2;
    shape.has_repeats = raw[4] == 4;
  }
  read(raw, shape);
  return 0;
}
