#include "read/part_match.h"

#include <map>
#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/remote/url.h"
#include "chunkhit/error.h"
#include "types/input_sizes.h"
#include "types/pixel_sums.h"

namespace chunkhit {
namespace {

// A line break inside quotes does not end a row.
std::uint64_t count_csv_rows(std::string_view text) {
  std::uint64_t lines = 0;
  bool quoted = false;
  for (const char letter : text) {
    if (letter == '"') quoted = !quoted;
    if (letter == '\n' && !quoted) ++lines;
  }
  return lines == 0 ? 0 : lines - 1;
}

}  // namespace

bool check_size(const std::string& path, std::uint64_t bytes, std::vector<std::string>& problems) {
  try {
    const std::uint64_t found = InputFile(path).byte_count();
    if (found != bytes)
      problems.push_back(path + ": has " + std::to_string(found) + " bytes, expected " +
                         std::to_string(bytes));
    return found == bytes;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;
    problems.emplace_back(error.what());
    return false;
  }
}

bool check_file(const std::string& path, std::uint64_t bytes, std::uint64_t xxh3,
                std::vector<std::string>& problems) {
  if (!check_size(path, bytes, problems)) return false;
  const std::uint64_t found = hash_file(path);
  if (found != xxh3)
    problems.push_back(path + ": checksum of the file " + hash_text(found) + ", expected " + hash_text(xxh3));
  return found == xxh3;
}

void add_damaged(const std::string& folder, std::string_view name, VerifyReport& report) {
  const std::string path = folder + "/" + std::string(name);
  if (!is_url(path) && file_exists(path)) report.remove_to_rebuild.push_back(path);
}

/// Checks size, hash and row count of users.csv, items.csv, rejects.csv or warnings.csv.
void check_list(const std::string& folder, const FileRecord& file, std::uint64_t rows, VerifyReport& report) {
  const std::size_t problems = report.problems.size();
  const std::string path = folder + "/" + file.file;
  if (check_file(path, file.bytes, file.xxh3, report.problems)) {
    const ByteBuffer text = read_file(path, file.bytes);
    const std::uint64_t found = count_csv_rows(as_text(text));
    if (found != rows)
      report.problems.push_back(path + ": rows " + std::to_string(found) + ", expected " +
                                std::to_string(rows));
  }
  if (report.problems.size() > problems) add_damaged(folder, file.file, report);
}

namespace {

/// Formats "LOCATION: WHAT FOUND, expected EXPECTED".
std::string differ(const std::string& location, const std::string& what, const std::string& found,
                   const std::string& expected) {
  return location + ": " + what + " " + found + ", expected " + expected;
}

std::map<std::int64_t, std::uint64_t> counts_of(const std::vector<PackClass>& classes) {
  std::map<std::int64_t, std::uint64_t> counts;
  for (const PackClass& record : classes)
    if (record.samples > 0) counts[record.id] = record.samples;
  return counts;
}

}  // namespace

/// Recomputes from the parts' records what the manifest sums up: classes, warnings, mean and std.
std::vector<std::string> compare_with_parts(const std::string& manifest_path, const Manifest& manifest,
                                            const std::vector<PartManifest>& parts) {
  std::vector<std::string> problems;
  PixelSums pixels;
  std::optional<InputSizes> inputs{std::in_place};
  std::map<std::int64_t, std::uint64_t> counts;
  std::uint64_t warned = 0;
  for (std::size_t index = 0; index < parts.size(); ++index) {
    const PartManifest& part = parts[index];
    const SourcePack& source = manifest.sources[manifest.parts[index].source];
    pixels.add(part.part.pixels);
    add_sizes(part.part.inputs, inputs);
    warned += part.part.warnings.size();
    for (const auto& [id, samples] : part.part.class_counts) counts[source.class_id(id)] += samples;
    if (part.spec != source.spec)
      problems.push_back(manifest_path + ": its spec differs from that of " + part.part.file + ": " +
                         first_difference(part.spec, source.spec));
  }
  if (manifest.class_labels && counts != counts_of(manifest.classes))
    problems.push_back(manifest_path + ": the classes' samples are not those of the parts");
  if (manifest.warned != warned)
    problems.push_back(differ(manifest_path, "samples packed with warnings", std::to_string(manifest.warned),
                              std::to_string(warned)));
  const std::uint32_t channels = manifest.sample.channels;
  if (pixels.mean(channels) != manifest.mean || pixels.std(channels) != manifest.std)
    problems.push_back(manifest_path + ": mean and std are not those of the parts' pixels");
  if (inputs != manifest.inputs)
    problems.push_back(manifest_path + ": the sizes of the input images are not those of the parts");
  if (manifest.own_sizes()) {
    const std::uint64_t raw_bytes = pixels.pixel_count * channels;
    if (manifest.raw_bytes != raw_bytes)
      problems.push_back(differ(manifest_path, "bytes of all pixels", std::to_string(manifest.raw_bytes),
                                std::to_string(raw_bytes)));
    return problems;
  }
  const std::uint64_t chunk_bytes = manifest.chunk_samples * manifest.sample.byte_count();
  if (manifest.chunk_bytes != chunk_bytes)
    problems.push_back(differ(manifest_path, "bytes of a chunk", std::to_string(manifest.chunk_bytes),
                              std::to_string(chunk_bytes)));
  return problems;
}

namespace {

/// Compares the names of a part's classes with those that the manifest gives to their ids.
void compare_classes(const std::string& part_path, const Manifest& manifest, const SourcePack& source,
                     const PartSpec& part, std::vector<std::string>& problems) {
  const auto compare = [&](std::int64_t own_id, const std::string& expected) {
    const auto index = static_cast<std::uint64_t>(own_id);
    const std::string name = own_id >= 0 && index < part.classes.size() ? part.classes[index] : "";
    if (name != expected)
      problems.push_back(differ(part_path, "name of class " + std::to_string(own_id), name, expected));
  };
  if (source.class_ids.empty())
    for (const PackClass& record : manifest.classes) compare(record.id, record.name);
  for (std::size_t own_id = 0; own_id < source.class_ids.size(); ++own_id)
    compare(static_cast<std::int64_t>(own_id),
            manifest.classes[static_cast<std::size_t>(source.class_ids[own_id])].name);
  if (!source.class_ids.empty() && part.classes.size() > source.class_ids.size())
    problems.push_back(differ(part_path, "classes", std::to_string(part.classes.size()),
                              std::to_string(source.class_ids.size())));
}

}  // namespace

std::vector<std::string> compare_with_part(const std::string& part_path, const Manifest& manifest,
                                           const PartRecord& listed, const PartSpec& part) {
  std::vector<std::string> problems;
  const SourcePack& source = manifest.sources[listed.source];
  if (part.pack_id != source.pack_id)
    problems.push_back(
        differ(part_path, "belongs to pack", hash_text(part.pack_id), hash_text(source.pack_id)));
  if (part.sample != manifest.sample || part.own_sizes != manifest.own_sizes())
    problems.push_back(part_path + ": holds samples of another shape than the manifest says");
  if (part.codec != source.codec) problems.push_back(differ(part_path, "codec", part.codec, source.codec));
  if (part.chunk_samples != source.chunk_samples)
    problems.push_back(differ(part_path, "samples of a chunk", std::to_string(part.chunk_samples),
                              std::to_string(source.chunk_samples)));
  compare_classes(part_path, manifest, source, part, problems);
  return problems;
}

std::vector<std::string> compare_with_part(const std::string& part_path, const MatrixManifest& manifest,
                                           const PartRecord& listed, const PartSpec& part) {
  std::vector<std::string> problems;
  const SourcePack& source = manifest.sources[listed.source];
  const auto compare = [&](const char* what, std::uint64_t found, std::uint64_t expected) {
    if (found != expected)
      problems.push_back(differ(part_path, what, std::to_string(found), std::to_string(expected)));
  };
  const MatrixShape& shape = *part.matrix;
  if (part.pack_id != source.pack_id)
    problems.push_back(
        differ(part_path, "belongs to pack", hash_text(part.pack_id), hash_text(source.pack_id)));
  compare("columns", shape.column_count, manifest.columns);
  compare("matrices", shape.matrix_count, manifest.matrices.size());
  if (shape.value_type != manifest.value_type || shape.scale != manifest.scale)
    problems.push_back(part_path + ": values of another type or scale than the manifest says");
  if (part.codec != source.codec) problems.push_back(differ(part_path, "codec", part.codec, source.codec));
  if (source.chunk_samples > 0) compare("rows of a chunk", part.chunk_samples, source.chunk_samples);
  return problems;
}

std::optional<PartManifest> check_part_record(const std::string& folder, const PackManifest& manifest,
                                              const PartRecord& listed, std::vector<std::string>& problems) {
  const std::string sidecar = folder + "/" + part_record_name(listed.file);
  try {
    PartManifest own = parse_part_manifest(as_text(read_file(sidecar, kMaxManifestBytes)), sidecar);
    const PartRecord& part = own.part;
    // In a merged pack parts have other names than in the packs that they were packed for.
    if (own.pack_id != manifest.pack_id_of(listed) || (part.file != listed.file && !manifest.is_merged) ||
        part.xxh3 != listed.xxh3 || part.bytes != listed.bytes || part.samples != listed.samples ||
        part.rows != listed.rows || part.chunks != listed.chunks || part.stored_bytes != listed.stored_bytes)
      problems.push_back(sidecar + ": differs from what the manifest says of " + listed.file);
    return own;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;
    problems.emplace_back(error.what());
    return std::nullopt;
  }
}

}  // namespace chunkhit
