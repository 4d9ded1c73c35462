// What must hold of every block of ratings, whatever the bytes were.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "chunkhit/error.h"
#include "ratings/rating_reader.h"
#include "ratings/rating_text.h"

namespace chunkhit {

inline void require(bool holds) {
  if (!holds) std::abort();
}

/// Bytes as a file that can be opened by its path.
class MemoryFile {
 public:
  explicit MemoryFile(Bytes bytes) : fd_(::memfd_create("fuzz", 0)) {
    require(fd_.is_open());
    require(::write(fd_.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }

 private:
  FileDescriptor fd_;
};

inline void check_ids(const BlockIds& ids, std::size_t rating_count, bool may_be_text) {
  require(ids.of_rating.size() == rating_count && (may_be_text || !ids.are_text()));
  if (ids.are_text()) {
    for (const std::uint32_t index : ids.of_rating) static_cast<void>(ids.texts[index]);
    return;
  }
  std::size_t next_new = 0;
  for (const std::uint32_t index : ids.of_rating) {
    require(index <= next_new);
    next_new += index == next_new ? 1 : 0;
  }
  require(next_new == ids.numbers.size());
  for (const std::int64_t number : ids.numbers) require(number >= 0);
}

/// Reads all blocks that `open` leads to, unless it or the reading ends in bad_data; gives up on files that
/// go on for long (a few bytes can stand for a large array).
template <class Open>
void check_reader(Open open, bool ids_may_be_text = false) {
  constexpr int kMaxBlocks = 3;
  try {
    const std::unique_ptr<RatingReader> reader = open();
    RatingBlock block;
    for (int i = 0; i < kMaxBlocks && reader->next(block); ++i) {
      require(block.size() > 0 || bad_line_count(block) > 0);
      check_ids(block.users, block.size(), ids_may_be_text);
      check_ids(block.items, block.size(), ids_may_be_text);
      require(block.values.empty() || block.values.size() == block.size());
      for (const float value : block.values) require(std::isfinite(value));
    }
  } catch (const Error& error) {
    require(error.code() == ErrorCode::bad_data);
  }
}

}  // namespace chunkhit
