// Tables of items or of users whose columns are kept beside the ids of a pack: --item-columns,
// --user-columns. Layout: schemas/item-columns.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv_reader.h"
#include "chunkhit/sparse_spec.h"
#include "listing/label_column.h"
#include "pack/ratings/pack_sparse_spec.h"
#include "pack/ratings/read_inputs.h"
#include "pack/ratings/sparse_memory.h"
#include "ratings/id_map.h"
#include "ratings/rating_fields.h"
#include "ratings/rating_packs.h"
#include "types/sample_column.h"

namespace chunkhit {

/// What a table is of, for messages.
struct ColumnTableUse {
  std::string flag;                             ///< "`item_columns`"
  std::string things;                           ///< "item"
  std::string id_name;                          ///< name of the ratings' column of ids; may be empty
  RatingField field = RatingField::item;        ///< whose usual names a column of ids may have
  const SparseMemory* memory = nullptr;         ///< null: it may take any memory
  TableHeader header = TableHeader::automatic;  ///< no: columns are named by their numbers, ids stand first
  TextQuoting quoting =
      TextQuoting::automatic;  ///< none: quotes are letters, as automatic beside the delimiter ::
  bool is_latin1 = false;
};

/// The rows of a table by their ids.
class ColumnTable {
 public:
  /// Reads a table; throws bad_data, with file and line, for one that cannot be used, usage when it does not
  /// fit into memory.
  ColumnTable(const std::string& path, ColumnTableUse use);
  [[nodiscard]] const ColumnTableUse& use() const { return use_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& id_column() const { return id_column_; }
  [[nodiscard]] std::size_t row_count() const { return ids_.size(); }
  /// The row of an id, or row_count().
  [[nodiscard]] std::size_t find(std::string_view id) const { return ids_.find(id); }
  [[nodiscard]] std::string id(std::size_t row) const { return ids_.text(static_cast<std::uint32_t>(row)); }
  /// Hash of ids, names and texts as CSV, whatever the file's delimiter and quotes.
  [[nodiscard]] std::uint64_t xxh3() const { return xxh3_; }
  [[nodiscard]] std::uint64_t held_bytes() const;

  /// Throws bad_data where the header's field of the ids is `id`, an id of the ratings: it is a row then.
  void check_header(std::string_view id) const;
  /// Throws usage where another column than that of the ids is named as that of the ratings is, which was not
  /// known before they were read.
  void check_id_column(const std::string& name_in_ratings) const;

  /// Decides the types of the columns by their texts; `has_missing`: also by a blank one, which stands for
  /// ids without a row.
  void decide_types(bool has_missing);
  [[nodiscard]] std::vector<PackColumn> types() const;
  /// The texts of a row's values for a list of ids; row_count(): of an id without a row.
  void value_texts(std::size_t row, std::vector<std::string>& texts) const;
  /// Appends a row's values to columns that have these types.
  void append_to(std::vector<SampleColumn>& columns, std::size_t row) const;

 private:
  struct Column {
    std::string name;
    TextPool texts;
    std::vector<std::uint32_t> by_row;  ///< numbers of the texts
    SampleColumn values;                ///< of these texts, once types are decided
  };
  [[nodiscard]] std::size_t find_ids(std::span<const std::string_view> header) const;
  void read_header(const CsvReader& table, std::span<const std::string_view> header);
  void read_rows(CsvReader& table, const std::function<double()>& share);
  void add_row(const CsvReader& table, std::span<const std::string_view> fields);
  void check_memory(double share) const;
  [[nodiscard]] std::string row_text(std::size_t row) const;

  ColumnTableUse use_;
  std::string name_;
  std::size_t field_count_ = 0;
  std::size_t id_field_ = 0;
  std::string id_column_;
  std::vector<std::size_t> kept_fields_;
  std::string header_text_;
  IdMap ids_;
  std::vector<Column> columns_;
  std::uint64_t id_text_bytes_ = 0;
  std::uint64_t xxh3_ = 0;
};

/// What stands beside the items and users of a run's packs.
struct ColumnTables {
  std::optional<ColumnTable> items;
  std::optional<ColumnTable> users;
  /// Reads the tables that the spec names, with the names of the ratings' columns; throws as ColumnTable.
  static ColumnTables read(const PackSparseSpec& spec, const IdColumnNames& names,
                           const SparseMemory* memory);
  /// Throws usage as ColumnTable::check_id_column.
  void check_id_columns(const IdColumnNames& names) const;
  /// Throws as ColumnTable::check_header for the ids of the ratings, whose index must be there.
  void check_headers(const IdMap& user_ids, const IdMap& item_ids) const;
  void record(RecordedIds& recorded) const;
  [[nodiscard]] std::uint64_t held_bytes() const;
  /// Decides the types once items and users are known, and counts into `stats`. Throws bad_data where hardly
  /// an id of a table is an item of the packs, or a user.
  void finish(std::span<const std::string> item_ids, const IdMap& users, const RatingPacks& packs,
              RatingStats& stats);
  /// What a report says of the tables.
  [[nodiscard]] std::vector<std::string> notices(const RatingStats& stats) const;
};

}  // namespace chunkhit
