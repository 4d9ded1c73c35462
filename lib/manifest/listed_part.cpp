#include "manifest/listed_part.h"

#include <string>

#include "base/hash.h"
#include "chunkhit/error.h"

namespace chunkhit {

void check_part_hash(const ChunkReader& part, const PartRecord& listed) {
  const std::uint64_t found = part.hash_of_all(!part.file().is_remote());
  part.file().forget_ahead();
  if (found != listed.xxh3)
    throw Error(ErrorCode::bad_data, part.path() + ": checksum of the part " + hash_text(found) +
                                         ", expected " + hash_text(listed.xxh3) +
                                         " as its pack's manifest says: damaged, or of another pack");
}

void check_listed(const ChunkReader& part, const MatrixManifest& manifest, std::size_t index) {
  const PartSpec& spec = part.spec();
  const auto check = [&](const char* what, std::uint64_t found, std::uint64_t expected) {
    if (found != expected)
      throw Error(ErrorCode::bad_data, part.path() + ": " + what + " " + std::to_string(found) +
                                           ", expected " + std::to_string(expected) +
                                           " as its pack's manifest says");
  };
  const PartRecord& listed = manifest.parts[index];
  if (spec.pack_id != manifest.pack_id_of(listed))
    throw Error(ErrorCode::bad_data, part.path() + ": belongs to pack " + hash_text(spec.pack_id) +
                                         ", expected " + hash_text(manifest.pack_id_of(listed)));
  check("is part", spec.part_index, listed.number);
  check("rows", part.samples().rows.size(), listed.samples);
  check("columns", spec.matrix->column_count, manifest.columns);
  check("matrices", spec.matrix->matrix_count, manifest.matrices.size());
  check("times (1: ratings have some)", spec.matrix->has_times ? 1 : 0, manifest.times.empty() ? 0 : 1);
  // The rows of HDF5 parts are in memory; the hash of a trailer stands for the bytes of its file, too.
  if (manifest.container == "shard") check("bytes", part.byte_count(), listed.bytes);
  check_part_hash(part, listed);
}

}  // namespace chunkhit
