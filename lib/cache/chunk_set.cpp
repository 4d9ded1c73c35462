#include "cache/chunk_set.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "base/hash.h"
#include "cache/decoded_rows.h"
#include "chunkhit/version.h"

namespace chunkhit {
namespace {

bool holds_raw_samples(const ChunkReader& part) {
  if (part.spec().holds_rows()) return false;
  for (std::size_t chunk = 0; chunk < part.chunks().size(); ++chunk)
    if (!part.stored_raw(chunk)) return false;
  return true;
}

}  // namespace

ChunkSet::ChunkSet(std::vector<std::unique_ptr<ChunkReader>> parts)
    : parts_(std::move(parts)),
      sample_step_(parts_.empty() ? 0 : payload().sample_step()),
      first_chunks_{0},
      first_samples_{0} {
  for (const auto& part : parts_) {
    part->spec().payload().check_alike(part->path(), payload(), parts_.front()->path());
    const auto& chunks = part->chunks();
    const std::uint64_t samples =
        chunks.empty() ? 0 : chunks.back().first_sample + chunks.back().sample_count;
    raw_.push_back(holds_raw_samples(*part));
    sample_offsets_.push_back(part->spec().payload().sample_offsets(chunks, part->samples()));
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

bool ChunkSet::compares_samples() const {
  return std::ranges::all_of(parts_, [](const auto& part) { return part->compares_samples(); });
}

bool ChunkSet::reads_ahead() const {
  return std::ranges::all_of(parts_, [](const auto& part) { return part->file().reads_ahead(); });
}

std::vector<std::uint64_t> ChunkSet::sample_counts() const {
  std::vector<std::uint64_t> counts;
  counts.reserve(chunk_count());
  for (const auto& part : parts_)
    for (const StoredChunk& chunk : part->chunks()) counts.push_back(chunk.sample_count);
  return counts;
}

void ChunkSet::set_rating_counts(std::vector<std::uint64_t> counts) {
  rating_counts_ = std::move(counts);
  rating_count_ = std::accumulate(rating_counts_.begin(), rating_counts_.end(), std::uint64_t{0});
}

ChunkSet::SampleBytes ChunkSet::sample_bytes(Location location, std::uint64_t in_chunk) const {
  if (sample_step_ != 0) return {in_chunk * sample_step_, sample_step_};
  const std::uint64_t index = stored(location).first_sample + in_chunk;
  return {sample_offsets_[location.part][index], part(location).samples().sizes.stored_bytes(index)};
}

std::uint64_t ChunkSet::decoded_bytes(Location location) const {
  const StoredChunk& chunk = stored(location);
  if (holds_rows())
    return max_decoded_bytes(matrix(), chunk.sample_count, chunk.raw_bytes, row_arrays().times);
  return sample_step_ != 0 ? chunk.sample_count * sample_step_ : chunk.raw_bytes;
}

std::uint64_t ChunkSet::decoded_bytes() const {
  if (sample_step_ != 0) return sample_count() * sample_step_;
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
                               part->byte_count(), spec.payload().shape().byte_count()});
  }
  facts.push_back(sample_count());
  if (serves_ratings()) facts.push_back(rating_count_);
  return xxh3(Bytes(reinterpret_cast<const std::uint8_t*>(facts.data()), facts.size() * sizeof facts[0]));
}

std::optional<std::uint64_t> ChunkSet::contents_id() const {
  if (!std::ranges::all_of(parts_, [](const auto& part) { return part->has_hashes(); })) return std::nullopt;
  const std::string text = version();
  Xxh3Stream stream;
  stream.update(as_bytes(text));
  const auto add = [&](const auto& numbers) {
    stream.update(Bytes(reinterpret_cast<const std::uint8_t*>(numbers.data()), sizeof numbers));
  };
  add(std::array<std::uint64_t, 2>{id(), (row_arrays().times ? 1U : 0U) + (row_arrays().by_time ? 2U : 0U)});
  for (const auto& part : parts_) {
    struct stat status {};
    const bool is_remote = part->file().remote() != nullptr;
    if (!is_remote && ::stat(part->path().c_str(), &status) != 0) return std::nullopt;
    if (is_remote) stream.update(as_bytes(part->path()));
    add(std::array<std::uint64_t, 2>{status.st_dev, status.st_ino});
    const SampleShape& shape = part->spec().payload().shape();
    stream.update(as_bytes(part->spec().codec));
    add(std::array<std::uint32_t, 4>{shape.height, shape.width, shape.channels,
                                     static_cast<std::uint32_t>(shape.layout)});
    for (const SampleField& field : shape.pairs) add(std::array{static_cast<std::uint32_t>(field.role)});
    for (const StoredChunk& chunk : part->chunks())
      add(std::array<std::uint64_t, 3>{chunk.xxh3, chunk.stored_bytes, chunk.raw_bytes});
  }
  return stream.value();
}

}  // namespace chunkhit
