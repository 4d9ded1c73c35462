// What a run of pack-sparse holds, and what of it fits into --memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "input/id_map.h"

namespace chunkhit {

/// How much was read when something did not fit.
struct ReadShare {
  std::string input;            ///< the file that is being read
  std::optional<double> share;  ///< of all inputs; not given where that is not known
};

/// Shares out --memory: ids, blocks of text in work, ratings, and rows in work. Beside it the program itself
/// takes about 40 MB.
class SparseMemory {
 public:
  SparseMemory(std::uint64_t memory_bytes, std::uint32_t threads)
      : memory_bytes_(memory_bytes), threads_(threads) {}
  /// Text that is parsed at a time: less than usual where the limit is small or there are many threads.
  [[nodiscard]] std::size_t block_bytes() const;
  /// What the ids take at most while they are read and packed.
  [[nodiscard]] std::uint64_t id_bytes(const IdMap& users, const IdMap& items) const;
  /// What is left for ratings beside ids; the same again is left for rows in work.
  [[nodiscard]] std::uint64_t rating_bytes(std::uint64_t id_bytes) const;
  /// Throws usage, with a limit that would do, when these ids and a few ratings do not fit.
  void check_ids(const IdMap& users, const IdMap& items, const ReadShare& read) const;
  /// The same for the ratings of one user, which are worked on together.
  void check_row(std::uint64_t id_bytes, std::uint64_t ratings, bool has_times,
                 const std::string& user) const;

 private:
  [[nodiscard]] std::uint64_t max_block_share() const;
  [[nodiscard]] std::uint64_t block_share() const;
  /// A limit that holds so many bytes of ids.
  [[nodiscard]] double limit_for(double id_bytes) const;

  std::uint64_t memory_bytes_;
  std::uint32_t threads_;
};

/// Bytes as --memory takes them, rounded up: "192M", "3G".
[[nodiscard]] std::string memory_text(double bytes);

}  // namespace chunkhit
