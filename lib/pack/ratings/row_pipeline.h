// The pipeline that packs rows: fill → row block → part → compress → writer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/bytes.h"
#include "chunk/row_block.h"
#include "ratings/pack_rows.h"
#include "types/csr_rows.h"

namespace chunkhit {

/// Consecutive rows of a pack, in one part.
struct RowPiece {
  std::uint64_t first_row = 0;  ///< in the pack
  std::uint64_t row_count = 0;
  std::uint64_t part_index = 0;
  bool is_kept = false;  ///< of a part that is finished already: rows alone, neither block nor part
  CsrRows x;
  CsrRows held_out;  ///< of no rows where the pack has none
  ByteBuffer raw;    ///< as a row block, where that is asked for; and
  ByteBuffer encoded;
  bool filtered = false;   ///< `encoded` is smaller than `raw`
  std::uint64_t xxh3 = 0;  ///< of what is to be stored
  [[nodiscard]] Bytes stored() const { return filtered ? Bytes(encoded) : Bytes(raw); }
};

/// What a pack's rows are packed with.
struct RowJob {
  const PackRows& rows;
  std::uint64_t piece_rows = 1;
  MatrixShape shape;
  bool makes_row_blocks = false;  ///< else pieces stay rows
  bool compresses = false;        ///< row blocks, with zstd
  int level = 0;
  std::uint64_t part_bytes = 0;                 ///< raw, at most, unless one piece is larger
  std::uint64_t max_part_entries = UINT64_MAX;  ///< of each matrix
  std::uint64_t kept_parts = 0;                 ///< parts that are finished already, from the first on, and
  std::uint64_t kept_rows = 0;                  ///< their rows: a multiple of piece_rows, or all
  std::uint32_t threads = 1;
  std::uint64_t work_bytes = UINT64_MAX;  ///< of pieces at a time; at least one is made
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const RowPiece&)> append;  ///< called in order, by one thread at a time
};

/// Packs all rows; false: `stop` was seen. The pieces do not depend on the number of threads.
[[nodiscard]] bool run_row_job(const RowJob& job);

}  // namespace chunkhit
