#include "chunkhit/verify.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/cpu.h"
#include "base/file.h"
#include "base/hash.h"
#include "chunkhit/pack_info.h"
#include "read/chunk_sums.h"
#include "read/pack_info.h"
#include "read/pack_source.h"
#include "read/verify_matrix.h"
#include "store/hdf5/external_check.h"
#include "store/hdf5/index.h"
#include "store/part.h"

namespace chunkhit {
namespace {

/// What a part must be, from its own record or from nothing for a single part.
struct Expected {
  std::string path;
  std::string name;  ///< for messages
  const Manifest* manifest = nullptr;
  const PartRecord* listed = nullptr;  ///< without sums, from the manifest
  const PartRecord* record = nullptr;  ///< with sums, from part-NNNNN.json
  std::uint32_t part_index = 0;
};

/// The sums over all pixels.
PixelSums check_chunks(const ChunkReader& part, std::uint32_t threads, std::vector<std::string>& problems) {
  const SampleShape& sample = part.spec().sample;
  return sum_over_chunks<PixelSums>(part, threads, problems,
                                    [&](std::size_t index, Bytes raw, PixelSums& sums) {
                                      for (std::uint64_t at = 0; at < part.chunks()[index].sample_count; ++at)
                                        sums.add_sample(raw.data() + at * sample.byte_count(), sample);
                                    });
}

void compare_with_record(const ChunkReader& part, const Expected& expected,
                         std::vector<std::string>& problems) {
  const auto error = [&](const std::string& what) { problems.push_back(expected.name + ": " + what); };
  const PartSpec& spec = part.spec();
  for (std::string& text : compare_with_part(expected.name, *expected.manifest, spec))
    problems.push_back(std::move(text));
  if (spec.part_index != expected.part_index)
    error("is part " + std::to_string(spec.part_index) + ", expected " + std::to_string(expected.part_index));
  if (part.chunks().size() != expected.record->chunks)
    error("has " + std::to_string(part.chunks().size()) + " chunks, expected " +
          std::to_string(expected.record->chunks));
  if (part.samples().rows.size() != expected.record->samples)
    error("has " + std::to_string(part.samples().rows.size()) + " samples, expected " +
          std::to_string(expected.record->samples));
}

void compare_hash(const ChunkReader& part, const Expected& expected, std::vector<std::string>& problems) {
  const std::uint64_t found = part.hash_of_all();
  if (found != expected.listed->xxh3)
    problems.push_back(expected.name + ": checksum of the part " + hash_text(found) + ", expected " +
                       hash_text(expected.listed->xxh3));
}

void add(std::vector<std::string> more, std::vector<std::string>& problems) {
  for (std::string& error : more)
    if (std::ranges::find(problems, error) == problems.end()) problems.push_back(std::move(error));
}

/// Everything that needs the part's own reader.
std::vector<std::string> check_part(const Expected& expected, const VerifyOptions& options) {
  std::vector<std::string> problems;
  try {
    const std::unique_ptr<ChunkReader> part = expected.listed != nullptr
                                                  ? container_of(expected.path).open(expected.path)
                                                  : open_part(expected.path, options.names, false);
    if (expected.manifest != nullptr) compare_with_record(*part, expected, problems);
    if (expected.listed != nullptr) compare_hash(*part, expected, problems);
    part->check_hdf5_bytes();
    if (options.quick) return problems;
    const std::uint32_t threads = options.threads > 0 ? options.threads : allowed_cpus();
    const PixelSums sums = check_chunks(*part, threads, problems);
    if (expected.record != nullptr && problems.empty() &&
        (sums.sum != expected.record->pixels.sum ||
         sums.sum_of_squares != expected.record->pixels.sum_of_squares))
      problems.push_back(expected.name + ": the pixels' sums differ from those recorded when it was packed");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;  // nothing is known of the part
    problems.emplace_back(error.what());
  }
  return problems;
}

/// Gives the part's own record where it can be read.
std::optional<PartManifest> check_part_of_pack(const std::string& folder, const Manifest& manifest,
                                               std::uint32_t part_index, const VerifyOptions& options,
                                               VerifyReport& report) {
  const PartRecord& listed = manifest.parts[part_index];
  const std::string path = folder + "/" + listed.file;
  check_size(path, listed.bytes, report.problems);
  std::optional<PartManifest> own = check_part_record(folder, manifest, listed, report.problems);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return own;
  Expected expected{path, path, nullptr, &listed, nullptr, part_index};
  if (own) expected.manifest = &manifest, expected.record = &own->part;
  add(check_part(expected, options), report.problems);
  return own;
}

std::set<std::string> known_files(const Manifest& manifest) {
  std::set<std::string> known{std::string(kManifestName), std::string(kRejectsName), std::string(kRunName)};
  if (manifest.warnings) known.insert(manifest.warnings->file);
  for (const PartRecord& part : manifest.parts) {
    const std::string sidecar = part_record_name(part.file);
    const std::string stem = sidecar.substr(0, sidecar.rfind('.'));
    known.insert({part.file, sidecar, stem + std::string(kInputsExtension)});
  }
  return known;
}

/// Whether the HDF5 library reads the file, which crashes over some damaged ones.
bool may_crash(const std::string& path, const Hdf5Names& names) {
  return container_of(path).name == "hdf5" && (names != Hdf5Names{} || !read_hdf5_trailer(InputFile(path)));
}

std::vector<std::string> check_lone_part(const std::string& path, const VerifyOptions& options) {
  try {
    if (may_crash(path, options.names)) check_external_file(path, {.names = options.names});
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;
    return {error.what()};
  }
  const bool is_matrix = options.names == Hdf5Names{} && is_matrix_part(path);
  return is_matrix ? check_lone_matrix_part(path, options)
                   : check_part({.path = path, .name = path}, options);
}

VerifyReport verify_part(const std::string& path, const VerifyOptions& options) {
  if (options.on_part) options.on_part(path);
  VerifyReport report;
  report.parts = 1;
  report.bytes = InputFile(path).byte_count();
  report.problems = check_lone_part(path, options);
  if (!report.problems.empty()) return report;
  const PackInfo info = lone_part_info(path, options.names, false);
  report.chunks = info.parts[0].chunks;
  report.samples = info.samples;
  report.external = info.external;
  return report;
}

/// The manifest of the pack that a pack of a split shares the statistics of: its own, or of one that lies
/// beside it and was made from the same list. Nothing where that pack is elsewhere or damaged, as its own
/// check says.
std::optional<Manifest> find_normalizing_pack(const std::string& folder, const Manifest& manifest) {
  const std::string& from = manifest.normalize->from;
  const SpecEntry own_name{"split-name", from};
  if (std::ranges::find(manifest.spec, own_name) != manifest.spec.end()) return manifest;
  if (from.empty() || from.find('/') != std::string::npos) return std::nullopt;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(folder, error).parent_path() / from;
  if (error || !std::filesystem::exists(path / kManifestName, error)) return std::nullopt;
  try {
    std::optional<Manifest> found = open_source(path.string()).manifest;
    return found && found->input_xxh3 == manifest.input_xxh3 ? found : std::nullopt;
  } catch (const Error& failure) {
    if (failure.code() == ErrorCode::try_again) throw;
    return std::nullopt;
  }
}

void check_normalize(const std::string& folder, const Manifest& manifest,
                     std::vector<std::string>& problems) {
  if (!manifest.normalize) return;
  const std::optional<Manifest> from = find_normalizing_pack(folder, manifest);
  if (!from || (from->mean == manifest.normalize->mean && from->std == manifest.normalize->std)) return;
  problems.push_back(folder + "/" + std::string(kManifestName) +
                     ": normalize: its mean and std are not those of " + manifest.normalize->from);
}

/// Whether a file is a pack's manifest whose seal is broken: not one of a later version, nor another
/// program's.
bool is_damaged_manifest(const std::filesystem::path& manifest) {
  std::error_code error;
  const std::filesystem::path folder = manifest.parent_path();
  if (!std::filesystem::exists(manifest, error) ||
      (!std::filesystem::exists(folder / "part-00000.h5", error) &&
       !std::filesystem::exists(folder / "part-00000.zst", error)))
    return false;
  try {
    const ByteBuffer text = read_file(manifest.string(), kMaxManifestBytes);
    static_cast<void>(manifest_format(as_text(text), manifest.string()));
    return false;
  } catch (const Error&) {
    return true;
  }
}

/// Called for the error that is being handled. Without a manifest the command that made a pack goes on with
/// its parts, and writes it again.
VerifyReport report_manifest(const std::string& path, const Error& error) {
  const std::filesystem::path named(path);
  std::error_code failure;
  const std::filesystem::path manifest =
      std::filesystem::is_directory(named, failure) ? named / kManifestName : named;
  if (error.code() == ErrorCode::try_again || !is_damaged_manifest(manifest)) throw;
  return {.problems = {error.what()}, .damaged = {manifest.string()}};
}

}  // namespace

VerifyReport verify_pack(const std::string& path, const VerifyOptions& options) {
  PackSource source;
  try {
    source = open_source(path);
  } catch (const Error& error) {
    return report_manifest(path, error);
  }
  check_names({&source, 1}, options.names);
  if (source.matrix) return verify_matrix_pack(source.folder, *source.matrix, options);
  if (!source.manifest) return verify_part(source.part, options);
  const Manifest& manifest = *source.manifest;
  VerifyReport report;
  std::vector<PartManifest> own;
  for (std::uint32_t part_index = 0; part_index < manifest.parts.size(); ++part_index) {
    const PartRecord& part = manifest.parts[part_index];
    if (options.on_part) options.on_part(part.file);
    const std::size_t problems = report.problems.size();
    if (auto record = check_part_of_pack(source.folder, manifest, part_index, options, report))
      own.push_back(std::move(*record));
    if (report.problems.size() > problems)
      for (const std::string& file : {part.file, part_record_name(part.file)})
        add_damaged(source.folder, file, report);
    ++report.parts;
    report.chunks += part.chunks;
    report.samples += part.samples;
    report.bytes += part.bytes;
  }
  if (own.size() == manifest.parts.size())
    add(compare_with_parts(source.folder + "/" + std::string(kManifestName), manifest, own), report.problems);
  check_normalize(source.folder, manifest, report.problems);
  check_list(source.folder, manifest.rejects, manifest.rejected, report);
  if (manifest.warnings) check_list(source.folder, *manifest.warnings, manifest.warned, report);
  if (!report.problems.empty()) add_damaged(source.folder, kManifestName, report);
  check_unknown_files(source.folder, known_files(manifest), report.problems);
  return report;
}

}  // namespace chunkhit
