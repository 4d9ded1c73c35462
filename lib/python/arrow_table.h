// Tables that other libraries hand over by the Arrow C interfaces → ids, values and times of ratings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrow_c_data.h"
#include "chunkhit/rating_writer.h"

namespace chunkhit {

/// Owns a struct of the interface, which it releases once.
template <class Struct>
class ArrowOwned {
 public:
  ArrowOwned() = default;
  /// Takes what is in `other`, which is released then, as the interface says.
  explicit ArrowOwned(Struct& other) : held_(std::exchange(other, Struct{})) {}
  ArrowOwned(ArrowOwned&& other) noexcept : held_(std::exchange(other.held_, Struct{})) {}
  ArrowOwned& operator=(ArrowOwned&& other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~ArrowOwned() { reset(); }
  void reset() {
    if (held_.release != nullptr) held_.release(&held_);
    held_ = {};
  }
  [[nodiscard]] bool is_released() const { return held_.release == nullptr; }
  [[nodiscard]] Struct& operator*() { return held_; }
  [[nodiscard]] Struct* operator->() { return &held_; }

 private:
  Struct held_{};
};

/// Which columns of a table, from 0, hold what.
struct ArrowColumns {
  std::size_t user = 0;
  std::size_t item = 0;
  std::optional<std::size_t> value{};  ///< none: every value is 1
  std::optional<std::size_t> time{};
};

/// Gives the ratings of a table, batch by batch. Buffers have the lengths that the producer says; all else
/// is checked.
class ArrowTable {
 public:
  /// Throws bad_data where the stream fails, usage where it has no columns.
  explicit ArrowTable(ArrowOwned<ArrowArrayStream> stream);
  /// A table of one batch.
  ArrowTable(ArrowOwned<ArrowSchema> schema, ArrowOwned<ArrowArray> batch);

  [[nodiscard]] std::vector<std::string> names() const;
  /// Whether a column's type can be times.
  [[nodiscard]] bool has_times(std::size_t column) const;
  /// Chooses columns, once; throws usage for types that cannot be read.
  void choose(const ArrowColumns& columns);

  /// Moves to the next batch; false where there is none. Throws bad_data for one that does not fit its
  /// schema.
  [[nodiscard]] bool next();
  [[nodiscard]] std::size_t row_count() const { return row_count_; }  ///< of the batch
  /// Gives `count` rows of the batch from `first` on, valid until the next call. The batch's first row has
  /// the number `first_row` in messages. Throws bad_data naming row and column.
  [[nodiscard]] RatingEntries entries(std::size_t first, std::size_t count, std::uint64_t first_row);

 private:
  /// A column's name and type. Of a dictionary `format` is that of its values.
  struct Type {
    std::string name;
    std::string format;
    std::string index_format;  ///< of a dictionary; else empty
  };
  /// Rows of a column, from `first` on in its buffers.
  struct Rows {
    const Type* type = nullptr;
    const ArrowArray* array = nullptr;
    std::size_t first = 0;
    std::size_t count = 0;
    std::uint64_t first_row = 0;
  };
  /// Ids of the entries, where they are not in the column as they are needed; and those of a dictionary.
  struct Ids {
    std::vector<std::int64_t> numbers;
    std::vector<std::string_view> texts;
    std::string digits;
    std::vector<std::int64_t> word_numbers;
    std::vector<std::string_view> words;
    std::string word_digits;
  };

  [[noreturn]] void refuse_stream(int error);
  void take_schema(const ArrowSchema& schema);
  void check_batch();
  void read_words(std::size_t column, Ids& ids);
  [[nodiscard]] Rows rows_of(std::size_t column, std::size_t first, std::size_t count,
                             std::uint64_t first_row);
  static RatingIds read_ids(const Rows& rows, Ids& ids);
  [[nodiscard]] RatingValues read_values(const Rows& rows);
  [[nodiscard]] std::span<const std::int64_t> read_times(const Rows& rows);
  static void read_plain_ids(const Rows& rows, std::vector<std::int64_t>& numbers,
                             std::vector<std::string_view>& texts, std::string& digits);
  [[noreturn]] static void refuse_row(const Rows& rows, std::size_t at, const std::string& what);
  static void check_nulls(const Rows& rows);

  ArrowOwned<ArrowArrayStream> stream_;
  ArrowOwned<ArrowArray> batch_;
  bool is_single_ = false;  // the batch that is next, with no stream behind it
  std::vector<Type> types_;
  ArrowColumns columns_;
  std::size_t row_count_ = 0;
  Ids users_;
  Ids items_;
  std::vector<double> values_;
  std::vector<std::int64_t> times_;
};

}  // namespace chunkhit
