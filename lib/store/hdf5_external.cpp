#include "store/hdf5_external.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "store/hdf5_attributes.h"
#include "store/hdf5_columns.h"
#include "store/hdf5_images.h"
#include "store/hdf5_index.h"
#include "store/hdf5_part.h"
#include "store/part_rules.h"

namespace chunkhit {
namespace {

// As many channels as images have; a side of so few pixels is unlikely.
constexpr std::uint64_t kMaxChannels = 4;
constexpr std::size_t kMaxListedNames = 20;

herr_t list_link(hid_t, const char* name, const H5L_info_t*, void* listed) {
  auto& names = *static_cast<std::vector<std::string>*>(listed);
  names.emplace_back(name);
  return names.size() > kMaxListedNames ? 1 : 0;
}

/// Reads the attribute `layout` as our parts have it; external files may have another meaning there.
std::string said_layout(const Hdf5Check& check, hid_t images) {
  if (check(H5Aexists(images, "layout"), "look for an attribute") == 0) return "";
  const Hdf5Handle attribute(check(H5Aopen(images, "layout", H5P_DEFAULT), "open an attribute"), H5Aclose);
  const Hdf5Handle type(check(H5Aget_type(attribute.get()), "ask for an attribute's type"), H5Tclose);
  return H5Tis_variable_str(type.get()) > 0 ? read_text_attribute(check, images, "layout") : "";
}

/// Where nothing is said, few channels tell which side they are.
Layout guess_layout(const Hdf5Check& check, hid_t images, const std::vector<std::uint64_t>& dimensions) {
  if (dimensions.size() != 4) return Layout::nhwc;
  const std::string said = said_layout(check, images);
  if (said == kLayoutNames[0]) return Layout::nhwc;
  if (said == kLayoutNames[1]) return Layout::nchw;
  if (dimensions[3] <= kMaxChannels) return Layout::nhwc;
  return dimensions[1] <= kMaxChannels ? Layout::nchw : Layout::nhwc;
}

/// The sample's shape: (H, W, C), (C, H, W), (H, W), (W) or one value; of more dimensions the first ones make
/// the height.
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

/// Takes what our own parts call rows, files and classes where it is as there; in external files the names
/// may mean anything.
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
  const Names classes = read_text_column(source.check(), source.file(), kClassesName);
  const auto count = static_cast<std::int64_t>(classes.count());
  const auto is_named = [&](std::int64_t id) { return id >= -1 && id < count; };
  if (!std::ranges::all_of(samples.labels.ids, is_named)) return;
  for (std::size_t i = 0; i < classes.count(); ++i) contents.spec.classes.emplace_back(classes[i]);
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

void refuse_missing(const Hdf5Source& source, const std::string& name, const std::string& advice) {
  std::vector<std::string> names;
  source.check()(H5Lvisit(source.file(), H5_INDEX_NAME, H5_ITER_NATIVE, list_link, &names),
                 "list its datasets");
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMaxListedNames; ++i)
    text += (text.empty() ? "/" : ", /") + names[i];
  if (names.size() > kMaxListedNames) text += ", ...";
  source.check().refuse("has no dataset /" + name + ", only " + (text.empty() ? "nothing" : text) +
                        "; images and labels (--images, --labels) name those to read" + advice);
}

PartContents read_external_file(Hdf5Source& source, const Hdf5Names& names) {
  const Hdf5Check& check = source.check();
  if (!has_object(check, source.file(), names.images.c_str())) {
    if (holds_matrix(check, source.file())) check.refuse("holds matrices, expected images");
    refuse_missing(source, names.images);
  }
  const Hdf5Handle images = open_dataset(check, source.file(), names.images.c_str());
  const Hdf5Array array = describe_array(check, images.get(), "/" + names.images);
  const std::uint64_t sample_count = array.dimensions[0];
  if (sample_count > kMaxExternalSamples)
    check.refuse(array.name + " has " + std::to_string(sample_count) + " samples, expected at most " +
                 std::to_string(kMaxExternalSamples));
  PartContents contents;
  contents.has_hashes = false;
  contents.spec.sample = shape_of(check, images.get(), array);
  try {
    check_part_spec(contents.spec, container("hdf5"));
  } catch (const Error& error) {
    check.refuse(array.name + ": " + error.what());
  }
  lay_out_chunks(source, images.get(), array, contents);
  contents.samples.labels = read_external_labels(source, names, sample_count, contents.spec);
  read_columns_beside(source, sample_count, contents);
  return contents;
}

}  // namespace chunkhit
