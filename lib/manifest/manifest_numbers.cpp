#include "manifest/manifest_numbers.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/throw_error.h"
#include "store/part_rules.h"

namespace chunkhit {
namespace {

constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

void check_at_most(const std::string& what, std::uint64_t found, std::uint64_t most) {
  if (found > most)
    throw_bad_data(what + ": " + std::to_string(found) + ", expected at most " + std::to_string(most));
}

const Container& known_container(const std::string& name) {
  for (const Container& row : containers())
    if (row.name == name) return row;
  throw_bad_data("container: expected hdf5 or shard, found " + name);
}

/// `chunk_samples`: 0 where chunks are not rows.
void check_part(const PartRecord& part, std::uint64_t chunk_samples) {
  check_at_most(part.file + ": bytes", part.bytes, kMaxBytes);
  check_at_most(part.file + ": stored_bytes", part.stored_bytes, part.bytes);
  check_at_most(part.file + ": chunks", part.chunks, part.bytes);
  if (chunk_samples > 0)
    check_count(part.file + ": chunks", part.chunks,
                part.samples / chunk_samples + (part.samples % chunk_samples != 0 ? 1 : 0));
}

/// Checks the parts, and that those of a source have no more rows than it.
void check_parts(const PackManifest& manifest, bool chunks_are_rows) {
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> rows_left;
  for (const SourcePack& source : manifest.sources) rows_left.push_back(source.rows);
  for (const PartRecord& part : manifest.parts) {
    check_at_most(part.file + ": bytes", part.bytes, kMaxBytes - bytes);
    bytes += part.bytes;
    if (part.source >= manifest.sources.size())
      throw_bad_data(part.file + ": source: " + std::to_string(part.source) + " of " +
                     std::to_string(manifest.sources.size()));
    check_part(part, chunks_are_rows ? manifest.sources[part.source].chunk_samples : 0);
    check_at_most(part.file + ": rows", part.rows, rows_left[part.source]);
    rows_left[part.source] -= part.rows;
  }
}

/// Checks that the sources' rows are those of the pack.
void check_sources(const PackManifest& manifest) {
  std::uint64_t rows = 0;
  for (const SourcePack& source : manifest.sources) {
    check_at_most("sources: rows", source.rows, manifest.rows - rows);
    rows += source.rows;
  }
  check_count("sources: rows", rows, manifest.rows);
}

/// Checks that every class of a source is one of the pack's, which then count up from 0.
void check_source_classes(const Manifest& manifest) {
  for (const SourcePack& source : manifest.sources) {
    if (source.class_ids.empty()) continue;
    for (std::size_t id = 0; id < manifest.classes.size(); ++id)
      check_count("classes: id", static_cast<std::uint64_t>(manifest.classes[id].id), id);
    for (const std::int64_t id : source.class_ids)
      if (id < 0 || static_cast<std::uint64_t>(id) >= manifest.classes.size())
        throw_bad_data("sources: classes: no class " + std::to_string(id));
  }
}

void check_rows(const Manifest& manifest) {
  std::uint64_t samples = 0;
  std::uint64_t rows = 0;
  bool fits = manifest.samples <= manifest.rows && manifest.rejected == manifest.rows - manifest.samples;
  // Compared before they are added, so that no sum wraps around.
  for (const PartRecord& part : manifest.parts) {
    fits = fits && part.samples <= manifest.samples - samples && part.rows <= manifest.rows - rows;
    samples += part.samples;
    rows += part.rows;
  }
  if (!fits || samples != manifest.samples)
    throw_bad_data("counts do not add up: " + std::to_string(manifest.rows) + " rows, " +
                   std::to_string(manifest.samples) + " samples, " + std::to_string(manifest.rejected) +
                   " rejected, " + std::to_string(samples) + " samples in parts");
  check_at_most("warned", manifest.warned, manifest.samples);
}

void check_counts(const PartRecord& part) {
  if (part.samples > part.rows || part.rejects.size() != part.rows - part.samples ||
      part.warnings.size() > part.samples)
    throw_bad_data("counts do not add up: " + std::to_string(part.rows) + " rows, " +
                   std::to_string(part.samples) + " samples");
  std::uint64_t samples = 0;
  for (const auto& [id, count] : part.class_counts) {
    check_at_most("classes: samples", count, part.samples - samples);
    samples += count;
  }
}

void check_sums(const PixelSums& pixels) {
  constexpr std::uint64_t kMaxValue = 255;
  check_at_most("pixels: pixel_count", pixels.pixel_count, kMaxBytes / (kMaxValue * kMaxValue));
  for (const std::uint64_t sum : pixels.sum)
    check_at_most("pixels: sum", sum, pixels.pixel_count * kMaxValue);
  for (const std::uint64_t sum : pixels.sum_of_squares)
    check_at_most("pixels: sum_of_squares", sum, pixels.pixel_count * kMaxValue * kMaxValue);
}

/// Checks that each number is counted once an image.
void check_ranges(const SizeCounts& counts, std::uint64_t images) {
  std::uint64_t counted = 0;
  for (const auto& [from, count] : counts.ranges) {
    check_at_most("inputs: ranges", count, images - counted);
    counted += count;
  }
  check_count("inputs: ranges", counted, images);
}

/// Checks that the formats have as many images as there are samples.
void check_inputs(const std::optional<InputSizes>& inputs, std::uint64_t samples) {
  if (!inputs) return;
  std::uint64_t counted = 0;
  for (const InputFormat& entry : inputs->formats) {
    check_at_most("inputs: images", entry.images, samples - counted);
    counted += entry.images;
    for (const SizeCounts* const counts : {&entry.width, &entry.height, &entry.aspect_ratio})
      check_ranges(*counts, entry.images);
  }
  check_count("inputs: images", counted, samples);
  check_at_most("inputs: squeezed", inputs->squeezed, samples);
  check_at_most("inputs: cropped", inputs->cropped, samples);
  check_at_most("inputs: padded", inputs->padded, samples);
  check_at_most("inputs: alpha_dropped", inputs->alpha_dropped, samples);
  check_at_most("inputs: frames_dropped", inputs->frames_dropped, samples);
  check_at_most("inputs: deep", inputs->deep, samples);
}

void check_classes(const Manifest& manifest) {
  std::uint64_t samples = 0;
  for (const PackClass& record : manifest.classes) {
    check_at_most("classes: samples", record.samples, manifest.samples - samples);
    samples += record.samples;
  }
}

void check_rows(const MatrixManifest& manifest) {
  std::uint64_t rows = 0;
  bool fits = true;
  for (const PartRecord& part : manifest.parts) {
    fits = fits && part.samples <= manifest.rows - rows && part.rows == part.samples;
    rows += part.samples;
  }
  if (!fits || rows != manifest.rows)
    throw_bad_data("counts do not add up: " + std::to_string(manifest.rows) + " rows, " +
                   std::to_string(rows) + " in parts");
}

void check_entries(const MatrixManifest& manifest) {
  // A rating takes 8 bytes in memory, and so does a row.
  constexpr std::uint64_t kMaxEntries = kMaxBytes / 64;
  check_at_most("rows", manifest.rows, kMaxEntries);
  const bool is_small = !manifest.has_repeats && manifest.rows <= kMaxEntries / manifest.columns;
  const std::uint64_t cells = is_small ? manifest.rows * manifest.columns : kMaxEntries;
  for (const PackMatrix& record : manifest.matrices) {
    check_at_most("matrices: nnz", record.nnz, cells);
    check_at_most("matrices: longest_row", record.longest_row,
                  manifest.has_repeats ? record.nnz : std::min(record.nnz, manifest.columns));
  }
}

}  // namespace

void check_numbers(const Manifest& manifest) {
  check_rows(manifest);
  check_sources(manifest);
  PartSpec spec;
  if (manifest.own_sizes()) spec.samples.emplace<SizedSamples>();
  spec.images().sample = manifest.sample;
  spec.codec = manifest.codec;
  spec.chunk_samples = manifest.chunk_samples;
  check_part_spec(spec, known_container(manifest.container));
  for (const SourcePack& source : manifest.sources) {
    spec.codec = source.codec;
    spec.chunk_samples = source.chunk_samples;
    check_part_spec(spec, known_container(manifest.container));
  }
  const std::uint64_t sample_bytes = spec.payload().sample_step();
  if (sample_bytes == 0) {
    check_at_most("chunk_bytes", manifest.chunk_bytes, known_container(manifest.container).max_chunk_bytes);
    check_at_most("raw_bytes", manifest.raw_bytes, kMaxBytes);
  } else {
    check_count("chunk_bytes", manifest.chunk_bytes, manifest.chunk_samples * sample_bytes);
    check_at_most("samples", manifest.samples, kMaxBytes / sample_bytes);
  }
  check_parts(manifest, true);
  check_classes(manifest);
  check_inputs(manifest.inputs, manifest.samples);
  check_source_classes(manifest);
  check_pixel_stats(manifest.mean, manifest.std, manifest.sample.channels);
}

void check_numbers(const PartRecord& part) {
  check_counts(part);
  check_inputs(part.inputs, part.samples);
  check_part(part, 0);
  check_sums(part.pixels);
}

void check_numbers(const MatrixManifest& manifest) {
  check_rows(manifest);
  check_sources(manifest);
  const Container& kind = known_container(manifest.container);
  PartSpec spec;
  spec.samples.emplace<RowBlocks>().matrix = {
      .column_count = manifest.columns,
      .matrix_count = static_cast<std::uint32_t>(manifest.matrices.size()),
      .value_type = manifest.value_type,
      .scale = manifest.scale,
      .has_times = !manifest.times.empty(),
      .has_repeats = manifest.has_repeats};
  spec.codec = manifest.codec;
  spec.chunk_samples = manifest.chunk_rows;
  check_matrix_shape(spec.rows().matrix);
  if (kind.holds_row_blocks) check_part_spec(spec, kind);
  for (const SourcePack& source : manifest.sources) {
    spec.codec = source.codec;
    spec.chunk_samples = source.chunk_samples;
    if (kind.holds_row_blocks) check_part_spec(spec, kind);
  }
  check_parts(manifest, kind.holds_row_blocks);
  check_entries(manifest);
}

}  // namespace chunkhit
