// Columns that the lists of packs keep beside the ids of items and users: items.csv and users.csv.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chunkhit/loader.h"
#include "manifest/manifest.h"
#include "types/sample_column.h"

namespace chunkhit {

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

}  // namespace chunkhit
