// Ids of users and items → numbers: maps, columns of ids, missing ids; labels of rows by user.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ratings/rating_fields.h"
#include "types/rating_block.h"

namespace chunkhit {

/// The numbers of ids that are small integers, by the id itself. One thread adds them while others may look.
class SmallIds {
 public:
  static constexpr std::uint64_t kEnd = 1 << 18;
  /// Highest end, of a table that all blocks look at.
  static constexpr std::uint64_t kMaxEnd = 1 << 22;
  /// Integers from 0 below `end` are small; the table takes 4 bytes for each up to the largest.
  explicit SmallIds(std::uint64_t end = kEnd) : end_(end) {}
  [[nodiscard]] bool is_small(std::int64_t id) const { return static_cast<std::uint64_t>(id) < end_; }
  /// The number and 1 of a small id; 0: it has none.
  [[nodiscard]] std::uint32_t entry(std::int64_t id) const {
    return std::atomic_ref(entries_[static_cast<std::uint64_t>(id)]).load(std::memory_order_relaxed);
  }
  /// Has the entry of an id loaded into the CPU's cache.
  void prefetch(std::int64_t id) const {
    if (is_small(id)) __builtin_prefetch(&entries_[static_cast<std::uint64_t>(id)]);
  }
  void set_entry(std::int64_t id, std::uint32_t entry) {
    std::atomic_ref(entries_[static_cast<std::uint64_t>(id)]).store(entry, std::memory_order_relaxed);
  }
  /// Makes room; before that nobody may look.
  void reserve();
  [[nodiscard]] bool has_room() const { return entries_ != nullptr; }
  void free() { entries_.reset(); }

 private:
  struct Free {
    void operator()(std::uint32_t* entries) const { std::free(entries); }
  };
  std::uint64_t end_;
  std::unique_ptr<std::uint32_t[], Free> entries_;
};

/// Maps ids to numbers 0, 1, ... in order of first appearance. Ids are 64-bit integers, exact, or text; a map
/// holds integers until an id comes that no integer is written as, and text from then on ("7" and 7 are the
/// same id). Memory: 24 to 40 bytes an id, and the bytes of texts; twice that while it grows. Small integers
/// take 8 bytes each, and their table (1 MiB for ids up to 2^18 - 1). One thread at a time.
class IdMap {
 public:
  IdMap() = default;
  /// Integers from 0 below `small_end` need no hash.
  explicit IdMap(std::uint64_t small_end) : small_(small_end) {}
  /// The number of an id, new or known. Throws bad_data above 2^32 - 1 ids.
  std::uint32_t add(std::int64_t id);
  std::uint32_t add(std::string_view id);
  /// The same for many, several times as fast where a map does not fit the processor's caches.
  void add(std::span<const std::int64_t> ids, std::vector<std::uint32_t>& numbers);
  void add(std::span<const std::string_view> ids, std::vector<std::uint32_t>& numbers);
  /// Numbers of the ids of a block, by their index in it.
  [[nodiscard]] std::vector<std::uint32_t> add(const BlockIds& ids);
  /// The number of a known id, or size().
  [[nodiscard]] std::size_t find(std::string_view id) const;
  [[nodiscard]] std::size_t size() const { return are_text() ? ids_.texts.size() : ids_.numbers.size(); }
  [[nodiscard]] bool are_text() const { return ids_.are_text(); }
  /// An id as text: decimal digits for integers.
  [[nodiscard]] std::string text(std::uint32_t number) const;
  /// All numbers in the order of their ids: by value for integers, by bytes for text.
  [[nodiscard]] std::vector<std::uint32_t> sorted() const;
  /// Bytes that the map holds, or held while it grew last.
  [[nodiscard]] std::uint64_t memory_bytes() const { return std::max(peak_bytes_, held_bytes()); }
  /// Bytes that it holds once its index is dropped.
  [[nodiscard]] std::uint64_t kept_bytes() const {
    return (ids_.numbers.size() + ids_.texts.size()) * sizeof(std::uint64_t) + ids_.texts.text.size();
  }
  /// Bytes of all ids as text, about.
  [[nodiscard]] std::uint64_t text_bytes() const;
  /// Frees what finds ids, and what was reserved for more of them: nothing but `size`, `text` and `sorted`
  /// may be called from now on.
  void drop_index();
  /// The small integers, for others to look at; no `add` moves them.
  [[nodiscard]] const SmallIds& share_small() {
    small_.reserve();
    return small_;
  }
  /// Hands the ids over to a block, whose `of_rating` stays; the map is empty then, and keeps its memory.
  void move_to(BlockIds& block);

 private:
  template <class IsSame>
  [[nodiscard]] std::size_t slot_of(std::uint32_t hash, IsSame is_same) const;
  template <class IsSame>
  std::uint32_t number_of(std::uint32_t hash, IsSame is_same, bool& is_new);
  [[nodiscard]] std::size_t home_of(std::uint32_t hash) const;
  [[nodiscard]] std::uint32_t next_entry() const;  // the next number + 1
  std::uint32_t add_small(std::int64_t id);
  std::size_t add_small(std::span<const std::int64_t> ids, std::vector<std::uint32_t>& numbers);
  std::uint32_t add_hashed(std::int64_t id, std::uint32_t hash);
  std::uint32_t add_hashed(std::string_view id, std::uint32_t hash);
  template <class IdAt>
  void add_all(std::size_t count, IdAt id_at, std::vector<std::uint32_t>& numbers);
  void prefetch_slots(std::span<const std::uint32_t> hashes) const;
  void grow();
  [[nodiscard]] std::uint64_t held_bytes() const;
  void turn_to_text();

  BlockIds ids_;  // `of_rating` is not used
  // Open addressing, at most half full: 32 bits of the id's hash above its number + 1; 0 where free.
  std::vector<std::uint64_t> slots_;
  std::size_t hashed_count_ = 0;  // ids in slots_
  std::uint64_t peak_bytes_ = 0;  // while slots_ grew last
  SmallIds small_;
  std::size_t small_count_ = 0;  // entries of small_ that are used, a power of two
};

/// What numbers the ids of one block, and then those of the next one, with the same memory. Ids that have a
/// number in `known_…` already are not numbered again.
struct BlockMaps {
  const SmallIds* known_users = nullptr;
  const SmallIds* known_items = nullptr;
  IdMap users{};
  IdMap items{};
};

/// Gathers a column's ids and numbers them at the end, all at once.
class IdColumn {
 public:
  /// `ids` is empty, and will be again after `finish`; ids that are `known` need no other number.
  IdColumn(BlockIds& block, IdMap& ids, const SmallIds* known) : block_(block), ids_(ids), known_(known) {}

  /// Appends the id of the next rating. Its text must stay where it is until `finish`; characters before
  /// `text_end` can be read.
  [[gnu::always_inline]] void append(std::string_view id, const char* text_end = nullptr) {
    std::int64_t number = 0;
    if (!texts_.empty() || !parse_integer_id(id, text_end, number)) {
      texts_.push_back(id);
      return;
    }
    // A block's numbers would be written to memory and read again.
    if (number_count_ == kGathered) finish_gathered();
    numbers_[number_count_++] = number;
  }
  /// Whether all ids since the last `finish` were integers.
  [[nodiscard]] bool takes_numbers() const { return texts_.empty(); }
  /// Appends the ids of the next ratings; only where it takes numbers.
  void append(std::span<const std::int64_t> ids) {
    if (number_count_ + ids.size() > kGathered) finish_gathered();
    std::ranges::copy(ids, numbers_.begin() + static_cast<std::ptrdiff_t>(number_count_));
    number_count_ += ids.size();
  }
  /// Appends the id of the next rating, whose text may go away.
  void append_fleeting(std::string_view id) {
    finish_gathered();
    block_.of_rating.push_back(ids_.add(id));
  }
  /// Gives the block its ids, each once, and which of them every rating has.
  void finish() {
    finish_gathered();
    ids_.move_to(block_);
  }

 private:
  static constexpr std::size_t kGathered = 4096;

  void finish_gathered();
  void finish_numbers();

  BlockIds& block_;
  std::array<std::int64_t, kGathered> numbers_;  // of the last ratings before the first text
  std::size_t number_count_ = 0;
  std::vector<std::string_view> texts_;  // of those from the first on that is no integer
  std::vector<std::uint32_t> unknown_numbers_;
  IdMap& ids_;
  const SmallIds* known_;
};

/// Returns whether text stands for a missing id: nothing, NULL or NaN in upper or lower case, \N.
[[nodiscard]] inline bool is_missing_id(std::string_view text) {
  if (text.size() > 4) return false;
  const auto is = [text](std::string_view word) {
    if (text.size() != word.size()) return false;
    for (std::size_t at = 0; at < word.size(); ++at)
      if ((text[at] | 0x20) != word[at]) return false;
    return true;
  };
  return text.empty() || text == "\\N" || is("null") || is("nan");
}

/// Empties a block and keeps its memory.
void clear_block(RatingBlock& block);

/// Labels of users: (users, columns); no columns: there are none.
struct LabelTable {
  std::vector<std::string> columns;
  std::vector<float> values;
};

/// Puts the labels of an svmlight file's rows, whose users have the rows' numbers as ids, in a table: "label"
/// or "label-1" and so on, then "qid". Says in `notices` what cannot be put there.
[[nodiscard]] LabelTable make_label_table(const RowLabels& labels, const IdMap& users,
                                          std::vector<std::string>& notices);

}  // namespace chunkhit
