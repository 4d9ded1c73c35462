// Rows of files and labels, whatever lists them: each becomes a sample of a list or a reject.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "listing/kept_columns.h"
#include "listing/label_column.h"
#include "listing/label_sets.h"
#include "listing/sample_list.h"

namespace chunkhit {

/// Takes the rows of a list whose `label_columns` are set: one column is class ids, names, numbers or sets of
/// names, several are numbers.
class LabelRows {
 public:
  /// Throws usage for `missing` where labels are no numbers.
  LabelRows(SampleList& list, const LabelColumns& columns)
      : list_(list),
        rows_(list),
        labels_are_names_(columns.labels_are_names),
        label_type_(columns.label_type),
        sets_(columns.label_separator, columns.empty_labels),
        missing_(columns.missing),
        kept_(columns.keep_columns) {
    check_missing(columns);
  }
  /// Adds the next row as a sample, one label per column and a value for each of `keep_columns`; gives what
  /// is wrong with it where it can be none: it is the caller's to reject then.
  [[nodiscard]] std::string take(std::string_view file, std::span<const std::string_view> labels,
                                 std::span<const KeptValue> kept = {});
  /// The same for a sample whose label is the caller's to add, as those of all others are.
  [[nodiscard]] std::string take_unlabelled(std::string_view file, std::span<const KeptValue> kept);
  /// Adds the next row as a reject.
  void reject(std::string_view file, std::vector<std::string> labels, std::string reason) {
    rows_.reject(file, std::move(labels), std::move(reason));
  }
  /// The hash of the list, which is of all that callers add to it.
  [[nodiscard]] TextHash& hash() { return hash_; }
  /// Gives all samples their labels, and the list its hash.
  void finish();
  /// Gives the list its hash, and the samples that were taken without labels their columns. `rows_before`:
  /// SampleList::rows when they were taken.
  void finish_unlabelled(const std::vector<std::uint32_t>& rows_before);
  /// How rows that were rejected for blanks can be packed; empty where there are none.
  [[nodiscard]] std::string missing_advice() const;

 private:
  static void check_missing(const LabelColumns& columns);
  [[nodiscard]] bool are_numbers() const {
    return list_.label_columns.size() > 1 || label_type_ == LabelType::numbers;
  }
  [[nodiscard]] std::string take_label(std::string_view text);
  [[nodiscard]] std::string take_numbers(std::span<const std::string_view> labels);
  [[nodiscard]] std::string number_error(std::size_t column, std::string_view text);
  void notice_missing();

  SampleList& list_;
  SampleRows rows_;
  bool labels_are_names_;
  LabelType label_type_;
  LabelColumn column_;      // used for one label column that may be classes; numbers are taken at once
  LabelSets sets_;          // used where cells hold several names
  RoundedNumbers rounded_;  // of numbers
  MissingLabels missing_;
  std::vector<std::uint64_t> missing_counts_;  // by column, of what is packed; empty: none
  std::uint64_t missing_rejects_ = 0;          // rows
  KeptColumns kept_;
  TextHash hash_;
};

}  // namespace chunkhit
