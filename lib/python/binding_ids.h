// Ids of rows and of columns, which loaders and datasets have in common.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "binding.h"
#include "binding_columns.h"
#include "chunkhit/sparse_loader.h"

namespace chunkhit {

/// int64 (n,) where ids are integers, else a list of texts.
inline py::object ids_of(SparseIds&& ids) {
  if (ids.texts.empty()) return array_of(std::move(ids.integers));
  py::list texts(ids.texts.size());
  for (std::size_t i = 0; i < ids.texts.size(); ++i) texts[i] = text_of(ids.texts[i]);
  return texts;
}

/// Views a Python text as UTF-8, as long as it lives; what cannot be UTF-8 is no id, and no text is "\xff".
inline std::string_view view_of(const py::handle& text) {
  py::ssize_t bytes = 0;
  const char* const begin = PyUnicode_AsUTF8AndSize(text.ptr(), &bytes);
  if (begin != nullptr) return {begin, static_cast<std::size_t>(bytes)};
  PyErr_Clear();
  return "\xff";
}

/// What `find` gives for each of `count` ids, −1 for nothing: int64 (count,).
template <class IdAt, class Find>
py::array_t<std::int64_t> find_all(std::size_t count, const IdAt& id_at, const Find& find) {
  std::vector<std::int64_t> found(count);
  {
    const ReleasedGil release;
    for (std::size_t i = 0; i < count; ++i) {
      const std::optional<std::uint64_t> index = find(id_at(i));
      found[i] = index ? static_cast<std::int64_t>(*index) : -1;
    }
  }
  return array_of(std::move(found));
}

/// The same for a list of texts, or for int64 (count,).
template <class Find>
py::array_t<std::int64_t> find_ids(const py::object& ids, const Find& find) {
  if (py::isinstance<py::list>(ids)) {
    std::vector<std::string_view> texts;
    for (const py::handle& text : py::reinterpret_borrow<py::list>(ids)) texts.push_back(view_of(text));
    return find_all(
        texts.size(), [&](std::size_t i) { return texts[i]; }, find);
  }
  const auto integers = ids.cast<py::array_t<std::int64_t, py::array::c_style>>();
  const std::int64_t* const numbers = integers.data();
  char digits[24];
  return find_all(
      static_cast<std::size_t>(integers.size()),
      [&](std::size_t i) {
        const char* const end = std::to_chars(digits, digits + sizeof digits, numbers[i]).ptr;
        return std::string_view(digits, static_cast<std::size_t>(end - digits));
      },
      find);
}

/// Binds what a class has of ids; `reader_of` gives its loader or dataset.
template <class Class, class ReaderOf>
void bind_ids(Class& bound, const ReaderOf& reader_of) {
  using Self = typename Class::type;
  bound
      .def(
          "row_id", [=](const Self& self, std::uint64_t row) { return text_of(reader_of(self).row_id(row)); },
          py::arg("row"))
      .def(
          "column_id",
          [=](const Self& self, std::uint64_t column) { return text_of(reader_of(self).column_id(column)); },
          py::arg("column"))
      .def("row_ids", [=](const Self& self) { return ids_of(reader_of(self).row_ids()); })
      .def("column_ids", [=](const Self& self) { return ids_of(reader_of(self).column_ids()); })
      .def(
          "rows_of",
          [=](const Self& self, const py::object& ids) {
            return find_ids(ids, [&](std::string_view id) { return reader_of(self).row_of(id); });
          },
          py::arg("ids"))
      .def(
          "columns_of",
          [=](const Self& self, const py::object& ids) {
            return find_ids(ids, [&](std::string_view id) { return reader_of(self).column_of(id); });
          },
          py::arg("ids"))
      .def(
          "item_column",
          [=](const Self& self, const std::string& name, const IndexArray& columns) {
            return column_array(
                run_interruptible([&] { return reader_of(self).item_column(name, indices_of(columns)); }));
          },
          py::arg("name"), py::arg("columns"))
      .def(
          "user_column",
          [=](const Self& self, const std::string& name, const IndexArray& rows) {
            return column_array(
                run_interruptible([&] { return reader_of(self).user_column(name, indices_of(rows)); }));
          },
          py::arg("name"), py::arg("rows"));
}

}  // namespace chunkhit
