// Batches of rows of user-item matrices, dense or CSR, that are always ready.
#pragma once

#include <chunkhit/epoch_range.h>
#include <chunkhit/error.h>
#include <chunkhit/export.h>
#include <chunkhit/pack.h>
#include <chunkhit/reader.h>

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

/// What a batch of rows is handed out as.
enum class SparseFormat {
  dense_f32,  ///< (rows, columns) floats
  dense_f16,  ///< (rows, columns) IEEE 754 half floats, as their bits; an error for what exceeds 65504
  dense_u8,   ///< (rows, columns) numbers as the pack stores them: a rating is one times the pack's scale
  csr,        ///< indptr, indices and float values in one piece of memory
};

/// By what each row is divided; a row of zeros stays.
enum class RowNorm { none, l1, l2 };

struct SparseLoaderOptions {
  std::size_t batch_size = 500;  ///< rows
  Shuffle shuffle = Shuffle::none;
  std::uint64_t seed = 0;
  std::uint32_t window_chunks = 64;  ///< of Shuffle::window; part of the order
  std::uint32_t rank = 0;            ///< which of world_size readers this is
  std::uint32_t world_size = 1;
  RankRemainder rank_remainder = RankRemainder::pad;
  bool drop_last = false;  ///< leave out a last batch that is not full
  std::uint32_t echo = 1;  ///< how often each fetched block of echo · batch_size rows is used
  SparseFormat format = SparseFormat::dense_f32;
  bool binarize = false;              ///< every entry is 1
  float scale = 1;                    ///< not 0; entries are multiplied with it, after binarize
  RowNorm normalize = RowNorm::none;  ///< then each row is divided by its norm
  bool held_out = true;               ///< serve the held-out matrix, too, where the pack has one
  Cache cache = Cache::automatic;
  /// For rows; ids and indices of the shards of each pack may take as much, and 64 MiB at least. 0: half of
  /// what the process may still take.
  std::uint64_t cache_bytes = 0;
  std::uint32_t threads = 0;   ///< 0: all allowed CPUs
  std::uint32_t prefetch = 4;  ///< batches made ahead
  /// Whole HDF5 parts of ours are always checked when they are opened: damage there is an error, never
  /// skipped.
  CheckHashes check_hashes = CheckHashes::first_use;
  OnCorrupt on_corrupt = OnCorrupt::fail;
  BatchAllocator allocator{};
};

/// Rows in CSR form, valid as long as their batch. The three arrays lie in one piece of memory, `block`, in
/// this order, each at a multiple of 64 bytes from its begin, so that one copy moves them.
struct CsrBatch {
  std::span<const std::int32_t> indptr;   ///< rows + 1, begins with 0
  std::span<const std::int32_t> indices;  ///< columns, ascending in a row
  std::span<const float> values;
  std::span<const std::uint8_t> block;
};

/// One matrix of a batch.
class CHUNKHIT_API SparseMatrix {
 public:
  [[nodiscard]] std::size_t row_count() const { return row_count_; }
  [[nodiscard]] std::size_t column_count() const { return column_count_; }
  [[nodiscard]] std::size_t nnz() const { return nnz_; }
  [[nodiscard]] SparseFormat format() const { return format_; }
  /// The rows one after the other, (row_count, column_count). Throw usage when the loader gives another form.
  [[nodiscard]] std::span<const float> dense_f32() const;
  [[nodiscard]] std::span<const std::uint16_t> dense_f16() const;
  [[nodiscard]] std::span<const std::uint8_t> dense_u8() const;
  /// The same, to be written to: the memory is cleared as a whole before it is used again.
  [[nodiscard]] std::span<float> writable_dense_f32() const;
  [[nodiscard]] std::span<std::uint16_t> writable_dense_f16() const;
  [[nodiscard]] std::span<std::uint8_t> writable_dense_u8() const;
  [[nodiscard]] const CsrBatch& csr() const;

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
  bool* was_written_ = nullptr;
};

/// A batch; all spans are valid until the next one is asked for. The matrix is X; where the pack pairs it
/// with held-out ratings, they have the same rows.
struct SparseBatch : SparseMatrix {
  std::span<const std::uint64_t> rows;  ///< which rows of the source these are
  std::span<const float> labels;        ///< (rows, label columns), where the source has labels
  SparseMatrix held_out;                ///< of no rows where there is none
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;  ///< in the epoch, of this rank
};

/// The ids of all rows or of all columns, in their order: numbers where every one is a 64-bit integer as
/// integers are written ("7", not "007"), else texts. Only one of the two is filled.
struct SparseIds {
  std::vector<std::int64_t> integers;
  std::vector<std::string_view> texts;  ///< views of the loader's or the dataset's memory
};

/// Rows that were copied out of a source, in CSR form.
struct SparseRows {
  std::vector<std::int64_t> indptr;   ///< rows + 1, begins with 0
  std::vector<std::int32_t> indices;  ///< columns, ascending in a row
  std::vector<float> values;
};

struct SparseDatasetOptions {
  Cache cache = Cache::automatic;
  /// For rows; ids and indices of the shards of each pack may take as much, and 64 MiB at least. 0: half of
  /// what the process may still take.
  std::uint64_t cache_bytes = 0;
  /// Whole HDF5 parts of ours are always checked when they are opened: damage there is an error, never
  /// skipped.
  CheckHashes check_hashes = CheckHashes::first_use;
};

/// Which matrix of a pack.
enum class MatrixName { x, held_out };

/// Random access to the rows of a source. Any thread may read.
class CHUNKHIT_API SparseDataset {
 public:
  explicit SparseDataset(const std::string& path, const SparseDatasetOptions& options = {});
  explicit SparseDataset(const std::vector<std::string>& paths, const SparseDatasetOptions& options = {});
  SparseDataset(SparseDataset&&) noexcept;
  SparseDataset& operator=(SparseDataset&&) noexcept;
  ~SparseDataset();

  [[nodiscard]] std::uint64_t size() const;          ///< rows of the source
  [[nodiscard]] std::uint64_t column_count() const;  ///< items
  [[nodiscard]] bool has_held_out() const;
  [[nodiscard]] const PackInfo& info() const;  ///< of the (first) source
  /// Copies rows in the order that is asked for. Throws usage for a row ≥ size(), or held_out where there is
  /// none; bad_data for a damaged chunk.
  [[nodiscard]] SparseRows read(std::span<const std::uint64_t> rows, MatrixName matrix = MatrixName::x) const;
  /// The numbers a row has as its label; none where the source has no labels.
  [[nodiscard]] std::span<const float> labels(std::uint64_t row) const;
  /// The user's own id, the item's own id; views of the dataset's memory, empty where the source has none.
  /// Bytes as they lie: UTF-8 in a pack, perhaps not in an external file.
  [[nodiscard]] std::string_view row_id(std::uint64_t row) const;
  [[nodiscard]] std::string_view column_id(std::uint64_t column) const;
  /// The ids of all rows, of all columns. Throw usage where the source has none: a matrix of another program
  /// may have no names.
  [[nodiscard]] SparseIds row_ids() const;
  [[nodiscard]] SparseIds column_ids() const;
  /// The row of a user's id, the column of an item's; the first where packs repeat an id, nothing where none
  /// has it. The first call builds the index, 11 to 22 bytes an id beside the ids; any thread may ask. Throw
  /// as `row_ids`, or try_again where there is no memory for the index.
  [[nodiscard]] std::optional<std::uint64_t> row_of(std::string_view id) const;
  [[nodiscard]] std::optional<std::uint64_t> column_of(std::string_view id) const;

 private:
  struct CHUNKHIT_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

/// Gives the batches of one epoch after the other, as ImageLoader does: order, ranks, state, statistics,
/// errors and how HDF5 files are opened are the same.
class CHUNKHIT_API SparseLoader {
 public:
  using Epoch = EpochRange<SparseLoader, SparseBatch>;

  /// Opens a pack of pack-sparse (its folder or manifest) or a single part; several with the same items in
  /// the same columns (pack-sparse --reuse-ids) are read as one, in this order. Throws bad_data when one is
  /// damaged or has other items, usage when the options make no sense, or a dense batch would take more than
  /// 1 GiB.
  explicit SparseLoader(const std::string& path, const SparseLoaderOptions& options = {});
  explicit SparseLoader(const std::vector<std::string>& paths, const SparseLoaderOptions& options = {});
  SparseLoader(SparseLoader&&) noexcept;
  SparseLoader& operator=(SparseLoader&&) noexcept;
  ~SparseLoader();

  /// The batches of an epoch, from its first, or from where `restore` left it. To be iterated once.
  [[nodiscard]] Epoch epoch(std::uint64_t epoch);
  /// The next batch of the epoch that was begun last, or nothing at its end. Throws bad_data for a damaged
  /// chunk.
  [[nodiscard]] const SparseBatch* next();
  /// Waits at most so long until `next` need not; returns whether, as ImageLoader::wait.
  [[nodiscard]] bool wait(std::chrono::milliseconds at_most);
  /// Keeps the batch that was handed out last, as ImageLoader::keep.
  [[nodiscard]] std::shared_ptr<const SparseBatch> keep() const;

  [[nodiscard]] std::uint64_t size() const;          ///< rows of the source
  [[nodiscard]] std::uint64_t column_count() const;  ///< items
  [[nodiscard]] std::uint64_t batch_count() const;   ///< of a whole epoch of this rank
  [[nodiscard]] bool has_held_out() const;           ///< whether batches have a held-out matrix
  [[nodiscard]] double value_scale() const;          ///< a rating is a number of dense_u8 times this
  [[nodiscard]] const PackInfo& info() const;        ///< of the (first) source
  /// Ids, as SparseDataset has them; views of the loader's memory.
  [[nodiscard]] std::string_view row_id(std::uint64_t row) const;
  [[nodiscard]] std::string_view column_id(std::uint64_t column) const;
  [[nodiscard]] SparseIds row_ids() const;
  [[nodiscard]] SparseIds column_ids() const;
  [[nodiscard]] std::optional<std::uint64_t> row_of(std::string_view id) const;
  [[nodiscard]] std::optional<std::uint64_t> column_of(std::string_view id) const;
  /// How many ratings each item has in the training matrices of all packs, each counted once (the packs of a
  /// split have one together); empty where a source is a single part.
  [[nodiscard]] std::span<const std::uint64_t> item_counts() const;
  [[nodiscard]] MixingInfo mixing() const;
  [[nodiscard]] LoaderStats stats() const;
  void reset_stats();
  [[nodiscard]] std::string state() const;
  void restore(const std::string& state);

 private:
  struct CHUNKHIT_HIDDEN Impl;
  void release();
  std::unique_ptr<Impl> impl_;
};

/// The items that rows have: a batch's matrix, or arrays as it has them.
struct CHUNKHIT_API RowItems {
  RowItems() = default;
  explicit RowItems(const SparseMatrix& matrix);
  std::span<const std::int32_t> indptr;   ///< CSR: rows + 1, begins with 0; empty where `cells` are given
  std::span<const std::int32_t> indices;  ///< CSR: columns, ascending in a row
  std::span<const std::uint8_t> cells;    ///< dense: (rows, columns) numbers, of which an item's is not 0
  std::size_t cell_bytes = 0;             ///< dense: 4 of f32, 2 of f16, 1 of u8
};

/// Draws items by popularity, for negatives: each with a probability in proportion to count^power, by
/// Walker's alias method (Vose 1991). Equal counts draw uniformly, power 0 uniformly among the items that
/// have a count. An item may be drawn several times. Any thread may draw.
class CHUNKHIT_API PopularitySampler {
 public:
  /// Throws usage when no item has a count above 0.
  explicit PopularitySampler(std::span<const std::uint64_t> item_counts, double power = 1);
  /// Fills `items` with draws that are not among `own` (ascending columns of a row): a function of (seed,
  /// index), index being the draw's place in an endless series; uses items.size() of them. Throws usage when
  /// `own` leaves nothing to draw.
  void draw(std::span<const std::int32_t> own, std::uint64_t seed, std::uint64_t index,
            std::span<std::int32_t> items) const;
  /// Draws for a whole batch, as many for each row, one row after the other: neither items of the row's X nor
  /// held-out ones. A row's draws are a function of (seed, epoch, row of the source), whatever the batch, the
  /// rank and the threads; a row that an epoch uses again (echo) has the same ones. Throws usage when items
  /// cannot be shared out evenly, or a row has all that can be drawn, which it names; a row that has nearly
  /// all costs O(columns) once.
  void draw_batch(const SparseBatch& batch, std::uint64_t seed, std::span<std::int32_t> items) const;
  /// The same for rows of these numbers, which have the items of both.
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
