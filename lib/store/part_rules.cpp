#include "store/part_rules.h"

#include <algorithm>
#include <utility>

#include "base/throw_error.h"
#include "chunkhit/error.h"
#include "codec/chunk_codec.h"

namespace chunkhit {

void check_count(const std::string& what, std::uint64_t found, std::uint64_t expected) {
  if (found != expected)
    throw_bad_data(what + ": " + std::to_string(found) + ", expected " + std::to_string(expected));
}

namespace {

void check_range(std::uint64_t offset, std::uint64_t stored_bytes, std::uint64_t file_bytes) {
  if (stored_bytes > file_bytes || offset > file_bytes - stored_bytes)
    throw_bad_data("bytes " + std::to_string(offset) + " and " + std::to_string(stored_bytes) +
                   " more lie outside of the file's " + std::to_string(file_bytes));
}

void check_labels(const PartSpec& spec, const PartSamples& samples) {
  const Labels& labels = samples.labels;
  if (labels.values.empty()) {
    check_count("labels", labels.ids.size(), samples.rows.size());
  } else {
    check_count("labels", labels.values.size(), samples.rows.size() * spec.label_columns.size());
    check_count("class ids beside numbers", labels.ids.size(), 0);
  }
  for (const SampleColumn& column : samples.columns)
    check_count("values of a column", column.size(), samples.rows.size());
}

}  // namespace

void check_chunk(const PartContents& contents, std::size_t index, const SampleRange& samples,
                 const Container& container, std::uint64_t file_bytes) {
  const StoredChunk& chunk = contents.chunks[index];
  const Payload& payload = contents.spec.payload();
  check_count("first sample", chunk.first_sample, samples.first);
  check_count("samples", chunk.sample_count, samples.count);
  payload.check_raw_bytes(chunk, contents.spec, container);
  if (chunk.stored_bytes == 0) throw_bad_data("no stored bytes");
  if (chunk.filtered && contents.spec.codec == "none") throw_bad_data("filtered in a part without a codec");
  if (!chunk.filtered)
    check_count("stored bytes", chunk.stored_bytes,
                container.is_zstd_stream && !payload.frames_samples() ? raw_frame_bytes(chunk.raw_bytes)
                                                                      : chunk.raw_bytes);
  check_range(chunk.offset, chunk.stored_bytes, file_bytes);
}

/// Every chunk but the last has spec.chunk_samples.
void Payload::check_chunks(const PartContents& contents, const Container& container,
                           std::uint64_t file_bytes) const {
  const std::uint64_t samples = contents.samples.rows.size();
  const std::uint64_t step = contents.spec.chunk_samples;
  check_count("chunks", contents.chunks.size(), samples / step + (samples % step != 0 ? 1 : 0));
  for_each_chunk(contents, [&](std::size_t i) {
    const std::uint64_t first = i * step;
    check_chunk(contents, i, {first, std::min(step, samples - first)}, container, file_bytes);
  });
}

void check_pixel_stats(const std::vector<double>& mean, const std::vector<double>& std,
                       std::uint32_t channels) {
  for (const auto& [name, values] : {std::pair{"mean", &mean}, std::pair{"std", &std}}) {
    check_count(std::string("entries of ") + name, values->size(), mean.empty() ? 0 : channels);
    for (const double value : *values)
      if (!(value >= 0 && value <= 1))
        throw_bad_data(std::string(name) + ": " + std::to_string(value) + ", expected 0 to 1");
  }
}

void check_part_spec(const PartSpec& spec, const Container& container) {
  spec.payload().check_spec(spec, container);
  if (std::ranges::find(container.codecs, spec.codec) == container.codecs.end())
    throw_bad_data("unknown codec in a part of kind " + std::string(container.name));
  if (spec.hashes_samples && (spec.holds_own_sizes() || !container.hashes_samples(spec.codec)))
    throw_bad_data("hashes of samples beside a codec, or of images of their own sizes");
}

void check_part_contents(const PartContents& contents, const Container& container, std::uint64_t file_bytes) {
  check_part_spec(contents.spec, container);
  contents.spec.payload().check_chunks(contents, container, file_bytes);
  check_labels(contents.spec, contents.samples);
  contents.spec.payload().check_samples(contents.spec, contents.samples);
}

void check_external_contents(const PartContents& contents, const Container& container,
                             std::uint64_t file_bytes) {
  check_part_spec(contents.spec, container);
  if (contents.pieces)
    for (const StoredPiece& piece : contents.pieces->all)
      check_range(piece.offset, piece.stored_bytes, file_bytes);
  else if (!contents.read_rows)
    for (const StoredChunk& chunk : contents.chunks)
      check_range(chunk.offset, chunk.stored_bytes, file_bytes);
  check_labels(contents.spec, contents.samples);
  contents.spec.payload().check_samples(contents.spec, contents.samples);
}

PartReport check_written_part(const PendingFile& file,
                              std::unique_ptr<ChunkReader> (*open)(const std::string& path),
                              const std::vector<StoredChunk>& chunks) {
  try {
    const std::unique_ptr<ChunkReader> part = open(file.aside_path());
    if (part->chunks() != chunks) throw_bad_data("other chunks than were written");
    PartReport report{.bytes = part->byte_count(), .xxh3 = part->hash_of_all(), .chunk_count = chunks.size()};
    for (const StoredChunk& chunk : chunks) {
      report.sample_count += chunk.sample_count;
      report.stored_bytes += chunk.stored_bytes;
    }
    return report;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;
    throw_cannot_write(file.path() + ": what was written does not read back: " + error.what());
  }
}

}  // namespace chunkhit
