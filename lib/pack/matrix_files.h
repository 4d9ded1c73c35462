// Opens files that hold a matrix, by their format.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decode/rating_reader.h"
#include "input/rating_format.h"
#include "input/text_stream.h"

namespace chunkhit {

/// How files that hold a matrix are read.
struct MatrixFileSpec {
  Transpose transpose = Transpose::automatic;
  std::string layer;              ///< of HDF5: a layer's name, "raw", or a path; empty: X
  std::optional<int> index_base;  ///< of svmlight: 0 or 1; not given: detected from the indices
  bool rounds_values = false;     ///< of text: values that 32-bit floats do not hold become the nearest
  std::uint64_t memory_bytes = UINT64_MAX;  ///< of HDF5: what names and chunks must fit into
};

/// Whether files of a format are read by `open_matrix_files`; the others are text of ratings.
[[nodiscard]] bool is_matrix_format(RatingFormat format);

/// Opens the files; readers give their ratings one after the other. Those of svmlight have one reader for
/// all, which numbers the rows through. `opened`: the stream of "-" where its head was read already, or null.
/// Throws bad_data, and usage for an option that the format has not.
[[nodiscard]] std::vector<std::unique_ptr<RatingReader>> open_matrix_files(
    RatingFormat format, const std::vector<std::string>& paths, const MatrixFileSpec& spec,
    std::unique_ptr<TextStream> opened = nullptr);

}  // namespace chunkhit
