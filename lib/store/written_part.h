// The last look at a part before it is published.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "store/part.h"

namespace chunkhit {

/// Opens what was written aside, reads all that stands beside the chunks' stored bytes, and compares it with
/// the chunks that were to be written; throws cannot_write when anything differs.
[[nodiscard]] PartReport check_written_part(const PendingFile& file,
                                            std::unique_ptr<ChunkReader> (*open)(const std::string& path),
                                            const std::vector<StoredChunk>& chunks);

}  // namespace chunkhit
