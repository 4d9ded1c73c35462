// Sparse matrices of scipy's save_npz (.npz).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ratings/entry_collector.h"
#include "ratings/npy.h"
#include "ratings/rating_reader.h"

namespace chunkhit {

/// Reads csr, csc and coo matrices without holding their arrays. Ids are rows and columns, from 0.
class NpzReader : public RatingReader {
 public:
  /// Reads what the arrays are; throws bad_data.
  NpzReader(const std::string& path, bool transpose);
  NpzReader(const NpzReader&) = delete;
  NpzReader& operator=(const NpzReader&) = delete;
  [[nodiscard]] bool next(RatingBlock& block) override;

 private:
  void open_arrays();
  [[nodiscard]] bool has(const char* name) const { return arrays_.contains(name); }
  [[nodiscard]] NpyArray& array(const char* name);
  /// An array of one dimension.
  [[nodiscard]] NpyArray& list(const char* name);
  [[nodiscard]] std::string read_format();
  void read_shape(const std::string& format);
  [[nodiscard]] EntrySource open_compressed(bool by_columns);
  [[nodiscard]] EntrySource open_coordinates();
  void require_count(const char* name, std::uint64_t expected);
  [[noreturn]] void refuse(const std::string& what) const;

  std::string path_;
  std::map<std::string, NpyArray, std::less<>> arrays_;
  ArrayShape shape_;
  std::uint64_t found_columns_ = 0;
  bool transpose_;
  bool at_end_ = false;
  EntryCollector collector_;
  EntrySource entries_;
};

}  // namespace chunkhit
