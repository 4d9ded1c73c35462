// The classes of several sources as one list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/chunk_set.h"
#include "chunkhit/pack.h"

namespace chunkhit {

/// One of the sources that are read as one, and its parts in the chunk set.
struct SourceParts {
  std::string path;
  std::size_t first = 0;
  std::size_t count = 0;
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

}  // namespace chunkhit
