// What a SparseLoader reads: packs of matrices, or single parts of them, opened and numbered as one, and the
// columns kept in their items.csv and users.csv.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/chunk_set.h"
#include "cache/shared_opening.h"
#include "chunkhit/loader.h"
#include "chunkhit/pack_info.h"
#include "chunkhit/sparse_loader.h"
#include "manifest/id_list.h"
#include "manifest/manifest.h"
#include "read/pack_source.h"
#include "types/sample_column.h"

namespace chunkhit {

/// What the ids belong to.
enum class IdAxis : std::uint8_t { row, column };

/// Views the ids of open parts. Any thread may ask.
class SourceIds {
 public:
  SourceIds(const ChunkSet& chunks, IdAxis axis);
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Empty where the source has none.
  [[nodiscard]] std::string_view operator[](std::uint64_t index) const;
  /// All of them; throws usage where the source has none.
  [[nodiscard]] SparseIds all() const;
  /// The row or column that has an id, the first of several; nothing where none has it. The first call builds
  /// the index, 11 to 22 bytes an id. Throws usage where the source has no ids, try_again where there is no
  /// memory.
  [[nodiscard]] std::optional<std::uint64_t> find(std::string_view id) const;

 private:
  void require_ids() const;
  [[nodiscard]] std::vector<std::uint64_t> make_slots() const;

  const ChunkSet& chunks_;
  IdAxis axis_;
  std::uint64_t size_;
  std::string path_without_ids_;  // the first part that has none
  mutable std::once_flag slots_made_;
  // Open addressing, at most 3/4 full: upper bits of the id's hash above its index + 1; 0 where free.
  mutable std::vector<std::uint64_t> slots_;
};

/// The lists of one axis, one behind the other, and their columns. Any thread may ask.
class ListColumns {
 public:
  /// `header` is that of the lists, `things` what they list, for messages: "item".
  ListColumns(std::string_view header, std::string things) : header_(header), things_(std::move(things)) {}
  /// Adds the next list, of `count` rows; one of a single part has neither a path nor columns.
  void add(std::string path, const FileRecord& record, std::vector<PackColumn> columns, std::uint64_t count);
  /// The columns that all lists have with the same type, in the order of the first one.
  [[nodiscard]] const std::vector<PackColumn>& columns() const { return common_; }
  /// The values of a column at indices. The first call for a column reads the lists, whose hashes it
  /// compares. Throws usage for an unknown column or an index that is too large, bad_data, try_again.
  [[nodiscard]] ColumnValues values(std::string_view name, std::span<const std::uint64_t> indices) const;

 private:
  struct List {
    std::string path;
    FileRecord record;
    std::vector<PackColumn> columns;
    std::uint64_t count = 0;
  };
  [[nodiscard]] const SampleColumn& column(const PackColumn& wanted) const;

  std::string_view header_;
  std::string things_;
  std::vector<List> lists_;
  std::vector<PackColumn> common_;
  std::uint64_t count_ = 0;
  mutable std::mutex mutex_;
  mutable std::map<std::string, SampleColumn, std::less<>> read_;  // by name, once it was asked for
};

/// Opened sources with their ids and labels.
class SparseSource {
 public:
  /// Throws bad_data when a source is damaged, is empty, or differs from the first one in items, values or
  /// labels. The rows of HDF5 are read now: of a pack's parts, the whole files' hashes are compared before
  /// that. Throws usage when ids and indices of a pack need more than `cache_bytes`, which are 64 MiB at
  /// least; 0: half of what the process may still take.
  /// Rows come with `arrays`; throws usage where they are wanted by time and the source has no times.
  /// `serves_ratings`: epochs are of ratings, which the headers of all chunks count; throws bad_data where
  /// there are none.
  SparseSource(const std::vector<std::string>& paths, std::uint64_t cache_bytes = 0, RowArrays arrays = {},
               bool serves_ratings = false);
  [[nodiscard]] const ChunkSet& chunks() const { return chunks_; }
  [[nodiscard]] const MatrixShape& matrix() const { return chunks_.matrix(); }
  [[nodiscard]] const PackInfo& info() const { return info_; }
  [[nodiscard]] std::uint64_t size() const { return chunks_.sample_count(); }
  /// The most entries that `rows` rows of one matrix can have.
  [[nodiscard]] std::uint64_t max_entries(std::uint64_t rows) const;
  [[nodiscard]] std::string_view row_id(std::uint64_t row) const;
  [[nodiscard]] std::string_view column_id(std::uint64_t column) const;
  [[nodiscard]] const SourceIds& row_ids() const { return row_ids_; }
  [[nodiscard]] const SourceIds& column_ids() const { return column_ids_; }
  /// The manifests' largest magnitude of a rating, or less than that; 0 for single parts and packs of a
  /// split.
  [[nodiscard]] float known_magnitude() const { return known_magnitude_; }
  /// Ratings of each item in the training matrices of all packs.
  [[nodiscard]] std::span<const std::uint64_t> item_counts() const { return item_counts_; }
  /// The numbers a row has as its label; 0 for none.
  [[nodiscard]] std::size_t label_columns() const { return label_columns_; }
  [[nodiscard]] std::span<const float> labels(std::uint64_t row) const;
  [[nodiscard]] const ListColumns& item_columns() const { return item_columns_; }
  [[nodiscard]] const ListColumns& user_columns() const { return user_columns_; }

 private:
  SparseSource(const OpeningScope& opening, const std::vector<PackSource>& sources, std::uint64_t cache_bytes,
               RowArrays arrays, bool serves_ratings);

  void add_columns(const std::vector<PackSource>& sources);

  float known_magnitude_ = 0;  // before chunks_, whose initializer sets it
  ChunkSet chunks_;
  SourceIds row_ids_;
  SourceIds column_ids_;
  PackInfo info_;
  std::uint64_t longest_row_ = 0;
  std::uint64_t max_nnz_ = 0;
  std::size_t label_columns_ = 0;
  std::vector<std::uint64_t> item_counts_;
  ListColumns item_columns_{kItemsHeader, "item"};
  ListColumns user_columns_{kUsersHeader, "user"};
};

}  // namespace chunkhit
