// RatingWriter: arrays and lists of texts → entries. It packs in a thread of its own, which this one watches.
#include <pybind11/stl.h>

#include "binding_ids.h"
#include "binding_pack.h"
#include "chunkhit/rating_writer.h"

namespace chunkhit {
namespace {

/// Ids of a list of texts, or of int64 (count,), and what holds them.
class HeldIds {
 public:
  HeldIds(const py::object& ids, const char* name) {
    if (!py::isinstance<py::list>(ids)) {
      numbers_ = ids.cast<Numbers>();
      return;
    }
    list_ = py::reinterpret_borrow<py::list>(ids);
    for (std::size_t at = 0; at < list_.size(); ++at) {
      const py::object text = list_[at];
      if (PyUnicode_Check(text.ptr()) == 0)
        throw py::type_error(std::string(name) + "[" + std::to_string(at) +
                             "]: expected a text or a whole number, found " +
                             py::repr(text).cast<std::string>());
      texts_.push_back(view_of(text));
    }
  }
  [[nodiscard]] RatingIds get() const {
    if (numbers_) return std::span(numbers_->data(), static_cast<std::size_t>(numbers_->size()));
    return std::span(texts_);
  }

 private:
  using Numbers = py::array_t<std::int64_t, py::array::c_style>;
  std::optional<Numbers> numbers_;
  py::list list_;
  std::vector<std::string_view> texts_;
};

/// Views an array as long as it lives; None as nothing.
template <class Number>
std::span<const Number> span_of(const py::object& array) {
  if (array.is_none()) return {};
  const auto numbers = array.cast<py::array_t<Number, py::array::c_style>>();
  return {numbers.data(), static_cast<std::size_t>(numbers.size())};
}

RatingValues values_of(const py::object& array) {
  if (py::isinstance<py::array_t<float>>(array)) return span_of<float>(array);
  return span_of<double>(array);
}

/// A writer and what watches its run.
class BoundRatingWriter {
 public:
  BoundRatingWriter(const py::dict& keywords, py::object on_progress) : watch_(std::move(on_progress)) {
    OptionDict from(keywords);
    PackSparseOptions options = sparse_options(from);
    const PackSparseSpec spec = sparse_spec(from, options.inputs);
    from.finish();
    watch_.watch(options);
    writer_ = std::make_unique<RatingWriter>(spec, std::move(options));
  }
  BoundRatingWriter(const BoundRatingWriter&) = delete;
  BoundRatingWriter& operator=(const BoundRatingWriter&) = delete;
  ~BoundRatingWriter() { close(); }

  void add(const py::object& users, const py::object& items, const py::object& values,
           const py::object& times) {
    const HeldIds held_users(users, "users");
    const HeldIds held_items(items, "items");
    add_entries(
        RatingEntries{held_users.get(), held_items.get(), values_of(values), span_of<std::int64_t>(times)});
  }
  void add_rows(const py::object& users, const IndexArray& indptr, const py::object& items,
                const py::object& values) {
    const HeldIds held_users(users, "users");
    const HeldIds held_items(items, "items");
    add_entries(CsrEntries{held_users.get(), indices_of(indptr), held_items.get(), values_of(values)});
  }
  void finish() {
    static_cast<void>(watch_.run([&writer = open_writer()] { return writer.finish(); }));
    close();
  }
  void close() { end_without_gil(writer_); }
  [[nodiscard]] bool is_closed() const { return !writer_; }

 private:
  [[nodiscard]] RatingWriter& open_writer() const {
    if (!writer_) throw Error(ErrorCode::usage, "the writer is closed");
    return *writer_;
  }
  template <class Entries>
  void add_entries(const Entries& entries) {
    RatingWriter& writer = open_writer();
    {
      const py::gil_scoped_release release;
      writer.add(entries);
    }
    watch_.show();
  }

  RunWatch<PackSparseProgress> watch_;
  std::unique_ptr<RatingWriter> writer_;
};

}  // namespace

void bind_writers(py::module_& module) {
  py::class_<BoundRatingWriter>(module, "RatingWriter")
      .def(py::init<const py::dict&, py::object>(), py::arg("options"), py::arg("on_progress"))
      .def("add", &BoundRatingWriter::add, py::arg("users"), py::arg("items"), py::arg("values"),
           py::arg("times"))
      .def("add_rows", &BoundRatingWriter::add_rows, py::arg("users"), py::arg("indptr"), py::arg("items"),
           py::arg("values"))
      .def("finish", &BoundRatingWriter::finish)
      .def("close", &BoundRatingWriter::close)
      .def_property_readonly("is_closed", &BoundRatingWriter::is_closed);
}

}  // namespace chunkhit
