// Entries of a matrix (row, column, value) → a block of ratings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "decode/id_names.h"
#include "types/rating_block.h"

namespace chunkhit {

/// The ids of a matrix's rows or columns: names, or numbers from `first` on.
struct AxisIds {
  IdNames names;
  std::int64_t first = 0;
};

/// Gathers entries into one block after the other and gives each row and column its id.
class EntryCollector {
 public:
  /// `name` stands in messages. Transposed, rows are items and columns users.
  EntryCollector(std::string name, AxisIds rows, AxisIds columns, bool transpose);
  /// Begins a block, which must live until `finish`.
  void begin(RatingBlock& block);
  /// Adds an entry; the caller has checked that row and column are within the shape. Throws bad_data for a
  /// value that is not finite.
  void add(std::uint64_t row, std::uint64_t column, float value);
  /// Whether the block has as many entries as a block should have.
  [[nodiscard]] bool is_full() const;
  /// Ends the block; false where nothing was added.
  [[nodiscard]] bool finish();

 private:
  /// Numbers the different rows or columns of a block.
  class Axis {
   public:
    explicit Axis(AxisIds ids) : ids_(std::move(ids)) {}
    void begin(BlockIds& block);
    void add(std::uint64_t place) {
      if (places_.empty() || place != last_place_) find(place);
      block_->of_rating.push_back(last_index_);
    }

   private:
    void find(std::uint64_t place);
    void append_id(std::uint64_t place);
    void grow();
    AxisIds ids_;
    BlockIds* block_ = nullptr;
    std::vector<std::uint64_t> places_;  // of the block's ids
    std::vector<std::uint32_t> slots_;   // open addressing, at most half full; index + 1, 0 where free
    std::uint64_t last_place_ = 0;
    std::uint32_t last_index_ = 0;
  };

  [[noreturn]] void refuse_value(std::uint64_t row, std::uint64_t column, float value) const;

  std::string name_;
  Axis rows_;
  Axis columns_;
  bool transpose_;
  bool all_ones_ = true;
  RatingBlock* block_ = nullptr;
};

}  // namespace chunkhit
