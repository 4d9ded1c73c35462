// Writers of what a program has in memory: arrays and lists of texts → views.
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>

#include "arrow_table.h"
#include "base/text.h"
#include "binding_ids.h"
#include "binding_pack.h"
#include "chunkhit/image_writer.h"
#include "chunkhit/rating_writer.h"
#include "ratings/rating_names.h"
#include "types/enum_names.h"

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
template <class Writer, class Progress>
class BoundWriter {
 public:
  BoundWriter(const BoundWriter&) = delete;
  BoundWriter& operator=(const BoundWriter&) = delete;
  // NOLINTNEXTLINE(bugprone-exception-escape): giving the GIL up does not throw
  ~BoundWriter() { end_without_gil(writer_); }
  /// Returns warnings.
  [[nodiscard]] std::vector<std::string> finish() {
    const Turn turn(is_in_use_, "writer");
    const auto report = watch_.run([&writer = open_writer()] { return writer.finish(); });
    end_without_gil(writer_);
    return warnings_of(report);
  }
  void close() {
    const Turn turn(is_in_use_, "writer");
    end_without_gil(writer_);
  }
  [[nodiscard]] bool is_closed() const { return !writer_; }

 protected:
  explicit BoundWriter(py::object on_progress) : watch_(std::move(on_progress)) {}
  template <class Spec, class Options, class... More>
  void open(Spec spec, Options options, More... more) {
    watch_.watch(options);
    const ReleasedGil release;
    writer_ = std::make_unique<Writer>(std::move(spec), std::move(options), std::move(more)...);
  }
  template <class... What>
  void add_all(const What&... what) {
    add_by([&](Writer& writer) { writer.add(what...); });
  }
  /// Calls `add` with the writer, without the GIL.
  template <class Add>
  void add_by(const Add& add) {
    {
      const Turn turn(is_in_use_, "writer");
      Writer& writer = open_writer();
      const ReleasedGil release;
      add(writer);
    }
    const auto now = std::chrono::steady_clock::now();
    if (now - shown_ < kSignalInterval) return;
    watch_.show();
    shown_ = now;
  }

 private:
  [[nodiscard]] Writer& open_writer() const {
    if (!writer_) throw Error(ErrorCode::usage, "the writer is closed");
    return *writer_;
  }

  RunWatch<Progress> watch_;
  std::unique_ptr<Writer> writer_;
  bool is_in_use_ = false;  ///< by a thread
  std::chrono::steady_clock::time_point shown_;
};

/// What a capsule holds, which is empty then; throws usage for one of another kind, or one that was read.
template <class Struct>
ArrowOwned<Struct> taken_from(const py::object& capsule, const char* name) {
  if (PyCapsule_IsValid(capsule.ptr(), name) == 0)
    throw Error(ErrorCode::usage, std::string("table: expected a capsule of ") + name + ", found " +
                                      py::repr(capsule).cast<std::string>());
  auto* const held = static_cast<Struct*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (held->release == nullptr)
    throw Error(ErrorCode::usage, "table: its batches were read before, and it gives them once");
  return ArrowOwned<Struct>(*held);
}

/// Ends without the GIL: a producer may ask for it in another thread.
class BoundArrowTable {
 public:
  explicit BoundArrowTable(const py::object& stream) {
    auto taken = taken_from<ArrowArrayStream>(stream, "arrow_array_stream");
    const ReleasedGil release;
    table_ = std::make_unique<ArrowTable>(std::move(taken));
  }
  BoundArrowTable(const py::object& schema, const py::object& batch) {
    auto type = taken_from<ArrowSchema>(schema, "arrow_schema");
    auto taken = taken_from<ArrowArray>(batch, "arrow_array");
    const ReleasedGil release;
    table_ = std::make_unique<ArrowTable>(std::move(type), std::move(taken));
  }
  BoundArrowTable(const BoundArrowTable&) = delete;
  BoundArrowTable& operator=(const BoundArrowTable&) = delete;
  // NOLINTNEXTLINE(bugprone-exception-escape): giving the GIL up does not throw
  ~BoundArrowTable() { end(); }
  /// Releases what the producer gave.
  void end() { end_without_gil(table_); }
  [[nodiscard]] py::list names() const {
    py::list names;
    for (const std::string& name : get().names()) names.append(text_of(name));
    return names;
  }
  [[nodiscard]] ArrowTable& get() const {
    if (!table_) throw Error(ErrorCode::usage, "table: was read before");
    return *table_;
  }

 private:
  std::unique_ptr<ArrowTable> table_;
};

class BoundRatingWriter : public BoundWriter<RatingWriter, PackSparseProgress> {
 public:
  BoundRatingWriter(const py::dict& keywords, py::object on_progress) : BoundWriter(std::move(on_progress)) {
    OptionDict from(keywords);
    PackSparseOptions options = sparse_options(from);
    PackSparseSpec spec = sparse_spec(from, options.inputs);
    from.finish();
    open(std::move(spec), std::move(options));
  }
  void add(const py::object& users, const py::object& items, const py::object& values,
           const py::object& times, std::uint64_t first_entry) {
    const HeldIds held_users(users, "users");
    const HeldIds held_items(items, "items");
    add_all(RatingEntries{held_users.get(), held_items.get(), values_of(values), span_of<std::int64_t>(times),
                          first_entry});
  }
  /// Adds all rows of a table, whose first one has the number `first_row`, and returns their count.
  std::uint64_t add_table(BoundArrowTable& bound, const ArrowColumns& columns, std::uint64_t first_row) {
    constexpr std::size_t kRows = std::size_t{1} << 16;  // their ids and values stay in the CPU's cache
    struct End {
      BoundArrowTable& bound;
      // NOLINTNEXTLINE(bugprone-exception-escape): giving the GIL up does not throw
      ~End() { bound.end(); }
    } const end_of_table{bound};
    ArrowTable& table = bound.get();
    table.choose(columns);
    std::uint64_t row = first_row;
    bool has_batch = true;
    while (has_batch) {
      add_by([&](RatingWriter&) { has_batch = table.next(); });
      const std::size_t end = has_batch ? table.row_count() : 0;
      for (std::size_t first = 0; first < end; first += kRows) {
        const std::size_t count = std::min(kRows, end - first);
        add_by([&](RatingWriter& writer) { writer.add(table.entries(first, count, row)); });
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        row += count;
      }
    }
    return row - first_row;
  }
  void add_rows(const py::object& users, const IndexArray& indptr, const py::object& items,
                const py::object& values) {
    const HeldIds held_users(users, "users");
    const HeldIds held_items(items, "items");
    add_all(CsrEntries{held_users.get(), indices_of(indptr), held_items.get(), values_of(values)});
  }
};

using ByteArray = py::array_t<std::uint8_t, py::array::c_style>;

/// Views an int, a text, or float32 (columns,), as long as it lives.
SampleLabel label_of(const py::object& label) {
  if (PyLong_Check(label.ptr()) != 0) return label.cast<std::int64_t>();
  if (PyUnicode_Check(label.ptr()) != 0) return view_of(label);
  return span_of<float>(label);
}

/// Views ints, floats and texts, as long as they live.
std::vector<ColumnValue> column_values(const py::list& columns) {
  std::vector<ColumnValue> values;
  for (const py::handle value : columns) {
    if (PyUnicode_Check(value.ptr()) != 0)
      values.emplace_back(view_of(py::reinterpret_borrow<py::object>(value)));
    else if (PyLong_Check(value.ptr()) != 0)
      values.emplace_back(value.cast<std::int64_t>());
    else
      values.emplace_back(value.cast<double>());
  }
  return values;
}

class BoundImageWriter : public BoundWriter<ImageWriter, PackProgress> {
 public:
  BoundImageWriter(const py::dict& keywords, const std::vector<std::string>& class_names,
                   py::object on_progress)
      : BoundWriter(std::move(on_progress)) {
    OptionDict from(keywords);
    PackImagesOptions options = images_options(from);
    PackImagesSpec spec = images_spec(from);
    from.finish();
    open(std::move(spec), std::move(options), class_names);
  }
  /// An image file (bytes,), or pixels (height, width, channels).
  /// `fields`: (name, role, array) each, an array as the image's.
  void add(const ByteArray& image, const py::object& label, const std::string& key, const py::list& columns,
           const std::vector<std::tuple<std::string, std::string, ByteArray>>& fields) {
    const std::vector<ColumnValue> values = column_values(columns);
    const std::span<const ColumnValue> kept(values);
    const std::span<const std::uint8_t> bytes(image.data(), static_cast<std::size_t>(image.size()));
    std::vector<FieldPixels> held;
    held.reserve(fields.size());
    for (const auto& [name, role, array] : fields)
      held.push_back({{name, enum_of<FieldRole>(role).value()}, pixels_of(array)});
    const std::span<const FieldPixels> pixels(held);
    if (image.ndim() == 1) return add_all(bytes, label_of(label), std::string_view(key), kept, pixels);
    add_all(pixels_of(image), label_of(label), std::string_view(key), kept, pixels);
  }

 private:
  /// Views (height, width, channels), or a file, as long as the array lives.
  static PixelsView pixels_of(const ByteArray& array) {
    if (array.ndim() == 1) return {{array.data(), static_cast<std::size_t>(array.size())}};
    const auto side = [&](py::ssize_t axis) { return static_cast<std::uint32_t>(array.shape(axis)); };
    return {{array.data(), static_cast<std::size_t>(array.size())}, side(0), side(1), side(2)};
  }
};

void bind_tables(py::module_& module) {
  py::class_<BoundArrowTable>(module, "ArrowTable")
      .def(py::init<const py::object&>(), py::arg("stream"))
      .def(py::init<const py::object&, const py::object&>(), py::arg("schema"), py::arg("batch"))
      .def_property_readonly("names", &BoundArrowTable::names)
      .def(
          "has_times",
          [](const BoundArrowTable& table, std::size_t column) { return table.get().has_times(column); },
          py::arg("column"));
  module.def("usual_columns", [](const std::vector<std::string>& names, const std::string& field) {
    for (const std::string_view usual :
         usual_names(enum_of<RatingField>(field).value_or(RatingField::other))) {
      std::vector<std::size_t> found;
      for (std::size_t column = 0; column < names.size(); ++column)
        if (plain_name(names[column]) == usual) found.push_back(column);
      if (!found.empty()) return found;
    }
    return std::vector<std::size_t>();
  });
}

}  // namespace

void bind_writers(py::module_& module) {
  bind_tables(module);
  py::class_<BoundRatingWriter>(module, "RatingWriter")
      .def(py::init<const py::dict&, py::object>(), py::arg("options"), py::arg("on_progress"))
      .def("add", &BoundRatingWriter::add, py::arg("users"), py::arg("items"), py::arg("values"),
           py::arg("times"), py::arg("first_entry") = 0)
      .def(
          "add_table",
          [](BoundRatingWriter& self, BoundArrowTable& table, std::size_t user, std::size_t item,
             std::optional<std::size_t> value, std::optional<std::size_t> time, std::uint64_t first_row) {
            return self.add_table(table, {user, item, value, time}, first_row);
          },
          py::arg("table"), py::arg("user"), py::arg("item"), py::arg("value"), py::arg("time"),
          py::arg("first_row"))
      .def("add_rows", &BoundRatingWriter::add_rows, py::arg("users"), py::arg("indptr"), py::arg("items"),
           py::arg("values"))
      .def("finish", &BoundRatingWriter::finish)
      .def("close", &BoundRatingWriter::close)
      .def_property_readonly("is_closed", &BoundRatingWriter::is_closed);
  py::class_<BoundImageWriter>(module, "ImageWriter")
      .def(py::init<const py::dict&, const std::vector<std::string>&, py::object>(), py::arg("options"),
           py::arg("class_names"), py::arg("on_progress"))
      .def("add", &BoundImageWriter::add, py::arg("image"), py::arg("label"), py::arg("key"),
           py::arg("columns"), py::arg("fields"))
      .def("finish", &BoundImageWriter::finish)
      .def("close", &BoundImageWriter::close)
      .def_property_readonly("is_closed", &BoundImageWriter::is_closed);
}

}  // namespace chunkhit
