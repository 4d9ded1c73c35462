#include "store/contents_message.h"

#include <string>
#include <vector>

#include "base/child_limits.h"
#include "base/message.h"
#include "codec/chunk_codec.h"
#include "store/tile_grid.h"

namespace chunkhit {
namespace {

constexpr std::size_t kOtherBytes = 64 << 10;

// One function for both directions: Stream is MessageWriter and Spec const PartSpec, or MessageReader and
// PartSpec.
template <class Stream, class Spec>
void exchange_spec(Stream& stream, Spec& spec) {
  stream(spec.sample, spec.matrix, spec.codec, spec.chunk_samples, spec.classes, spec.label_columns,
         spec.pack_id, spec.part_index, spec.cache_advice);
}

template <class Stream, class Samples>
void exchange_samples(Stream& stream, Samples& samples) {
  stream(samples.labels.ids, samples.labels.values, samples.rows, samples.files.text, samples.files.ends,
         samples.mean, samples.std);
}

template <class Stream, class Contents>
void exchange_contents(Stream& stream, Contents& contents) {
  allow_more_time();
  exchange_spec(stream, contents.spec);
  stream(contents.chunks);
  allow_more_time();
  exchange_samples(stream, contents.samples);
  stream(contents.has_hashes);
}

template <class Stream, class Grid>
void exchange_grid(Stream& stream, Grid& grid) {
  stream(grid.array_sides, grid.tile_sides, grid.fill_value, grid.rows_in_chunk, grid.tiles);
}

/// Estimates what a message of contents without tiles takes.
std::size_t about_bytes(const PartContents& contents) {
  const PartSamples& samples = contents.samples;
  return contents.chunks.size() * sizeof(StoredChunk) + samples.labels.ids.size() * sizeof(std::int64_t) +
         samples.labels.values.size() * sizeof(float) + samples.rows.size() * sizeof(std::uint64_t) +
         samples.files.text.size() + samples.files.ends.size() * sizeof(std::uint64_t) + kOtherBytes;
}

/// The name as it stands in the program: a grid only views it.
std::string_view static_name(const std::string& name) {
  return name == "fletcher32" ? std::string_view("fletcher32") : chunk_codec(name).name;
}

}  // namespace

ByteBuffer encode_contents(const PartContents& contents) {
  MessageWriter message;
  message.reserve(about_bytes(contents));
  exchange_contents(message, contents);
  message(contents.tiles.has_value());
  if (!contents.tiles) return message.take();
  const std::vector<std::string> filters(contents.tiles->filters.begin(), contents.tiles->filters.end());
  message(filters);
  exchange_grid(message, *contents.tiles);
  return message.take();
}

PartContents decode_contents(Bytes bytes) {
  MessageReader message(bytes);
  PartContents contents;
  exchange_contents(message, contents);
  bool has_tiles = false;
  message(has_tiles);
  if (!has_tiles) return contents;
  std::vector<std::string> filters;
  message(filters);
  TileGrid& grid = contents.tiles.emplace();
  for (const std::string& name : filters) grid.filters.push_back(static_name(name));
  exchange_grid(message, grid);
  return contents;
}

}  // namespace chunkhit
