#include "pack/ratings/sparse_memory.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "ratings/id_map.h"
#include "ratings/rating_store.h"

namespace chunkhit {
namespace {

constexpr std::size_t kMinBlockBytes = 32 << 10;
constexpr std::size_t kMaxBlockBytes = 4 << 20;
/// Memory of a block as a multiple of its text, if every line has new ids: text, ratings, numbered ids.
constexpr std::uint64_t kBlockCopies = 6;
/// Least memory for ratings, and for rows in work, however small the limit is.
constexpr std::uint64_t kMinRatingBytes = 64 << 10;
/// Of a user beside the table of ids: flags and order of rows (16), and what a part and its index hold while
/// they are written and read again.
constexpr std::uint64_t kUserBytes = 110;
/// Of an item: flags, columns and counts (40), its name in each of the lists of a part and its index.
constexpr std::uint64_t kItemBytes = 150;
/// Copies of an id's text while a part is written.
constexpr std::uint64_t kTextCopies = 3;
/// A count of each item by each thread.
constexpr std::uint64_t kItemThreadBytes = 4;
/// Of a long row: as it is made, or its columns and values, its block and what is compressed of it.
constexpr std::uint64_t kLongRowBytes = kRowWorkBytes + 8;

/// Copies of the labels: as they are read, and as a table by user.
constexpr std::uint64_t kLabelCopies = 2;
/// Copies of a table of columns: as it was read, and with what a part holds of it.
constexpr std::uint64_t kColumnCopies = 2;

}  // namespace

std::uint64_t SparseMemory::max_block_share() const {
  return (2ull * threads_ + 1) * kBlockCopies * kMaxBlockBytes;
}

std::uint64_t SparseMemory::block_share() const { return std::min(memory_bytes_ / 4, max_block_share()); }

/// The inverse of block_share: the limit that has room for `ids` bytes of ids beside blocks and ratings.
double SparseMemory::limit_for(double ids) const {
  const double rest = ids + 2 * static_cast<double>(kMinRatingBytes);
  return std::min(rest * 4 / 3, rest + static_cast<double>(max_block_share()));
}

std::size_t SparseMemory::block_bytes() const {
  const std::uint64_t blocks = 2ull * threads_ + 1;
  return std::clamp<std::size_t>(block_share() / (blocks * kBlockCopies), kMinBlockBytes, kMaxBlockBytes);
}

std::uint64_t SparseMemory::small_ids() const {
  constexpr std::uint64_t kShares = 16;
  return std::bit_floor(
      std::clamp(memory_bytes_ / kShares / sizeof(std::uint32_t), SmallIds::kEnd, SmallIds::kMaxEnd));
}

std::uint64_t SparseMemory::id_bytes(const IdMap& users, const IdMap& items) const {
  const std::uint64_t packing = users.kept_bytes() + users.size() * kUserBytes + items.kept_bytes() +
                                items.size() * (kItemBytes + kItemThreadBytes * threads_) +
                                (users.text_bytes() + items.text_bytes()) * kTextCopies;
  return std::max(packing, users.memory_bytes() + items.memory_bytes()) + listed_bytes(beside_) +
         beside_.label_bytes * kLabelCopies + beside_.user_bytes * users.size();
}

std::uint64_t SparseMemory::listed_bytes(const BesideIds& listed) const {
  return listed.listed_ids * (kItemBytes + kItemThreadBytes * threads_) +
         listed.listed_text_bytes * kTextCopies + listed.column_bytes * kColumnCopies;
}

void SparseMemory::check_listed(const std::string& flag, const BesideIds& listed,
                                const ReadShare& read) const {
  const std::uint64_t bytes = listed_bytes(listed);
  if (bytes + block_share() + 2 * kMinRatingBytes <= memory_bytes_) return;
  refuse("the " + count_text(listed.listed_ids) + " ids of " + flag, bytes, read);
}

/// Stored ratings get a third of what ids and blocks leave: rows in work need memory as well.
std::uint64_t SparseMemory::rating_bytes(std::uint64_t id_bytes) const {
  const std::uint64_t taken = std::min(memory_bytes_, id_bytes + block_share());
  return std::max(kMinRatingBytes, (memory_bytes_ - taken) / 3);
}

void SparseMemory::check_ids(const IdMap& users, const IdMap& items, const ReadShare& read) const {
  const std::uint64_t ids = id_bytes(users, items);
  const std::uint64_t needed = ids + block_share() + 2 * kMinRatingBytes;
  if (needed <= memory_bytes_) return;
  std::string what = count_text(users.size(), "user") + " and " + count_text(items.size(), "item");
  if (beside_.label_bytes > 0) what += " with the rows' labels";
  if (beside_.listed_ids > 0) what += " beside " + count_text(beside_.listed_ids, "listed id");
  if (beside_.column_bytes > 0) what += " beside the columns of items and users";
  refuse(what, ids, read);
}

/// Suggests a limit by extrapolating from the share of the input that was read so far.
void SparseMemory::refuse(const std::string& what, std::uint64_t bytes, const ReadShare& read) const {
  std::string text =
      "`memory_bytes` " + bytes_text(static_cast<double>(memory_bytes_)) + " cannot hold " + what;
  if (read.share && *read.share < 1) {
    text += ", which are those of the first " +
            number_text(std::max(0.1, std::round(*read.share * 1000) / 10)) + " % of " +
            (read.input.empty() ? "the input" : read.input);
    throw_usage(text + ": give `memory_bytes` " +
                memory_text(limit_for(static_cast<double>(bytes) / std::max(*read.share, 1e-3))));
  }
  text += read.share ? "" : ", which were read so far of " + read.input;
  const double all = limit_for(static_cast<double>(bytes) * (read.share ? 1 : 2));
  throw_usage(text + ": give `memory_bytes` " + memory_text(all) + (read.share ? "" : " or more"));
}

void SparseMemory::check_row(std::uint64_t id_bytes, std::uint64_t ratings, bool has_times,
                             const std::string& user) const {
  const std::uint64_t row = ratings * (kLongRowBytes + (has_times ? kTimedRowWorkBytes - kRowWorkBytes : 0));
  if (id_bytes + row <= memory_bytes_) return;
  throw_usage("`memory_bytes` " + bytes_text(static_cast<double>(memory_bytes_)) + " cannot hold the " +
              count_text(ratings, "rating") + " of user " + user +
              " and what they are sorted with: give `memory_bytes` " +
              memory_text(static_cast<double>(id_bytes + row) * 1.05));
}

}  // namespace chunkhit
