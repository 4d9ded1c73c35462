#include "store/hdf5_images.h"

#include <algorithm>
#include <vector>

#include "codec/chunk_codec.h"
#include "store/hdf5_columns.h"

namespace chunkhit {
namespace {

// Registered with The HDF Group:
// https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md
constexpr H5Z_filter_t kZstdFilter = 32015;

void set_filter(const Hdf5Check& check, hid_t list, const std::string& filter) {
  const auto level = static_cast<unsigned>(chunk_codec(filter).default_level);
  if (filter == "deflate") check(H5Pset_deflate(list, level > 9 ? 9 : level), "set the deflate filter");
  // Optional, or creating the dataset would need the plug-in, which only readers through HDF5 need.
  if (filter == "zstd")
    check(H5Pset_filter(list, kZstdFilter, H5Z_FLAG_OPTIONAL, 1, &level), "set the zstd filter");
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
  set_filter(check, list.get(), spec.codec);
  return {check(H5Dcreate2(file, kImagesName, H5T_NATIVE_UINT8, space.get(), H5P_DEFAULT, list.get(),
                           H5P_DEFAULT),
                "create /images"),
          H5Dclose};
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
  chunk.filtered = spec.codec != "none" && (mask & 1) == 0;
}

}  // namespace chunkhit
