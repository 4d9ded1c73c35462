// users.csv and items.csv: the ids of a pack's rows and columns. Layout: schemas/matrix-manifest.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv_reader.h"
#include "base/file.h"
#include "base/hash.h"
#include "chunkhit/pack_info.h"
#include "manifest/manifest.h"
#include "types/sample_column.h"

namespace chunkhit {

/// First columns of the lists; the names of the columns that are kept beside the ids follow.
inline constexpr std::string_view kUsersHeader = "row,ratings,user";
inline constexpr std::string_view kItemsHeader = "column,ratings,item";

/// A list that is complete on disk; it exists once its file is published.
struct CompleteList {
  FileRecord record;
  PendingFile file;
};

/// Writes a list in pieces, so that it may be larger than memory.
class IdListWriter {
 public:
  /// Begins `folder`/`name` with one of the headers and the names of kept columns; throws cannot_write.
  IdListWriter(const std::string& folder, std::string_view name, std::string_view header,
               std::span<const PackColumn> kept = {});
  /// Appends the next row or column: its ratings (in X, for training), its id, and the texts of its kept
  /// columns (SampleColumn::value_text).
  void add(std::uint64_t ratings, std::string_view id, std::span<const std::string> kept = {});
  /// Appends an item that only held-out ratings have, without a column.
  void add_unseen(std::string_view id);
  [[nodiscard]] CompleteList complete();

 private:
  void end_line();
  void write();

  std::string name_;
  PendingFile file_;
  Xxh3Stream hash_;
  std::string text_;
  std::uint64_t count_ = 0;
};

/// Reads items.csv or users.csv, an id at a time.
class IdListReader {
 public:
  /// Throws bad_data when the stream does not begin with the header; `name` stands in messages. Any names of
  /// kept columns may follow in it.
  IdListReader(std::string name, ByteSource source, std::string_view header = kItemsHeader);
  /// Reads the next column or row; false at the end. Throws bad_data for anything else.
  [[nodiscard]] bool next();
  /// Takes items without a column, too, which a list of counted items has.
  void take_unseen() { takes_unseen_ = true; }
  /// Whether the item has a column: training has it.
  [[nodiscard]] bool has_column() const { return !fields_[0].empty(); }
  [[nodiscard]] std::uint64_t ratings() const { return ratings_; }
  /// The item's or user's id, valid until the next call.
  [[nodiscard]] std::string_view id() const { return fields_[2]; }
  /// Names of the kept columns.
  [[nodiscard]] const std::vector<std::string>& kept_names() const { return kept_names_; }
  /// Their texts, valid until the next call.
  [[nodiscard]] std::span<const std::string_view> kept() const { return std::span(fields_).subspan(3); }
  /// Bytes of the line, quotes aside.
  [[nodiscard]] std::size_t line_bytes() const {
    std::size_t bytes = 0;
    for (const std::string_view field : fields_) bytes += field.size() + 1;
    return bytes;
  }
  /// Throws bad_data with the file's name and the line.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  CsvReader rows_;
  std::string_view header_;
  std::vector<std::string> kept_names_;
  std::vector<std::string_view> fields_;
  bool takes_unseen_ = false;
  std::uint64_t count_ = 0;
  std::uint64_t ratings_ = 0;
};

/// Reads one of the kept columns of a list, given its whole text and the columns that its manifest lists;
/// throws bad_data.
[[nodiscard]] SampleColumn parse_kept_column(std::string_view text, const std::string& path,
                                             std::string_view header, std::span<const PackColumn> kept,
                                             std::size_t index, std::uint64_t count);

/// Reads how many ratings each of `column_count` items has from the bytes of an items.csv; throws bad_data.
[[nodiscard]] std::vector<std::uint64_t> parse_item_counts(std::string_view text, const std::string& path,
                                                           std::uint64_t column_count);

}  // namespace chunkhit
