#include "ratings/npz.h"

#include <array>
#include <utility>

#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::string_view kArrayEnding = ".npy";
constexpr std::array<const char*, 7> kArrayNames{"format", "shape", "data", "indices",
                                                 "indptr", "row",   "col"};

IntegerSource integers_of(NpyArray& array) {
  return [&array](std::span<std::int64_t> numbers) { array.read(numbers); };
}

ValueSource values_of(NpyArray& array) {
  return [&array](std::span<float> numbers) { array.read(numbers); };
}

}  // namespace

NpzReader::NpzReader(const std::string& path, bool transpose)
    : path_(path), transpose_(transpose), collector_(path, {}, {}, transpose_) {
  open_arrays();
  const std::string format = read_format();
  read_shape(format);
  if (format == "csr" || format == "csc")
    entries_ = open_compressed(format == "csc");
  else if (format == "coo")
    entries_ = open_coordinates();
  else
    refuse("has format \"" + printable_text(format) +
           "\", expected csr, csc or coo; convert it: scipy.sparse.save_npz(path, matrix.tocsr())");
}

bool NpzReader::next(RatingBlock& block) {
  collector_.begin(block);
  while (!at_end_ && !collector_.is_full()) at_end_ = !entries_(collector_);
  const bool has_ratings = collector_.finish();
  facts_.rounded = array("data").rounded();
  if (shape_.found_columns != nullptr) (transpose_ ? facts_.user_count : facts_.item_count) = found_columns_;
  return has_ratings;
}

void NpzReader::open_arrays() {
  std::string listed;
  // Other members may be there: programs add names of rows, say.
  for (const std::string& member : list_zip_members(path_)) {
    listed += (listed.empty() ? "" : ", ") + printable_text(member);
    if (!member.ends_with(kArrayEnding)) continue;
    const std::string name = member.substr(0, member.size() - kArrayEnding.size());
    if (name == "coords")
      refuse(
          "has coordinates of n dimensions (coords.npy); make a matrix of them: scipy.sparse.csr_array(x)");
    for (const char* known : kArrayNames)
      if (name == known) arrays_.emplace(name, NpyArray(path_, member));
  }
  if (!has("data"))
    refuse("has no data.npy, only " + (listed.empty() ? "nothing" : listed.substr(0, 400)) +
           "; expected what scipy.sparse.save_npz writes");
}

NpyArray& NpzReader::array(const char* name) {
  const auto found = arrays_.find(name);
  if (found == arrays_.end()) refuse(std::string("has no ") + name + ".npy");
  return found->second;
}

NpyArray& NpzReader::list(const char* name) {
  NpyArray& found = array(name);
  if (found.header().shape.size() != 1)
    found.refuse("has " + std::to_string(found.header().shape.size()) + " dimensions, expected 1");
  return found;
}

std::string NpzReader::read_format() {
  if (has("format")) return array("format").read_text();
  const bool is_csr = has("indices") && has("indptr");
  if (!is_csr && !(has("row") && has("col") && has("shape")))
    refuse("does not say its format, and is neither data, indices and indptr nor data, row, col and shape");
  facts_.notices.push_back(path_ + ": does not say its format: taken as " + (is_csr ? "csr" : "coo"));
  return is_csr ? "csr" : "coo";
}

void NpzReader::read_shape(const std::string& format) {
  shape_.name = path_;
  if (has("shape")) {
    require_count("shape", 2);
    std::array<std::int64_t, 2> sides;
    array("shape").read(sides);
    if (sides[0] < 0 || sides[1] < 0 || sides[0] == INT64_MAX)
      refuse("has shape (" + std::to_string(sides[0]) + ", " + std::to_string(sides[1]) + ")");
    shape_.row_count = static_cast<std::uint64_t>(sides[0]);
    shape_.column_count = static_cast<std::uint64_t>(sides[1]);
  } else if (format == "csr") {
    const std::uint64_t count = list("indptr").count();
    if (count == 0) refuse("indptr is empty");
    shape_.row_count = count - 1;
    shape_.column_count = ArrayShape::kUnknown;
    shape_.found_columns = &found_columns_;
    facts_.notices.push_back(path_ + ": does not say its shape: columns behind the last entry are lost");
  } else {
    refuse("has no shape.npy");
  }
  facts_.is_transposed = transpose_;
  facts_.first_item = 0;
  facts_.user_count = transpose_ ? shape_.column_count : shape_.row_count;
  facts_.item_count = transpose_ ? shape_.row_count : shape_.column_count;
}

EntrySource NpzReader::open_compressed(bool by_columns) {
  const std::uint64_t entry_count = list("data").count();
  require_count("indices", entry_count);
  require_count("indptr", (by_columns ? shape_.column_count : shape_.row_count) + 1);
  return compressed_entries(shape_, {.entry_count = entry_count,
                                     .by_columns = by_columns,
                                     .indptr = integers_of(array("indptr")),
                                     .indices = integers_of(array("indices")),
                                     .values = values_of(array("data"))});
}

EntrySource NpzReader::open_coordinates() {
  const std::uint64_t entry_count = list("data").count();
  require_count("row", entry_count);
  require_count("col", entry_count);
  return coordinate_entries(shape_, entry_count, integers_of(array("row")), integers_of(array("col")),
                            values_of(array("data")));
}

void NpzReader::require_count(const char* name, std::uint64_t expected) {
  const NpyArray& found = list(name);
  if (found.count() != expected)
    found.refuse("has " + std::to_string(found.count()) + " numbers, expected " + std::to_string(expected));
}

void NpzReader::refuse(const std::string& what) const {
  throw Error(ErrorCode::bad_data, path_ + ": " + what);
}

}  // namespace chunkhit
