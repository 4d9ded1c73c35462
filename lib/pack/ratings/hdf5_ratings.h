// Matrices in HDF5 files of other programs → blocks of ratings.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ratings/entry_collector.h"
#include "ratings/rating_reader.h"
#include "store/part.h"

namespace chunkhit {

/// How an HDF5 file is read.
struct Hdf5RatingsSpec {
  bool transpose = false;    ///< automatic: rows are users, as AnnData has cells
  std::string hdf5_path;     ///< path of the matrix: "layers/counts", "raw/X"; empty: /X, or the only matrix
  std::string feature_type;  ///< 10x Genomics: the only type of features that is read; empty: all
  std::uint64_t memory_bytes = UINT64_MAX;  ///< memory limit for names and decoded chunks
};

class AnnDataFile;

/// Reads AnnData, 10x Genomics' files, and groups with data, indices and indptr. Ids are the names that the
/// file has for rows and columns, or their numbers from 0.
class Hdf5RatingReader : public RatingReader {
 public:
  /// Throws bad_data.
  Hdf5RatingReader(const std::string& path, const Hdf5RatingsSpec& spec);
  Hdf5RatingReader(const Hdf5RatingReader&) = delete;
  Hdf5RatingReader& operator=(const Hdf5RatingReader&) = delete;
  ~Hdf5RatingReader() override;
  [[nodiscard]] bool next(RatingBlock& block) override;

 private:
  void keep_type(const std::string& path, const std::string& type);
  [[nodiscard]] EntrySource open_entries(const std::string& path);
  [[nodiscard]] AxisIds axis_ids(const std::string& path, TextList names, const char* axis);

  std::unique_ptr<AnnDataFile> file_;
  bool transpose_;
  bool knows_columns_;
  std::uint64_t found_columns_ = 0;
  bool at_end_ = false;
  std::vector<bool> kept_columns_;  // of the type that is read; empty: all
  EntryCollector collector_;
  EntrySource entries_;
};

}  // namespace chunkhit
