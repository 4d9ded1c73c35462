#include "ratings/id_map.h"

#include <bit>
#include <charconv>
#include <limits>
#include <new>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/hash.h"
#include "base/random.h"
#include "base/throw_error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kFirstSlots = 64;
/// Number of ids whose slots are prefetched together, so that their cache misses overlap.
constexpr std::size_t kIdsAhead = 32;
/// Smaller tables fit into the CPU caches and gain nothing from prefetching.
constexpr std::size_t kMinSlotsToFetch = std::size_t{64} << 10;

constexpr std::uint64_t kMinSmallIds = 1 << 10;

std::uint32_t hash_of(std::int64_t id) {
  return static_cast<std::uint32_t>(mix_bits(static_cast<std::uint64_t>(id)) >> 32);
}

std::uint32_t hash_of(std::string_view id) { return static_cast<std::uint32_t>(xxh3(as_bytes(id)) >> 32); }

}  // namespace

// The memory comes zeroed: pages for which there is no id are never touched.
void SmallIds::reserve() {
  if (has_room()) return;
  entries_.reset(static_cast<std::uint32_t*>(std::calloc(end_, sizeof(std::uint32_t))));
  if (!has_room()) throw std::bad_alloc();
}

// Scales the hash to the table size (multiply and shift): the order of slots is kept when the table doubles.
std::size_t IdMap::home_of(std::uint32_t hash) const {
  return static_cast<std::size_t>((static_cast<unsigned __int128>(hash) * slots_.size()) >> 32);
}

// Returns the slot that holds an id, or the free one where it is to be inserted (linear probing). A slot has
// the hash in its upper half and the number + 1 in its lower half; 0 is free.
template <class IsSame>
std::size_t IdMap::slot_of(std::uint32_t hash, IsSame is_same) const {
  std::size_t slot = home_of(hash);
  for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
    const bool may_be = slots_[slot] >> 32 == hash;
    if (may_be && is_same(static_cast<std::uint32_t>(slots_[slot]) - 1)) break;
  }
  return slot;
}

/// Grows at half load, so that probe sequences stay short.
template <class IsSame>
std::uint32_t IdMap::number_of(std::uint32_t hash, IsSame is_same, bool& is_new) {
  if ((hashed_count_ + 1) * 2 > slots_.size()) grow();
  const std::size_t slot = slot_of(hash, is_same);
  is_new = slots_[slot] == 0;
  if (is_new) {
    slots_[slot] = static_cast<std::uint64_t>(hash) << 32 | next_entry();
    ++hashed_count_;
  }
  return static_cast<std::uint32_t>(slots_[slot]) - 1;
}

/// Numbers have 32 bits, and one value is needed for "free".
std::uint32_t IdMap::next_entry() const {
  if (size() == std::numeric_limits<std::uint32_t>::max())
    throw_bad_data("more than 4294967295 different ids");
  return static_cast<std::uint32_t>(size()) + 1;
}

std::uint32_t IdMap::add_small(std::int64_t id) {
  small_.reserve();
  if (small_.entry(id) == 0) {
    small_count_ =
        std::max(small_count_, std::bit_ceil(std::max(static_cast<std::uint64_t>(id) + 1, kMinSmallIds)));
    small_.set_entry(id, next_entry());
    ids_.numbers.push_back(id);
  }
  return small_.entry(id) - 1;
}

/// Adds small integers up to the first other id, and returns their count.
std::size_t IdMap::add_small(std::span<const std::int64_t> ids, std::vector<std::uint32_t>& numbers) {
  if (are_text()) return 0;
  small_.reserve();
  const std::size_t begin = numbers.size();
  numbers.resize(begin + ids.size());
  std::uint32_t* const to = numbers.data() + begin;
  std::size_t count = 0;
  for (; count < ids.size() && small_.is_small(ids[count]); ++count) {
    if (count > 0 && ids[count] == ids[count - 1]) {
      to[count] = to[count - 1];
      continue;
    }
    const std::uint32_t entry = small_.entry(ids[count]);
    to[count] = entry != 0 ? entry - 1 : add_small(ids[count]);
  }
  numbers.resize(begin + count);
  return count;
}

std::uint32_t IdMap::add_hashed(std::int64_t id, std::uint32_t hash) {
  bool is_new = false;
  const auto number = number_of(
      hash, [&](std::uint32_t other) { return ids_.numbers[other] == id; }, is_new);
  if (is_new) ids_.numbers.push_back(id);
  return number;
}

std::uint32_t IdMap::add_hashed(std::string_view id, std::uint32_t hash) {
  bool is_new = false;
  const auto number = number_of(
      hash, [&](std::uint32_t other) { return ids_.texts[other] == id; }, is_new);
  if (is_new) {
    ids_.texts.add(id);
  }
  return number;
}

std::uint32_t IdMap::add(std::int64_t id) {
  if (!are_text()) return small_.is_small(id) ? add_small(id) : add_hashed(id, hash_of(id));
  const std::string text = std::to_string(id);
  return add_hashed(text, hash_of(text));
}

std::uint32_t IdMap::add(std::string_view id) {
  std::int64_t number = 0;
  if (!are_text()) {
    if (parse_integer_id(id, number)) return add(number);
    turn_to_text();
  }
  return add_hashed(id, hash_of(id));
}

// Prefetches the slots of hashes, then the first id with each hash, which is most likely the one sought.
void IdMap::prefetch_slots(std::span<const std::uint32_t> hashes) const {
  for (const std::uint32_t hash : hashes) __builtin_prefetch(&slots_[home_of(hash)], 1);
  for (const std::uint32_t hash : hashes) {
    const std::uint64_t entry = slots_[slot_of(hash, [](auto) { return true; })];
    if (entry == 0) continue;
    const std::uint32_t number = static_cast<std::uint32_t>(entry) - 1;
    if (are_text())
      __builtin_prefetch(ids_.texts.text.data() + ids_.texts.ends[number]);
    else
      __builtin_prefetch(&ids_.numbers[number]);
  }
}

// Appends the numbers of ids, in groups whose cache misses overlap.
template <class IdAt>
void IdMap::add_all(std::size_t count, IdAt id_at, std::vector<std::uint32_t>& numbers) {
  constexpr bool kTexts = std::is_same_v<decltype(id_at(0)), std::string_view>;
  std::size_t first = 0;
  // An id of the other kind may turn the map to text; the rest is then of the map's kind, or stays slow.
  for (; first < count && (are_text() != kTexts || slots_.empty()); ++first)
    numbers.push_back(add(id_at(first)));
  std::uint32_t hashes[kIdsAhead];
  const auto is_again = [&](std::size_t at) { return at > 0 && id_at(at) == id_at(at - 1); };
  for (; first < count; first += kIdsAhead) {
    const std::size_t end = std::min(count, first + kIdsAhead);
    for (std::size_t at = first; at < end; ++at)
      hashes[at - first] = at > first && is_again(at) ? hashes[at - first - 1] : hash_of(id_at(at));
    if (slots_.size() >= kMinSlotsToFetch) prefetch_slots({hashes, end - first});
    for (std::size_t at = first; at < end; ++at)
      numbers.push_back(is_again(at) ? numbers.back() : add_hashed(id_at(at), hashes[at - first]));
  }
}

/// Alternates between runs of small integers, which need no hash, and runs of hashed ones.
void IdMap::add(std::span<const std::int64_t> ids, std::vector<std::uint32_t>& numbers) {
  for (std::size_t first = 0; first < ids.size();) {
    const auto is_hashed = [this](std::int64_t id) { return are_text() || !small_.is_small(id); };
    first += add_small(ids.subspan(first), numbers);
    const auto hashed = ids.subspan(first);
    const auto count = static_cast<std::size_t>(std::ranges::find_if_not(hashed, is_hashed) - hashed.begin());
    add_all(
        count, [&](std::size_t at) { return hashed[at]; }, numbers);
    first += count;
  }
}

void IdMap::add(std::span<const std::string_view> ids, std::vector<std::uint32_t>& numbers) {
  add_all(
      ids.size(), [&](std::size_t at) { return ids[at]; }, numbers);
}

std::vector<std::uint32_t> IdMap::add(const BlockIds& ids) {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(ids.are_text() ? ids.texts.size() : ids.numbers.size());
  if (ids.are_text())
    add_all(
        ids.texts.size(), [&](std::size_t at) { return ids.texts[at]; }, numbers);
  else
    add(ids.numbers, numbers);
  return numbers;
}

std::size_t IdMap::find(std::string_view id) const {
  std::size_t slot = 0;
  std::int64_t number = 0;
  if (are_text()) {
    slot = slot_of(hash_of(id), [&](std::uint32_t other) { return ids_.texts[other] == id; });
  } else {
    if (!parse_integer_id(id, number)) return size();
    if (small_.is_small(number)) {
      const std::uint32_t entry = small_.has_room() ? small_.entry(number) : 0;
      return entry != 0 ? entry - 1 : size();
    }
    if (slots_.empty()) return size();
    slot = slot_of(hash_of(number), [&](std::uint32_t other) { return ids_.numbers[other] == number; });
  }
  return slots_[slot] == 0 ? size() : static_cast<std::uint32_t>(slots_[slot]) - 1;
}

std::string IdMap::text(std::uint32_t number) const {
  return are_text() ? std::string(ids_.texts[number]) : std::to_string(ids_.numbers[number]);
}

std::vector<std::uint32_t> IdMap::sorted() const {
  std::vector<std::uint32_t> numbers(size());
  std::iota(numbers.begin(), numbers.end(), 0u);
  std::sort(numbers.begin(), numbers.end(), [&](std::uint32_t one, std::uint32_t other) {
    return are_text() ? ids_.texts[one] < ids_.texts[other] : ids_.numbers[one] < ids_.numbers[other];
  });
  return numbers;
}

/// Clears only what was set of the small integers: most blocks have few ids.
void IdMap::move_to(BlockIds& block) {
  for (const std::int64_t id : ids_.numbers)
    if (small_.is_small(id)) small_.set_entry(id, 0);
  if (hashed_count_ > 0) std::ranges::fill(slots_, std::uint64_t{0});
  hashed_count_ = 0;
  std::swap(block.numbers, ids_.numbers);
  std::swap(block.texts, ids_.texts);
  ids_.numbers.clear();
  ids_.texts.clear();
}

std::uint64_t IdMap::held_bytes() const {
  return (slots_.capacity() + ids_.numbers.capacity()) * sizeof(std::uint64_t) + ids_.texts.capacity_bytes() +
         small_count_ * sizeof(std::uint32_t);
}

/// An estimate for integers: ten digits each.
std::uint64_t IdMap::text_bytes() const {
  constexpr std::uint64_t kDigits = 10;
  return are_text() ? ids_.texts.text.size() : ids_.numbers.size() * kDigits;
}

/// The ids remain; only looking up and adding are no longer possible.
void IdMap::drop_index() {
  slots_ = {};
  small_.free();
  small_count_ = 0;
  ids_.numbers.shrink_to_fit();
  ids_.texts.shrink_to_fit();
}

/// Reinserts without comparing ids: they are known to differ.
void IdMap::grow() {
  peak_bytes_ = held_bytes() + std::max(kFirstSlots, slots_.size() * 2) * sizeof(std::uint64_t);
  const std::vector<std::uint64_t> old =
      std::exchange(slots_, std::vector<std::uint64_t>(std::max(kFirstSlots, slots_.size() * 2)));
  for (const std::uint64_t entry : old)
    if (entry != 0)
      slots_[slot_of(static_cast<std::uint32_t>(entry >> 32), [](auto) { return false; })] = entry;
}

/// The first id that is no integer: all earlier ones become text and keep their numbers.
void IdMap::turn_to_text() {
  const std::vector<std::int64_t> numbers = std::move(ids_.numbers);
  ids_.numbers.clear();
  slots_.assign(slots_.size(), 0);
  hashed_count_ = 0;
  for (const std::int64_t number : numbers) {
    if (small_.is_small(number)) small_.set_entry(number, 0);
    const std::string text = std::to_string(number);
    add_hashed(text, hash_of(text));
  }
}

/// Appends what each of the gathered ids is: known, or numbered in this block. From the first large one on,
/// unknown ones are numbered together, so that their cache misses overlap and they stay in order.
void IdColumn::finish_numbers() {
  const auto ids = std::span(numbers_).first(std::exchange(number_count_, 0));
  if (known_ == nullptr || ids_.are_text()) return ids_.add(ids, block_.of_rating);
  constexpr std::uint32_t kUnknown = UINT32_MAX;
  const std::size_t begin = block_.of_rating.size();
  block_.of_rating.resize(begin + ids.size());
  const auto of_rating = std::span(block_.of_rating).subspan(begin);
  std::size_t unknown_count = 0;
  std::uint32_t number = kUnknown;  // of the id before
  for (std::size_t at = 0; at < ids.size(); ++at) {
    const std::int64_t id = ids[at];
    // In the order of users, most of their entries are loaded already.
    if (at + kIdsAhead < ids.size() && ids[at + kIdsAhead] != id) known_->prefetch(ids[at + kIdsAhead]);
    if (at == 0 || id != ids[at - 1] || number == kUnknown) {
      const bool is_small = static_cast<std::uint64_t>(id) < SmallIds::kEnd;
      number = (known_->is_small(id) ? known_->entry(id) : 0) - 1;
      if (number < BlockIds::kKnown - 1)
        number |= BlockIds::kKnown;
      else
        number = is_small && unknown_count == 0 ? ids_.add(id) : kUnknown;
    }
    of_rating[at] = number;
    if (number == kUnknown) numbers_[unknown_count++] = id;
  }
  if (unknown_count == 0) return;
  unknown_numbers_.clear();
  ids_.add(ids.first(unknown_count), unknown_numbers_);
  auto next = unknown_numbers_.begin();
  for (std::uint32_t& of : of_rating)
    if (of == kUnknown) of = *next++;
}

void IdColumn::finish_gathered() {
  finish_numbers();
  ids_.add(texts_, block_.of_rating);
  texts_.clear();
}

void clear_block(RatingBlock& block) {
  for (BlockIds* ids : {&block.users, &block.items}) {
    ids->of_rating.clear();
    ids->numbers.clear();
    ids->texts.clear();
  }
  block.values.clear();
  block.times.clear();
  block.bad_lines.clear();
  block.more_bad_lines.clear();
  block.ends_with_long_line = false;
  block.line_count = block.blank_lines = block.comment_lines = block.header_lines = 0;
}

namespace {

/// Largest magnitude up to which every integer is exact as a 32-bit float: 2^24.
constexpr std::int64_t kMaxExact = std::int64_t{1} << 24;

/// Users of svmlight are row numbers, kept as ids.
std::size_t row_of(const IdMap& users, std::uint32_t user) {
  const std::string text = users.text(user);
  std::size_t row = 0;
  std::from_chars(text.data(), text.data() + text.size(), row);
  return row;
}

/// Returns how many labels each user's row has, or 0 with a notice if the rows differ.
std::size_t common_count(const RowLabels& labels, const IdMap& users, std::vector<std::string>& notices) {
  std::size_t least = SIZE_MAX;
  std::size_t most = 0;
  for (std::uint32_t user = 0; user < users.size(); ++user) {
    const std::size_t count = labels.of_row(row_of(users, user)).size();
    least = std::min(least, count);
    most = std::max(most, count);
  }
  if (most == 0) return 0;
  if (least == most) return least;
  notices.push_back("labels are left out: rows have " + std::to_string(least) + " to " +
                    std::to_string(most) + " of them, a pack has as many for each row");
  return 0;
}

/// Query ids are stored as floats and left out if that would change one.
bool has_exact_groups(const RowLabels& labels, std::vector<std::string>& notices) {
  if (labels.groups.empty()) return false;
  for (const std::int64_t group : labels.groups)
    if (group < -kMaxExact || group > kMaxExact) {
      notices.emplace_back("qid is left out: a row has none, or one that no 32-bit float is equal to");
      return false;
    }
  return true;
}

}  // namespace

LabelTable make_label_table(const RowLabels& labels, const IdMap& users, std::vector<std::string>& notices) {
  LabelTable table;
  const std::size_t count = common_count(labels, users, notices);
  const bool has_groups = has_exact_groups(labels, notices);
  for (std::size_t column = 0; column < count; ++column)
    table.columns.push_back(count == 1 ? "label" : "label-" + std::to_string(column + 1));
  if (has_groups) table.columns.emplace_back("qid");
  if (table.columns.empty()) return table;
  table.values.reserve(users.size() * table.columns.size());
  for (std::uint32_t user = 0; user < users.size(); ++user) {
    const std::size_t row = row_of(users, user);
    const auto of_row = labels.of_row(row);
    table.values.insert(table.values.end(), of_row.begin(),
                        of_row.begin() + static_cast<std::ptrdiff_t>(count));
    if (has_groups) table.values.push_back(static_cast<float>(labels.groups[row]));
  }
  return table;
}

}  // namespace chunkhit
