#include "decode/entry_collector.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "chunkhit/error.h"
#include "decode/rating_reader.h"

namespace chunkhit {
namespace {

constexpr std::size_t kFirstSlots = 1 << 12;

}  // namespace

void EntryCollector::Axis::begin(BlockIds& block) {
  block_ = &block;
  places_.clear();
  slots_.assign(std::max(slots_.size(), kFirstSlots), 0);
}

void EntryCollector::Axis::find(std::uint64_t place) {
  if (2 * (places_.size() + 1) > slots_.size()) grow();
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = mix_bits(place) & mask;
  while (slots_[slot] != 0 && places_[slots_[slot] - 1] != place) slot = (slot + 1) & mask;
  if (slots_[slot] == 0) {
    append_id(place);
    slots_[slot] = static_cast<std::uint32_t>(places_.size());
  }
  last_place_ = place;
  last_index_ = slots_[slot] - 1;
}

void EntryCollector::Axis::append_id(std::uint64_t place) {
  places_.push_back(place);
  if (ids_.names.size() == 0) {
    block_->numbers.push_back(ids_.first + static_cast<std::int64_t>(place));
    return;
  }
  block_->text += ids_.names[place];
  block_->text_ends.push_back(block_->text.size());
}

void EntryCollector::Axis::grow() {
  slots_.assign(slots_.size() * 2, 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t index = 0; index < places_.size(); ++index) {
    std::size_t slot = mix_bits(places_[index]) & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<std::uint32_t>(index + 1);
  }
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
  block_ = nullptr;
  return has_entries;
}

void EntryCollector::refuse_value(std::uint64_t row, std::uint64_t column, float value) const {
  throw Error(ErrorCode::bad_data,
              name_ + ": entry (" + std::to_string(row) + ", " + std::to_string(column) +
                  ") counted from 0: expected a finite number that a 32-bit float can hold, found " +
                  (std::isnan(value) ? "NaN" : "infinity"));
}

}  // namespace chunkhit
