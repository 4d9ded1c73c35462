#include "ratings/entry_collector.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/throw_error.h"
#include "ratings/id_map.h"
#include "ratings/rating_reader.h"

namespace chunkhit {
namespace {

std::string unique_name(std::string_view name, std::uint64_t& uses,
                        const std::unordered_set<std::string_view>& names,
                        const std::unordered_set<std::string>& made) {
  for (;;) {
    std::string changed = std::string(name) + '-' + std::to_string(++uses);
    if (!names.contains(changed) && !made.contains(changed)) return changed;
  }
}

}  // namespace

std::size_t make_unique_names(TextList& names) {
  std::unordered_set<std::string_view> different;
  for (std::size_t i = 0; i < names.size(); ++i) different.insert(names[i]);
  if (different.size() == names.size()) return 0;
  std::unordered_map<std::string_view, std::uint64_t> uses;  // how often a name was there before
  std::unordered_set<std::string> made;
  TextList unique;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [use, is_first] = uses.try_emplace(names[i], 0);
    if (is_first)
      unique.add(names[i]);
    else
      unique.add(*made.insert(unique_name(names[i], use->second, different, made)).first);
  }
  names = std::move(unique);
  return made.size();
}

void EntryCollector::Axis::finish() {
  // All at once: IdMap overlaps the cache misses of ids that it is given together.
  IdMap map;
  map.add(positions_, block_->of_rating);
  map.move_to(*block_);
  for (std::int64_t& id : block_->numbers)
    if (ids_.names.empty())
      id += ids_.first;
    else
      block_->texts.add(ids_.names[static_cast<std::size_t>(id)]);
  if (!ids_.names.empty()) block_->numbers.clear();
}

EntryCollector::EntryCollector(std::string name, AxisIds rows, AxisIds columns, bool transpose)
    : name_(std::move(name)), rows_(std::move(rows)), columns_(std::move(columns)), transpose_(transpose) {}

void EntryCollector::begin(RatingBlock& block) {
  block = {};
  block_ = &block;
  all_ones_ = true;
  rows_.begin(transpose_ ? block.items : block.users);
  columns_.begin(transpose_ ? block.users : block.items);
}

void EntryCollector::add(std::uint64_t row, std::uint64_t column, float value) {
  if (!std::isfinite(value)) refuse_value(row, column, value);
  rows_.add(row);
  columns_.add(column);
  all_ones_ = all_ones_ && value == 1;
  block_->values.push_back(value);
}

bool EntryCollector::is_full() const { return block_->values.size() >= kBlockRatings; }

bool EntryCollector::finish() {
  const bool has_entries = !block_->values.empty();
  if (all_ones_) block_->values.clear();
  rows_.finish();
  columns_.finish();
  block_ = nullptr;
  return has_entries;
}

void EntryCollector::refuse_value(std::uint64_t row, std::uint64_t column, float value) const {
  throw_bad_data(name_ + ": entry (" + std::to_string(row) + ", " + std::to_string(column) +
                 ") counted from 0: expected a finite number that a 32-bit float can hold, found " +
                 (std::isnan(value) ? "NaN" : "infinity"));
}

namespace {

constexpr std::uint64_t kPieceCount = std::uint64_t{1} << 16;

/// Gives an array's numbers one by one.
template <class Number>
class Pieces {
 public:
  Pieces(std::function<void(std::span<Number>)> source, std::uint64_t count)
      : source_(std::move(source)), remaining_(count) {}
  /// The caller has counted: there is one.
  Number next() {
    if (at_ == piece_.size()) refill();
    return piece_[at_++];
  }

 private:
  void refill() {
    piece_.resize(std::min(remaining_, kPieceCount));
    remaining_ -= piece_.size();
    source_(piece_);
    at_ = 0;
  }
  std::function<void(std::span<Number>)> source_;
  std::uint64_t remaining_;
  std::vector<Number> piece_;
  std::size_t at_ = 0;
};

/// Gives a number that must be below `end`, and not below 0.
std::uint64_t checked_index(const ArrayShape& shape, std::int64_t index, std::uint64_t end,
                            const char* what) {
  if (index >= 0 && static_cast<std::uint64_t>(index) < end) return static_cast<std::uint64_t>(index);
  throw_bad_data(shape.name + ": has " + what + ' ' + std::to_string(index) + ", expected " +
                 (end == 0 ? "none" : "0 to " + std::to_string(end - 1)));
}

/// Walks over compressed rows (or columns).
class CompressedWalk {
 public:
  CompressedWalk(ArrayShape shape, std::uint64_t outer_count, std::uint64_t inner_count,
                 std::uint64_t entry_count, IntegerSource indptr, IntegerSource indices)
      : shape_(std::move(shape)),
        outer_count_(outer_count),
        inner_count_(inner_count),
        entry_count_(entry_count),
        indptr_(std::move(indptr), outer_count + 1),
        indices_(std::move(indices), entry_count) {}
  /// The next entry's row and column; false behind the last.
  bool next(std::uint64_t& outer, std::uint64_t& inner) {
    while (entry_ == row_end_)
      if (!begin_row()) return false;
    ++entry_;
    outer = rows_begun_ - 1;
    inner = checked_index(shape_, indices_.next(), inner_count_, "index");
    if (shape_.found_columns != nullptr) *shape_.found_columns = std::max(*shape_.found_columns, inner + 1);
    return true;
  }

 private:
  bool begin_row() {
    if (!has_begun_ && indptr_.next() != 0) throw_bad_data(shape_.name + ": indptr does not begin with 0");
    has_begun_ = true;
    if (rows_begun_ == outer_count_) {
      if (row_end_ != entry_count_)
        throw_bad_data(shape_.name + ": indptr ends with " + std::to_string(row_end_) + ", but there are " +
                       std::to_string(entry_count_) + " entries");
      return false;
    }
    const std::int64_t end = indptr_.next();
    if (end < 0 || static_cast<std::uint64_t>(end) < row_end_ ||
        static_cast<std::uint64_t>(end) > entry_count_)
      throw_bad_data(shape_.name + ": indptr has " + std::to_string(end) + " behind " +
                     std::to_string(row_end_) + "; it must not fall, nor exceed " +
                     std::to_string(entry_count_) + " entries");
    row_end_ = static_cast<std::uint64_t>(end);
    ++rows_begun_;
    return true;
  }

  ArrayShape shape_;
  std::uint64_t outer_count_;
  std::uint64_t inner_count_;
  std::uint64_t entry_count_;
  Pieces<std::int64_t> indptr_;
  Pieces<std::int64_t> indices_;
  bool has_begun_ = false;
  std::uint64_t rows_begun_ = 0;
  std::uint64_t entry_ = 0;    // of all
  std::uint64_t row_end_ = 0;  // of the row that was begun last
};

}  // namespace

EntrySource compressed_entries(ArrayShape shape, CompressedArrays arrays) {
  const bool by_columns = arrays.by_columns;
  const std::uint64_t outer_count = by_columns ? shape.column_count : shape.row_count;
  const std::uint64_t inner_count = by_columns ? shape.row_count : shape.column_count;
  CompressedWalk walk(std::move(shape), outer_count, inner_count, arrays.entry_count,
                      std::move(arrays.indptr), std::move(arrays.indices));
  Pieces<float> values(std::move(arrays.values), arrays.entry_count);
  return
      [walk, values, by_columns, kept = std::move(arrays.kept_columns)](EntryCollector& collector) mutable {
        std::uint64_t outer = 0;
        std::uint64_t inner = 0;
        while (!collector.is_full()) {
          if (!walk.next(outer, inner)) return false;
          if (by_columns) std::swap(outer, inner);
          const float value = values.next();
          if (kept.empty() || kept[inner]) collector.add(outer, inner, value);
        }
        return true;
      };
}

EntrySource coordinate_entries(ArrayShape shape, std::uint64_t entry_count, IntegerSource rows,
                               IntegerSource columns, ValueSource values) {
  return [shape = std::move(shape), remaining = entry_count,
          rows = Pieces<std::int64_t>(std::move(rows), entry_count),
          columns = Pieces<std::int64_t>(std::move(columns), entry_count),
          values = Pieces<float>(std::move(values), entry_count)](EntryCollector& collector) mutable {
    for (; remaining > 0 && !collector.is_full(); --remaining) {
      const std::uint64_t row = checked_index(shape, rows.next(), shape.row_count, "row");
      const std::uint64_t column = checked_index(shape, columns.next(), shape.column_count, "column");
      collector.add(row, column, values.next());
    }
    return remaining > 0;
  };
}

EntrySource dense_entries(const ArrayShape& shape, bool by_columns, ValueSource values) {
  const std::uint64_t inner_count = by_columns ? shape.row_count : shape.column_count;
  const std::uint64_t cell_count = shape.row_count * shape.column_count;
  return [by_columns, inner_count, remaining = cell_count, outer = std::uint64_t{0}, inner = std::uint64_t{0},
          values = Pieces<float>(std::move(values), cell_count)](EntryCollector& collector) mutable {
    for (; remaining > 0 && !collector.is_full(); --remaining) {
      const float value = values.next();
      if (value != 0) collector.add(by_columns ? inner : outer, by_columns ? outer : inner, value);
      if (++inner < inner_count) continue;
      inner = 0;
      ++outer;
    }
    return remaining > 0;
  };
}

}  // namespace chunkhit
