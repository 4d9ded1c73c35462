#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "store/hdf5_attributes.h"
#include "store/hdf5_columns.h"
#include "store/hdf5_images.h"
#include "store/hdf5_part.h"
#include "store/part_index.h"
#include "store/part_rules.h"

namespace chunkhit {
namespace {

// Finding n chunks takes the library n² / 2 steps; more than this are minutes.
constexpr std::uint64_t kMostLookedUpChunks = 1 << 15;
constexpr std::uint64_t kMostOrdinarySamples = 1 << 26;

/// Puts the path before what a step says.
template <class Step>
auto with_path(const Hdf5Check& check, Step step) {
  try {
    return step();
  } catch (const Error& error) {
    check.refuse(error.what());
  }
}

std::uint64_t chunk_count_of(const PartSpec& spec, std::uint64_t sample_count) {
  return sample_count / spec.chunk_samples + (sample_count % spec.chunk_samples != 0 ? 1 : 0);
}

/// Refuses more chunks than the file has bytes, before memory is taken for them.
void check_chunk_count(const Hdf5Check& check, hid_t file, const PartSpec& spec, std::uint64_t sample_count) {
  hsize_t file_bytes = 0;
  with_path(check, [&] { check_part_spec(spec, container("hdf5")); });
  check(H5Fget_filesize(file, &file_bytes), "ask for the file's size");
  if (chunk_count_of(spec, sample_count) > file_bytes) check.refuse("has more chunks than bytes");
}

Hdf5Handle open_file(const Hdf5Check& check) {
  Hdf5Handle file = open_hdf5_file(check, check.path());
  const Hdf5Handle creation(check(H5Fget_create_plist(file.get()), "ask how it was created"), H5Pclose);
  hsize_t user_block = 0;
  check(H5Pget_userblock(creation.get(), &user_block), "ask for the user block");
  if (user_block != 0) check.refuse("has a user block");
  return file;
}

/// Reads what the chunk table says of the part. Unlike the attributes for others it needs no variable-length
/// text, over whose damage HDF5 stumbles.
PartSpec read_recorded_spec(const Hdf5Check& check, hid_t file) {
  const auto format = read_attribute<std::uint64_t>(check, file, kFormatAttribute);
  if (format.size() != 1 || format[0] != kHdf5Format)
    check.refuse("format " + (format.empty() ? "missing" : std::to_string(format[0])) +
                 ", this reader knows format " + std::to_string(kHdf5Format));
  const Hdf5Handle table = open_dataset(check, file, kChunksName);
  const auto found = read_attribute<std::uint8_t>(check, table.get(), kSpecAttribute);
  PartSpecBytes bytes{};
  if (found.size() != bytes.size()) check.refuse("/_chunks has no attribute spec of 56 bytes");
  std::ranges::copy(found, bytes.begin());
  return with_path(check, [&] { return decode_part_spec(bytes); });
}

CacheAdvice read_cache_advice(const Hdf5Check& check, hid_t images) {
  const auto bytes = read_attribute<std::uint64_t>(check, images, "suggested_rdcc_nbytes");
  const auto slots = read_attribute<std::uint64_t>(check, images, "suggested_rdcc_nslots");
  const auto w0 = read_attribute<double>(check, images, "suggested_rdcc_w0");
  if (bytes.empty() || slots.empty() || w0.empty()) return {};
  return {bytes[0], slots[0], w0[0]};
}

/// Reads the labels; numbers without column names get empty ones.
Labels read_labels(const Hdf5Check& check, hid_t file, PartSpec& spec) {
  const Hdf5Column column = open_column(check, file, kLabelsName);
  Labels labels;
  if (!column.is_floating && column.dimensions.size() == 1) {
    labels.ids = read_column<std::int64_t>(check, column);
    return labels;
  }
  if (column.dimensions.empty() || column.dimensions.size() > 2)
    check.refuse("/labels has neither one nor two dimensions");
  labels.values = read_column<float>(check, column);
  const std::uint64_t width = column.dimensions.size() == 2 ? column.dimensions[1] : 1;
  if (spec.label_columns.empty() && width <= UINT16_MAX) spec.label_columns.resize(width);
  if (width != spec.label_columns.size()) check.refuse("/labels has other columns than label_columns names");
  return labels;
}

std::vector<std::string> read_list(const Hdf5Check& check, hid_t file, const char* name) {
  std::vector<std::string> list;
  if (!has_object(check, file, name)) return list;
  const Names names = read_text_column(check, file, name);
  for (std::size_t i = 0; i < names.count(); ++i) list.emplace_back(names[i]);
  return list;
}

/// Says which samples each chunk must hold.
std::vector<StoredChunk> expected_chunks(const PartSpec& spec, std::uint64_t sample_count,
                                         std::uint64_t chunk_count) {
  std::vector<StoredChunk> chunks(chunk_count);
  for (std::uint64_t i = 0; i < chunk_count; ++i) {
    chunks[i].first_sample = i * spec.chunk_samples;
    chunks[i].sample_count = std::min(spec.chunk_samples, sample_count - chunks[i].first_sample);
    chunks[i].raw_bytes = spec.chunk_samples * spec.sample.byte_count();
  }
  return chunks;
}

std::vector<StoredChunk> read_chunk_table(const Hdf5Check& check, hid_t file, const PartSpec& spec,
                                          std::uint64_t sample_count) {
  const Hdf5Column column = open_column(check, file, kChunksName);
  const std::uint64_t chunk_count = chunk_count_of(spec, sample_count);
  if (column.is_floating || column.dimensions != std::vector<hsize_t>{chunk_count, 4})
    check.refuse("/_chunks has another shape than (" + std::to_string(chunk_count) + ", 4)");
  const auto table = read_column<std::uint64_t>(check, column);
  std::vector<StoredChunk> chunks = expected_chunks(spec, sample_count, chunk_count);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::uint64_t* row = table.data() + i * 4;
    if (row[3] > 1) check.refuse("/_chunks is damaged");
    chunks[i].offset = row[0];
    chunks[i].stored_bytes = row[1];
    chunks[i].xxh3 = row[2];
    chunks[i].filtered = row[3] == 1;
  }
  return chunks;
}

void check_index_hash(const Hdf5Check& check, hid_t file, const PartContents& contents) {
  const Hdf5Handle table = open_dataset(check, file, kChunksName);
  const auto expected = read_attribute<std::uint64_t>(check, table.get(), kHashAttribute);
  const std::uint64_t found = hash_part_index(contents.spec, contents.chunks, contents.samples);
  if (expected.size() != 1 || expected[0] != found)
    check.refuse("index: checksum " + hash_text(found) + ", expected " +
                 (expected.size() == 1 ? hash_text(expected[0]) : "one"));
}

void look_up_all(const Hdf5Check& check, hid_t images, PartContents& contents) {
  if (contents.chunks.size() > kMostLookedUpChunks)
    check.refuse("has " + std::to_string(contents.chunks.size()) +
                 " chunks in another order than /_chunks says, " + "or no /_chunks; at most " +
                 std::to_string(kMostLookedUpChunks) + " can be looked up");
  for (StoredChunk& chunk : contents.chunks) look_up_chunk(check, images, contents.spec, chunk);
}

/// Follows chunks that a tool like h5repack moved; their bytes, and so their hashes, must still be the same.
void follow_moved_chunks(const Hdf5Check& check, hid_t images, PartContents& contents) {
  const std::vector<StoredChunk> recorded = contents.chunks;
  const auto in_place = [&](StoredChunk chunk) {
    const StoredChunk before = chunk;
    look_up_chunk(check, images, contents.spec, chunk);
    return chunk == before;
  };
  if (recorded.empty() || (in_place(recorded.front()) && in_place(recorded.back()))) return;
  look_up_all(check, images, contents);
  for (std::size_t i = 0; i < recorded.size(); ++i)
    if (contents.chunks[i].stored_bytes != recorded[i].stored_bytes ||
        contents.chunks[i].filtered != recorded[i].filtered)
      check.refuse("chunk " + std::to_string(i) + " has " + std::to_string(contents.chunks[i].stored_bytes) +
                   " bytes, expected " + std::to_string(recorded[i].stored_bytes) +
                   ": filtered anew, or damaged");
}

/// Reads a part that we wrote; its private index guards all of it.
void read_part(const Hdf5Check& check, hid_t file, hid_t images, PartContents& contents) {
  PartSpec& spec = contents.spec;
  PartSamples& samples = contents.samples;
  spec = read_recorded_spec(check, file);
  const PartSpec recorded = spec;
  const std::uint64_t sample_count = read_images_spec(check, images, spec.sample.layout, spec);
  if (spec.sample != recorded.sample || spec.chunk_samples != recorded.chunk_samples)
    check.refuse("/images has another shape than /_chunks says");
  if (spec.filter != recorded.filter)
    check.refuse("/images has filter " + spec.filter + ", expected " + recorded.filter +
                 ": filtered anew, or damaged");
  check_chunk_count(check, file, spec, sample_count);
  spec.cache_advice = read_cache_advice(check, images);
  spec.classes = read_list(check, file, kClassesName);
  spec.label_columns = read_list(check, file, kColumnsName);
  samples.labels = read_labels(check, file, spec);
  samples.rows = read_column<std::uint64_t>(check, open_column(check, file, kRowsName));
  samples.files = read_text_column(check, file, kFilesName);
  samples.mean = read_attribute<double>(check, images, "mean");
  samples.std = read_attribute<double>(check, images, "std");
  if (samples.rows.size() != sample_count) check.refuse("/rows has another length than /images");
  contents.chunks = read_chunk_table(check, file, spec, sample_count);
  check_index_hash(check, file, contents);
  follow_moved_chunks(check, images, contents);
}

/// Reads a file that someone else made; what it lacks is made up, and its chunks carry no hashes.
void read_ordinary_file(const Hdf5Check& check, hid_t file, hid_t images, PartContents& contents) {
  const std::uint64_t sample_count =
      read_images_spec(check, images, read_layout(check, images), contents.spec);
  check_chunk_count(check, file, contents.spec, sample_count);
  if (sample_count > kMostOrdinarySamples ||
      chunk_count_of(contents.spec, sample_count) > kMostLookedUpChunks)
    check.refuse("has more samples or chunks than a file without /_chunks may");
  contents.has_hashes = false;
  contents.chunks = expected_chunks(contents.spec, sample_count, chunk_count_of(contents.spec, sample_count));
  look_up_all(check, images, contents);
  PartSamples& samples = contents.samples;
  if (has_object(check, file, kLabelsName))
    samples.labels = read_labels(check, file, contents.spec);
  else
    samples.labels.ids.assign(sample_count, -1);
  contents.spec.classes = read_list(check, file, kClassesName);
  if (has_object(check, file, kRowsName)) {
    samples.rows = read_column<std::uint64_t>(check, open_column(check, file, kRowsName));
  } else {
    samples.rows.resize(sample_count);
    std::iota(samples.rows.begin(), samples.rows.end(), std::uint64_t{0});
  }
  if (samples.rows.size() != sample_count) check.refuse("/rows has another length than /images");
  if (has_object(check, file, kFilesName))
    samples.files = read_text_column(check, file, kFilesName);
  else
    samples.files.ends.assign(sample_count, 0);
}

PartContents read_contents(const Hdf5Check& check, std::uint64_t file_bytes) {
  const Hdf5Handle file = open_file(check);
  const Hdf5Handle images = open_dataset(check, file.get(), kImagesName);
  PartContents contents;
  if (has_object(check, file.get(), kChunksName) || attribute_count(check, file.get(), kFormatAttribute) != 0)
    read_part(check, file.get(), images.get(), contents);
  else
    read_ordinary_file(check, file.get(), images.get(), contents);
  with_path(check, [&] { check_part_contents(contents, container("hdf5"), file_bytes); });
  return contents;
}

}  // namespace

bool is_hdf5_part(Bytes first_bytes) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  return first_bytes.size() >= kSignature.size() &&
         as_text(first_bytes.first(kSignature.size())) == kSignature;
}

std::unique_ptr<ChunkReader> open_hdf5_part(const std::string& path) {
  const QuietHdf5 quiet;
  InputFile file(path);
  PartContents contents = read_contents(Hdf5Check(ErrorCode::bad_data, path), file.byte_count());
  return std::make_unique<ChunkReader>(std::move(file), std::move(contents));
}

}  // namespace chunkhit
