#include "read/verify_matrix.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

#include "base/cpu.h"
#include "base/file.h"
#include "base/hash.h"
#include "chunk/row_block.h"
#include "read/chunk_sums.h"
#include "read/pack_source.h"
#include "store/hdf5/index.h"
#include "store/hdf5/matrix.h"
#include "store/part.h"
#include "store/shard.h"

namespace chunkhit {
namespace {

/// Entries of X and held_out.
struct MatrixSums {
  std::array<std::uint64_t, 2> nnz{};
  std::array<std::uint64_t, 2> longest_row{};
  void add(const MatrixSums& other) {
    for (std::size_t matrix = 0; matrix < nnz.size(); ++matrix) {
      nnz[matrix] += other.nnz[matrix];
      longest_row[matrix] = std::max(longest_row[matrix], other.longest_row[matrix]);
    }
  }
};

/// What a part must be; `manifest` is null for a single part.
struct Expected {
  std::string path;
  const MatrixManifest* manifest = nullptr;
  std::uint32_t part_index = 0;
  [[nodiscard]] const PartRecord& listed() const { return manifest->parts[part_index]; }
};

std::string differ(const Expected& expected, const std::string& what, const std::string& found,
                   const std::string& wanted) {
  return expected.path + ": " + what + " " + found + ", expected " + wanted;
}

void compare_count(const Expected& expected, const char* what, std::uint64_t found, std::uint64_t wanted,
                   std::vector<std::string>& problems) {
  if (found != wanted)
    problems.push_back(differ(expected, what, std::to_string(found), std::to_string(wanted)));
}

void compare_with_manifest(const Expected& expected, const PartSpec& spec, std::uint64_t rows,
                           std::vector<std::string>& problems) {
  const MatrixManifest& manifest = *expected.manifest;
  const MatrixShape& shape = *spec.matrix;
  if (spec.pack_id != manifest.pack_id)
    problems.push_back(
        differ(expected, "belongs to pack", hash_text(spec.pack_id), hash_text(manifest.pack_id)));
  compare_count(expected, "is part", spec.part_index, expected.part_index, problems);
  compare_count(expected, "rows", rows, expected.listed().samples, problems);
  compare_count(expected, "columns", shape.column_count, manifest.columns, problems);
  compare_count(expected, "matrices", shape.matrix_count, manifest.matrices.size(), problems);
  if (shape.value_type != manifest.value_type || shape.scale != manifest.scale)
    problems.push_back(expected.path + ": values of another type or scale than the manifest says");
  if (spec.codec != manifest.codec) problems.push_back(differ(expected, "codec", spec.codec, manifest.codec));
  if (manifest.chunk_rows > 0)
    compare_count(expected, "rows of a chunk", spec.chunk_samples, manifest.chunk_rows, problems);
}

void check_row_block(const ChunkReader& part, std::size_t index, Bytes raw, MatrixSums& sums) {
  const MatrixShape& shape = *part.spec().matrix;
  const StoredChunk& chunk = part.chunks()[index];
  try {
    const RowBlockHeader header = decode_row_block_header(raw, shape);
    if (header.row_count != chunk.sample_count || header.first_row != chunk.first_sample)
      throw Error(ErrorCode::bad_data, "is of other rows than its location in the part says");
    MatrixSums block;
    for (std::size_t matrix = 0; matrix < shape.matrix_count; ++matrix) {
      const RowBlockHeader::Matrix& rows = header.matrices[matrix];
      std::vector<std::uint64_t> row_ends(header.row_count);
      std::vector<std::uint32_t> ids(rows.nnz);
      ByteBuffer values(rows.nnz * value_bytes(shape.value_type));
      decode_rows(header, matrix, shape, RowBlockTarget<std::uint32_t>{row_ends, 0, ids, values});
      block.nnz[matrix] = rows.nnz;
      block.longest_row[matrix] = rows.longest_row;
    }
    sums.add(block);
  } catch (const Error& error) {
    throw Error(error.code(), part.location(index) + ": " + error.what());
  }
}

void check_shard(const Expected& expected, const VerifyOptions& options, MatrixSums& sums,
                 std::vector<std::string>& problems) {
  const std::unique_ptr<ChunkReader> part = open_matrix_part(expected.path, 0, false);
  if (expected.manifest != nullptr) {
    compare_with_manifest(expected, part->spec(), part->samples().rows.size(), problems);
    compare_count(expected, "chunks", part->chunks().size(), expected.listed().chunks, problems);
    const std::uint64_t found = part->hash_of_all();
    if (found != expected.listed().xxh3)
      problems.push_back(
          differ(expected, "checksum of the part", hash_text(found), hash_text(expected.listed().xxh3)));
  }
  if (options.quick) return;
  const std::uint32_t threads = options.threads > 0 ? options.threads : allowed_cpus();
  sums = sum_over_chunks<MatrixSums>(
      *part, threads, problems,
      [&](std::size_t index, Bytes raw, MatrixSums& found) { check_row_block(*part, index, raw, found); });
}

void check_hdf5(const Expected& expected, const VerifyOptions& options, MatrixSums& sums,
                std::vector<std::string>& problems) {
  const InputFile input(expected.path);
  const std::optional<Hdf5Trailer> trailer = read_hdf5_trailer(input);
  if (expected.manifest != nullptr && !trailer) {
    problems.push_back(
        expected.path +
        ": has no trailer behind its HDF5 end of file: another program changed it, or it was cut off");
    return;
  }
  if (expected.manifest != nullptr && trailer->xxh3 != expected.listed().xxh3)
    problems.push_back(differ(expected, "checksum of the part", hash_text(trailer->xxh3),
                              hash_text(expected.listed().xxh3)));
  if (trailer) check_hdf5_hash(input, *trailer);
  if (options.quick) return;
  const std::unique_ptr<ChunkReader> part = open_matrix_part(expected.path, 0, false);
  if (expected.manifest != nullptr)
    compare_with_manifest(expected, part->spec(), part->samples().rows.size(), problems);
  ByteBuffer block;
  for (std::size_t index = 0; index < part->chunks().size(); ++index) {
    part->fetch(index, block);
    check_row_block(*part, index, block, sums);
  }
}

/// Everything that needs the part's own reader.
std::vector<std::string> check_part(const Expected& expected, const VerifyOptions& options,
                                    MatrixSums& sums) {
  std::vector<std::string> problems;
  try {
    if (container_of(expected.path).name == "hdf5")
      check_hdf5(expected, options, sums, problems);
    else
      check_shard(expected, options, sums, problems);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;  // nothing is known of the part
    problems.emplace_back(error.what());
  }
  return problems;
}

void check_part_of_pack(const Expected& expected, const VerifyOptions& options, MatrixSums& total,
                        std::vector<std::string>& problems) {
  if (!check_size(expected.path, expected.listed().bytes, problems) &&
      !std::filesystem::exists(expected.path))
    return;
  MatrixSums sums;
  for (std::string& error : check_part(expected, options, sums)) problems.push_back(std::move(error));
  total.add(sums);
}

void compare_matrices(const std::string& folder, const MatrixManifest& manifest, const MatrixSums& sums,
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

}  // namespace

VerifyReport verify_matrix_pack(const std::string& folder, const MatrixManifest& manifest,
                                const VerifyOptions& options) {
  VerifyReport report;
  MatrixSums sums;
  std::set<std::string> known{std::string(kManifestName), std::string(kRunName), manifest.users.file,
                              manifest.items.file};
  for (std::uint32_t part_index = 0; part_index < manifest.parts.size(); ++part_index) {
    const PartRecord& part = manifest.parts[part_index];
    known.merge(std::set<std::string>{part.file, part_record_name(part.file)});
    if (options.on_part) options.on_part(part.file);
    const std::size_t problems = report.problems.size();
    static_cast<void>(check_part_record(folder, manifest, part, report.problems));
    check_part_of_pack({folder + "/" + part.file, &manifest, part_index}, options, sums, report.problems);
    if (report.problems.size() > problems) add_damaged(folder, part.file, report);
    ++report.parts;
    report.chunks += part.chunks;
    report.samples += part.samples;
    report.bytes += part.bytes;
  }
  if (!options.quick && report.problems.empty()) compare_matrices(folder, manifest, sums, report.problems);
  check_list(folder, manifest.users, manifest.rows, report);
  check_list(folder, manifest.items, manifest.columns, report);
  if (!report.problems.empty()) add_damaged(folder, kManifestName, report);
  check_unknown_files(folder, known, report.problems);
  return report;
}

std::vector<std::string> check_lone_matrix_part(const std::string& path, const VerifyOptions& options) {
  MatrixSums sums;
  return check_part({path, nullptr, 0}, options, sums);
}

bool is_matrix_part(const std::string& path) {
  try {
    return container_of(path).name == "hdf5" ? is_matrix_hdf5(path, false) : is_matrix_shard(path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;
    return false;
  }
}

}  // namespace chunkhit
