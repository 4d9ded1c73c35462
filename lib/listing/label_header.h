// The header of a label CSV: which of its columns are used.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/csv_reader.h"
#include "listing/sample_list.h"

namespace chunkhit {

/// Which fields of a row are used.
struct UsedFields {
  std::size_t file = 0;
  std::vector<std::size_t> fields;  // where the rows name masks and views
  std::vector<std::size_t> labels;  // none: samples have masks alone
  std::vector<std::size_t> kept;
  std::size_t min_count = 0;     // a row with fewer fields lacks one that is used
  std::size_t column_count = 0;  // of the header
  std::string label_advice;      // names the column that is probably meant where there are no labels
  bool of_pack = false;          // the header is that of a rejects.csv or warnings.csv
};

/// Reads the header of a table. A label column that it lacks may be several: "a,b", or "first-last" by their
/// positions; `spec` gets each of them. Throws bad_data for a column that is missing or there twice, usage
/// for what the columns cannot be together.
[[nodiscard]] UsedFields read_label_header(CsvReader& table, LabelColumns& spec);

}  // namespace chunkhit
