#include "store/hdf5_csr_arrays.h"

#include <utility>

#include "store/hdf5_lzf.h"

namespace chunkhit {

Hdf5CsrArrays::Hdf5CsrArrays(const std::string& path, const std::string& place)
    : input_(path), check_(ErrorCode::bad_data, path), source_(check_, input_) {
  register_lzf(check_);
  const CsrLayout layout = find_csr_layout(check_, source_.file(), place);
  facts_.place = layout.place.empty() ? "/" : layout.place;
  values_.emplace(check_, source_.file(), layout.place + (layout.is_dense ? "" : "/data"));
  facts_.entry_count = values_->count();
  if (layout.is_dense)
    open_dense();
  else
    open_compressed(layout);
  read_axis_names(check_, source_.file(), layout, facts_);
}

void Hdf5CsrArrays::open_dense() {
  facts_.storage = CsrStorage::dense;
  if (values_->dimensions().size() != 2)
    check_.refuse(facts_.place + " has one dimension, expected a matrix");
  facts_.row_count = values_->dimensions()[0];
  facts_.column_count = values_->dimensions()[1];
}

void Hdf5CsrArrays::open_compressed(const CsrLayout& layout) {
  indices_.emplace(check_, source_.file(), layout.place + "/indices");
  indptr_.emplace(check_, source_.file(), layout.place + "/indptr");
  for (const auto* list : {&*values_, &*indices_, &*indptr_})
    if (list->dimensions().size() != 1) check_.refuse(facts_.place + " has an array that is no list");
  if (indices_->count() != facts_.entry_count)
    check_.refuse(facts_.place + " has " + std::to_string(facts_.entry_count) + " values and " +
                  std::to_string(indices_->count()) + " indices");
  if (indptr_->count() == 0) check_.refuse(facts_.place + " has an empty indptr");
  set_sides(layout, indptr_->count() - 1);
  const std::uint64_t outer = facts_.storage == CsrStorage::csr ? facts_.row_count : facts_.column_count;
  if (indptr_->count() != outer + 1)
    check_.refuse(facts_.place + " has " + std::to_string(indptr_->count()) +
                  " numbers in indptr, expected " + std::to_string(outer + 1));
}

void Hdf5CsrArrays::set_sides(const CsrLayout& layout, std::uint64_t outer_count) {
  facts_.storage = layout.format == "csc" ? CsrStorage::csc : CsrStorage::csr;
  if (layout.shape.empty()) {
    if (facts_.storage == CsrStorage::csc) check_.refuse(facts_.place + " does not say its shape");
    facts_.row_count = outer_count;
    facts_.column_count = UINT64_MAX;
    facts_.notices.push_back(facts_.place +
                             ": does not say its shape: columns behind the last entry are lost");
    return;
  }
  facts_.row_count = static_cast<std::uint64_t>(layout.shape[0]);
  facts_.column_count = static_cast<std::uint64_t>(layout.shape[1]);
  if (layout.kind == CsrFileKind::tenx) {
    facts_.storage = CsrStorage::csr;
    std::swap(facts_.row_count, facts_.column_count);
  } else if (layout.format.empty()) {
    if (facts_.row_count != outer_count && facts_.column_count == outer_count)
      facts_.storage = CsrStorage::csc;
    facts_.notices.push_back(facts_.place + ": does not say its format: taken as " +
                             (facts_.storage == CsrStorage::csr ? "csr" : "csc"));
  }
}

}  // namespace chunkhit
