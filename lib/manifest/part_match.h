// Whether a pack's files are those that its manifest lists: bytes, rows, and what parts say of themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/throw_error.h"
#include "chunkhit/verify.h"
#include "manifest/manifest.h"
#include "store/part.h"

namespace chunkhit {

/// Says whether a file has the bytes that a manifest says.
bool check_size(const std::string& path, std::uint64_t bytes, std::vector<std::string>& problems);

/// Says whether a file has the bytes and the checksum that a manifest says.
bool check_file(const std::string& path, std::uint64_t bytes, std::uint64_t xxh3,
                std::vector<std::string>& problems);

/// Lists a file among those to remove, if it is there.
void add_damaged(const std::string& folder, std::string_view name, VerifyReport& report);

/// Checks a CSV beside the parts: bytes, checksum, and rows below its header.
void check_list(const std::string& folder, const FileRecord& file, std::uint64_t rows, VerifyReport& report);

/// Compares what the manifest sums up with what the parts' records add up to; `parts` are all of them.
[[nodiscard]] std::vector<std::string> compare_with_parts(const std::string& manifest_path,
                                                          const Manifest& manifest,
                                                          const std::vector<PartManifest>& parts);

/// Compares an open part with the manifest's row of it, all but the hash; returns the differences.
[[nodiscard]] std::vector<std::string> compare_with_part(const ChunkReader& part, const Manifest& manifest,
                                                         std::size_t index);
[[nodiscard]] std::vector<std::string> compare_with_part(const ChunkReader& part,
                                                         const MatrixManifest& manifest, std::size_t index);

/// Compares a part's own hash with the manifest's: it is of another pack with an equal list, or changed.
void compare_hash(const std::string& part_path, std::uint64_t found, const PartRecord& listed,
                  std::vector<std::string>& problems);

/// Throws bad_data with the first difference between an open part and the manifest's row of it. Its hash
/// covers the stored bytes of its chunks by their recorded hashes: no chunk is read.
template <class AnyManifest>
void check_listed(const ChunkReader& part, const AnyManifest& manifest, std::size_t index) {
  std::vector<std::string> problems = compare_with_part(part, manifest, index);
  if (problems.empty()) compare_hash(part.path(), part.hash_of_all(false), manifest.parts[index], problems);
  part.file().forget_ahead();
  if (!problems.empty()) throw_bad_data(problems.front());
}

/// Compares a part's own record with the manifest's row, and returns it where it can be read.
[[nodiscard]] std::optional<PartManifest> check_part_record(const std::string& folder,
                                                            const PackManifest& manifest,
                                                            const PartRecord& listed,
                                                            std::vector<std::string>& problems);

}  // namespace chunkhit
