#include "cache/chunk_set.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/hash.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

std::string shape_text(const SampleShape& sample) {
  return std::to_string(sample.height) + "x" + std::to_string(sample.width) + "x" +
         std::to_string(sample.channels) + " " +
         std::string(kLayoutNames[static_cast<std::size_t>(sample.layout)]);
}

bool holds_raw_samples(const ChunkReader& part) {
  for (std::size_t chunk = 0; chunk < part.chunks().size(); ++chunk)
    if (!part.stored_raw(chunk)) return false;
  return true;
}

}  // namespace

ChunkSet::ChunkSet(std::vector<std::unique_ptr<ChunkReader>> parts)
    : parts_(std::move(parts)), first_chunks_{0}, first_samples_{0} {
  for (const auto& part : parts_) {
    if (part->spec().sample != sample())
      throw Error(ErrorCode::bad_data, part->path() + ": samples of " + shape_text(part->spec().sample) +
                                           ", expected " + shape_text(sample()) + " as in " +
                                           parts_.front()->path());
    const auto& chunks = part->chunks();
    const std::uint64_t samples =
        chunks.empty() ? 0 : chunks.back().first_sample + chunks.back().sample_count;
    raw_.push_back(holds_raw_samples(*part));
    first_chunks_.push_back(first_chunks_.back() + chunks.size());
    first_samples_.push_back(first_samples_.back() + samples);
  }
}

ChunkSet::Place ChunkSet::find(std::size_t chunk) const {
  const auto next = std::upper_bound(first_chunks_.begin(), first_chunks_.end(), chunk);
  const auto part = static_cast<std::size_t>(next - first_chunks_.begin()) - 1;
  return {part, chunk - first_chunks_[part]};
}

std::uint64_t ChunkSet::first_sample(Place place) const {
  return first_samples_[place.part] + stored(place).first_sample;
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

std::uint64_t ChunkSet::raw_bytes() const { return sample_count() * sample().byte_count(); }

std::uint64_t ChunkSet::stored_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& part : parts_)
    for (const StoredChunk& chunk : part->chunks()) bytes += chunk.stored_bytes;
  return bytes;
}

std::uint64_t ChunkSet::most_chunk_bytes() const {
  std::uint64_t most = 0;
  for (const auto& part : parts_)
    for (const StoredChunk& chunk : part->chunks()) most = std::max(most, chunk.raw_bytes);
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
