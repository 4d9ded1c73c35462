#include "store/hdf5/external.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "store/hdf5/attributes.h"
#include "store/hdf5/image_array.h"
#include "store/hdf5/image_part.h"
#include "store/hdf5/index.h"
#include "store/hdf5/numbers.h"
#include "store/part_rules.h"
#include "types/enum_names.h"

namespace chunkhit {

namespace {

constexpr const char* kNameAdvice = "; `images` and `labels` name those to read";
// A dimension of at most so many is taken as the channels: images are not that small.
constexpr std::uint64_t kMaxChannels = 4;

/// Reads the attribute `layout` as our parts have it; external files may have another meaning there.
std::string said_layout(const Hdf5Check& check, hid_t images) {
  if (check(H5Aexists(images, "layout"), "look for an attribute") == 0) return "";
  const Hdf5Handle attribute(check(H5Aopen(images, "layout", H5P_DEFAULT), "open an attribute"), H5Aclose);
  const Hdf5Handle type(check(H5Aget_type(attribute.get()), "ask for an attribute's type"), H5Tclose);
  return H5Tis_variable_str(type.get()) > 0 ? read_text_attribute(check, images, "layout") : "";
}

/// Returns the layout by the attribute, or guesses it: the dimension of few values has the channels.
Layout guess_layout(const Hdf5Check& check, hid_t images, const std::vector<std::uint64_t>& dimensions) {
  if (dimensions.size() != 4) return Layout::nhwc;
  const std::string said = said_layout(check, images);
  if (const std::optional<Layout> known = enum_of<Layout>(said)) return *known;
  if (dimensions[3] <= kMaxChannels) return Layout::nhwc;
  return dimensions[1] <= kMaxChannels ? Layout::nchw : Layout::nhwc;
}

/// Returns the shape of a sample: (H, W, C), (C, H, W), (H, W), (W) or one value. Further dimensions in front
/// are multiplied into the first side.
SampleShape shape_of(const Hdf5Check& check, hid_t images, const Hdf5Array& array) {
  std::vector<std::uint64_t> sides(array.dimensions.begin() + 1, array.dimensions.end());
  const Layout layout = guess_layout(check, images, array.dimensions);
  if (sides.size() < 3) sides.push_back(1);
  while (sides.size() < 3) sides.insert(sides.begin(), 1);
  for (const std::uint64_t side : sides)
    if (side > UINT32_MAX) check.refuse(array.name + " has a side of " + std::to_string(side));
  while (sides.size() > 3) {
    if (sides[0] * sides[1] > UINT32_MAX) check.refuse(array.name + " has samples that are too large");
    sides[1] *= sides[0];
    sides.erase(sides.begin());
  }
  const auto side = [&](std::size_t i) { return static_cast<std::uint32_t>(sides[i]); };
  if (layout == Layout::nhwc) return {side(0), side(1), side(2), layout};
  return {side(1), side(2), side(0), layout};
}

/// Returns whether a name is a list of this kind and length in the file itself, not behind a link.
bool is_column(const Hdf5Source& source, const char* name, H5T_class_t kind, std::uint64_t length) {
  const Hdf5Check& check = source.check();
  if (!has_object(check, source.file(), name)) return false;
  H5L_info_t link;
  check(H5Lget_info(source.file(), name, &link, H5P_DEFAULT), "look for an object");
  if (link.type != H5L_TYPE_HARD) return false;
  const Hdf5Handle object(check(H5Oopen(source.file(), name, H5P_DEFAULT), "open an object"), H5Oclose);
  if (H5Iget_type(object.get()) != H5I_DATASET) return false;
  const Hdf5Handle type(check(H5Dget_type(object.get()), "ask for a type"), H5Tclose);
  const std::vector<hsize_t> dimensions = dataset_dimensions(check, object.get());
  return H5Tget_class(type.get()) == kind && H5Tis_variable_str(type.get()) <= 0 && dimensions.size() == 1 &&
         (length == 0 || dimensions[0] == length);
}

/// Reads rows, files and classes if they look like those of our own parts; in external files these names may
/// mean anything.
void read_columns_beside(const Hdf5Source& source, std::uint64_t sample_count, PartContents& contents) {
  PartSamples& samples = contents.samples;
  samples.rows.resize(sample_count);
  std::iota(samples.rows.begin(), samples.rows.end(), std::uint64_t{0});
  samples.files.ends.assign(sample_count, 0);
  if (sample_count == 0) return;
  if (is_column(source, kRowsName, H5T_INTEGER, sample_count))
    samples.rows =
        read_column<std::uint64_t>(source.check(), open_column(source.check(), source.file(), kRowsName));
  if (is_column(source, kFilesName, H5T_STRING, sample_count))
    samples.files = read_text_column(source.check(), source.file(), kFilesName);
  if (!is_column(source, kClassesName, H5T_STRING, 0)) return;
  const TextList classes = read_text_column(source.check(), source.file(), kClassesName);
  const auto count = static_cast<std::int64_t>(classes.size());
  const auto is_named = [&](std::int64_t id) { return id >= -1 && id < count; };
  if (!std::ranges::all_of(samples.labels.ids, is_named)) return;
  for (std::size_t i = 0; i < classes.size(); ++i) contents.spec.images().classes.emplace_back(classes[i]);
}

/// Refuses samples of variable length, which are image files as a rule.
void refuse_files(const Hdf5Check& check, hid_t images, const std::string& name) {
  const Hdf5Handle type(check(H5Dget_type(images), "ask for a type"), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type.get());
  if (kind != H5T_VLEN && kind != H5T_STRING && kind != H5T_OPAQUE) return;
  check.refuse("/" + name +
               " holds bytes instead of pixels; where each sample is an image file, Python's ImageWriter " +
               "packs them: for data, label in zip(file[\"" + name +
               "\"], labels): writer.add(bytes(data), label)");
}

}  // namespace

bool holds_matrix(const Hdf5Check& check, hid_t file) {
  return !has_object(check, file, kImagesName) &&
         (has_object(check, file, "X") || has_object(check, file, "matrix"));
}

void refuse_damaged_index(const Hdf5Source& source, const InputFile& input, const char* format_attribute) {
  const Hdf5Check& check = source.check();
  if (attribute_count(check, source.file(), format_attribute) == 0 || read_hdf5_trailer(input)) return;
  const std::uint64_t end = source.end_address();
  if (end < source.byte_count())
    check.refuse("the index behind its HDF5 end is damaged: " + std::to_string(source.byte_count() - end) +
                 " bytes without a trailer");
}

PartContents read_external_file(Hdf5Source& source, const InputFile& input, const Hdf5Names& names) {
  const Hdf5Check& check = source.check();
  if (!has_object(check, source.file(), names.images)) {
    if (holds_matrix(check, source.file())) check.refuse("holds matrices, expected images");
    refuse_missing(check, source.file(), "has no dataset /" + names.images, names.images, kNameAdvice);
  }
  const Hdf5Handle images = open_dataset(check, source.file(), names.images);
  refuse_files(check, images.get(), names.images);
  const Hdf5Array array = describe_array(check, images.get(), "/" + names.images);
  const std::uint64_t sample_count = array.dimensions[0];
  if (sample_count > kMaxExternalSamples)
    check.refuse(array.name + " has " + std::to_string(sample_count) + " samples, expected at most " +
                 std::to_string(kMaxExternalSamples));
  PartContents contents;
  contents.has_hashes = false;
  contents.spec.images().sample = shape_of(check, images.get(), array);
  try {
    check_part_spec(contents.spec, container("hdf5"));
  } catch (const Error& error) {
    check.refuse(array.name + ": " + error.what());
  }
  lay_out_chunks(source, input, images.get(), array, contents);
  contents.samples.labels = read_external_labels(source, names, sample_count, contents.spec);
  read_columns_beside(source, sample_count, contents);
  return contents;
}

namespace {

/// Reads class ids. libhdf5 clamps larger ones to INT64_MAX, which is therefore checked.
std::vector<std::int64_t> read_ids(const Hdf5Check& check, const Hdf5Column& column,
                                   const std::string& path) {
  std::vector<std::int64_t> ids = read_column<std::int64_t>(check, column);
  if (std::ranges::find(ids, INT64_MAX) == ids.end()) return ids;
  for (const std::uint64_t id : read_column<std::uint64_t>(check, column))
    if (id > INT64_MAX)
      check.refuse(path + " has the class id " + std::to_string(id) + ", expected at most 2^63 - 1");
  return ids;
}

/// Labels of whole numbers in several columns are served as floats and must be exact.
std::vector<float> read_values(const Hdf5Check& check, const Hdf5Column& column, const std::string& path) {
  std::vector<float> values = read_column<float>(check, column);
  if (column.is_floating) return values;
  const auto whole = read_column<std::int64_t>(check, column);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (static_cast<double>(values[i]) != static_cast<double>(whole[i]))
      check.refuse(path + " has the number " + std::to_string(whole[i]) +
                   ", which no 32-bit float is: several columns of labels are floats");
  return values;
}

/// Returns the name of the labels: as given, or `labels` in the group of the images.
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
  if (!has_object(check, source.file(), name))
    refuse_missing(check, source.file(), "has no dataset /" + name, name,
                   std::string(kNameAdvice) + "; `labels`=\"\" reads images without labels");
  const Hdf5Column column = open_column(check, source.file(), name);
  const std::string path = "/" + name;
  if (column.dimensions.empty() || column.dimensions.size() > 2)
    check.refuse(path + " has " + std::to_string(column.dimensions.size()) +
                 " dimensions, expected labels in one or two");
  if (column.dimensions[0] != sample_count)
    check.refuse(path + " has " + std::to_string(column.dimensions[0]) + " labels, expected " +
                 std::to_string(sample_count));
  const std::uint64_t width = column.dimensions.size() == 2 ? column.dimensions[1] : 1;
  if (width == 0 || width > UINT16_MAX)
    check.refuse(path + " has " + std::to_string(width) + " columns, expected 1 to " +
                 std::to_string(UINT16_MAX));
  spec.label_columns.assign(width, "");
  if (!column.is_floating && width == 1)
    labels.ids = read_ids(check, column, path);
  else
    labels.values = read_values(check, column, path);
  return labels;
}

}  // namespace chunkhit
