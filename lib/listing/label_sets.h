// Labels of several names in a cell: the sets of names that samples have, and their columns of 0 and 1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "listing/label_column.h"
#include "listing/sample_list.h"

namespace chunkhit {

/// Whether a text is a list as JSON, Python or NumPy writes it: ["cat", "dog"], ['cat' 'dog'], [].
[[nodiscard]] inline bool is_text_list(std::string_view text) {
  return text.starts_with("[") && text.ends_with("]") && text.size() > 1 &&
         (text.size() == 2 || text[1] == '"' || text[1] == '\'');
}

/// Gathers the names of samples, four bytes each beside their different texts, until all are known.
class LabelSets {
 public:
  LabelSets(std::string separator, EmptyLabels empty_labels)
      : separator_(std::move(separator)), empty_labels_(empty_labels) {}
  [[nodiscard]] bool empty() const { return separator_.empty(); }
  /// Takes the names in the next sample's cell; false where it holds none, and such samples are rejected.
  [[nodiscard]] bool add(std::string_view cell);
  /// Gives the list a label column for each name, sorted as bytes, whose numbers are 1 where a sample has
  /// it, and notices of samples without a name, and where no cell holds the separator, unless names are
  /// compared with known ones. Throws bad_data for more than 16,384 names.
  void finish(SampleList& list, bool are_names_known);

 private:
  void notice_single_names(SampleList& list) const;
  [[nodiscard]] std::vector<std::string_view> names_in(std::string_view cell) const;

  std::string separator_;
  EmptyLabels empty_labels_;
  TextPool names_;
  std::vector<std::uint32_t> found_;  // numbers of the names of all samples
  std::vector<std::uint64_t> ends_;   // end of each sample's in `found_`
  std::uint64_t empty_count_ = 0;     // samples without a name
  bool is_separated_ = false;         // a cell holds the separator
};

/// Gives the label columns of a list of sets the order of `known`, and those that no sample has zeros. Throws
/// bad_data naming the first name that it lacks and a file of it.
void reorder_label_sets(SampleList& list, const std::vector<std::string>& known);

}  // namespace chunkhit
