#include "store/hdf5_csr.h"

#include <optional>
#include <utility>

#include "base/file.h"
#include "store/hdf5_csr_layout.h"
#include "store/hdf5_csr_numbers.h"
#include "store/hdf5_handle.h"
#include "store/hdf5_source.h"

namespace chunkhit {

struct Hdf5Csr::State {
  State(const std::string& path, const std::string& place);
  void open_dense();
  void open_compressed(const CsrLayout& layout);
  void set_sides(const CsrLayout& layout, std::uint64_t pointer_count);

  InputFile input;
  Hdf5Check check;
  Hdf5Source source;
  CsrFacts facts;
  std::optional<Hdf5Numbers> indptr;
  std::optional<Hdf5Numbers> indices;
  std::optional<Hdf5Numbers> values;
};

Hdf5Csr::State::State(const std::string& path, const std::string& place)
    : input(path), check(ErrorCode::bad_data, path), source(check, input) {
  const CsrLayout layout = find_csr_layout(check, source.file(), place);
  facts.place = layout.place.empty() ? "/" : layout.place;
  values.emplace(check, source.file(), layout.place + (layout.is_dense ? "" : "/data"));
  facts.entry_count = values->count();
  if (layout.is_dense)
    open_dense();
  else
    open_compressed(layout);
  read_axis_names(check, source.file(), layout, facts);
}

void Hdf5Csr::State::open_dense() {
  facts.storage = CsrStorage::dense;
  if (values->dimensions().size() != 2) check.refuse(facts.place + " has one dimension, expected a matrix");
  facts.row_count = values->dimensions()[0];
  facts.column_count = values->dimensions()[1];
}

void Hdf5Csr::State::open_compressed(const CsrLayout& layout) {
  indices.emplace(check, source.file(), layout.place + "/indices");
  indptr.emplace(check, source.file(), layout.place + "/indptr");
  for (const auto* list : {&*values, &*indices, &*indptr})
    if (list->dimensions().size() != 1) check.refuse(facts.place + " has an array that is no list");
  if (indices->count() != facts.entry_count)
    check.refuse(facts.place + " has " + std::to_string(facts.entry_count) + " values and " +
                 std::to_string(indices->count()) + " indices");
  if (indptr->count() == 0) check.refuse(facts.place + " has an empty indptr");
  set_sides(layout, indptr->count() - 1);
  const std::uint64_t outer = facts.storage == CsrStorage::csr ? facts.row_count : facts.column_count;
  if (indptr->count() != outer + 1)
    check.refuse(facts.place + " has " + std::to_string(indptr->count()) + " numbers in indptr, expected " +
                 std::to_string(outer + 1));
}

void Hdf5Csr::State::set_sides(const CsrLayout& layout, std::uint64_t outer_count) {
  facts.storage = layout.format == "csc" ? CsrStorage::csc : CsrStorage::csr;
  if (layout.shape.empty()) {
    if (facts.storage == CsrStorage::csc) check.refuse(facts.place + " does not say its shape");
    facts.row_count = outer_count;
    facts.column_count = UINT64_MAX;
    facts.notices.push_back(facts.place + ": does not say its shape: columns behind the last entry are lost");
    return;
  }
  facts.row_count = static_cast<std::uint64_t>(layout.shape[0]);
  facts.column_count = static_cast<std::uint64_t>(layout.shape[1]);
  if (layout.kind == CsrFileKind::tenx) {
    facts.storage = CsrStorage::csr;
    std::swap(facts.row_count, facts.column_count);
  } else if (layout.format.empty()) {
    if (facts.row_count != outer_count && facts.column_count == outer_count) facts.storage = CsrStorage::csc;
    facts.notices.push_back(facts.place + ": does not say its format: taken as " +
                            (facts.storage == CsrStorage::csr ? "csr" : "csc"));
  }
}

Hdf5Csr::Hdf5Csr(const std::string& path, const std::string& place) {
  const QuietHdf5 quiet;
  state_ = std::make_unique<State>(path, place);
}

Hdf5Csr::~Hdf5Csr() {
  const QuietHdf5 quiet;
  state_.reset();
}

const CsrFacts& Hdf5Csr::facts() const { return state_->facts; }

Names Hdf5Csr::take_row_names() { return std::move(state_->facts.row_names); }

Names Hdf5Csr::take_column_names() { return std::move(state_->facts.column_names); }

void Hdf5Csr::read_indptr(std::span<std::int64_t> numbers) {
  const QuietHdf5 quiet;
  state_->indptr->read(state_->check, numbers);
}

void Hdf5Csr::read_indices(std::span<std::int64_t> numbers) {
  const QuietHdf5 quiet;
  state_->indices->read(state_->check, numbers);
}

void Hdf5Csr::read_values(std::span<float> numbers) {
  const QuietHdf5 quiet;
  state_->values->read(state_->check, numbers);
}

std::uint64_t Hdf5Csr::rounded_count() const { return state_->values->rounded_count(); }

}  // namespace chunkhit
