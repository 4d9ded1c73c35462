#include "store/hdf5_images.h"

#include <algorithm>
#include <vector>

#include "compress/chunk_filter.h"
#include "store/hdf5_columns.h"

namespace chunkhit {
namespace {

// Registered with The HDF Group:
// https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md
constexpr H5Z_filter_t kZstdFilter = 32015;

SampleShape shape_of(const ImageDimensions& dimensions, Layout layout) {
  std::array<std::uint32_t, 3> sides{};
  for (std::size_t i = 0; i < sides.size(); ++i)
    sides[i] = static_cast<std::uint32_t>(dimensions[i + 1] > UINT32_MAX ? 0 : dimensions[i + 1]);
  if (layout == Layout::nhwc) return {sides[0], sides[1], sides[2], layout};
  return {sides[1], sides[2], sides[0], layout};
}

void set_filter(const Hdf5Check& check, hid_t list, const std::string& filter) {
  const auto level = static_cast<unsigned>(chunk_filter(filter).default_level);
  if (filter == "deflate") check(H5Pset_deflate(list, level > 9 ? 9 : level), "set the deflate filter");
  // Optional, or creating the dataset would need the plug-in, which only readers through HDF5 need.
  if (filter == "zstd")
    check(H5Pset_filter(list, kZstdFilter, H5Z_FLAG_OPTIONAL, 1, &level), "set the zstd filter");
}

std::string read_filter(const Hdf5Check& check, hid_t list) {
  const int count = check(H5Pget_nfilters(list), "ask for filters");
  if (count == 0) return "none";
  std::size_t values = 0;
  const H5Z_filter_t filter = H5Pget_filter2(list, 0, nullptr, &values, nullptr, 0, nullptr, nullptr);
  if (count == 1 && filter == H5Z_FILTER_DEFLATE) return "deflate";
  if (count == 1 && filter == kZstdFilter) return "zstd";
  check.refuse("/images has " + std::to_string(count) + " filters, the first of them " +
               std::to_string(filter) + ", expected none, deflate or zstd");
}

void check_type(const Hdf5Check& check, hid_t images) {
  const Hdf5Handle type(check(H5Dget_type(images), "ask for the type of /images"), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_INTEGER || H5Tget_size(type.get()) != 1 ||
      H5Tget_sign(type.get()) != H5T_SGN_NONE)
    check.refuse("/images does not hold unsigned 8-bit values");
}

}  // namespace

ImageDimensions image_dimensions(const SampleShape& sample, hsize_t count) {
  if (sample.layout == Layout::nhwc) return {count, sample.height, sample.width, sample.channels};
  return {count, sample.channels, sample.height, sample.width};
}

Hdf5Handle create_images(const Hdf5Check& check, hid_t file, const PartSpec& spec) {
  const ImageDimensions none = image_dimensions(spec.sample, 0);
  const ImageDimensions most = image_dimensions(spec.sample, H5S_UNLIMITED);
  const ImageDimensions chunk = image_dimensions(spec.sample, spec.chunk_samples);
  const Hdf5Handle space(check(H5Screate_simple(4, none.data(), most.data()), "create a dataspace"),
                         H5Sclose);
  const Hdf5Handle list(check(H5Pcreate(H5P_DATASET_CREATE), "create a property list"), H5Pclose);
  check(H5Pset_chunk(list.get(), 4, chunk.data()), "set the chunk's shape");
  check(H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER), "leave out filling");
  check(H5Pset_obj_track_times(list.get(), false), "leave out times");
  set_filter(check, list.get(), spec.filter);
  return {check(H5Dcreate2(file, kImagesName, H5T_NATIVE_UINT8, space.get(), H5P_DEFAULT, list.get(),
                           H5P_DEFAULT),
                "create /images"),
          H5Dclose};
}

std::uint64_t read_images_spec(const Hdf5Check& check, hid_t images, Layout layout, PartSpec& spec) {
  check_type(check, images);
  const Hdf5Handle list(check(H5Dget_create_plist(images), "ask for the storage of /images"), H5Pclose);
  const std::vector<hsize_t> found = dataset_dimensions(check, images);
  if (H5Pget_layout(list.get()) != H5D_CHUNKED || found.size() != 4)
    check.refuse("/images is not a chunked dataset of four dimensions in this file");
  ImageDimensions chunk{};
  check(H5Pget_chunk(list.get(), 4, chunk.data()), "ask for the chunk's shape");
  const ImageDimensions dimensions{found[0], found[1], found[2], found[3]};
  if (!std::equal(chunk.begin() + 1, chunk.end(), dimensions.begin() + 1))
    check.refuse("/images has chunks of parts of samples, expected whole samples");
  spec.sample = shape_of(dimensions, layout);
  spec.chunk_samples = chunk[0];
  spec.filter = read_filter(check, list.get());
  return dimensions[0];
}

void look_up_chunk(const Hdf5Check& check, hid_t images, const PartSpec& spec, StoredChunk& chunk) {
  const ImageDimensions at{chunk.first_sample, 0, 0, 0};
  unsigned mask = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t bytes = 0;
  check(H5Dget_chunk_info_by_coord(images, at.data(), &mask, &address, &bytes), "look up a chunk");
  if (address == HADDR_UNDEF)
    check.refuse("the chunk of sample " + std::to_string(chunk.first_sample) + " was never written");
  chunk.offset = address;
  chunk.stored_bytes = bytes;
  chunk.filtered = spec.filter != "none" && (mask & 1) == 0;
}

}  // namespace chunkhit
