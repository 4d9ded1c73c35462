// Files that lie beside a Matrix Market file and name its rows and columns, as 10x Genomics writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ratings/entry_collector.h"

namespace chunkhit {

/// Names that files beside a matrix give; none where there is no file, or none that fits.
struct NamesBeside {
  IdNames rows;
  IdNames columns;
  bool columns_are_users =
      false;  ///< the columns are named by barcodes, which are cells: what users are here
};

/// Looks for barcodes.tsv and features.tsv or genes.tsv (also .gz, .zst) in the folder of the matrix, with
/// the same words before them as before "matrix.mtx" in its name, and takes the first column of those that
/// have as many lines as the matrix has rows or columns. Says in `notices` what was taken or not, and why.
/// `must_fit`: throws bad_data where the files together fit neither rows × columns nor columns × rows. Throws
/// bad_data for names that are not UTF-8.
[[nodiscard]] NamesBeside find_names_beside(const std::string& matrix_path, std::uint64_t row_count,
                                            std::uint64_t column_count, bool must_fit,
                                            std::vector<std::string>& notices);

}  // namespace chunkhit
