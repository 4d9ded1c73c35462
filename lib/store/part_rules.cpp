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

void check_raw_bytes(const StoredChunk& chunk, const PartSpec& spec, const Container& container) {
  if (spec.own_sizes) return;  // their samples' bytes were added up
  const std::uint64_t raw_samples = container.pads_last_chunk ? spec.chunk_samples : chunk.sample_count;
  if (!spec.matrix) return check_count("raw bytes", chunk.raw_bytes, raw_samples * spec.sample.byte_count());
  const std::uint64_t least = min_row_block_bytes(raw_samples, *spec.matrix);
  if (chunk.raw_bytes < least || chunk.raw_bytes > container.max_chunk_bytes)
    throw_bad_data("raw bytes: " + std::to_string(chunk.raw_bytes) + ", expected " + std::to_string(least) +
                   " to " + std::to_string(container.max_chunk_bytes));
}

/// Where a chunk's samples and bytes must be, by its location in the part.
void check_chunk(const StoredChunk& chunk, std::uint64_t first_sample, std::uint64_t sample_count,
                 const PartSpec& spec, const Container& container) {
  check_count("first sample", chunk.first_sample, first_sample);
  check_count("samples", chunk.sample_count, sample_count);
  check_raw_bytes(chunk, spec, container);
  if (chunk.stored_bytes == 0) throw_bad_data("no stored bytes");
  if (chunk.filtered && spec.codec == "none") throw_bad_data("filtered in a part without a codec");
  if (!chunk.filtered)
    check_count(
        "stored bytes", chunk.stored_bytes,
        container.is_zstd_stream && !spec.own_sizes ? raw_frame_bytes(chunk.raw_bytes) : chunk.raw_bytes);
}

void check_range(std::uint64_t offset, std::uint64_t stored_bytes, std::uint64_t file_bytes) {
  if (stored_bytes > file_bytes || offset > file_bytes - stored_bytes)
    throw_bad_data("bytes " + std::to_string(offset) + " and " + std::to_string(stored_bytes) +
                   " more lie outside of the file's " + std::to_string(file_bytes));
}

/// The samples of a chunk of images of their own sizes, whose stored bytes must fill it.
std::uint64_t count_sized_samples(const ImageSizes& sizes, std::uint64_t first_sample,
                                  const StoredChunk& chunk) {
  const std::uint64_t left = sizes.payload_bytes.size() - first_sample;
  if (chunk.sample_count == 0 || chunk.sample_count > left)
    throw_bad_data("samples: " + std::to_string(chunk.sample_count) + ", expected 1 to " +
                   std::to_string(left));
  std::uint64_t bytes = 0;
  for (std::uint64_t i = first_sample; i < first_sample + chunk.sample_count; ++i)
    bytes += sizes.stored_bytes(i);
  check_count("raw bytes", chunk.raw_bytes, bytes);
  return chunk.sample_count;
}

void check_sized_chunks(const PartContents& contents, const Container& container, std::uint64_t file_bytes) {
  std::uint64_t first_sample = 0;
  for (std::size_t i = 0; i < contents.chunks.size(); ++i) {
    const StoredChunk& chunk = contents.chunks[i];
    try {
      const std::uint64_t count = count_sized_samples(contents.samples.sizes, first_sample, chunk);
      check_chunk(chunk, first_sample, count, contents.spec, container);
      check_range(chunk.offset, chunk.stored_bytes, file_bytes);
      if (chunk.stored_bytes > container.max_chunk_bytes)
        throw_bad_data("stored bytes: " + std::to_string(chunk.stored_bytes) + ", expected at most " +
                       std::to_string(container.max_chunk_bytes));
      first_sample += count;
    } catch (const Error& error) {
      throw_bad_data("chunk " + std::to_string(i) + ": " + error.what());
    }
  }
  check_count("samples of all chunks", first_sample, contents.samples.rows.size());
}

void check_chunks(const PartContents& contents, const Container& container, std::uint64_t file_bytes) {
  if (contents.spec.own_sizes) return check_sized_chunks(contents, container, file_bytes);
  const std::uint64_t samples = contents.samples.rows.size();
  const std::uint64_t step = contents.spec.chunk_samples;
  check_count("chunks", contents.chunks.size(), samples / step + (samples % step != 0 ? 1 : 0));
  for (std::size_t i = 0; i < contents.chunks.size(); ++i) {
    const StoredChunk& chunk = contents.chunks[i];
    const std::uint64_t first_sample = i * step;
    try {
      check_chunk(chunk, first_sample, std::min(step, samples - first_sample), contents.spec, container);
      check_range(chunk.offset, chunk.stored_bytes, file_bytes);
    } catch (const Error& error) {
      throw_bad_data("chunk " + std::to_string(i) + ": " + error.what());
    }
  }
}

/// Of matrices: items may have no names, but not some of them; labels are no items.
void check_items(const PartSpec& spec, const PartSamples& samples) {
  if (!spec.classes.empty()) check_count("names of items", spec.classes.size(), spec.matrix->column_count);
  check_count("entries of mean", samples.mean.size() + samples.std.size(), 0);
}

/// Throws bad_data unless a size is one that can be decoded.
void check_size(const ImageSizes& sizes, std::size_t sample, std::uint32_t channels) {
  constexpr std::uint32_t kMaxSide = 1u << 20;
  constexpr std::uint8_t kOrientations = 8;
  const std::uint64_t height = sizes.heights[sample], width = sizes.widths[sample];
  if (height < 1 || height > kMaxSide || width < 1 || width > kMaxSide)
    throw_bad_data(std::to_string(height) + " x " + std::to_string(width) +
                   " pixels, expected sides of 1 to " + std::to_string(kMaxSide));
  if (height * width > kMaxOwnPixels)
    throw_bad_data(std::to_string(height) + " x " + std::to_string(width) + " pixels, expected at most " +
                   std::to_string(kMaxOwnPixels) + " in all");
  if (sizes.payload_bytes[sample] <= sizes.mask_bytes_of(sample)) throw_bad_data("no bytes");
  if (!sizes.mask_bytes.empty() && sizes.mask_bytes[sample] == 0) throw_bad_data("no bytes of a mask");
  const std::uint32_t image_bytes = sizes.payload_bytes[sample] - sizes.mask_bytes_of(sample);
  const auto kind = static_cast<PayloadKind>(sizes.kinds[sample]);
  if (!sizes.framed && kind != PayloadKind::jpeg && kind != PayloadKind::raw)
    throw_bad_data("kind " + std::to_string(sizes.kinds[sample]) + ", expected 1 (jpeg) or 2 (raw)");
  if (kind < PayloadKind::jpeg || kind > PayloadKind::photo)
    throw_bad_data("kind " + std::to_string(sizes.kinds[sample]) +
                   ", expected 1 (jpeg), 2 (raw), 3 (zstd) or 4 (photo)");
  if (kind == PayloadKind::photo && channels != 3)
    throw_bad_data("kind 4 (photo) with " + std::to_string(channels) + " channels, expected 3");
  if (kind == PayloadKind::raw) check_count("bytes", image_bytes, height * width * channels);
  if (sizes.orientations[sample] < 1 || sizes.orientations[sample] > kOrientations)
    throw_bad_data("orientation " + std::to_string(sizes.orientations[sample]) + ", expected 1 to 8");
}

void check_sizes(const PartSpec& spec, const PartSamples& samples) {
  const ImageSizes& sizes = samples.sizes;
  for (const std::size_t count : {sizes.payload_bytes.size(), sizes.heights.size(), sizes.widths.size(),
                                  sizes.kinds.size(), sizes.orientations.size(), sizes.payload_xxh3.size()})
    check_count("sizes of images", count, spec.own_sizes ? samples.rows.size() : 0);
  check_count("sizes of masks", sizes.mask_bytes.size(),
              spec.own_sizes && spec.sample.has_mask ? samples.rows.size() : 0);
  for (std::size_t sample = 0; sample < sizes.kinds.size(); ++sample) {
    try {
      check_size(sizes, sample, spec.sample.channels);
    } catch (const Error& error) {
      throw_bad_data("sample " + std::to_string(sample) + ": " + error.what());
    }
  }
}

void check_samples(const PartSpec& spec, const PartSamples& samples) {
  const Labels& labels = samples.labels;
  if (labels.values.empty()) {
    check_count("labels", labels.ids.size(), samples.rows.size());
  } else {
    check_count("labels", labels.values.size(), samples.rows.size() * spec.label_columns.size());
    check_count("class ids beside numbers", labels.ids.size(), 0);
  }
  check_count("file names", samples.files.size(), samples.rows.size());
  for (const SampleColumn& column : samples.columns)
    check_count("values of a column", column.size(), samples.rows.size());
  if (spec.matrix) return check_items(spec, samples);
  check_pixel_stats(samples.mean, samples.std, spec.sample.channels);
  const auto unknown = [&](std::int64_t id) {
    return id < -1 || id >= static_cast<std::int64_t>(spec.classes.size());
  };
  if (!spec.classes.empty() && std::ranges::any_of(labels.ids, unknown))
    throw_bad_data("a class id is none of the " + std::to_string(spec.classes.size()) + " classes");
}

void check_sized_spec(const PartSpec& spec) {
  const SampleShape& sample = spec.sample;
  if (sample.height != 0 || sample.width != 0 || sample.layout != Layout::nhwc)
    throw_bad_data("images of their own sizes with a shape");
  if (sample.channels != 1 && sample.channels != 3 && sample.channels != 4)
    throw_bad_data(std::to_string(sample.channels) + " channels, expected 1, 3 or 4");
  check_count("samples of a chunk", spec.chunk_samples, 0);
  if (spec.codec != "none") throw_bad_data("images of their own sizes with a codec");
}

void check_sample_shape(const PartSpec& spec, const Container& container) {
  const SampleShape& sample = spec.sample;
  const std::uint64_t pixels = std::uint64_t{sample.height} * sample.width;
  if (pixels == 0 || sample.channels == 0) throw_bad_data("a sample without bytes");
  if (pixels > container.max_chunk_bytes / sample.values())
    throw_bad_data("a sample of " + std::to_string(sample.height) + " x " + std::to_string(sample.width) +
                   " x " + std::to_string(sample.channels) + " bytes is larger than a chunk may be (" +
                   std::to_string(container.max_chunk_bytes) + ")");
  if (spec.chunk_samples == 0 || spec.chunk_samples > container.max_chunk_bytes / sample.byte_count())
    throw_bad_data("chunks of " + std::to_string(spec.chunk_samples) + " samples, expected 1 to " +
                   std::to_string(container.max_chunk_bytes / sample.byte_count()));
}

/// A row has at least a byte of each matrix.
void check_matrix_spec(const PartSpec& spec, const Container& container) {
  if (!container.holds_row_blocks) throw_bad_data("row blocks lie in shards only");
  check_matrix_shape(*spec.matrix);
  if (spec.chunk_samples == 0 || spec.chunk_samples > container.max_chunk_bytes)
    throw_bad_data("chunks of " + std::to_string(spec.chunk_samples) + " rows, expected 1 to " +
                   std::to_string(container.max_chunk_bytes));
  if (spec.codec != "zstd" && spec.codec != "none")
    throw_bad_data("matrices with a codec other than zstd and none");
}

}  // namespace

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
  if (spec.matrix)
    check_matrix_spec(spec, container);
  else if (spec.own_sizes)
    check_sized_spec(spec);
  else
    check_sample_shape(spec, container);
  if (std::ranges::find(container.codecs, spec.codec) == container.codecs.end())
    throw_bad_data("unknown codec in a part of kind " + std::string(container.name));
}

void check_part_contents(const PartContents& contents, const Container& container, std::uint64_t file_bytes) {
  check_part_spec(contents.spec, container);
  check_sizes(contents.spec, contents.samples);
  check_chunks(contents, container, file_bytes);
  check_samples(contents.spec, contents.samples);
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
  check_samples(contents.spec, contents.samples);
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
