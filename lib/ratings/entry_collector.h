// Entries of a matrix that a file holds as arrays, read from front to back and never held; ids of its axes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "types/rating_block.h"
#include "types/text_list.h"

namespace chunkhit {

/// Appends "-1", "-2", ... to names that came before, as AnnData's obs_names_make_unique does, since two rows
/// of one name would become one user. Returns how many were changed.
std::size_t make_unique_names(TextList& names);

/// The ids of a matrix's rows or columns: names, or numbers from `first` on.
struct AxisIds {
  TextList names;  ///< none: ids are numbers
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
  /// Adds the time of the entry that was added last; for all entries of all blocks, or none.
  void add_time(std::int64_t time) { block_->times.push_back(time); }
  /// Whether the block has as many entries as a block should have.
  [[nodiscard]] bool is_full() const;
  /// Ends the block; returns false if nothing was added.
  [[nodiscard]] bool finish();

 private:
  /// Rows or columns of a block's entries, numbered when it ends.
  class Axis {
   public:
    explicit Axis(AxisIds ids) : ids_(std::move(ids)) {}
    void begin(BlockIds& block) {
      block_ = &block;
      positions_.clear();
    }
    void add(std::uint64_t position) { positions_.push_back(static_cast<std::int64_t>(position)); }
    void finish();

   private:
    AxisIds ids_;
    BlockIds* block_ = nullptr;
    std::vector<std::int64_t> positions_;  // by entry
  };

  [[noreturn]] void refuse_value(std::uint64_t row, std::uint64_t column, float value) const;

  std::string name_;
  Axis rows_;
  Axis columns_;
  bool transpose_;
  bool all_ones_ = true;
  RatingBlock* block_ = nullptr;
};

/// Gives the next numbers of an array; throws bad_data.
using IntegerSource = std::function<void(std::span<std::int64_t>)>;
using ValueSource = std::function<void(std::span<float>)>;

/// Adds entries until a block is full; returns false if none are left.
using EntrySource = std::function<bool(EntryCollector&)>;

/// How large a matrix is that arrays hold. Where nothing tells the number of columns it is found on the way.
struct ArrayShape {
  static constexpr std::uint64_t kUnknown = INT64_MAX;
  std::string name;  ///< stands in messages
  std::uint64_t row_count = 0;
  std::uint64_t column_count = 0;
  std::uint64_t* found_columns = nullptr;  ///< the highest column + 1 is kept here
};

/// Compressed rows (CSR): `indptr` has row_count + 1 numbers, `indices` and `values` entry_count each. Rows
/// need not be sorted and may have a column twice. With columns in the place of rows this is CSC:
/// `by_columns`.
struct CompressedArrays {
  std::uint64_t entry_count = 0;
  bool by_columns = false;
  std::vector<bool> kept_columns = {};  ///< the columns whose entries are given; empty: all
  IntegerSource indptr;
  IntegerSource indices;
  ValueSource values;
};
[[nodiscard]] EntrySource compressed_entries(ArrayShape shape, CompressedArrays arrays);

/// Coordinates (COO): entry_count rows, columns and values.
[[nodiscard]] EntrySource coordinate_entries(ArrayShape shape, std::uint64_t entry_count, IntegerSource rows,
                                             IntegerSource columns, ValueSource values);

/// All cells, row by row, or column by column; those that are zero are left out.
[[nodiscard]] EntrySource dense_entries(const ArrayShape& shape, bool by_columns, ValueSource values);

}  // namespace chunkhit
