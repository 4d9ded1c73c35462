#include "manifest/part_match.h"

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "base/csv_reader.h"
#include "base/file.h"
#include "base/hash.h"
#include "chunkhit/error.h"
#include "types/input_sizes.h"
#include "types/pixel_sums.h"

namespace chunkhit {
namespace {

/// The rows of a table behind its header.
std::uint64_t count_csv_rows(const std::string& path, std::string_view text) {
  CsvReader rows(path, source_of(text), ',');
  std::vector<std::string_view> fields;
  std::uint64_t count = 0;
  while (rows.next_row(fields)) ++count;
  return count == 0 ? 0 : count - 1;
}

bool compare_size(const std::string& path, std::uint64_t found, std::uint64_t expected,
                  std::vector<std::string>& problems) {
  if (found != expected)
    problems.push_back(path + ": has " + std::to_string(found) + " bytes, expected " +
                       std::to_string(expected));
  return found == expected;
}

}  // namespace

bool check_size(const std::string& path, std::uint64_t bytes, std::vector<std::string>& problems) {
  try {
    return compare_size(path, InputFile(path).byte_count(), bytes, problems);
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
  std::error_code error;
  if (std::filesystem::exists(path, error)) report.remove_to_rebuild.push_back(path);
}

/// Checks size, hash and row count of users.csv, items.csv, rejects.csv or warnings.csv.
void check_list(const std::string& folder, const FileRecord& file, std::uint64_t rows, VerifyReport& report) {
  const std::size_t problems = report.problems.size();
  const std::string path = folder + "/" + file.file;
  if (check_file(path, file.bytes, file.xxh3, report.problems)) {
    const ByteBuffer text = read_file(path, file.bytes);
    const std::uint64_t found = count_csv_rows(path, as_text(text));
    if (found != rows)
      report.problems.push_back(path + ": rows " + std::to_string(found) + ", expected " +
                                std::to_string(rows));
  }
  if (report.problems.size() > problems) add_damaged(folder, file.file, report);
}

namespace {

/// What is found to differ at one location.
struct Differences {
  std::string location;
  std::vector<std::string> found{};
  void add(const std::string& what) { found.push_back(location + ": " + what); }
  void compare(const std::string& what, const std::string& is, const std::string& expected) {
    if (is != expected) add(what + " " + is + ", expected " + expected);
  }
  void compare(const std::string& what, std::uint64_t is, std::uint64_t expected) {
    compare(what, std::to_string(is), std::to_string(expected));
  }
};

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
  Differences differences{manifest_path};
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
      differences.add("its spec differs from that of " + part.part.file + ": " +
                      first_difference(part.spec, source.spec));
  }
  if (manifest.class_labels && counts != counts_of(manifest.classes))
    differences.add("the classes' samples are not those of the parts");
  differences.compare("samples packed with warnings", manifest.warned, warned);
  const std::uint32_t channels = manifest.sample.channels;
  if (pixels.mean(channels) != manifest.mean || pixels.std(channels) != manifest.std)
    differences.add("mean and std are not those of the parts' pixels");
  if (inputs != manifest.inputs) differences.add("the sizes of the input images are not those of the parts");
  differences.compare("bytes of all pixels", manifest.raw_bytes,
                      pixels.pixel_count * manifest.sample.values());
  if (manifest.chunk_samples > 0)  // else chunks are cut by their bytes
    differences.compare("bytes of a chunk", manifest.chunk_bytes,
                        manifest.chunk_samples * manifest.sample.byte_count());
  return differences.found;
}

namespace {

/// Compares what a part of either kind and its row share.
Differences compare_shared(const ChunkReader& part, const PackManifest& manifest, const PartRecord& listed) {
  const SourcePack& source = manifest.sources[listed.source];
  const PartSpec& spec = part.spec();
  Differences differences{part.path()};
  differences.compare("belongs to pack", hash_text(spec.pack_id), hash_text(source.pack_id));
  differences.compare("is part", spec.part_index, listed.number);
  // Bytes and chunks of matrices in HDF5 are made while it is read.
  if (!spec.holds_rows() || container(manifest.container).holds_row_blocks) {
    compare_size(part.path(), part.byte_count(), listed.bytes, differences.found);
    differences.compare("chunks", part.chunks().size(), listed.chunks);
  }
  differences.compare(spec.payload().samples_text(), part.samples().rows.size(), listed.samples);
  differences.compare("codec", spec.codec, source.codec);
  if (!spec.holds_rows() || source.chunk_samples > 0)
    differences.compare(std::string(spec.payload().samples_text()) + " of a chunk", spec.chunk_samples,
                        source.chunk_samples);
  return differences;
}

/// Compares the names of a part's classes with those that the manifest gives to their ids.
void compare_classes(const ImageSamples& part, const Manifest& manifest, const SourcePack& source,
                     Differences& differences) {
  const auto compare = [&](std::int64_t own_id, const std::string& expected) {
    const auto index = static_cast<std::uint64_t>(own_id);
    const std::string name = own_id >= 0 && index < part.classes.size() ? part.classes[index] : "";
    if (name != expected) differences.compare("name of class " + std::to_string(own_id), name, expected);
  };
  if (source.class_ids.empty())
    for (const PackClass& record : manifest.classes) compare(record.id, record.name);
  for (std::size_t own_id = 0; own_id < source.class_ids.size(); ++own_id)
    compare(static_cast<std::int64_t>(own_id),
            manifest.classes[static_cast<std::size_t>(source.class_ids[own_id])].name);
  if (!source.class_ids.empty() && part.classes.size() > source.class_ids.size())
    differences.compare("classes", part.classes.size(), source.class_ids.size());
}

}  // namespace

std::vector<std::string> compare_with_part(const ChunkReader& part, const Manifest& manifest,
                                           std::size_t index) {
  const PartRecord& listed = manifest.parts[index];
  Differences differences = compare_shared(part, manifest, listed);
  if (part.spec().images().sample != manifest.sample)
    differences.add("holds samples of another shape than the manifest says");
  compare_classes(part.spec().images(), manifest, manifest.sources[listed.source], differences);
  return differences.found;
}

std::vector<std::string> compare_with_part(const ChunkReader& part, const MatrixManifest& manifest,
                                           std::size_t index) {
  Differences differences = compare_shared(part, manifest, manifest.parts[index]);
  const MatrixShape& shape = part.spec().rows().matrix;
  differences.compare("columns", shape.column_count, manifest.columns);
  differences.compare("matrices", shape.matrix_count, manifest.matrices.size());
  differences.compare("times (1: ratings have some)", shape.has_times ? 1 : 0,
                      manifest.times.empty() ? 0 : 1);
  differences.compare("repeats (1: rows may have some)", shape.has_repeats ? 1 : 0,
                      manifest.has_repeats ? 1 : 0);
  if (shape.value_type != manifest.value_type || shape.scale != manifest.scale)
    differences.add("values of another type or scale than the manifest says");
  return differences.found;
}

void compare_hash(const std::string& part_path, std::uint64_t found, const PartRecord& listed,
                  std::vector<std::string>& problems) {
  if (found != listed.xxh3)
    problems.push_back(part_path + ": checksum of the part " + hash_text(found) + ", expected " +
                       hash_text(listed.xxh3) + " as its pack's manifest says: damaged, or of another pack");
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
