// Columns of a table of samples that are kept beside the labels: what their texts are decides their types.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "listing/label_column.h"
#include "listing/sample_list.h"
#include "types/sample_column.h"

namespace chunkhit {

/// Returns why a text cannot be kept in the column `name`, or nothing: not UTF-8, or longer than a text may
/// be.
[[nodiscard]] std::string kept_text_problem(const std::string& name, std::string_view text);

/// Returns the values of different texts: int64 where each is an integer as these are written
/// (parse_integer_id); float64 where each is a number without leading zeros, blank or "nan" (which are
/// missing, even all of them where `has_number`) and no integer is rounded; else, or where `has_text`, text.
[[nodiscard]] SampleColumn kept_values(std::string name, const TextPool& texts, bool has_text = false,
                                       bool has_number = false);

/// Value of a column as text; empty: it is missing.
struct KeptValue {
  std::string text;
  bool is_text = false;    ///< its column is one of texts, whatever this text looks like
  bool is_number = false;  ///< its column is one of numbers, even if all are missing
};

/// Gathers the values of the columns of samples, four bytes each beside their different texts, until all are
/// known.
class KeptColumns {
 public:
  explicit KeptColumns(std::vector<std::string> names) : names_(std::move(names)), columns_(names_.size()) {}
  [[nodiscard]] bool empty() const { return names_.empty(); }
  /// Returns why a row cannot be a sample, or nothing: not UTF-8, or longer than a text may be.
  [[nodiscard]] std::string problem(std::span<const KeptValue> values) const;
  /// Takes the values of the next sample.
  void add(std::span<const KeptValue> values);
  /// Gives the list its columns. `rows_before`: SampleList::rows when the values were added, of which the
  /// list's samples have some. `kept_values` decides their types.
  void finish(SampleList& list, const std::vector<std::uint32_t>& rows_before);

 private:
  struct Column {
    TextPool texts;
    std::vector<std::uint32_t> by_sample;  ///< numbers of the texts
    bool has_text = false;
    bool has_number = false;
  };
  void note_few_texts(SampleList& list) const;
  void keep(SampleList& list, const std::vector<std::uint32_t>& rows_before);

  std::vector<std::string> names_;
  std::vector<Column> columns_;
};

}  // namespace chunkhit
