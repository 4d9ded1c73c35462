#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "store/hdf5_columns.h"
#include "store/hdf5_external.h"
#include "store/hdf5_images.h"

namespace chunkhit {
namespace {

/// Class ids; the library makes the largest id of those above it.
std::vector<std::int64_t> read_ids(const Hdf5Check& check, const Hdf5Column& column,
                                   const std::string& place) {
  std::vector<std::int64_t> ids = read_column<std::int64_t>(check, column);
  if (std::ranges::find(ids, INT64_MAX) == ids.end()) return ids;
  for (const std::uint64_t id : read_column<std::uint64_t>(check, column))
    if (id > INT64_MAX)
      check.refuse(place + " has the class id " + std::to_string(id) + ", expected at most 2^63 - 1");
  return ids;
}

std::vector<float> read_values(const Hdf5Check& check, const Hdf5Column& column, const std::string& place) {
  std::vector<float> values = read_column<float>(check, column);
  if (column.is_floating) return values;
  const auto whole = read_column<std::int64_t>(check, column);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (static_cast<double>(values[i]) != static_cast<double>(whole[i]))
      check.refuse(place + " has the number " + std::to_string(whole[i]) +
                   ", which no 32-bit float is: several columns of labels are floats");
  return values;
}

/// The name that is wanted: where none is given, the labels next to the images.
std::string labels_name(const Hdf5Names& names) {
  return names.labels.value_or(names.images.substr(0, names.images.rfind('/') + 1) + kLabelsName);
}

}  // namespace

Labels read_external_labels(const Hdf5Source& source, const Hdf5Names& names, std::uint64_t sample_count,
                            PartSpec& spec) {
  const Hdf5Check& check = source.check();
  const std::string name = labels_name(names);
  Labels labels;
  if (name.empty()) {
    labels.ids.assign(sample_count, -1);
    return labels;
  }
  if (!has_object(check, source.file(), name.c_str()))
    refuse_missing(source, name, "; labels=\"\" (--labels=) reads images without labels");
  const Hdf5Column column = open_column(check, source.file(), name.c_str());
  const std::string place = "/" + name;
  if (column.dimensions.empty() || column.dimensions.size() > 2)
    check.refuse(place + " has " + std::to_string(column.dimensions.size()) +
                 " dimensions, expected labels in one or two");
  if (column.dimensions[0] != sample_count)
    check.refuse(place + " has " + std::to_string(column.dimensions[0]) + " labels, expected " +
                 std::to_string(sample_count));
  const std::uint64_t width = column.dimensions.size() == 2 ? column.dimensions[1] : 1;
  if (width == 0 || width > UINT16_MAX)
    check.refuse(place + " has " + std::to_string(width) + " columns, expected 1 to " +
                 std::to_string(UINT16_MAX));
  spec.label_columns.assign(width, "");
  if (!column.is_floating && width == 1)
    labels.ids = read_ids(check, column, place);
  else
    labels.values = read_values(check, column, place);
  return labels;
}

}  // namespace chunkhit
