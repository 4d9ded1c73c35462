#include <string>

#include "store/hdf5_columns.h"
#include "store/hdf5_foreign.h"
#include "store/hdf5_images.h"

namespace chunkhit {

Labels read_foreign_labels(const Hdf5Source& source, const std::string& name, std::uint64_t sample_count,
                           PartSpec& spec) {
  const Hdf5Check& check = source.check();
  Labels labels;
  if (!has_object(check, source.file(), name.c_str())) {
    if (!name.empty() && name != kLabelsName) refuse_missing(source, name);
    labels.ids.assign(sample_count, -1);
    return labels;
  }
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
    labels.ids = read_column<std::int64_t>(check, column);
  else
    labels.values = read_column<float>(check, column);
  return labels;
}

}  // namespace chunkhit
