// What a run of pack-sparse holds, and what of it fits into --memory-bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ratings/id_map.h"

namespace chunkhit {

/// How much was read when something did not fit.
struct ReadShare {
  std::string input;            ///< the file that is being read
  std::optional<double> share;  ///< share of all inputs; not given where unknown
};

/// What is held beside the ids of the input.
struct BesideIds {
  std::uint64_t listed_ids = 0;  ///< items and users that files name: --reuse-ids, --test-users
  std::uint64_t listed_text_bytes = 0;
  std::uint64_t label_bytes = 0;   ///< size of the rows' labels, as they are read
  std::uint64_t user_bytes = 0;    ///< bytes a user for the counts of a given split
  std::uint64_t column_bytes = 0;  ///< tables of columns of items and of users
};

/// Shares out --memory-bytes: ids, blocks of text in work, ratings, and rows in work. Beside it the program
/// itself takes about 40 MB.
class SparseMemory {
 public:
  SparseMemory(std::uint64_t memory_bytes, std::uint32_t threads)
      : memory_bytes_(memory_bytes), threads_(threads) {}
  /// Text that is parsed at a time: less than usual where the limit is small or there are many threads.
  [[nodiscard]] std::size_t block_bytes() const;
  /// End of the integers that a table of 4 bytes each numbers: those of users and items take at most an 8th
  /// of the limit.
  [[nodiscard]] std::uint64_t small_ids() const;
  /// What is held beside ids from now on.
  [[nodiscard]] BesideIds& beside() { return beside_; }
  /// Throws usage, with a limit that would do, when ids that a file lists do not fit. `read`: of that file.
  void check_listed(const std::string& flag, const BesideIds& listed, const ReadShare& read) const;
  /// What the ids, and all that is held beside them, take at most while they are read and packed.
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

  [[nodiscard]] std::uint64_t listed_bytes(const BesideIds& listed) const;
  [[noreturn]] void refuse(const std::string& what, std::uint64_t bytes, const ReadShare& read) const;

  std::uint64_t memory_bytes_;
  std::uint32_t threads_;
  BesideIds beside_;
};

}  // namespace chunkhit
