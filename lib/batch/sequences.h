// Batches of sequences: of each row of a matrix the items of a window, in the order of their times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "chunkhit/sparse_loader.h"
#include "types/csr_rows.h"

namespace chunkhit {

/// How sequences are cut out of rows, and what a batch has of them.
struct SequenceFormat {
  std::size_t length = 0;  ///< items of a sequence, with padding
  SequenceCut cut = SequenceCut::last;
  std::uint64_t seed = 0;
  std::uint64_t column_count = 0;  ///< the padding
  std::size_t id_bytes = 4;        ///< 2 or 4
  bool has_times = false;          ///< wanted
};

/// Entries [begin, end) of a row in the order of time.
struct SequenceWindow {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Returns the window of a row of `nnz` entries in an epoch: schemas/order.md.
[[nodiscard]] SequenceWindow sequence_window(std::size_t nnz, std::uint64_t row, std::uint64_t epoch,
                                             const SequenceFormat& format);

/// Bytes of a block for so many rows; throws usage above kMaxDenseBatchBytes.
[[nodiscard]] std::size_t sequence_block_bytes(std::size_t rows, const SequenceFormat& format);

/// Writes the sequences of rows, whose entries are in the order of time and whose numbers in the source are
/// `numbers`, into a block of sequence_block_bytes bytes, aligned to 64.
[[nodiscard]] SequenceBatch write_sequences(std::span<const StoredRow> rows,
                                            std::span<const std::uint64_t> numbers, std::uint64_t epoch,
                                            const SequenceFormat& format, std::uint8_t* block);

}  // namespace chunkhit
