#include "store/hdf5/sample_dataset.h"

#include <functional>
#include <numeric>
#include <span>
#include <string>

#include "codec/chunk_codec.h"
#include "store/hdf5/dataset.h"
#include "store/hdf5/image_part.h"

namespace chunkhit {
namespace {

void set_filter(const Hdf5Check& check, hid_t list, const std::string& filter) {
  const auto level = static_cast<unsigned>(chunk_codec(filter).default_level);
  if (filter == "deflate") check(H5Pset_deflate(list, level > 9 ? 9 : level), "set the deflate filter");
  // Optional, or creating the dataset would need the plug-in, which only readers through HDF5 need.
  if (filter == "zstd")
    check(H5Pset_filter(list, kZstdFilter, H5Z_FLAG_OPTIONAL, 1, &level), "set the zstd filter");
}

/// Creates a dataset of which each sample shows bytes of a sample in `/samples`, from `first` on.
Hdf5Handle create_view(const Hdf5Check& check, hid_t file, const std::string& name, const SampleShape& sample,
                       std::span<const hsize_t> dimensions, hsize_t first) {
  const hsize_t samples = dimensions.front();
  const Hdf5Handle space = make_space(check, dimensions);
  const Hdf5Handle source = make_space(check, std::array{samples, hsize_t{sample.byte_count()}});
  const Hdf5Handle list = make_creation_list(check);
  if (samples > 0) {
    const hsize_t bytes =
        std::accumulate(dimensions.begin() + 1, dimensions.end(), hsize_t{1}, std::multiplies<>());
    const std::array from{hsize_t{0}, first}, count{hsize_t{1}, hsize_t{1}}, block{samples, bytes};
    check(H5Sselect_hyperslab(source.get(), H5S_SELECT_SET, from.data(), nullptr, count.data(), block.data()),
          "select bytes of the samples");
    check(H5Pset_virtual(list.get(), space.get(), ".", kSamplesName, source.get()), "show the samples");
  }
  return create_dataset(check, file, name, H5T_NATIVE_UINT8, space, list);
}

}  // namespace

std::array<hsize_t, 4> image_dimensions(const SampleShape& sample, hsize_t count) {
  if (sample.layout == Layout::nhwc) return {count, sample.height, sample.width, sample.channels};
  return {count, sample.channels, sample.height, sample.width};
}

std::vector<hsize_t> sample_dimensions(const SampleShape& sample, hsize_t count) {
  if (!sample.pairs.empty()) return {count, sample.byte_count()};
  const std::array dimensions = image_dimensions(sample, count);
  return {dimensions.begin(), dimensions.end()};
}

Hdf5Handle create_samples(const Hdf5Check& check, hid_t file, const PartSpec& spec) {
  const std::vector<hsize_t> none = sample_dimensions(spec.images().sample, 0);
  const std::vector<hsize_t> most = sample_dimensions(spec.images().sample, H5S_UNLIMITED);
  const std::vector<hsize_t> chunk = sample_dimensions(spec.images().sample, spec.chunk_samples);
  const int rank = static_cast<int>(none.size());
  const Hdf5Handle space(check(H5Screate_simple(rank, none.data(), most.data()), "create a dataspace"),
                         H5Sclose);
  const Hdf5Handle list = make_creation_list(check);
  check(H5Pset_chunk(list.get(), rank, chunk.data()), "set the chunk's shape");
  check(H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER), "leave out filling");
  set_filter(check, list.get(), spec.codec);
  const char* const name = !spec.images().sample.pairs.empty() ? kSamplesName : kImagesName;
  return create_dataset(check, file, name, H5T_NATIVE_UINT8, space, list);
}

Hdf5Handle create_views(const Hdf5Check& check, hid_t file, const SampleShape& sample,
                        std::uint64_t sample_count) {
  check(H5Fset_libver_bounds(file, H5F_LIBVER_EARLIEST, H5F_LIBVER_V110), "set the version bounds");
  const auto images = image_dimensions(sample, sample_count);
  const std::array maps{hsize_t{sample_count}, hsize_t{sample.height}, hsize_t{sample.width}};
  std::uint64_t first = sample.pixel_bytes();
  for (const SampleField& field : sample.pairs) {
    const std::span<const hsize_t> dimensions =
        traits_of(field.role).is_image ? std::span<const hsize_t>(images) : maps;
    static_cast<void>(create_view(check, file, plural_of(field), sample, dimensions, first));
    first += sample.shape_of(field.role).byte_count();
  }
  return create_view(check, file, kImagesName, sample, images, 0);
}

}  // namespace chunkhit
