#include "batch/pairs.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/bytes.h"
#include "base/random.h"
#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {
namespace {

constexpr std::size_t kPairAlignment = 64;
constexpr std::size_t kPairsAhead = 12;  // whose memory is asked for

/// Where the arrays of a block begin, and where it ends.
struct PairOffsets {
  PairOffsets(std::size_t pairs, const PairFormat& format)
      : items(round_up(pairs * sizeof(std::int64_t), kPairAlignment)),
        negatives(2 * items),
        values(negatives + round_up(pairs * format.negatives * sizeof(std::int64_t), kPairAlignment)),
        times(values + round_up(pairs * sizeof(float), kPairAlignment)),
        end(format.has_times ? times + pairs * sizeof(std::int64_t) : values + pairs * sizeof(float)) {}
  std::size_t items;
  std::size_t negatives;
  std::size_t values;
  std::size_t times;
  std::size_t end;
};

template <class Id>
std::span<const Id> ids_of(const StoredRow& row) {
  return {reinterpret_cast<const Id*>(row.ids), row.nnz};
}

/// Gives the item of number `index` among those that are not in `own`, which ascends.
template <class Id>
std::uint64_t item_outside(std::span<const Id> own, std::uint64_t index) {
  // Before own[i] lie own[i] - i others.
  std::size_t first = 0;
  for (std::size_t left = own.size(); left > 0;) {
    const std::size_t half = left / 2;
    const bool is_before = own[first + half] - (first + half) <= index;
    first = is_before ? first + half + 1 : first;
    left = is_before ? left - half - 1 : half;
  }
  return index + first;
}

[[noreturn]] void refuse_row(std::uint64_t row, const char* what) {
  throw_usage("`negatives`: row " + std::to_string(row) + " has " + what +
              ", so that none is left to be drawn: take `negatives` 0, or pack without this user");
}

// Always inlined: GCC takes a function that only prefetches for one without effect, and drops calls of it.
[[gnu::always_inline]] inline void prefetch_ids(const RatedPair& pair, std::size_t id_bytes,
                                                std::size_t value_bytes, bool draws) {
  const std::uint8_t* const ids = pair.row.ids;
  __builtin_prefetch(ids + pair.entry * id_bytes);
  if (pair.row.values != nullptr) __builtin_prefetch(pair.row.values + pair.entry * value_bytes);
  if (!draws) return;
  // A search begins in the middle, then takes that of a half.
  for (std::size_t quarter = 1; quarter < 4; ++quarter)
    __builtin_prefetch(ids + pair.row.nnz * quarter / 4 * id_bytes);
}

}  // namespace

std::size_t pair_block_bytes(std::size_t pairs, const PairFormat& format) {
  const std::uint64_t pair_bytes =
      sizeof(std::int64_t) * (std::uint64_t{format.negatives} + (format.has_times ? 4 : 3));
  if (pairs > kMaxDenseBatchBytes / pair_bytes)
    throw_usage("`negatives`: a batch of " + count_text(pairs, "pair") + " and " +
                count_text(format.negatives, "negative") + " each has " +
                bytes_text(static_cast<double>(pairs) * static_cast<double>(pair_bytes)) +
                ", at most 1 GiB is handed out; take a smaller `batch_size`");
  return PairOffsets(pairs, format).end;
}

std::int64_t PairWriter::column(const RatedPair& pair) const {
  if (format_.id_bytes == sizeof(std::uint16_t)) return ids_of<std::uint16_t>(pair.row)[pair.entry];
  return ids_of<std::uint32_t>(pair.row)[pair.entry];
}

template <class Id>
void PairWriter::draw_uniformly(std::span<const Id> own, const RatedPair& pair, std::uint64_t row,
                                std::int64_t* to) {
  if (own.size() >= format_.column_count) refuse_row(row, "all items");
  const std::uint64_t others = format_.column_count - own.size();
  const std::uint64_t key = random_bits(format_.seed, Purpose::pair_negatives, pair.use);
  for (std::size_t i = 0; i < format_.negatives; ++i)
    to[i] =
        static_cast<std::int64_t>(item_outside(own, random_below(others, key, Purpose::pair_negatives, i)));
}

template <class Id>
void PairWriter::draw_by_popularity(std::span<const Id> own, const RatedPair& pair, std::uint64_t row,
                                    std::int64_t* to) {
  own_.assign(own.begin(), own.end());
  drawn_.resize(format_.negatives);
  const std::uint64_t key = random_bits(format_.seed, Purpose::pair_negatives, pair.use);
  try {
    format_.sampler->draw(own_, key, 0, drawn_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) throw;
    refuse_row(row, "all items that were rated");
  }
  std::ranges::copy(drawn_, to);
}

template <class Id>
void PairWriter::write_negatives(const RatedPair& pair, std::uint64_t row, std::int64_t* to) {
  const auto draw = [&](auto own) {
    format_.sampler ? draw_by_popularity(own, pair, row, to) : draw_uniformly(own, pair, row, to);
  };
  if (pair.held_out.nnz == 0 && !format_.has_repeats) return draw(ids_of<Id>(pair.row));
  joined_.clear();
  std::ranges::set_union(ids_of<Id>(pair.row), ids_of<Id>(pair.held_out), std::back_inserter(joined_));
  if (format_.has_repeats) joined_.erase(std::unique(joined_.begin(), joined_.end()), joined_.end());
  draw(std::span<const std::uint32_t>(joined_));
}

PairBatch PairWriter::write(std::span<const RatedPair> pairs, std::span<const std::uint64_t> rows,
                            std::uint8_t* block) {
  const PairOffsets offsets(pairs.size(), format_);
  auto* const users = reinterpret_cast<std::int64_t*>(block);
  auto* const items = reinterpret_cast<std::int64_t*>(block + offsets.items);
  auto* const negatives = reinterpret_cast<std::int64_t*>(block + offsets.negatives);
  auto* const values = reinterpret_cast<float*>(block + offsets.values);
  auto* const times = reinterpret_cast<std::int64_t*>(block + offsets.times);
  for (std::size_t at = 0; at < pairs.size(); ++at) {
    if (at + kPairsAhead < pairs.size())
      prefetch_ids(pairs[at + kPairsAhead], format_.id_bytes, stored_bytes_, format_.negatives != 0);
    const RatedPair& pair = pairs[at];
    users[at] = static_cast<std::int64_t>(rows[at]);
    items[at] = column(pair);
    const std::uint8_t* const value =
        pair.row.values == nullptr ? nullptr : pair.row.values + pair.entry * stored_bytes_;
    values_.calculate({.values = value, .nnz = 1}, {values + at, 1});
    if (format_.has_times) times[at] = pair.row.times[pair.entry];
    if (format_.negatives == 0) continue;
    std::int64_t* const to = negatives + at * format_.negatives;
    format_.id_bytes == sizeof(std::uint16_t) ? write_negatives<std::uint16_t>(pair, rows[at], to)
                                              : write_negatives<std::uint32_t>(pair, rows[at], to);
  }
  return {.users = {users, pairs.size()},
          .items = {items, pairs.size()},
          .values = {values, pairs.size()},
          .negatives = {negatives, pairs.size() * format_.negatives},
          .times = {times, format_.has_times ? pairs.size() : 0},
          .block = {block, offsets.end}};
}

}  // namespace chunkhit
