#include "store/hdf5/sample_columns.h"

#include <array>
#include <string>
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
  require(read_attribute<double>(check, images, "mean") == samples.mean &&
              read_attribute<double>(check, images, "std") == samples.std,
          kImagesName);
}

}  // namespace chunkhit
