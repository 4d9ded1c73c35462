// Keys and kept columns of samples, which loaders and datasets of images have alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "binding.h"
#include "chunkhit/image_loader.h"

namespace chunkhit {

/// int64 or float64 (n,), or texts (n,) of objects.
inline py::array column_array(ColumnValues values) {
  if (values.type == ColumnType::int64) return array_of(std::move(values.integers));
  if (values.type == ColumnType::float64) return array_of(std::move(values.numbers));
  py::list texts;
  for (const std::string_view text : values.texts) texts.append(text_of(text));
  py::array array = py::module_::import("numpy").attr("empty")(values.texts.size(), "O");
  array[py::slice(py::none(), py::none(), py::none())] = texts;
  return array;
}

/// `reader_of` gives the loader or dataset of a bound object.
template <class Class, class ReaderOf>
void bind_columns(Class& bound, ReaderOf reader_of) {
  using Self = typename Class::type;
  bound
      .def(
          "keys",
          [=](const Self& self, const IndexArray& samples) {
            py::list keys;
            for (const std::uint64_t sample : indices_of(samples))
              keys.append(text_of(reader_of(self).key(sample)));
            return keys;
          },
          py::arg("samples"))
      .def(
          "column",
          [=](const Self& self, const std::string& name, const IndexArray& samples) {
            return column_array(reader_of(self).column(name, indices_of(samples)));
          },
          py::arg("name"), py::arg("samples"));
}

}  // namespace chunkhit
