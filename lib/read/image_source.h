// What a reader of images reads: packs, parts or external HDF5 files, opened and numbered as one, their
// classes joined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/chunk_set.h"
#include "cache/shared_opening.h"
#include "chunkhit/image_loader.h"
#include "chunkhit/pack_info.h"
#include "read/pack_source.h"

namespace chunkhit {

/// One of the sources that are read as one, or of the packs in a merged one, and its parts in the chunk set.
struct SourceParts {
  std::string path;
  std::size_t first = 0;
  std::size_t count = 0;
  std::vector<std::string> classes{};     ///< names of a merged pack's classes; else its parts have them
  std::vector<std::int64_t> class_ids{};  ///< ids in a merged pack, by own id
};

/// Gives the classes of all sources one numbering.
class JoinedClasses {
 public:
  /// Joins by name: the first source's ids stay, names that it lacks follow in the order of the sources.
  /// Where no source has names, equal ids are the same class. Throws bad_data, naming both, where one has
  /// names and another has ids only. Sources without labels have no say.
  JoinedClasses(const ChunkSet& chunks, std::span<const SourceParts> sources);
  /// The id that a part's own id has here.
  [[nodiscard]] std::int64_t id(std::size_t part, std::int64_t own_id) const {
    if (ids_.empty()) return own_id;
    const std::vector<std::int64_t>& ids = ids_[source_of_part_[part]];
    return own_id >= 0 && static_cast<std::size_t>(own_id) < ids.size()
               ? ids[static_cast<std::size_t>(own_id)]
               : own_id;
  }
  /// All classes with the samples of all sources; `first` are the first source's, some without samples.
  [[nodiscard]] std::vector<PackClass> count(const ChunkSet& chunks,
                                             const std::vector<PackClass>& first) const;

 private:
  void join(const ChunkSet& chunks, std::span<const SourceParts> sources);

  std::vector<std::string> names_;
  std::vector<std::vector<std::int64_t>> ids_;  // by source and own id; empty where all ids stay
  std::vector<std::size_t> source_of_part_;
};

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
  /// One of the paths, and its chunks among all.
  struct PathChunks {
    std::string path;
    std::uint64_t first_chunk = 0;
    std::uint64_t chunk_count = 0;
  };
  [[nodiscard]] const std::vector<PathChunks>& paths() const { return paths_; }
  /// The numbers a sample has as its label; 0 for class ids.
  [[nodiscard]] std::size_t label_columns() const { return label_columns_; }
  /// A sample's class id in `info().classes`, -1 where there is none.
  [[nodiscard]] std::int64_t label(std::uint64_t sample) const;
  [[nodiscard]] std::span<const float> label_values(std::uint64_t sample) const;
  /// As in ImageLoader.
  [[nodiscard]] std::string_view key(std::uint64_t sample) const;
  [[nodiscard]] ColumnValues column(std::string_view name, std::span<const std::uint64_t> samples) const;

 private:
  ImageSource(const OpeningScope& opening, const std::vector<PackSource>& sources, const Hdf5Names& names);

  std::vector<SourceParts> sources_;  // before chunks_, whose initializer fills it
  std::vector<PathChunks> paths_;     // likewise
  ChunkSet chunks_;
  PackInfo info_;
  JoinedClasses classes_;
  std::size_t label_columns_ = 0;
};

}  // namespace chunkhit
