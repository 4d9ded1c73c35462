#include "chunkhit/verify.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/aside_name.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/resources.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "chunk/row_block.h"
#include "chunkhit/pack_info.h"
#include "manifest/part_match.h"
#include "manifest/run_record.h"
#include "read/chunk_sums.h"
#include "read/pack_info.h"
#include "read/pack_source.h"
#include "read/sized_images.h"
#include "store/hdf5/index.h"
#include "store/part.h"

namespace chunkhit {
namespace {

const PackManifest& manifest_of(const PackSource& pack) {
  if (pack.matrix) return *pack.matrix;
  return *pack.manifest;
}

/// What a part must be; `pack` is null for a single part.
struct Expected {
  std::string path;
  bool holds_matrices = false;
  const PackSource* pack = nullptr;
  std::uint32_t part_index = 0;
  [[nodiscard]] const PartRecord& listed() const { return manifest_of(*pack).parts[part_index]; }
};

/// What all chunks of a part add up to: pixels, or the entries of X and held_out.
struct ContentSums {
  PixelSums pixels;
  std::array<std::uint64_t, 2> nnz{};
  std::array<std::uint64_t, 2> longest_row{};
  void add(const ContentSums& other) {
    pixels.add(other.pixels);
    for (std::size_t matrix = 0; matrix < nnz.size(); ++matrix) {
      nnz[matrix] += other.nnz[matrix];
      longest_row[matrix] = std::max(longest_row[matrix], other.longest_row[matrix]);
    }
  }
};

/// Decodes all matrices of a row block, which checks every id and value, and adds up their entries.
void check_row_block(const ChunkReader& part, std::size_t index, Bytes raw, ContentSums& sums) {
  const MatrixShape& shape = part.spec().rows().matrix;
  const StoredChunk& chunk = part.chunks()[index];
  try {
    const RowBlockHeader header = decode_row_block_header(raw, shape);
    if (header.row_count != chunk.sample_count || header.first_row != chunk.first_sample)
      throw_bad_data("is of other rows than its location in the part says");
    ContentSums block;
    for (std::size_t matrix = 0; matrix < shape.matrix_count; ++matrix) {
      const RowBlockHeader::Matrix& rows = header.matrices[matrix];
      std::vector<std::uint64_t> row_ends(header.row_count);
      std::vector<std::uint32_t> ids(rows.nnz);
      ByteBuffer values(rows.nnz * value_bytes(shape.value_type));
      std::vector<std::uint32_t> ties(rows.ties.empty() ? 0 : rows.nnz);
      decode_rows(header, matrix, shape, RowBlockTarget<std::uint32_t>{row_ends, 0, ids, values, {}, ties});
      block.nnz[matrix] = rows.nnz;
      block.longest_row[matrix] = rows.longest_row;
    }
    sums.add(block);
  } catch (const Error& error) {
    throw Error(error.code(), part.location(index) + ": " + error.what());
  }
}

/// Decodes a chunk's images of their own sizes, compares their hashes, and adds up their pixels.
void check_sized_images(const ChunkReader& part, std::size_t index, Bytes raw, ContentSums& sums) {
  const ImageSizes& sizes = part.samples().sizes;
  const std::uint32_t channels = part.spec().images().sample.channels;
  SizedImageDecoder decoder;
  ByteBuffer pixels;
  const std::size_t masks = part.spec().images().sample.pairs.size();
  const std::uint64_t first = part.chunks()[index].first_sample;
  std::uint64_t sample = first;
  for (Bytes left = raw; !left.empty(); ++sample) {
    const StoredImage image = stored_image(sizes, sample, left.data());
    part.check_payload(index, sample - first, image.frame);
    const SampleShape shape{image.upright_height(), image.upright_width(), channels, Layout::nhwc};
    try {
      pixels.resize(shape.byte_count());
      decoder.decode_whole(image, channels, pixels.data());
      if (image.mask_bytes != 0) static_cast<void>(decoder.decode_masks(image, masks));
    } catch (const ImageError& error) {
      throw_bad_data(part.location(index) + ": sample " + std::to_string(sample) + ": " + error.reason());
    }
    sums.pixels.add_sample(pixels.data(), shape);
    left = left.subspan(image.frame.size());
  }
}

/// Adds up a chunk's samples; throws bad_data for a damaged row block or image.
void check_chunk(const ChunkReader& part, std::size_t index, Bytes raw, ContentSums& sums) {
  if (part.spec().holds_rows()) return check_row_block(part, index, raw, sums);
  if (part.spec().holds_own_sizes()) return check_sized_images(part, index, raw, sums);
  const std::uint64_t step = part.spec().payload().sample_step();
  for (std::uint64_t at = 0; at < part.chunks()[index].sample_count; ++at)
    sums.pixels.add_sample(raw.data() + at * step, part.spec().images().sample);
}

/// Compares what the part says of itself with what its pack's manifest lists.
std::vector<std::string> compare_with_pack(const ChunkReader& part, const Expected& expected) {
  const PackSource& pack = *expected.pack;
  std::vector<std::string> problems = pack.matrix
                                          ? compare_with_part(part, *pack.matrix, expected.part_index)
                                          : compare_with_part(part, *pack.manifest, expected.part_index);
  compare_hash(expected.path, part.hash_of_all(), expected.listed(), problems);
  return problems;
}

std::unique_ptr<ChunkReader> open_expected(const Expected& expected, const VerifyOptions& options) {
  std::unique_ptr<ChunkReader> part = expected.holds_matrices ? open_matrix_part(expected.path)
                                      : expected.pack != nullptr
                                          ? container_of(expected.path).open(expected.path)
                                          : open_part(expected.path, options.names);
  if (expected.pack == nullptr) return part;
  const std::span<const PartRecord> listed(manifest_of(*expected.pack).parts);
  std::uint64_t before = 0;
  for (const PartRecord& each : listed.first(expected.part_index)) before += each.samples;
  part->set_samples_before(before);
  return part;
}

/// Checks the hash in the trailer of an HDF5 part of matrices, which covers all bytes of the file. Returns
/// whether the file has a trailer.
bool check_matrix_hash(const Expected& expected, std::vector<std::string>& problems) {
  const InputFile input(expected.path);
  const std::optional<Hdf5Trailer> trailer = read_hdf5_trailer(input);
  if (!trailer && expected.pack != nullptr)
    throw_bad_data(
        expected.path +
        ": has no trailer behind its HDF5 end of file: another program changed it, or it was cut off");
  if (trailer && expected.pack != nullptr)
    compare_hash(expected.path, trailer->xxh3, expected.listed(), problems);
  if (trailer) check_hdf5_hash(input, *trailer);
  return trailer.has_value();
}

/// Runs all checks that need the part's own reader; returns the problems found.
std::vector<std::string> check_part(const Expected& expected, const VerifyOptions& options,
                                    ContentSums& sums) {
  std::vector<std::string> problems;
  try {
    if (expected.holds_matrices && !container_of(expected.path).holds_row_blocks &&
        check_matrix_hash(expected, problems) && (options.quick || !problems.empty()))
      return problems;
    const std::unique_ptr<ChunkReader> part = open_expected(expected, options);
    if (expected.pack != nullptr) problems = compare_with_pack(*part, expected);
    if (!expected.holds_matrices) part->check_hdf5_bytes();
    if (options.quick) return problems;
    const std::uint32_t threads = options.threads > 0 ? options.threads : allowed_cpus();
    sums = sum_over_chunks<ContentSums>(
        *part, threads, problems,
        [&](std::size_t index, Bytes raw, ContentSums& found) { check_chunk(*part, index, raw, found); });
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;  // says nothing about the part itself
    problems.emplace_back(error.what());
  }
  return problems;
}

/// Appends problems that are not listed yet: several checks can find the same one.
void add(std::vector<std::string> more, std::vector<std::string>& problems) {
  for (std::string& error : more)
    if (std::ranges::find(problems, error) == problems.end()) problems.push_back(std::move(error));
}

/// Checks one part of a pack; returns the part's own record if it is readable.
std::optional<PartManifest> check_part_of_pack(const PackSource& pack, std::uint32_t part_index,
                                               const VerifyOptions& options, ContentSums& total,
                                               VerifyReport& report) {
  const PackManifest& manifest = manifest_of(pack);
  const PartRecord& listed = manifest.parts[part_index];
  const Expected expected{pack.folder + "/" + listed.file, pack.matrix.has_value(), &pack, part_index};
  check_size(expected.path, listed.bytes, report.problems);
  std::optional<PartManifest> own = check_part_record(pack.folder, manifest, listed, report.problems);
  if (!file_exists(expected.path)) return own;
  ContentSums sums;
  std::vector<std::string> problems = check_part(expected, options, sums);
  if (own && !pack.matrix && !options.quick && problems.empty() &&
      (sums.pixels.sum != own->part.pixels.sum ||
       sums.pixels.sum_of_squares != own->part.pixels.sum_of_squares))
    problems.push_back(expected.path + ": the pixels' sums differ from those recorded when it was packed");
  add(std::move(problems), report.problems);
  total.add(sums);
  return own;
}

/// Lists all file names that a pack can have, to find the unknown ones.
std::set<std::string> known_files(const PackSource& pack) {
  std::set<std::string> known{std::string(kManifestName), std::string(kRunName)};
  for (const FileRecord& table : pack.matrix ? tables(*pack.matrix) : tables(*pack.manifest))
    known.insert(table.file);
  for (const PartRecord& part : manifest_of(pack).parts) {
    const std::string sidecar = part_record_name(part.file);
    known.insert({part.file, sidecar});
    if (!pack.matrix) known.insert(sidecar.substr(0, sidecar.rfind('.')) + std::string(kInputsExtension));
  }
  return known;
}

/// Whether a run that appends packs may have written a file, which the manifest lists at its end: a part
/// behind the others, a table, or what is written aside. Tables of the manifest before go then.
bool is_of_append(const std::string& name, const std::set<std::string>& known,
                  const std::set<std::string>& names) {
  if (!name_written_aside(name).empty()) return true;
  const std::string table = plain_table_name(name);
  const auto replaces = [&](const std::string& other) {
    return other != name && plain_table_name(other) == table;
  };
  if (name.ends_with(".csv")) return table != name || std::ranges::any_of(known, replaces);
  const std::string stem = name.substr(0, name.find('.'));
  if (!stem.starts_with("part-") || known.contains(stem + ".json")) return false;
  const std::string digits = stem.substr(5);
  std::uint64_t number = 0;
  if (!parse_all(digits, number) || number == 0) return false;
  std::string before = std::to_string(number - 1);
  before.insert(0, digits.size() - std::min(digits.size(), before.size()), '0');
  return names.contains("part-" + before + name.substr(stem.size()));
}

/// Names files that are no part of the pack.
void check_unknown_files(const std::string& folder, const std::set<std::string>& known,
                         VerifyReport& report) {
  std::error_code none;
  if (!std::filesystem::is_directory(folder, none)) return;  // a server gives no list of what it has
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  for (const std::string& name : names) {
    if (known.contains(name)) continue;
    const bool is_append = is_of_append(name, known, names);
    (is_append ? report.notices : report.problems)
        .push_back(folder + "/" + name + ": is not part of the pack" +
                   (is_append ? ", but of a run that appends packs to it, or that was killed" : ""));
  }
}

/// Returns whether a single part holds matrices; false where that cannot be detected.
bool is_matrix_part(const std::string& path) {
  try {
    return container_of(path).holds_matrices(path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;
    return false;
  }
}

std::vector<std::string> check_single_part(const std::string& path, const VerifyOptions& options) {
  ContentSums sums;
  return check_part({path, options.names == Hdf5Names{} && is_matrix_part(path)}, options, sums);
}

/// Returns whether a file that could not be checked is an HDF5 file without our trailer.
bool is_external_hdf5(const std::string& path) {
  try {
    return container_of(path).is_read_by_library && !read_hdf5_trailer(InputFile(path));
  } catch (const Error&) {
    return false;  // neither an HDF5 file nor a shard
  }
}

VerifyReport verify_part(const std::string& path, const VerifyOptions& options) {
  if (options.on_part) options.on_part(path);
  VerifyReport report;
  report.parts = 1;
  report.bytes = InputFile(path).byte_count();
  report.problems = check_single_part(path, options);
  if (!report.problems.empty()) {
    report.external = is_external_hdf5(path);
    return report;
  }
  const PackInfo info = single_part_info(path, options.names);
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
  std::filesystem::path own = std::filesystem::canonical(folder, error);
  if (error) own = folder;  // on a server
  const std::string path = (own.parent_path() / from).string();
  if (!file_exists(path + "/" + std::string(kManifestName))) return std::nullopt;
  try {
    std::optional<Manifest> found = open_source(path).manifest;
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

/// Returns whether a file is a damaged manifest of a pack, not one of a later version or another program.
bool is_damaged_manifest(const std::filesystem::path& manifest) {
  std::error_code error;
  const std::filesystem::path folder = manifest.parent_path();
  if (!std::filesystem::exists(folder / "part-00000.h5", error) &&
      !std::filesystem::exists(folder / "part-00000.zst", error))
    return false;
  try {
    const std::optional<ByteBuffer> text = find_file(manifest.string(), kMaxManifestBytes);
    if (text) static_cast<void>(manifest_format(as_text(*text), manifest.string()));
    return false;
  } catch (const Error&) {
    return true;
  }
}

constexpr const char* kMergedAdvice =
    "this pack was merged (pack-merge), and no command writes its parts again: verify the packs that it was "
    "merged from, repair them, and merge them into a new folder";

/// Returns whether pack-merge wrote into a folder last, as its run.json says.
bool was_merged(const std::filesystem::path& folder) {
  const std::string run = (folder / kRunName).string();
  const std::optional<ByteBuffer> text = find_file(run, kMaxManifestBytes);
  return text && is_merge_run(as_text(*text));
}

/// Reports the error that is being handled. Rerunning the command that made the pack keeps its parts and
/// writes the missing manifest again.
VerifyReport report_manifest(const std::string& path, const Error& error) {
  const std::filesystem::path named(path);
  std::error_code failure;
  const std::filesystem::path manifest =
      std::filesystem::is_directory(named, failure) ? named / kManifestName : named;
  if (error.code() == ErrorCode::try_again || !is_damaged_manifest(manifest)) throw;
  VerifyReport report;
  report.problems.emplace_back(error.what());
  if (was_merged(manifest.parent_path()))
    report.problems.emplace_back(kMergedAdvice);
  else
    report.remove_to_rebuild.push_back(manifest.string());
  return report;
}

void compare_matrices(const std::string& folder, const MatrixManifest& manifest, const ContentSums& sums,
                      std::vector<std::string>& problems) {
  for (std::size_t matrix = 0; matrix < manifest.matrices.size(); ++matrix) {
    const PackMatrix& record = manifest.matrices[matrix];
    if (sums.nnz[matrix] != record.nnz || sums.longest_row[matrix] != record.longest_row)
      problems.push_back(folder + "/" + std::string(kManifestName) + ": " + record.name + ": " +
                         std::to_string(record.nnz) + " entries, longest row " +
                         std::to_string(record.longest_row) + "; the parts have " +
                         std::to_string(sums.nnz[matrix]) + ", " + std::to_string(sums.longest_row[matrix]));
  }
}

void check_images_beside(const std::string& folder, const Manifest& manifest,
                         const std::vector<PartManifest>& own, VerifyReport& report) {
  if (own.size() == manifest.parts.size())
    add(compare_with_parts(folder + "/" + std::string(kManifestName), manifest, own), report.problems);
  check_normalize(folder, manifest, report.problems);
  check_list(folder, manifest.rejects, manifest.rejected, report);
  if (manifest.warnings) check_list(folder, *manifest.warnings, manifest.warned, report);
}

void check_matrices_beside(const std::string& folder, const MatrixManifest& manifest, bool quick,
                           const ContentSums& sums, VerifyReport& report) {
  if (!quick && report.problems.empty()) compare_matrices(folder, manifest, sums, report.problems);
  check_list(folder, manifest.users, manifest.rows, report);
  check_list(folder, manifest.items, manifest.columns, report);
}

VerifyReport verify_finished(const PackSource& source, const VerifyOptions& options) {
  const std::vector<PartRecord>& parts = manifest_of(source).parts;
  VerifyReport report;
  ContentSums sums;
  std::vector<PartManifest> own;
  for (std::uint32_t part_index = 0; part_index < parts.size(); ++part_index) {
    const PartRecord& part = parts[part_index];
    if (options.on_part) options.on_part(part.file);
    const std::size_t problems = report.problems.size();
    if (auto record = check_part_of_pack(source, part_index, options, sums, report))
      own.push_back(std::move(*record));
    if (report.problems.size() > problems)
      for (const std::string& file : {part.file, part_record_name(part.file)})
        add_damaged(source.folder, file, report);
    ++report.parts;
    report.chunks += part.chunks;
    report.samples += part.samples;
    report.bytes += part.bytes;
  }
  if (source.matrix)
    check_matrices_beside(source.folder, *source.matrix, options.quick, sums, report);
  else
    check_images_beside(source.folder, *source.manifest, own, report);
  if (!report.problems.empty()) add_damaged(source.folder, kManifestName, report);
  if (!report.problems.empty() && manifest_of(source).is_merged) {
    report.problems.emplace_back(kMergedAdvice);
    report.remove_to_rebuild.clear();
  }
  check_unknown_files(source.folder, known_files(source), report);
  return report;
}

/// Whether another pack is in the place of one: packs were appended to it.
bool was_replaced(const PackSource& source) {
  try {
    const PackSource now = open_source(source.path);
    return (now.matrix || now.manifest) && manifest_of(now).pack_id != manifest_of(source).pack_id;
  } catch (const Error&) {
    return false;
  }
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
  if (!source.matrix && !source.manifest) return verify_part(source.part, options);
  VerifyReport report = verify_finished(source, options);
  if (!report.problems.empty() && was_replaced(source)) return verify_pack(path, options);
  return report;
}

}  // namespace chunkhit
