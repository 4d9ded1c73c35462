#include "pack/ratings/hdf5_ratings.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "store/hdf5/anndata.h"
#include "store/hdf5/external_check.h"

namespace chunkhit {
namespace {

std::unique_ptr<AnnDataFile> open_file(const std::string& path, const Hdf5RatingsSpec& spec) {
  check_external_file(path, {.names = {}, .matrix = spec.hdf5_path});
  return std::make_unique<AnnDataFile>(path, spec.hdf5_path, spec.memory_bytes);
}

}  // namespace

Hdf5RatingReader::Hdf5RatingReader(const std::string& path, const Hdf5RatingsSpec& spec)
    : file_(open_file(path, spec)),
      transpose_(spec.transpose),
      knows_columns_(file_->matrix().facts().column_count != UINT64_MAX),
      collector_(path, axis_ids(path, file_->matrix().take_row_names(), "rows"),
                 axis_ids(path, file_->matrix().take_column_names(), "columns"), transpose_),
      entries_((keep_type(path, spec.feature_type), open_entries(path))) {
  const CsrFacts& facts = file_->matrix().facts();
  for (const std::string& notice : facts.notices) facts_.notices.push_back(path + ": " + notice);
  facts_.is_transposed = transpose_;
  facts_.user_count = transpose_ ? facts.column_count : facts.row_count;
  facts_.item_count = transpose_ ? facts.row_count : facts.column_count;
  if (!kept_columns_.empty())
    (transpose_ ? facts_.user_count : facts_.item_count) =
        static_cast<std::uint64_t>(std::ranges::count(kept_columns_, true));
}

Hdf5RatingReader::~Hdf5RatingReader() = default;

/// Marks the columns of a type; without one says which types stand beside each other.
void Hdf5RatingReader::keep_type(const std::string& path, const std::string& type) {
  const TextList& types = file_->matrix().facts().column_types;
  std::map<std::string, std::uint64_t> counts;
  for (std::size_t column = 0; column < types.size(); ++column) ++counts[std::string(types[column])];
  const std::string found = joined(
      counts, ", ", [](const auto& each) { return each.first + " (" + count_text(each.second) + ")"; });
  if (type.empty()) {
    if (counts.size() > 1)
      facts_.notices.push_back(path + ": features of several types: " + printable_text(found) +
                               "; `feature_type` takes one");
    return;
  }
  if (counts.empty()) throw_bad_data(path + ": `feature_type` " + type + ": its features have no types");
  if (!counts.contains(type))
    throw_bad_data(path + ": `feature_type` " + type + ": found " + printable_text(found));
  for (std::size_t column = 0; column < types.size(); ++column)
    kept_columns_.push_back(types[column] == type);
}

AxisIds Hdf5RatingReader::axis_ids(const std::string& path, TextList names, const char* axis) {
  for (std::size_t index = 0; index < names.size(); ++index)
    if (!is_utf8(names[index]))
      throw_bad_data(path + ": name " + std::to_string(index) + " of " + axis +
                     ", counted from 0: expected UTF-8");
  std::size_t empty_count = 0;
  for (std::size_t index = 0; index < names.size(); ++index) empty_count += names[index].empty() ? 1 : 0;
  if (empty_count > 0)
    facts_.notices.push_back(path + ": " + std::to_string(empty_count) + " names of " + axis + " are empty");
  const bool are_items = (axis == std::string_view("rows")) == transpose_;
  if (are_items && names.size() == 0) facts_.first_item = 0;
  AxisIds ids{std::move(names), 0};
  if (const std::size_t changed = make_unique_names(ids.names); changed > 0)
    facts_.notices.push_back(std::to_string(changed) + " names of " + axis +
                             " were there before; they got -1, -2, ... appended");
  return ids;
}

EntrySource Hdf5RatingReader::open_entries(const std::string& path) {
  const CsrFacts& facts = file_->matrix().facts();
  ArrayShape shape{path + ": " + facts.path, facts.row_count,
                   knows_columns_ ? facts.column_count : ArrayShape::kUnknown,
                   knows_columns_ ? nullptr : &found_columns_};
  const ValueSource values = [this](std::span<float> numbers) { file_->matrix().read_values(numbers); };
  if (facts.storage == CsrStorage::dense) return dense_entries(shape, false, values);
  return compressed_entries(
      std::move(shape),
      {.entry_count = facts.entry_count,
       .by_columns = facts.storage == CsrStorage::csc,
       .kept_columns = kept_columns_,
       .indptr = [this](std::span<std::int64_t> numbers) { file_->matrix().read_indptr(numbers); },
       .indices = [this](std::span<std::int64_t> numbers) { file_->matrix().read_indices(numbers); },
       .values = values});
}

bool Hdf5RatingReader::next(RatingBlock& block) {
  collector_.begin(block);
  while (!at_end_ && !collector_.is_full()) at_end_ = !entries_(collector_);
  const bool has_ratings = collector_.finish();
  facts_.rounded = file_->matrix().rounded();
  if (!knows_columns_) (transpose_ ? facts_.user_count : facts_.item_count) = found_columns_;
  return has_ratings;
}

}  // namespace chunkhit
