#include "pack/matrix_part_writer.h"

#include <utility>

namespace chunkhit {
namespace {

class MatrixShardWriter : public MatrixPartWriter {
 public:
  MatrixShardWriter(const std::string& path, const PartSpec& spec)
      : chunks_(container("shard").create(path, spec)) {}
  void append(const RowPiece& piece) override {
    chunks_->append({piece.stored(), piece.raw.size(), piece.row_count, piece.xxh3, piece.filtered});
  }
  CompletePart complete(const PartSamples& samples) override { return chunks_->complete(samples); }

 private:
  std::unique_ptr<ChunkWriter> chunks_;
};

class MatrixHdf5PartWriter : public MatrixPartWriter {
 public:
  MatrixHdf5PartWriter(const std::string& path, const PartSpec& spec, MatrixHdf5Options options)
      : rows_(path, spec, std::move(options)) {}
  void append(const RowPiece& piece) override { rows_.append(piece.x.view(), piece.held_out.view()); }
  CompletePart complete(const PartSamples& samples) override { return rows_.complete(samples); }

 private:
  MatrixHdf5Writer rows_;
};

}  // namespace

std::unique_ptr<MatrixPartWriter> create_matrix_shard(const std::string& path, const PartSpec& spec) {
  return std::make_unique<MatrixShardWriter>(path, spec);
}

std::unique_ptr<MatrixPartWriter> create_matrix_hdf5(const std::string& path, const PartSpec& spec,
                                                     MatrixHdf5Options options) {
  return std::make_unique<MatrixHdf5PartWriter>(path, spec, std::move(options));
}

}  // namespace chunkhit
