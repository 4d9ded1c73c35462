// What kind of file ratings are in, detected by its first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "types/enum_names.h"

namespace chunkhit {

/// The kinds of input of pack-sparse.
enum class RatingFormat : std::uint8_t {
  text,           ///< a delimited table, also RecBole's .inter (rating_table.h)
  user_items,     ///< "u i1 i2 ...": a user and all its items on each line
  netflix,        ///< "123:" (an item), then lines of customer,rating,date
  json_lines,     ///< an object on each line
  matrix_market,  ///< %%MatrixMarket
  svmlight,       ///< "label index:value index:value ..."
  npz,            ///< a ZIP archive
  hdf5,
  pack,  ///< a folder: a finished pack of pack-sparse
};
constexpr Words<9> words_of(RatingFormat) {
  return {"text", "user-items", "netflix", "json-lines", "matrix-market", "svmlight", "npz", "hdf5", "pack"};
}

/// Whether a format has columns that names find.
constexpr bool has_columns(RatingFormat format) {
  return format == RatingFormat::text || format == RatingFormat::json_lines;
}

/// How much of the beginning of a file is at hand.
struct TextHead {
  std::string_view text;     ///< the first bytes
  bool is_whole = false;     ///< there are no others
  std::string_view comment;  ///< lines that begin with it are no data; empty: all are
};

/// The first lines that hold data, without byte order mark, blank lines, comments and a last one that may be
/// cut off; at most `most`.
[[nodiscard]] std::vector<std::string_view> first_lines(const TextHead& head, std::size_t most);

/// What the end of a file's name says, without .gz or .zst: .json, .jsonl, .ndjson, .mtx, .svm, .svmlight,
/// .libsvm, .npz, .h5ad, .h5 and .hdf5; nothing where it says nothing. Tables have all sorts of names.
[[nodiscard]] std::optional<RatingFormat> rating_format_of_name(std::string_view name);

/// Detects a format by the first bytes of a file (undone, TextStream::head). What is detected to be nothing
/// else is `text`. Lines are `user_items` when all hold integers with blanks between them, not all equally
/// many, or more than the four columns that a table without a header can have; `json_lines` when the first
/// one begins with { or [, though arrays are none (detect_json_fields). Throws bad_data, beginning with
/// `name`, for what is known and not read: UTF-16, bytes that are no text, lines that end in CR alone.
[[nodiscard]] RatingFormat detect_rating_format(const TextHead& head, std::string_view name);

/// Whether what was detected to be `text` may as well be `user_items`: all lines hold three or four integers
/// with blanks between them, and no user comes twice.
[[nodiscard]] bool may_be_user_items(const TextHead& head);

}  // namespace chunkhit
