// users.csv and items.csv: the ids of a pack's rows and columns. Layout: schemas/matrix-manifest.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv_reader.h"
#include "base/file.h"
#include "base/hash.h"
#include "manifest/manifest.h"

namespace chunkhit {

inline constexpr std::string_view kUsersHeader = "row,ratings,user\n";
inline constexpr std::string_view kItemsHeader = "column,ratings,item\n";

/// A list that is complete on disk; it exists once its file is published.
struct CompleteList {
  FileRecord record;
  PendingFile file;
};

/// Writes a list in pieces, so that it may be larger than memory.
class IdListWriter {
 public:
  /// Begins `folder`/`name` with one of the headers; throws cannot_write.
  IdListWriter(const std::string& folder, std::string_view name, std::string_view header);
  /// Appends the next row or column: its ratings (in X, for training) and its id.
  void add(std::uint64_t ratings, std::string_view id);
  [[nodiscard]] CompleteList complete();

 private:
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
  /// Throws bad_data when the stream does not begin with the header; `name` stands in messages.
  IdListReader(std::string name, ByteSource source, std::string_view header = kItemsHeader);
  /// Reads the next column or row; false at the end. Throws bad_data for anything else.
  [[nodiscard]] bool next();
  [[nodiscard]] std::uint64_t ratings() const { return ratings_; }
  /// The item's or user's id, valid until the next call.
  [[nodiscard]] std::string_view id() const { return fields_[2]; }
  /// Bytes of the line, quotes aside.
  [[nodiscard]] std::size_t line_bytes() const {
    return fields_[0].size() + fields_[1].size() + fields_[2].size() + 3;
  }
  /// Throws bad_data with the file's name and the line.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  CsvReader rows_;
  std::string_view header_;
  std::vector<std::string_view> fields_;
  std::uint64_t count_ = 0;
  std::uint64_t ratings_ = 0;
};

/// Reads how many ratings each of `column_count` items has from the bytes of an items.csv; throws bad_data.
[[nodiscard]] std::vector<std::uint64_t> parse_item_counts(std::string_view text, const std::string& path,
                                                           std::uint64_t column_count);

}  // namespace chunkhit
