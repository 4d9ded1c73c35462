// Any bytes as an HDF5 file with a matrix: as rows to serve and as ratings to pack they end in blocks that
// hold what they say, or in an Error. Another program opens the file before.
#include "fuzz/rating_blocks.h"
#include "pack/ratings/hdf5_ratings.h"
#include "store/hdf5/matrix.h"

namespace {

using namespace chunkhit;

void check_rows(const ChunkReader& part) {
  const MatrixShape& shape = part.spec().rows().matrix;
  ByteBuffer block;
  std::uint64_t rows = 0;
  for (std::size_t chunk = 0; chunk < part.chunks().size(); ++chunk) {
    part.fetch(chunk, block);
    const RowBlockHeader header = decode_row_block_header(block, shape);
    require(header.first_row == rows && header.row_count == part.chunks()[chunk].sample_count);
    rows += header.row_count;
  }
  require(rows == part.samples().rows.size());
  require(part.spec().rows().item_ids.empty() || part.spec().rows().item_ids.size() == shape.column_count);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const MemoryFile file({data, size});
  try {
    for (const auto& part : open_matrices_hdf5({file.path()})) check_rows(*part);
  } catch (const Error& error) {
    require(error.code() == ErrorCode::bad_data);
  }
  check_reader([&] { return std::make_unique<Hdf5RatingReader>(file.path(), Hdf5RatingsSpec{}); }, true);
  return 0;
}
