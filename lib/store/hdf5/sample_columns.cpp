#include "store/hdf5/sample_columns.h"

#include <array>
#include <string>
#include <variant>
#include <vector>

#include "base/hash.h"
#include "store/hdf5/attributes.h"
#include "store/hdf5/image_part.h"
#include "store/hdf5/index.h"
#include "store/hdf5/numbers.h"
#include "store/hdf5/texts.h"
#include "store/part_index.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

void write_list(const Hdf5Check& check, hid_t file, const char* name, const std::vector<std::string>& list) {
  if (!list.empty()) write_text_column(check, file, name, names_of(list));
}

std::string column_path(const SampleColumn& column) {
  return std::string(kKeptColumnsName) + "/" + column.name;
}

/// Writes each column as a dataset of its own.
void write_kept_columns(const Hdf5Check& check, hid_t file, const std::vector<SampleColumn>& columns) {
  if (columns.empty()) return;
  const Hdf5Handle group(
      check(H5Gcreate2(file, kKeptColumnsName, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "create /columns"),
      H5Gclose);
  for (const SampleColumn& column : columns) {
    const std::string path = column_path(column);
    const std::array<hsize_t, 1> count{column.size()};
    if (const auto* const integers = std::get_if<std::vector<std::int64_t>>(&column.values))
      write_column(check, file, path.c_str(), count, *integers);
    else if (const auto* const numbers = std::get_if<std::vector<double>>(&column.values))
      write_column(check, file, path.c_str(), count, *numbers);
    else
      write_text_column(check, file, path.c_str(), std::get<TextList>(column.values));
  }
}

SampleColumn read_kept_column(const Hdf5Check& check, hid_t file, const SampleColumn& like) {
  SampleColumn column = empty_column({like.name, like.type()});
  const std::string path = column_path(like);
  if (like.type() == ColumnType::int64)
    column.values = read_column<std::int64_t>(check, open_column(check, file, path));
  else if (like.type() == ColumnType::float64)
    column.values = read_column<double>(check, open_column(check, file, path));
  else
    column.values = read_text_column(check, file, path);
  return column;
}

}  // namespace

void write_part_attributes(const Hdf5Check& check, hid_t file, hid_t images, const PartSpec& spec) {
  const auto layout = name_of(spec.sample.layout);
  write_text_attribute(check, images, "layout", layout);
  if (spec.cache_advice.rdcc_nbytes != 0) {
    write_attribute(check, images, "suggested_rdcc_nbytes", spec.cache_advice.rdcc_nbytes);
    write_attribute(check, images, "suggested_rdcc_nslots", spec.cache_advice.rdcc_nslots);
    write_attribute(check, images, "suggested_rdcc_w0", spec.cache_advice.rdcc_w0);
  }
  write_attribute(check, file, kFormatAttribute, std::uint64_t{kHdf5Format});
  write_text_attribute(check, file, "pack_id", hash_text(spec.pack_id));
  write_attribute(check, file, "part_index", std::uint64_t{spec.part_index});
  write_text_attribute(check, file, "filter", spec.codec);
}

void write_sample_columns(const Hdf5Check& check, hid_t file, hid_t images, const PartSpec& spec,
                          const PartSamples& samples) {
  const hsize_t count = samples.rows.size();
  if (samples.labels.values.empty())
    write_column(check, file, kLabelsName, std::array{count}, samples.labels.ids);
  else
    write_column(check, file, kLabelsName, std::array{count, hsize_t{spec.label_columns.size()}},
                 samples.labels.values);
  write_column(check, file, kRowsName, std::array{count}, samples.rows);
  write_text_column(check, file, kFilesName, samples.files);
  write_list(check, file, kClassesName, spec.classes);
  write_list(check, file, kColumnsName, spec.label_columns);
  write_kept_columns(check, file, samples.columns);
  if (!samples.mean.empty()) write_attribute(check, images, "mean", samples.mean);
  if (!samples.std.empty()) write_attribute(check, images, "std", samples.std);
}

void check_sample_columns(const Hdf5Check& check, hid_t file, hid_t images, const PartSpec& spec,
                          const PartSamples& samples) {
  const auto require = [&](bool is_whole, const char* name) {
    if (!is_whole) check.refuse(std::string("/") + name + " was not written whole");
  };
  const auto holds = [&](const char* name, const TextList& names) {
    const TextList found = read_text_column(check, file, name);
    return found.text == names.text && found.ends == names.ends;
  };
  const Hdf5Column labels = open_column(check, file, kLabelsName);
  require(samples.labels.values.empty() ? read_column<std::int64_t>(check, labels) == samples.labels.ids
                                        : read_column<float>(check, labels) == samples.labels.values,
          kLabelsName);
  require(read_column<std::uint64_t>(check, open_column(check, file, kRowsName)) == samples.rows, kRowsName);
  require(holds(kFilesName, samples.files), kFilesName);
  require(spec.classes.empty() || holds(kClassesName, names_of(spec.classes)), kClassesName);
  require(spec.label_columns.empty() || holds(kColumnsName, names_of(spec.label_columns)), kColumnsName);
  for (const SampleColumn& column : samples.columns)
    require(are_equal(read_kept_column(check, file, column), column), kKeptColumnsName);
  require(read_attribute<double>(check, images, "mean") == samples.mean &&
              read_attribute<double>(check, images, "std") == samples.std,
          kImagesName);
}

}  // namespace chunkhit
