#include "pack/ratings/row_pipeline.h"

#include <oneapi/tbb/parallel_pipeline.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>

#include "base/hash.h"
#include "codec/zstd.h"
#include "pack/buffer_pool.h"
#include "ratings/rating_store.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kRowBytes = 8;        // of indptr
constexpr std::uint64_t kEntryBytes = 4 + 4;  // of a column and a value
// Memory of an entry while its row is made, and then as a row, a block and a compressed block.
constexpr std::uint64_t kWorkBytes = kRowWorkBytes + 8;
constexpr std::uint64_t kTimedWorkBytes =
    kTimedRowWorkBytes + 8 + 2 * (sizeof(std::int64_t) + sizeof(std::uint32_t));

/// Makes rows in pieces: fill (parallel), choose the part (in order), compress (parallel), append (in order).
class RowPipeline {
 public:
  explicit RowPipeline(const RowJob& job) : job_(job), part_index_(job.kept_parts) {}

  bool run() {
    using tbb::filter_mode;
    tbb::parallel_pipeline(
        piece_count(),
        tbb::make_filter<void, Piece>(filter_mode::serial_in_order, [this](tbb::flow_control& flow) {
          if (failure_) flow.stop();
          return failure_.unless_failed([&] { return next_piece(flow); });
        }) & tbb::make_filter<Piece, Piece>(filter_mode::parallel, [this](Piece piece) {
          return failure_.unless_failed([&] { return fill(std::move(piece)); });
        }) & tbb::make_filter<Piece, Piece>(filter_mode::serial_in_order, [this](Piece piece) {
          return failure_.unless_failed([&] { return choose_part(std::move(piece)); });
        }) & tbb::make_filter<Piece, Piece>(filter_mode::parallel, [this](Piece piece) {
          return failure_.unless_failed([&] { return compress(std::move(piece)); });
        }) & tbb::make_filter<Piece, void>(filter_mode::serial_in_order, [this](const Piece& piece) {
          failure_.unless_failed([&] { job_.append(*piece); });
        }));
    failure_.rethrow();
    return !stopped_;
  }

 private:
  using Piece = std::shared_ptr<RowPiece>;

  /// Returns how many pieces may be in work: two per thread, or fewer if the memory is short.
  [[nodiscard]] std::size_t piece_count() const {
    const PackStats& stats = job_.rows.stats();
    const std::uint64_t nnz = stats.x.nnz + stats.held_out.nnz;
    const std::uint64_t rows = std::max<std::uint64_t>(1, job_.rows.row_count());
    const std::uint64_t of_piece = (nnz / rows * job_.piece_rows + stats.x.longest_row) *
                                   (job_.shape.has_times ? kTimedWorkBytes : kWorkBytes);
    return std::clamp<std::size_t>(job_.work_bytes / std::max<std::uint64_t>(1, of_piece), 1,
                                   2ull * job_.threads);
  }

  Piece next_piece(tbb::flow_control& flow) {
    stopped_ = job_.stop != nullptr && job_.stop->load(std::memory_order_relaxed);
    if (stopped_ || next_row_ == job_.rows.row_count()) {
      flow.stop();
      return {};
    }
    Piece piece = pieces_.get();
    piece->first_row = next_row_;
    piece->row_count = std::min(job_.piece_rows, job_.rows.row_count() - next_row_);
    piece->is_kept = next_row_ < job_.kept_rows;
    next_row_ += piece->row_count;
    return piece;
  }

  Piece fill(Piece piece) const {
    job_.rows.fill(piece->first_row, piece->first_row + piece->row_count, piece->x, piece->held_out);
    if (!job_.makes_row_blocks || piece->is_kept) return piece;
    const std::array<CsrView, 2> matrices{piece->x.view(), piece->held_out.view()};
    encode_row_block(std::span(matrices).first(job_.shape.matrix_count), job_.shape, 0, piece->raw);
    return piece;
  }

  [[nodiscard]] std::uint64_t raw_bytes(const RowPiece& piece) const {
    if (job_.makes_row_blocks) return piece.raw.size();
    return piece.row_count * job_.shape.matrix_count * kRowBytes +
           (piece.x.nnz() + piece.held_out.nnz()) *
               (kEntryBytes + (job_.shape.has_times ? sizeof(std::int64_t) : 0));
  }

  /// Starts a new part when a piece no longer fits; sizes are of raw bytes, so that parts do not depend on
  /// compression.
  Piece choose_part(Piece piece) {
    if (piece->is_kept) return piece;
    const std::uint64_t bytes = raw_bytes(*piece);
    const std::uint64_t entries = std::max(piece->x.nnz(), piece->held_out.nnz());
    const bool fits =
        part_bytes_ + bytes <= job_.part_bytes && part_entries_ + entries <= job_.max_part_entries;
    if (part_bytes_ > 0 && !fits) {
      ++part_index_;
      part_bytes_ = part_rows_ = part_entries_ = 0;
    }
    piece->part_index = part_index_;
    if (job_.makes_row_blocks) set_first_row(piece->raw, part_rows_);
    part_bytes_ += bytes;
    part_entries_ += entries;
    part_rows_ += piece->row_count;
    return piece;
  }

  Piece compress(Piece piece) const {
    if (!job_.makes_row_blocks || piece->is_kept) return piece;
    piece->filtered = job_.compresses;
    if (piece->filtered) {
      encode_zstd(row_block_pieces(piece->raw, job_.shape), job_.level, piece->encoded);
      piece->filtered = piece->encoded.size() < piece->raw.size();
    }
    piece->xxh3 = xxh3(piece->stored());
    return piece;
  }

  const RowJob& job_;
  BufferPool<RowPiece> pieces_;
  std::uint64_t next_row_ = 0;
  std::uint64_t part_index_;
  std::uint64_t part_rows_ = 0;
  std::uint64_t part_bytes_ = 0;
  std::uint64_t part_entries_ = 0;  // at least those of each matrix
  bool stopped_ = false;
  FirstFailure failure_;
};

}  // namespace

bool run_row_job(const RowJob& job) { return RowPipeline(job).run(); }

}  // namespace chunkhit
