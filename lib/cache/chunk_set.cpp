#include "cache/chunk_set.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/hash.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "cache/decoded_rows.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

std::string shape_text(const SampleShape& sample) {
  return std::to_string(sample.height) + "x" + std::to_string(sample.width) + "x" +
         std::to_string(sample.channels) + " " + name_of(sample.layout) +
         (sample.has_mask ? " with masks" : "");
}

std::string shape_text(const MatrixShape& matrix) {
  return std::to_string(matrix.matrix_count) + " of " + std::to_string(matrix.column_count) + " columns, " +
         name_of(matrix.value_type) + " times " + number_text(matrix.scale);
}

const char* times_text(const PartSpec& spec) {
  return spec.matrix->has_times ? " has times of ratings" : " has no times of ratings";
}

const char* held_out_text(const PartSpec& spec) {
  return spec.matrix->matrix_count == 2 ? " has held_out ratings" : " has no held_out ratings";
}

void check_same_shape(const ChunkReader& part, const ChunkReader& first) {
  const PartSpec& spec = part.spec();
  if (spec.matrix && first.spec().matrix && spec.matrix->matrix_count != first.spec().matrix->matrix_count)
    throw_bad_data(part.path() + held_out_text(spec) + ", and " + first.path() + held_out_text(first.spec()) +
                   ": they cannot be read as one");
  if (spec.matrix && first.spec().matrix && spec.matrix->has_times != first.spec().matrix->has_times)
    throw_bad_data(part.path() + times_text(spec) + ", and " + first.path() + times_text(first.spec()) +
                   ": they cannot be read as one");
  if (spec.matrix != first.spec().matrix)
    throw_bad_data(part.path() + ": matrices: " + shape_text(*spec.matrix) + ", expected " +
                   shape_text(*first.spec().matrix) + " as in " + first.path());
  if (spec.own_sizes != first.spec().own_sizes)
    throw_bad_data((spec.own_sizes ? part : first).path() + ": images of their own sizes, " +
                   (spec.own_sizes ? first : part).path() +
                   ": images of one shape; they cannot be read as one");
  if (spec.sample != first.spec().sample)
    throw_bad_data(part.path() + ": samples of " + shape_text(spec.sample) + ", expected " +
                   shape_text(first.spec().sample) + " as in " + first.path());
}

bool holds_raw_samples(const ChunkReader& part) {
  if (part.spec().matrix) return false;
  for (std::size_t chunk = 0; chunk < part.chunks().size(); ++chunk)
    if (!part.stored_raw(chunk)) return false;
  return true;
}

/// Where each sample begins in its chunk. A chunk has fewer than 2^32 bytes.
std::vector<std::uint32_t> sample_offsets(const ChunkReader& part) {
  std::vector<std::uint32_t> offsets;
  if (!part.spec().own_sizes) return offsets;
  const ImageSizes& sizes = part.samples().sizes;
  offsets.reserve(sizes.payload_bytes.size());
  for (const StoredChunk& chunk : part.chunks()) {
    std::uint64_t offset = 0;
    for (std::uint64_t i = 0; i < chunk.sample_count; ++i) {
      offsets.push_back(static_cast<std::uint32_t>(offset));
      offset += sizes.stored_bytes(chunk.first_sample + i);
    }
  }
  return offsets;
}

}  // namespace

ChunkSet::ChunkSet(std::vector<std::unique_ptr<ChunkReader>> parts)
    : parts_(std::move(parts)), first_chunks_{0}, first_samples_{0} {
  for (const auto& part : parts_) {
    check_same_shape(*part, *parts_.front());
    const auto& chunks = part->chunks();
    const std::uint64_t samples =
        chunks.empty() ? 0 : chunks.back().first_sample + chunks.back().sample_count;
    raw_.push_back(holds_raw_samples(*part));
    sample_offsets_.push_back(sample_offsets(*part));
    first_chunks_.push_back(first_chunks_.back() + chunks.size());
    first_samples_.push_back(first_samples_.back() + samples);
  }
}

ChunkSet::Location ChunkSet::find(std::size_t chunk) const {
  const auto next = std::upper_bound(first_chunks_.begin(), first_chunks_.end(), chunk);
  const auto part = static_cast<std::size_t>(next - first_chunks_.begin()) - 1;
  return {part, chunk - first_chunks_[part]};
}

ChunkSet::SampleLocation ChunkSet::find_sample(std::uint64_t sample) const {
  const auto next = std::upper_bound(first_samples_.begin(), first_samples_.end(), sample);
  const auto part = static_cast<std::size_t>(next - first_samples_.begin()) - 1;
  return {part, sample - first_samples_[part]};
}

std::uint64_t ChunkSet::first_sample(Location location) const {
  return first_samples_[location.part] + stored(location).first_sample;
}

bool ChunkSet::is_raw() const {
  return std::all_of(raw_.begin(), raw_.end(), [](bool raw) { return raw; });
}

std::vector<std::uint64_t> ChunkSet::sample_counts() const {
  std::vector<std::uint64_t> counts;
  counts.reserve(chunk_count());
  for (const auto& part : parts_)
    for (const StoredChunk& chunk : part->chunks()) counts.push_back(chunk.sample_count);
  return counts;
}

ChunkSet::SampleBytes ChunkSet::sample_bytes(Location location, std::uint64_t in_chunk) const {
  if (!own_sizes()) return {in_chunk * sample().byte_count(), sample().byte_count()};
  const std::uint64_t index = stored(location).first_sample + in_chunk;
  return {sample_offsets_[location.part][index], part(location).samples().sizes.stored_bytes(index)};
}

std::uint64_t ChunkSet::decoded_bytes(Location location) const {
  const StoredChunk& chunk = stored(location);
  if (matrix()) return max_decoded_bytes(*matrix(), chunk.sample_count, chunk.raw_bytes, reads_times());
  if (own_sizes()) return chunk.raw_bytes;
  return chunk.sample_count * sample().byte_count();
}

std::uint64_t ChunkSet::decoded_bytes() const {
  if (!matrix() && !own_sizes()) return sample_count() * sample().byte_count();
  std::uint64_t bytes = 0;
  for (std::size_t chunk = 0; chunk < chunk_count(); ++chunk) bytes += decoded_bytes(find(chunk));
  return bytes;
}

std::uint64_t ChunkSet::stored_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& part : parts_)
    for (const StoredChunk& chunk : part->chunks()) bytes += chunk.stored_bytes;
  return bytes;
}

std::uint64_t ChunkSet::max_chunk_bytes() const {
  std::uint64_t most = 0;
  for (std::size_t part = 0; part < parts_.size(); ++part)
    for (std::size_t chunk = 0; chunk < parts_[part]->chunks().size(); ++chunk)
      most = std::max({most, stored({part, chunk}).raw_bytes, decoded_bytes({part, chunk})});
  return most;
}

std::uint64_t ChunkSet::max_stored_bytes() const {
  std::uint64_t most = 0;
  for (std::size_t part = 0; part < parts_.size(); ++part)
    for (const StoredChunk& chunk : parts_[part]->chunks())
      if (!raw_[part]) most = std::max(most, chunk.stored_bytes);
  return most;
}

std::uint64_t ChunkSet::max_fetched_bytes() const {
  std::uint64_t most = 0;
  for (const auto& part : parts_)
    for (const StoredChunk& chunk : part->chunks()) most = std::max(most, chunk.stored_bytes);
  return most;
}

std::uint64_t ChunkSet::id() const {
  std::vector<std::uint64_t> facts;
  for (const auto& part : parts_) {
    const PartSpec& spec = part->spec();
    facts.insert(facts.end(), {spec.pack_id, spec.part_index, spec.chunk_samples, part->chunks().size(),
                               part->byte_count(), spec.sample.byte_count()});
  }
  facts.push_back(sample_count());
  return xxh3(Bytes(reinterpret_cast<const std::uint8_t*>(facts.data()), facts.size() * sizeof facts[0]));
}

}  // namespace chunkhit
