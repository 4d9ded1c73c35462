// Loaders of user-item matrices: batches of rows, dense or CSR.
#pragma once

#include <chunkhit/error.h>
#include <chunkhit/loader.h>
#include <chunkhit/pack_info.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chunkhit {

/// Format of a batch of rows. Where a pack keeps all ratings of a user and item (`duplicates` keep), csr has
/// them as stored, neighbours in the order of time; a dense cell is their sum, 1 where they are binarized;
/// sequences have each of them in its place, and pairs as a sample of its own.
enum class SparseFormat {
  dense_f32,  ///< (rows, columns) floats
  dense_f16,  ///< (rows, columns) IEEE 754 half floats, as bits; values above 65504 are an error
  dense_u8,   ///< (rows, columns) numbers as stored: a rating is the number times the pack's scale
  csr,        ///< indptr, indices and float values in one block of memory
  sequences,  ///< (rows, length) items in the order of their times, which the pack must keep (keep_times)
  pairs,      ///< ratings one by one, with items that their users have not rated: a sample is a rating
};

/// Which items of a row with more than `length` are its sequence.
enum class SequenceCut {
  last,     ///< the last ones
  sliding,  ///< in each epoch the window before that of the epoch before, and from the last one again
  random,   ///< any `length` items in a row, by (seed, epoch, row)
};

/// Norm by which each row is divided; all-zero rows stay zero.
enum class RowNorm { none, l1, l2 };

struct SparseLoaderOptions {
  std::size_t batch_size = 500;  ///< rows; of pairs ratings
  Shuffle shuffle = Shuffle::none;
  std::uint64_t seed = 0;
  std::uint32_t window_chunks = 64;  ///< chunks per window of Shuffle::window; part of the order
  std::uint32_t rank = 0;            ///< 0..world_size - 1
  std::uint32_t world_size = 1;
  /// Streams that an epoch of Shuffle::none or window is divided into, each with its own chunks: 0 (one a
  /// rank), a multiple of world_size, or 1, in which every rank visits every chunk. A rank's streams give
  /// equal parts of batch_size · echo. Without echo, batches of all ranks together have the same samples for
  /// each world_size that divides it, where batch_size · world_size is the same.
  std::uint32_t streams = 0;
  RankRemainder rank_remainder = RankRemainder::pad;
  bool drop_last = false;  ///< drop the last batch if it is not full
  /// Which rows an epoch has, and how often; rows have no classes. Of pairs ratings, which are numbered row
  /// by row.
  SamplerSpec sampler{};
  std::uint32_t echo = 1;  ///< data echoing: uses of each fetched block of echo · batch_size rows
  SparseFormat format = SparseFormat::dense_f32;
  bool binarize = false;              ///< replace every entry by 1
  float scale = 1;                    ///< factor of every entry, after binarize; finite and not 0
  RowNorm normalize = RowNorm::none;  ///< normalization of each row, after scale
  bool held_out = true;               ///< also return the held-out matrix, if the pack has one
  /// csr, sequences: also return the time of each rating, if the pack keeps them (keep_times)
  bool times = true;
  /// pairs: the same. Not by default, as decoding and memory of a rating's 8 bytes are to be paid for
  bool pair_times = false;
  std::uint32_t length = 50;            ///< sequences: items of a row
  SequenceCut cut = SequenceCut::last;  ///< sequences: which items; held-out ones are the last
  std::uint32_t negatives = 0;          ///< pairs: items drawn with each rating, with replacement
  /// pairs: an item is drawn with a probability proportional to (its ratings)^power, as PopularitySampler
  /// does; 0: all items alike
  double negatives_power = 0;
  Cache cache = Cache::automatic;
  /// Memory for rows. Ids and indices of each pack's shards may take as much again, at least 64 MiB. 0: half
  /// of the memory available to the process.
  std::uint64_t cache_bytes = 0;
  /// Local folder that keeps chunks of remote packs (schemas/disk-cache.md), shared by the processes of a
  /// machine; empty: none.
  std::string cache_dir{};
  std::uint64_t cache_disk_bytes = 0;  ///< at most in cache_dir; 0: half of it and the free disk
  /// Memory for chunks, decoding and batches together; cache_bytes is what the batches leave of it, if it is
  /// not given. Automatic prefetch fills at most a quarter of it with batches. 0: no limit beside
  /// cache_bytes; automatic prefetch takes an eighth of the memory available to the process.
  std::uint64_t memory_bytes = 0;
  /// Worker threads; 0: all available CPUs, divided by LOCAL_WORLD_SIZE, which torchrun sets; kAutomatic:
  /// chosen while running.
  std::uint32_t threads = 0;
  std::uint32_t prefetch = 4;  ///< batches prepared in advance; kAutomatic: chosen while running
  /// HDF5 parts of a pack are always checked as a whole when they are opened: damage is an error, never
  /// skipped.
  CheckHashes check_hashes = CheckHashes::always;
  OnCorrupt on_corrupt = OnCorrupt::fail;
  BatchAllocator allocator{};
};

/// Rows in CSR format, valid as long as their batch. The arrays are in one memory block, `block`, in this
/// order, each at a multiple of 64 bytes from its start, so that one copy moves them.
struct CsrBatch {
  std::span<const std::int32_t> indptr;   ///< rows + 1 offsets, the first is 0
  std::span<const std::int32_t> indices;  ///< columns, ascending within a row; equal ones by time
  std::span<const float> values;
  std::span<const std::int64_t> times;  ///< of the entries, as in the input; empty if they are not kept
  std::span<const std::uint8_t> block;
};

/// Sequences of rows, valid as long as their batch. Equal times are in the input's order. A row with fewer
/// than `length` items has the padding column_count() in front, which is no item; times are 0 there. The
/// arrays are in one memory block, as in CsrBatch.
struct SequenceBatch {
  std::size_t length = 0;
  std::span<const std::int64_t> items;    ///< (rows, length) columns
  std::span<const std::int64_t> lengths;  ///< (rows): items of each sequence, without padding
  std::span<const std::int64_t> times;    ///< (rows, length); empty if they are not wanted
  std::span<const std::uint8_t> block;
};

/// Ratings one by one, valid as long as their batch. Negatives are items that neither the user's row of X has
/// nor the held-out one, if that is wanted (held_out). They are a function of (seed, epoch, rating), the same
/// for any order, batches, ranks and threads. The arrays are in one memory block, as in CsrBatch.
struct PairBatch {
  std::span<const std::int64_t> users;      ///< (pairs): rows of the source
  std::span<const std::int64_t> items;      ///< (pairs): columns
  std::span<const float> values;            ///< (pairs): ratings
  std::span<const std::int64_t> negatives;  ///< (pairs, negatives): columns
  std::span<const std::int64_t> times;      ///< (pairs); empty if they are not wanted or not kept
  std::span<const std::uint8_t> block;
};

/// One matrix of a batch.
class CHUNKHIT_API SparseMatrix {
 public:
  [[nodiscard]] std::size_t row_count() const { return row_count_; }
  [[nodiscard]] std::size_t column_count() const { return column_count_; }
  [[nodiscard]] std::size_t nnz() const { return nnz_; }
  [[nodiscard]] SparseFormat format() const { return format_; }
  /// Return all rows, (row_count, column_count). Throw usage if the loader's format is another one.
  [[nodiscard]] std::span<const float> dense_f32() const;
  [[nodiscard]] std::span<const std::uint16_t> dense_f16() const;
  [[nodiscard]] std::span<const std::uint8_t> dense_u8() const;
  /// Return writable cells; the whole memory is cleared before its next use.
  [[nodiscard]] std::span<float> writable_dense_f32() const;
  [[nodiscard]] std::span<std::uint16_t> writable_dense_f16() const;
  [[nodiscard]] std::span<std::uint8_t> writable_dense_u8() const;
  [[nodiscard]] const CsrBatch& csr() const;
  [[nodiscard]] const SequenceBatch& sequences() const;
  [[nodiscard]] const PairBatch& pairs() const;

 private:
  friend class SparseBatchAssembler;
  void require(SparseFormat format) const;
  template <class Cell>
  [[nodiscard]] std::span<Cell> writable_cells(SparseFormat format) const;
  SparseFormat format_ = SparseFormat::dense_f32;
  std::size_t row_count_ = 0;
  std::size_t column_count_ = 0;
  std::size_t nnz_ = 0;
  std::uint8_t* memory_ = nullptr;
  CsrBatch csr_;
  SequenceBatch sequences_;
  PairBatch pairs_;
  bool* was_written_ = nullptr;
};

/// Batch of rows. All spans are valid until the next batch is requested. The base class is the matrix X.
struct SparseBatch : SparseMatrix {
  std::span<const std::uint64_t> rows;  ///< indices of the rows in the source; of pairs, of each one's
  std::span<const float> labels;        ///< (rows, label columns); empty without labels
  SparseMatrix held_out;                ///< held-out ratings of the same rows; no rows without them
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;  ///< index of the batch in this rank's epoch
};

/// Ids of all rows or of all columns, in order: integers if every id is a 64-bit integer in canonical form
/// ("7", not "007"), else texts. Only one of the two is filled.
struct SparseIds {
  std::vector<std::int64_t> integers;
  std::vector<std::string_view> texts;  ///< views of memory of the loader or dataset
};

extern template class CHUNKHIT_API Loader<SparseBatch>;

/// Loads batches of rows.
class CHUNKHIT_API SparseLoader : public Loader<SparseBatch> {
 public:
  /// Opens a pack of pack-sparse (its folder or manifest) or a single part. Several paths are concatenated;
  /// they must have the same items in the same columns (pack-sparse --reuse-ids). Throws bad_data if a source
  /// is damaged or has other items; usage if options contradict each other, sequences lack times or a
  /// batch would exceed 1 GiB. Batches of pairs throw usage, naming the row, where it has all items that can
  /// be drawn as negatives. Opening for pairs reads the header of every chunk, which counts its ratings.
  explicit SparseLoader(const std::string& path, const SparseLoaderOptions& options = {});
  explicit SparseLoader(const std::vector<std::string>& paths, const SparseLoaderOptions& options = {});

  [[nodiscard]] std::uint64_t column_count() const;  ///< items
  [[nodiscard]] bool has_held_out() const;           ///< whether batches have a held-out matrix
  [[nodiscard]] double value_scale() const;          ///< a rating is a dense_u8 number times this
  /// Ids, as in SparseDataset; views of the loader's memory.
  [[nodiscard]] std::string_view row_id(std::uint64_t row) const;
  [[nodiscard]] std::string_view column_id(std::uint64_t column) const;
  [[nodiscard]] SparseIds row_ids() const;
  [[nodiscard]] SparseIds column_ids() const;
  [[nodiscard]] std::optional<std::uint64_t> row_of(std::string_view id) const;
  [[nodiscard]] std::optional<std::uint64_t> column_of(std::string_view id) const;
  /// Return the values of a column of info().matrix().item_columns at columns of the matrix, such as the
  /// indices of a CSR batch, or of user_columns at rows, such as those of a batch. Of several sources items
  /// have the first one's values. The first call for a column reads the pack's list of items or users, of
  /// which that column stays in memory. Throw usage for an unknown column or an index that is too large,
  /// bad_data for a damaged list, try_again if it cannot be read now.
  [[nodiscard]] ColumnValues item_column(std::string_view name, std::span<const std::uint64_t> columns) const;
  [[nodiscard]] ColumnValues user_column(std::string_view name, std::span<const std::uint64_t> rows) const;
  /// Returns the number of ratings per item in the training matrices of all packs; the packs of a split share
  /// one training matrix, which counts once. Empty if a source is a single part.
  [[nodiscard]] std::span<const std::uint64_t> item_counts() const;

 private:
  struct CHUNKHIT_HIDDEN Rows;
  [[nodiscard]] const Rows& rows() const;
};

/// Items of rows: the matrix of a batch, or equal arrays.
struct CHUNKHIT_API RowItems {
  RowItems() = default;
  /// Throws usage for sequences, which are not ascending, and for pairs.
  explicit RowItems(const SparseMatrix& matrix);
  std::span<const std::int32_t> indptr;   ///< CSR: rows + 1 offsets from 0; empty if `cells` are given
  std::span<const std::int32_t> indices;  ///< CSR: columns, ascending within a row
  std::span<const std::uint8_t> cells;    ///< dense: (rows, columns) numbers, nonzero for an item of the row
  std::size_t cell_bytes = 0;             ///< dense: 4 of f32, 2 of f16, 1 of u8
};

/// Samples negative items by popularity: with probability proportional to count^power, by Walker's alias
/// method (Vose 1991). Power 0 samples uniformly among items with a count above 0. Sampling is with
/// replacement. Thread-safe.
class CHUNKHIT_API PopularitySampler {
 public:
  /// Throws usage if no item has a count above 0.
  explicit PopularitySampler(std::span<const std::uint64_t> item_counts, double power = 1);
  /// Fills `items` with samples that are not in `own` (ascending columns of a row): a function of (seed,
  /// index), where index is the position in an endless series, of which items.size() are used. Throws usage
  /// if `own` leaves nothing to sample.
  void draw(std::span<const std::int32_t> own, std::uint64_t seed, std::uint64_t index,
            std::span<std::int32_t> items) const;
  /// Samples items for a whole batch, the same number for each row, row after row, that are neither in the
  /// row's X nor held out; of sequences in the row's window. A row's samples are a function of (seed, epoch,
  /// row of the source), independent of batches, ranks and threads; a row that data echoing repeats gets the
  /// same ones. Throws usage if items.size() is no multiple of the rows, or for a row, which it names, that
  /// has all items; a row that has nearly all costs O(columns) once.
  void draw_batch(const SparseBatch& batch, std::uint64_t seed, std::span<std::int32_t> items) const;
  /// The same for the rows of these indices, which have the items of x and held_out.
  void draw_batch(std::span<const std::uint64_t> rows, const RowItems& x, const RowItems& held_out,
                  std::uint64_t seed, std::uint64_t epoch, std::span<std::int32_t> items) const;

 private:
  struct CHUNKHIT_HIDDEN OwnItems;
  [[nodiscard]] std::uint32_t draw_any(std::uint64_t seed, std::uint64_t index) const;
  void draw_row(const OwnItems& own, std::uint64_t seed, std::uint64_t index,
                std::span<std::int32_t> items) const;
  [[nodiscard]] std::vector<double> sum_weights(const OwnItems& own) const;

  std::vector<double> keep_;          // of each item: the share of its slot that is its own
  std::vector<std::uint32_t> other_;  // whose the rest is
};

}  // namespace chunkhit
