#include "store/hdf5/sized_writer.h"

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "store/hdf5/dataset.h"
#include "store/hdf5/handle.h"
#include "store/hdf5/image_part.h"
#include "store/hdf5/index.h"
#include "store/hdf5/numbers.h"
#include "store/hdf5/output.h"
#include "store/hdf5/sample_columns.h"
#include "store/part_index.h"
#include "store/part_rules.h"

namespace chunkhit {
namespace {

/// Visits the columns by which h5py finds a sample in /data: name, dimensions, numbers.
template <class Visit>
void visit_size_columns(const ImageSizes& sizes, std::uint32_t channels, Visit visit) {
  const hsize_t count = sizes.payload_bytes.size();
  const std::vector<std::uint64_t> bytes(sizes.payload_bytes.begin(), sizes.payload_bytes.end());
  std::vector<std::uint64_t> offsets(count);
  std::exclusive_scan(bytes.begin(), bytes.end(), offsets.begin(), std::uint64_t{0});
  std::vector<std::uint32_t> shapes;
  shapes.reserve(3 * count);
  for (hsize_t i = 0; i < count; ++i)
    shapes.insert(shapes.end(), {sizes.heights[i], sizes.widths[i], channels});
  const std::array list{count};
  visit("offsets", list, offsets);
  visit("sizes", list, bytes);
  visit("shapes", std::array{count, hsize_t{3}}, shapes);
  visit("kinds", list, sizes.kinds);
  visit("orientations", list, sizes.orientations);
  visit("xxh3", list, sizes.payload_xxh3);
}

/// Creates /data in one piece of the file; its bytes are not written.
Hdf5Handle create_data(const Hdf5Check& check, hid_t file, hsize_t bytes) {
  const Hdf5Handle space = make_space(check, std::array{bytes});
  const Hdf5Handle list(check(H5Pcreate(H5P_DATASET_CREATE), "create a property list"), H5Pclose);
  check(H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_EARLY), "take the bytes of /data at once");
  check(H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER), "leave out filling");
  check(H5Pset_obj_track_times(list.get(), false), "leave out times");
  return {
      check(H5Dcreate2(file, kDataName, H5T_NATIVE_UINT8, space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT),
            "create /data"),
      H5Dclose};
}

/// Writes payloads behind what the HDF5 library has given out for a file without datasets, and creates /data
/// once their bytes are known: the library then gives it exactly these.
class SizedHdf5Writer final : public ChunkWriter {
 public:
  SizedHdf5Writer(const std::string& path, const PartSpec& spec)
      : spec_(spec), output_(path, hdf5_metadata_block_bytes(0)), data_offset_(output_.end_of_addresses()) {
    spec_.cache_advice = {};  // /data has no chunks
  }

  void append(const EncodedChunk& chunk) override {
    const StoredChunk stored{.offset = data_offset_ + data_bytes_,
                             .stored_bytes = chunk.stored.size(),
                             .raw_bytes = chunk.raw_bytes,
                             .first_sample = sample_count_,
                             .sample_count = chunk.sample_count,
                             .xxh3 = chunk.xxh3,
                             .filtered = chunk.filtered};
    output_.pending().write_at(stored.offset, chunk.stored);
    chunks_.push_back(stored);
    data_bytes_ += stored.stored_bytes;
    sample_count_ += stored.sample_count;
  }

  CompletePart complete(const PartSamples& samples) override {
    const ByteBuffer index = encode_part_index(spec_, chunks_, samples, encode_part_spec(spec_));
    finish_hdf5(samples);
    PendingFile& pending = output_.pending();
    append_hdf5_index(pending, SampleKind::sized_images, chunks_, index);
    const PartReport report = check_written_part(pending, open_hdf5_part, chunks_);
    pending.flush();
    return {report, std::move(pending)};
  }

 private:
  void finish_hdf5(const PartSamples& samples) {
    const Hdf5Session session;
    const Hdf5Check& check = output_.check();
    const hid_t file = output_.file();
    Hdf5Handle data = create_data(check, file, data_bytes_);
    check_data(data.get());
    write_part_attributes(check, file, data.get(), spec_);
    write_sample_columns(check, file, data.get(), spec_, samples);
    visit_size_columns(samples.sizes, spec_.sample.channels,
                       [&](const char* name, const auto& dimensions, const auto& numbers) {
                         write_column(check, file, name, dimensions, numbers);
                       });
    check(data.close(), "close /data");
    output_.close();
    check_hdf5_file(samples);
  }

  void check_data(hid_t data) const {
    const bool is_there = data_bytes_ == 0 || H5Dget_offset(data) == data_offset_;
    if (!is_there || dataset_dimensions(output_.check(), data) != std::vector{data_bytes_})
      output_.check().refuse("the HDF5 library did not put /data where its bytes are");
  }

  /// Reads again what HDF5 wrote by itself.
  void check_hdf5_file(const PartSamples& samples) {
    const Hdf5Check& check = output_.check();
    const Hdf5Handle file = open_hdf5_file(check, output_.pending().aside_path());
    const Hdf5Handle data = open_dataset(check, file.get(), kDataName);
    check_data(data.get());
    check_sample_columns(check, file.get(), data.get(), spec_, samples);
    visit_size_columns(samples.sizes, spec_.sample.channels,
                       [&](const char* name, const auto&, const auto& numbers) {
                         using Number = typename std::decay_t<decltype(numbers)>::value_type;
                         if (read_column<Number>(check, open_column(check, file.get(), name)) != numbers)
                           check.refuse(std::string("/") + name + " was not written whole");
                       });
  }

  PartSpec spec_;
  Hdf5Output output_;
  hsize_t data_offset_;
  hsize_t data_bytes_ = 0;
  std::vector<StoredChunk> chunks_;
  std::uint64_t sample_count_ = 0;
};

}  // namespace

std::unique_ptr<ChunkWriter> create_sized_hdf5_part(const std::string& path, const PartSpec& spec) {
  return std::make_unique<SizedHdf5Writer>(path, spec);
}

}  // namespace chunkhit
