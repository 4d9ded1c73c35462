// Parts of matrices in HDF5 as readers want them: their rows as row blocks in memory.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/hash.h"
#include "base/resources.h"
#include "chunk/row_block.h"
#include "chunkhit/error.h"
#include "store/hdf5/external_check.h"
#include "store/hdf5/index.h"
#include "store/hdf5/matrix.h"

namespace chunkhit {
namespace {

/// Rows of a block of an external file.
constexpr std::uint64_t kExternalChunkRows = 256;

/// A file without a name, in memory; the rows of several parts lie in it one after the other.
class MemoryFile {
 public:
  MemoryFile() : fd_(std::make_shared<const FileDescriptor>(::memfd_create("chunkhit rows", MFD_CLOEXEC))) {
    if (!fd_->is_open()) fail(errno);
  }
  [[nodiscard]] std::uint64_t byte_count() const { return bytes_; }
  void append(Bytes bytes) {
    if (const int error = write_all_at(fd_->get(), bytes_, bytes); error != 0) fail(error);
    bytes_ += bytes.size();
  }
  [[nodiscard]] const std::shared_ptr<const FileDescriptor>& fd() const { return fd_; }

 private:
  [[noreturn]] static void fail(int error_number) {
    throw Error(ErrorCode::try_again,
                "cannot keep rows in memory: " + error_text(error_number) + " (" +
                    (error_number == EMFILE ? open_files_limit_text() : memory_limit_text()) + ")");
  }
  std::shared_ptr<const FileDescriptor> fd_;
  std::uint64_t bytes_ = 0;
};

/// Returns the spec of our own part, or one made up for an external file.
PartSpec spec_of(const Hdf5Matrix& matrix) {
  if (matrix.spec) return *matrix.spec;
  PartSpec spec;
  spec.codec = matrix.codec;
  const bool has_values = !matrix.x.values.empty();
  spec.samples.emplace<RowBlocks>().matrix = {.column_count = matrix.column_count,
                                              .value_type = has_values ? ValueType::f32 : ValueType::none};
  spec.chunk_samples = kExternalChunkRows;
  spec.rows().item_ids = matrix.column_names;
  return spec;
}

/// Encodes rows [first, end) as a row block, as a shard stores them, and appends it uncompressed.
StoredChunk append_block(const Hdf5Matrix& matrix, const MatrixShape& shape, std::uint64_t first,
                         std::uint64_t end, MemoryFile& file) {
  const CsrView views[2] = {matrix.x.view(first, end),
                            matrix.held_out ? matrix.held_out->view(first, end) : CsrView()};
  ByteBuffer raw;
  encode_row_block(std::span(views).first(shape.matrix_count), shape, first, raw);
  StoredChunk chunk{.offset = file.byte_count(),
                    .stored_bytes = raw.size(),
                    .raw_bytes = raw.size(),
                    .first_sample = first,
                    .sample_count = end - first,
                    .xxh3 = xxh3(raw),
                    .filtered = false};
  file.append(raw);
  return chunk;
}

/// Reads a file of matrices, and appends its rows to another one as blocks.
PartContents read_as_blocks(const InputFile& input, MemoryFile& file) {
  Hdf5Matrix matrix = read_matrix_hdf5(input);
  PartContents contents;
  contents.spec = spec_of(matrix);
  contents.has_hashes = false;
  const std::uint64_t rows = matrix.x.row_count();
  const std::uint64_t step = std::max<std::uint64_t>(1, contents.spec.chunk_samples);
  for (std::uint64_t first = 0; first < rows; first += step)
    contents.chunks.push_back(
        append_block(matrix, contents.spec.rows().matrix, first, std::min(rows, first + step), file));
  contents.samples = std::move(matrix.samples);
  return contents;
}

std::unique_ptr<ChunkReader> make_reader(const std::string& path, const MemoryFile& file,
                                         PartContents contents) {
  std::uint64_t bytes = 0;
  for (const StoredChunk& chunk : contents.chunks) bytes += chunk.stored_bytes;
  return std::make_unique<ChunkReader>(InputFile(path, file.fd(), bytes), std::move(contents));
}

}  // namespace

std::vector<std::unique_ptr<ChunkReader>> open_matrices_hdf5(const std::vector<std::string>& paths) {
  MemoryFile file;
  std::vector<std::unique_ptr<ChunkReader>> parts;
  for (const std::string& path : paths) {
    InputFile input(path);
    const std::optional<Hdf5Trailer> trailer = read_hdf5_trailer(input);
    const bool is_own = trailer && trailer->kind == SampleKind::matrices;
    // The whole part is hashed, and then read by the HDF5 library in many small pieces.
    if (is_own) input = input.in_memory();
    if (is_own)
      check_hdf5_hash(input, *trailer);
    else
      check_external_file(path, {.matrix = "X"});
    PartContents contents = read_as_blocks(input, file);
    if (is_own) contents.trailer = trailer;
    parts.push_back(make_reader(path, file, std::move(contents)));
  }
  return parts;
}

}  // namespace chunkhit
