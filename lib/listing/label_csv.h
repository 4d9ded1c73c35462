// The rows of a label CSV from any stream of bytes.
#pragma once

#include "base/csv_reader.h"
#include "listing/sample_list.h"

namespace chunkhit {

/// Lists the rest of a table; `list_label_csv` without the opening of a file.
[[nodiscard]] SampleList list_label_rows(CsvReader& table, const LabelCsvSpec& spec);

}  // namespace chunkhit
