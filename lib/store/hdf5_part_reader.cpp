#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "store/contents_message.h"
#include "store/hdf5_attributes.h"
#include "store/hdf5_columns.h"
#include "store/hdf5_foreign.h"
#include "store/hdf5_images.h"
#include "store/hdf5_isolated.h"
#include "store/hdf5_part.h"
#include "store/hdf5_source.h"
#include "store/part_index.h"
#include "store/part_rules.h"

namespace chunkhit {
namespace {

/// Puts the path before what a step says.
template <class Step>
auto with_path(const Hdf5Check& check, Step step) {
  try {
    return step();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;
    check.refuse(error.what());
  }
}

std::uint64_t chunk_count_of(const PartSpec& spec, std::uint64_t sample_count) {
  return sample_count / spec.chunk_samples + (sample_count % spec.chunk_samples != 0 ? 1 : 0);
}

/// Refuses more chunks than the file has bytes, before memory is taken for them.
void check_chunk_count(const Hdf5Source& source, const PartSpec& spec, std::uint64_t sample_count) {
  with_path(source.check(), [&] { check_part_spec(spec, container("hdf5")); });
  if (chunk_count_of(spec, sample_count) > source.byte_count())
    source.check().refuse("has more chunks than bytes");
}

/// With one, addresses count from its end.
void refuse_user_block(const Hdf5Source& source) {
  const Hdf5Check& check = source.check();
  const Hdf5Handle creation(check(H5Fget_create_plist(source.file()), "ask how it was created"), H5Pclose);
  hsize_t user_block = 0;
  check(H5Pget_userblock(creation.get(), &user_block), "ask for the user block");
  if (user_block != 0) check.refuse("has a user block");
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

/// Asks the library where a chunk of a part of ours lies.
StoredChunk look_up_chunk(Hdf5Source& source, hid_t images, const PartSpec& spec, StoredChunk chunk) {
  const ImageDimensions at{chunk.first_sample, 0, 0, 0};
  const std::optional<Hdf5ChunkPlace> place = source.find_chunk(images, at);
  if (!place)
    source.check().refuse("the chunk of sample " + std::to_string(chunk.first_sample) + " was never written");
  chunk.offset = place->offset;
  chunk.stored_bytes = place->stored_bytes;
  chunk.filtered = spec.filter != "none" && (place->filter_mask & 1) == 0;
  return chunk;
}

/// Follows chunks that a tool like h5repack moved; their bytes, and so their hashes, must still be the same.
void follow_moved_chunks(Hdf5Source& source, hid_t images, PartContents& contents) {
  std::vector<StoredChunk>& chunks = contents.chunks;
  const auto found = [&](const StoredChunk& chunk) {
    return look_up_chunk(source, images, contents.spec, chunk);
  };
  if (chunks.empty() || (found(chunks.front()) == chunks.front() && found(chunks.back()) == chunks.back()))
    return;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const StoredChunk moved = found(chunks[i]);
    if (moved.stored_bytes != chunks[i].stored_bytes || moved.filtered != chunks[i].filtered)
      source.check().refuse("chunk " + std::to_string(i) + " has " + std::to_string(moved.stored_bytes) +
                            " bytes, expected " + std::to_string(chunks[i].stored_bytes) +
                            ": filtered anew, or damaged");
    chunks[i] = moved;
  }
}

/// Reads a part that we wrote; its private index guards all of it.
void read_part(Hdf5Source& source, hid_t images, PartContents& contents) {
  const Hdf5Check& check = source.check();
  const hid_t file = source.file();
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
  check_chunk_count(source, spec, sample_count);
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
  follow_moved_chunks(source, images, contents);
}

bool is_own_part(const Hdf5Source& source, const Hdf5Names& names) {
  return names.images == kImagesName &&
         (has_object(source.check(), source.file(), kChunksName) ||
          attribute_count(source.check(), source.file(), kFormatAttribute) != 0);
}

/// Takes a path from the root with or without the root's own slash.
std::string without_root(const std::string& name) {
  return name.substr(std::min(name.find_first_not_of('/'), name.size()));
}

PartContents read_contents(const InputFile& input, const Hdf5Names& wanted) {
  const QuietHdf5 quiet;
  const Hdf5Check check(ErrorCode::bad_data, input.path());
  Hdf5Names names{without_root(wanted.images), wanted.labels};
  if (names.labels) names.labels = without_root(*names.labels);
  Hdf5Source source(check, input);
  refuse_user_block(source);
  PartContents contents;
  if (!is_own_part(source, names)) {
    contents = read_foreign_file(source, names);
    with_path(check, [&] { check_foreign_contents(contents, container("hdf5"), input.byte_count()); });
    return contents;
  }
  const Hdf5Handle images = open_dataset(check, source.file(), kImagesName);
  read_part(source, images.get(), contents);
  with_path(check, [&] { check_part_contents(contents, container("hdf5"), input.byte_count()); });
  if (names.labels.value_or(kLabelsName) != kLabelsName)
    contents.samples.labels = read_foreign_labels(source, names, contents.samples.rows.size(), contents.spec);
  return contents;
}

}  // namespace

bool is_hdf5_part(Bytes first_bytes) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  return first_bytes.size() >= kSignature.size() &&
         as_text(first_bytes.first(kSignature.size())) == kSignature;
}

std::vector<std::unique_ptr<ChunkReader>> open_hdf5_parts(const std::vector<std::string>& paths,
                                                          const Hdf5Names& names) {
  std::vector<InputFile> inputs(paths.begin(), paths.end());
  std::vector<std::unique_ptr<ChunkReader>> parts;
  read_isolated(
      paths, [&](std::size_t i) { return encode_contents(read_contents(inputs[i], names)); },
      [&](std::size_t i, Bytes contents) {
        parts.push_back(std::make_unique<ChunkReader>(std::move(inputs[i]), decode_contents(contents)));
      });
  return parts;
}

std::unique_ptr<ChunkReader> open_written_hdf5_part(const std::string& path) {
  InputFile input(path);
  PartContents contents = read_contents(input, {});
  return std::make_unique<ChunkReader>(std::move(input), std::move(contents));
}

}  // namespace chunkhit
