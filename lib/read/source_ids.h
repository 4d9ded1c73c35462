// The ids of a source's rows, or of its columns: all of them, and which row or column has one.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/chunk_set.h"
#include "chunkhit/sparse.h"

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

}  // namespace chunkhit
