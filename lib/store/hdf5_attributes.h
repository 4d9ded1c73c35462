// Attributes of an HDF5 object. Layout: schemas/images-hdf5.md.
#pragma once

#include <hdf5.h>

#include <string>
#include <vector>

#include "store/hdf5_columns.h"
#include "store/hdf5_handle.h"

namespace chunkhit {

/// Whether an attribute is one value or a list of them.
enum class AttributeShape { scalar, array };

/// Writes `count` values of an HDF5 type.
void write_attribute(const Hdf5Check& check, hid_t object, const char* name, hid_t type, AttributeShape shape,
                     hsize_t count, const void* values);

/// Writes one number.
template <class Number>
void write_attribute(const Hdf5Check& check, hid_t object, const char* name, Number number) {
  write_attribute(check, object, name, hdf5_type(number), AttributeShape::scalar, 1, &number);
}

/// Writes an array of numbers.
template <class Number>
void write_attribute(const Hdf5Check& check, hid_t object, const char* name,
                     const std::vector<Number>& numbers) {
  write_attribute(check, object, name, hdf5_type(Number{}), AttributeShape::array, numbers.size(),
                  numbers.data());
}

/// Writes a text as variable-length UTF-8, which h5py gives as `str`.
void write_text_attribute(const Hdf5Check& check, hid_t object, const char* name, const std::string& text);

/// Writes a list of such texts.
void write_text_attribute(const Hdf5Check& check, hid_t object, const char* name,
                          const std::vector<std::string>& texts);

/// Counts the values of an attribute: 0 where there is none of that name.
[[nodiscard]] std::size_t attribute_count(const Hdf5Check& check, hid_t object, const char* name);

/// Reads all values of an attribute as an HDF5 type; the caller has made room for `attribute_count` of them.
void read_attribute(const Hdf5Check& check, hid_t object, const char* name, hid_t type, void* values);

/// Reads one number or an array of them; nothing where there is no such attribute.
template <class Number>
[[nodiscard]] std::vector<Number> read_attribute(const Hdf5Check& check, hid_t object, const char* name) {
  std::vector<Number> numbers(attribute_count(check, object, name));
  if (!numbers.empty()) read_attribute(check, object, name, hdf5_type(Number{}), numbers.data());
  return numbers;
}

/// Reads one text of either kind; nothing where there is no such attribute.
[[nodiscard]] std::string read_text_attribute(const Hdf5Check& check, hid_t object, const char* name);

}  // namespace chunkhit
