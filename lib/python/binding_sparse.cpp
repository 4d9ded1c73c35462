// SparseLoader: batches of rows as arrays over the memory of the ring.
#include <pybind11/stl.h>

#include "binding_ids.h"
#include "binding_loader.h"
#include "binding_options.h"

namespace chunkhit {
namespace {

/// How matrices are handed out.
struct MatrixForm {
  SparseFormat format = SparseFormat::dense_f32;
  bool times = true;      ///< csr, sequences: where the source has them
  bool writable = false;  ///< arrays may be written to
  bool clears_written =
      true;  ///< and their memory is cleared as a whole then; else the caller promises not to
};

template <class Number>
py::array dense_view(const py::dtype& type, std::span<const Number> cells, const ArrayShape& shape,
                     const py::capsule& owner, bool writable) {
  return array_view(type, shape, cells.data(), owner, writable);
}

/// (items, lengths, None, times or None, block).
py::object sequences_view(const SequenceBatch& sequences, bool has_times, const py::capsule& owner) {
  const ArrayShape shape{static_cast<py::ssize_t>(sequences.lengths.size()),
                         static_cast<py::ssize_t>(sequences.length)};
  return py::make_tuple(
      array_view(sequences.items, shape, owner), array_view(sequences.lengths, {shape[0]}, owner), py::none(),
      has_times ? py::object(array_view(sequences.times, shape, owner)) : py::none(),
      array_view(sequences.block, {static_cast<py::ssize_t>(sequences.block.size())}, owner));
}

/// (None, users, items, values, negatives, times or None, block).
py::object pairs_view(const PairBatch& pairs, bool has_times, const py::capsule& owner) {
  const auto count = static_cast<py::ssize_t>(pairs.users.size());
  const auto negatives = count == 0 ? 0 : static_cast<py::ssize_t>(pairs.negatives.size()) / count;
  return py::make_tuple(py::none(), array_view(pairs.users, {count}, owner),
                        array_view(pairs.items, {count}, owner), array_view(pairs.values, {count}, owner),
                        array_view(pairs.negatives, {count, negatives}, owner),
                        has_times ? py::object(array_view(pairs.times, {count}, owner)) : py::none(),
                        array_view(pairs.block, {static_cast<py::ssize_t>(pairs.block.size())}, owner));
}

/// An array (rows, columns); or (indptr, indices, values, times or None, block); or what sequences_view
/// or pairs_view gives.
py::object matrix_view(const SparseMatrix& matrix, const MatrixForm& form, const py::capsule& owner) {
  const ArrayShape shape{static_cast<py::ssize_t>(matrix.row_count()),
                         static_cast<py::ssize_t>(matrix.column_count())};
  // Cells that only we set are cleared one by one; where the caller may write, all are cleared.
  const bool is_spoiled = form.writable && form.clears_written;
  switch (form.format) {
    case SparseFormat::dense_f32:
      if (is_spoiled) static_cast<void>(matrix.writable_dense_f32());
      return dense_view(py::dtype::of<float>(), matrix.dense_f32(), shape, owner, form.writable);
    case SparseFormat::dense_f16:
      if (is_spoiled) static_cast<void>(matrix.writable_dense_f16());
      return dense_view(py::dtype(kHalfFloat), matrix.dense_f16(), shape, owner, form.writable);
    case SparseFormat::dense_u8:
      if (is_spoiled) static_cast<void>(matrix.writable_dense_u8());
      return dense_view(py::dtype::of<std::uint8_t>(), matrix.dense_u8(), shape, owner, form.writable);
    case SparseFormat::sequences:
      return sequences_view(matrix.sequences(), form.times, owner);
    case SparseFormat::pairs:
      return pairs_view(matrix.pairs(), form.times, owner);
    case SparseFormat::csr:
      break;
  }
  const CsrBatch& csr = matrix.csr();
  const auto flat = [&](auto numbers) {
    return array_view(numbers, {static_cast<py::ssize_t>(numbers.size())}, owner);
  };
  return py::make_tuple(flat(csr.indptr), flat(csr.indices), flat(csr.values),
                        form.times ? py::object(flat(csr.times)) : py::none(), flat(csr.block));
}

/// (x, held_out or None, labels or None, rows, epoch, index), which keep the batch.
py::tuple batch_tuple(const std::shared_ptr<const SparseBatch>& batch, const MatrixForm& form,
                      bool has_held_out) {
  const py::capsule owner = owner_of(batch);
  const auto count = static_cast<py::ssize_t>(batch->rows.size());
  const auto columns = count == 0 ? 0 : static_cast<py::ssize_t>(batch->labels.size()) / count;
  return py::make_tuple(
      matrix_view(*batch, form, owner), has_held_out ? matrix_view(batch->held_out, form, owner) : py::none(),
      columns == 0 ? py::object(py::none()) : array_view(batch->labels, {count, columns}, owner),
      array_view(batch->rows, {count}, owner), batch->epoch, batch->index);
}

class PySparseLoader : public BoundLoader<SparseLoader> {
 public:
  PySparseLoader(const std::vector<std::string>& paths, const py::dict& keywords, bool writable,
                 bool clears_written)
      : PySparseLoader(paths, options_of<SparseLoaderOptions>(keywords), writable, clears_written) {}
  py::object next() {
    return next_by([this](const auto& batch) { return batch_tuple(batch, form_, loader().has_held_out()); });
  }

 private:
  PySparseLoader(const std::vector<std::string>& paths, const SparseLoaderOptions& options, bool writable,
                 bool clears_written)
      : BoundLoader(make_without_gil<SparseLoader>(paths, options)),
        form_{options.format,
              (options.format == SparseFormat::pairs ? options.pair_times : options.times) &&
                  !loader().info().matrix().times.empty(),
              writable, clears_written} {}

  MatrixForm form_;
};

/// int32 (count,).
py::array_t<std::int32_t> draw_items(const PopularitySampler& sampler,
                                     const py::array_t<std::int32_t, py::array::c_style>& own,
                                     std::uint64_t seed, std::uint64_t index, std::size_t count) {
  const std::span<const std::int32_t> columns(own.data(), static_cast<std::size_t>(own.size()));
  std::vector<std::int32_t> items(count);
  {
    const ReleasedGil release;
    sampler.draw(columns, seed, index, items);
  }
  return array_of(std::move(items));
}

/// Arrays that C++ views as the items of rows: (indptr, indices), dense cells, or None.
class PyRowItems {
 public:
  explicit PyRowItems(const py::object& matrix) {
    if (matrix.is_none()) return;
    if (py::isinstance<py::tuple>(matrix)) {
      const auto arrays = py::reinterpret_borrow<py::tuple>(matrix);
      indptr_ = arrays[0].cast<Columns>();
      indices_ = arrays[1].cast<Columns>();
      items_.indptr = {indptr_.data(), static_cast<std::size_t>(indptr_.size())};
      items_.indices = {indices_.data(), static_cast<std::size_t>(indices_.size())};
      return;
    }
    cells_ = py::array::ensure(matrix, py::array::c_style);
    items_.cells = {static_cast<const std::uint8_t*>(cells_.data()),
                    static_cast<std::size_t>(cells_.nbytes())};
    items_.cell_bytes = static_cast<std::size_t>(cells_.itemsize());
  }
  [[nodiscard]] const RowItems& items() const { return items_; }

 private:
  using Columns = py::array_t<std::int32_t, py::array::c_style>;
  Columns indptr_;
  Columns indices_;
  py::array cells_;
  RowItems items_;
};

/// int32 (rows, count).
py::array draw_batch(const PopularitySampler& sampler, const IndexArray& rows, const py::object& x,
                     const py::object& held_out, std::uint64_t seed, std::uint64_t epoch, std::size_t count) {
  const PyRowItems x_items(x);
  const PyRowItems held_out_items(held_out);
  const ArrayShape shape{rows.size(), static_cast<py::ssize_t>(count)};
  py::array_t<std::int32_t> items(shape);
  const std::span<std::int32_t> out(items.mutable_data(), static_cast<std::size_t>(items.size()));
  const std::span<const std::uint64_t> numbers = indices_of(rows);
  {
    const ReleasedGil release;
    sampler.draw_batch(numbers, x_items.items(), held_out_items.items(), seed, epoch, out);
  }
  return items;
}

void bind_sampler(py::module_& module) {
  py::class_<PopularitySampler>(module, "PopularitySampler")
      .def(py::init([](const IndexArray& item_counts, double power) {
             return PopularitySampler(indices_of(item_counts), power);
           }),
           py::arg("item_counts"), py::arg("power"))
      .def("draw", &draw_items, py::arg("own"), py::arg("seed"), py::arg("index"), py::arg("count"))
      .def("draw_batch", &draw_batch, py::arg("rows"), py::arg("x"), py::arg("held_out"), py::arg("seed"),
           py::arg("epoch"), py::arg("count"));
}

}  // namespace

void bind_sparse(py::module_& module) {
  bind_sampler(module);
  py::class_<PySparseLoader> bound(module, "SparseLoader");
  bound.def(py::init<const std::vector<std::string>&, const py::dict&, bool, bool>(), py::arg("paths"),
            py::arg("options"), py::arg("writable"), py::arg("clears_written"));
  bind_loader(bound, "The next (x, held_out, labels, rows, epoch, index), or None at the epoch's end.");
  bind_ids(bound, [](const PySparseLoader& self) -> const SparseLoader& { return self.loader(); });
  bound
      .def("item_counts",
           [](const PySparseLoader& self) {
             const std::span<const std::uint64_t> counts = self.loader().item_counts();
             return array_of(std::vector<std::uint64_t>(counts.begin(), counts.end()));
           })
      .def_property_readonly("column_count",
                             [](const PySparseLoader& self) { return self.loader().column_count(); })
      .def_property_readonly("has_held_out",
                             [](const PySparseLoader& self) { return self.loader().has_held_out(); })
      .def_property_readonly("value_scale",
                             [](const PySparseLoader& self) { return self.loader().value_scale(); });
}

}  // namespace chunkhit
