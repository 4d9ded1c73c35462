#include "store/written_part.h"

#include <string>

#include "chunkhit/error.h"

namespace chunkhit {

PartReport check_written_part(const PendingFile& file,
                              std::unique_ptr<ChunkReader> (*open)(const std::string& path),
                              const std::vector<StoredChunk>& chunks) {
  try {
    const std::unique_ptr<ChunkReader> part = open(file.aside_path());
    if (part->chunks() != chunks) throw Error(ErrorCode::bad_data, "other chunks than were written");
    PartReport report{.bytes = part->byte_count(), .xxh3 = part->hash_of_all(), .chunk_count = chunks.size()};
    for (const StoredChunk& chunk : chunks) {
      report.sample_count += chunk.sample_count;
      report.stored_bytes += chunk.stored_bytes;
    }
    return report;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;
    throw Error(ErrorCode::cannot_write,
                file.path() + ": what was written does not read back: " + error.what());
  }
}

}  // namespace chunkhit
