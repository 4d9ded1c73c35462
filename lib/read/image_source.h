// What a reader reads: packs, parts or other HDF5 files, opened and numbered as one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/chunk_set.h"
#include "chunkhit/pack.h"
#include "read/joined_classes.h"
#include "read/pack_source.h"

namespace chunkhit {

/// Opened sources with their labels.
class ImageSource {
 public:
  /// Throws bad_data when a source is damaged, is empty, or differs from the first one in shape or kind of
  /// labels. Classes are joined by name (JoinedClasses).
  ImageSource(const std::vector<std::string>& paths, const Hdf5Names& names);
  [[nodiscard]] const ChunkSet& chunks() const { return chunks_; }
  /// Of the first source; of several, `classes` are those of all.
  [[nodiscard]] const PackInfo& info() const { return info_; }
  [[nodiscard]] std::uint64_t size() const { return chunks_.sample_count(); }
  /// The numbers a sample has as its label; 0 for class ids.
  [[nodiscard]] std::size_t label_columns() const { return label_columns_; }
  /// A sample's class id in `info().classes`, -1 where there is none.
  [[nodiscard]] std::int64_t label(std::uint64_t sample) const;
  [[nodiscard]] std::span<const float> label_values(std::uint64_t sample) const;

 private:
  ImageSource(const std::vector<PackSource>& sources, const Hdf5Names& names);

  std::vector<SourceParts> sources_;  // filled while chunks_ is made
  ChunkSet chunks_;
  PackInfo info_;
  JoinedClasses classes_;
  std::size_t label_columns_ = 0;
};

}  // namespace chunkhit
