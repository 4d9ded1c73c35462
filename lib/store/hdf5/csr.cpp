#include "store/hdf5/csr.h"

#include <algorithm>
#include <utility>

#include "base/words.h"
#include "chunkhit/error.h"
#include "store/hdf5/columns.h"

namespace chunkhit {
namespace {

/// Chunks that are held take at most this share of the memory, beside ids, blocks and ratings.
constexpr std::uint64_t kChunkShare = 3;
/// Of a name: ends in growing lists, and what finds equal names.
constexpr std::uint64_t kNameBytes = 80;
constexpr std::uint64_t kNameCopies = 5;
/// A byte of a file decompresses to at most so many (deflate's limit), and a name takes at least one.
constexpr std::uint64_t kMaxInflation = 1032;
/// Of a name that becomes an id, as pack-sparse counts users and items.
constexpr std::uint64_t kIdBytes = 240;

[[noreturn]] void refuse_memory(const std::string& what, std::uint64_t memory_bytes, double enough) {
  throw Error(ErrorCode::usage, "`memory_bytes` " + bytes_text(static_cast<double>(memory_bytes)) +
                                    " cannot hold " + what + ": give `memory_bytes` " + memory_text(enough));
}

}  // namespace

Hdf5Csr::Hdf5Csr(const std::string& path, const std::string& place, std::uint64_t memory_bytes)
    : input_(path), check_(ErrorCode::bad_data, path), source_(check_, input_), memory_bytes_(memory_bytes) {
  const QuietHdf5 quiet;
  open_arrays(place);
}

void Hdf5Csr::open_arrays(const std::string& place) {
  register_lzf(check_);
  const CsrLayout layout = find_csr_layout(check_, source_.file(), place);
  facts_.place = layout.place.empty() ? "/" : layout.place;
  values_.emplace(check_, source_.file(), layout.place + (layout.is_dense ? "" : "/data"));
  facts_.entry_count = values_->count();
  if (layout.is_dense)
    open_dense();
  else
    open_compressed(layout);
  check_chunk_memory();
  if (layout.kind != CsrFileKind::bare)
    check_name_memory(facts_.row_count + (facts_.column_count == UINT64_MAX ? 0 : facts_.column_count), 0);
  read_axis_names(check_, source_.file(), layout, facts_);
  check_name_memory(facts_.row_names.count() + facts_.column_names.count(),
                    facts_.row_names.text.size() + facts_.column_names.text.size());
}

/// While a chunk is decompressed it is there as it is stored, and again.
void Hdf5Csr::check_chunk_memory() const {
  std::uint64_t sum = 0;
  std::uint64_t largest = 0;
  for (const auto* list : {&values_, &indices_, &indptr_}) {
    const std::uint64_t bytes = *list ? (*list)->chunk_bytes() : 0;
    sum += bytes;
    largest = std::max(largest, bytes);
  }
  if ((sum + largest) <= memory_bytes_ / kChunkShare) return;
  refuse_memory("the chunks of " + input_.path() + ": " + facts_.place + " (" +
                    bytes_text(static_cast<double>(sum)) +
                    " at a time; h5repack -l CHUNK=1000000 writes them smaller)",
                memory_bytes_, static_cast<double>(sum + largest) * kChunkShare);
}

void Hdf5Csr::check_name_memory(std::uint64_t count, std::uint64_t text_bytes) const {
  const double text = static_cast<double>(text_bytes) * kNameCopies;
  const auto names = static_cast<double>(count);
  if (names * kNameBytes + text <= static_cast<double>(memory_bytes_)) return;
  if (count / kMaxInflation > input_.byte_count())
    check_.refuse(facts_.place + " has a shape of " + count_text(count) + " rows and columns, more than " +
                  std::to_string(input_.byte_count()) + " bytes can name");
  refuse_memory("the " + count_text(count) + " names of rows and columns of " + input_.path(), memory_bytes_,
                names * kIdBytes + text);
}

void Hdf5Csr::open_dense() {
  facts_.storage = CsrStorage::dense;
  if (values_->dimensions().size() != 2)
    check_.refuse(facts_.place + " has one dimension, expected a matrix");
  facts_.row_count = values_->dimensions()[0];
  facts_.column_count = values_->dimensions()[1];
}

void Hdf5Csr::open_compressed(const CsrLayout& layout) {
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

void Hdf5Csr::set_sides(const CsrLayout& layout, std::uint64_t outer_count) {
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
  if (layout.format.empty()) {
    if (facts_.row_count != outer_count && facts_.column_count == outer_count)
      facts_.storage = CsrStorage::csc;
    facts_.notices.push_back(facts_.place + ": does not say its format: taken as " +
                             (facts_.storage == CsrStorage::csr ? "csr" : "csc"));
  }
}

}  // namespace chunkhit
