#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "store/hdf5_attributes.h"
#include "store/hdf5_columns.h"
#include "store/hdf5_images.h"
#include "store/hdf5_index.h"
#include "store/hdf5_output.h"
#include "store/hdf5_part.h"
#include "store/index_fields.h"
#include "store/part_index.h"
#include "store/part_rules.h"
#include "store/written_part.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kMinMetadataBlockBytes = 16 << 10;
constexpr std::uint64_t kMaxMetadataBlockBytes = 1 << 20;

void write_spec_attributes(const Hdf5Check& check, hid_t file, hid_t images, const PartSpec& spec) {
  const auto layout = std::string(kLayoutNames[static_cast<std::size_t>(spec.sample.layout)]);
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

void write_list(const Hdf5Check& check, hid_t file, const char* name, const std::vector<std::string>& list) {
  if (!list.empty()) write_text_column(check, file, name, names_of(list));
}

void write_samples(const Hdf5Check& check, hid_t file, hid_t images, const PartSpec& spec,
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

/// Looks every chunk up in the library's own index, through which others read.
void check_library_index(const Hdf5Check& check, hid_t images, const std::vector<StoredChunk>& chunks) {
  for (const StoredChunk& chunk : chunks) {
    const ImageDimensions at{chunk.first_sample, 0, 0, 0};
    hsize_t found = 0;
    check(H5Dget_chunk_storage_size(images, at.data(), &found), "look up a chunk");
    if (found != chunk.stored_bytes) check.refuse("a chunk was not written whole");
  }
}

/// Compares what others will read through the library beside the pixels.
void check_columns(const Hdf5Check& check, hid_t file, hid_t images, const PartSpec& spec,
                   const PartSamples& samples) {
  const auto require = [&](bool is_whole, const char* name) {
    if (!is_whole) check.refuse(std::string("/") + name + " was not written whole");
  };
  const auto holds = [&](const char* name, const Names& names) {
    const Names found = read_text_column(check, file, name);
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

class Hdf5PartWriter final : public ChunkWriter {
 public:
  Hdf5PartWriter(const std::string& path, const PartSpec& spec)
      : spec_(spec),
        metadata_block_bytes_(hdf5_metadata_block_bytes(spec.chunk_samples * spec.sample.byte_count())),
        pending_(path),
        check_(ErrorCode::cannot_write, path) {
    reserve(pending_, 0, metadata_block_bytes_);
    file_ = create_hdf5_file(check_, pending_.aside_path(), metadata_block_bytes_);
    images_ = create_images(check_, file_.get(), spec_);
    write_spec_attributes(check_, file_.get(), images_.get(), spec_);
  }

  ~Hdf5PartWriter() override {
    // What was not finished is thrown away; HDF5 may complain that it cannot write the rest.
    const QuietHdf5 quiet;
    images_.close();
    file_.close();
  }

  void append(const EncodedChunk& chunk) override {
    const QuietHdf5 quiet;
    StoredChunk stored{.stored_bytes = chunk.stored.size(),
                       .raw_bytes = chunk.raw_bytes,
                       .first_sample = sample_count_,
                       .sample_count = chunk.sample_count,
                       .xxh3 = chunk.xxh3,
                       .filtered = chunk.filtered};
    reserve(pending_, end_of_hdf5_file(check_, file_.get()), chunk.stored.size());
    write_chunk(chunk, stored);
    chunks_.push_back(stored);
    sample_count_ += chunk.sample_count;
  }

  CompletePart complete(const PartSamples& samples) override {
    const QuietHdf5 quiet;
    const ByteBuffer index = encode_part_index(spec_, chunks_, samples, encode_part_spec(spec_));
    reserve(pending_, end_of_hdf5_file(check_, file_.get()),
            bytes_beside_pixels(samples) + index.size() + kHdf5TrailerBytes);
    write_samples(check_, file_.get(), images_.get(), spec_, samples);
    check_(images_.close(), "close /images");
    check_(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), "flush");
    check_(file_.close(), "close");
    check_hdf5_file(samples);
    append_hdf5_index(pending_, SampleKind::images, chunks_, index);
    const PartReport report = check_written_part(pending_, open_hdf5_part, chunks_);
    give_back_reserved(pending_, report.bytes);
    pending_.flush();
    return {report, std::move(pending_)};
  }

 private:
  void write_chunk(const EncodedChunk& chunk, StoredChunk& stored) {
    const ImageDimensions extent = image_dimensions(spec_.sample, sample_count_ + chunk.sample_count);
    const ImageDimensions at{sample_count_, 0, 0, 0};
    const std::uint32_t mask = chunk.filtered || spec_.codec == "none" ? 0 : 1;
    check_(H5Dset_extent(images_.get(), extent.data()), "make room in /images");
    const hsize_t before = end_of_hdf5_file(check_, file_.get());
    check_(
        H5Dwrite_chunk(images_.get(), H5P_DEFAULT, mask, at.data(), chunk.stored.size(), chunk.stored.data()),
        "write");
    stored.offset = before;
    // The library took more than the chunk, for its own tables: where the chunk went only it can tell.
    if (end_of_hdf5_file(check_, file_.get()) - before != chunk.stored.size())
      look_up_chunk(check_, images_.get(), spec_, stored);
  }

  /// HDF5 does not always tell when the disk was full, so what it wrote by itself is read again.
  void check_hdf5_file(const PartSamples& samples) const {
    const Hdf5Handle file = open_hdf5_file(check_, pending_.aside_path());
    const Hdf5Handle images = open_dataset(check_, file.get(), kImagesName);
    check_library_index(check_, images.get(), chunks_);
    check_columns(check_, file.get(), images.get(), spec_, samples);
  }

  /// An upper bound of what HDF5 writes beside the pixels, so that a full disk shows before.
  [[nodiscard]] std::uint64_t bytes_beside_pixels(const PartSamples& samples) const {
    std::size_t longest = 1;
    for (std::size_t i = 0; i < samples.files.count(); ++i)
      longest = std::max(longest, samples.files[i].size());
    const std::uint64_t numbers = 16 + 4 * spec_.label_columns.size();
    return samples.rows.size() * (longest + numbers) + chunks_.size() * 96 + 2 * metadata_block_bytes_;
  }

  PartSpec spec_;
  std::uint64_t metadata_block_bytes_;
  PendingFile pending_;
  Hdf5Check check_;
  Hdf5Handle file_;
  Hdf5Handle images_;
  std::vector<StoredChunk> chunks_;
  std::uint64_t sample_count_ = 0;
};

}  // namespace

std::uint64_t hdf5_metadata_block_bytes(std::uint64_t chunk_bytes) {
  return std::clamp(std::bit_ceil(std::min(chunk_bytes, kMaxMetadataBlockBytes)), kMinMetadataBlockBytes,
                    kMaxMetadataBlockBytes);
}

std::unique_ptr<ChunkWriter> create_hdf5_part(const std::string& path, const PartSpec& spec) {
  leave_files_alone_at_exit();
  const QuietHdf5 quiet;
  check_part_spec(spec, container("hdf5"));
  return std::make_unique<Hdf5PartWriter>(path, spec);
}

}  // namespace chunkhit
