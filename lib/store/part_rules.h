// Rules that parts obey: their spec, pixel statistics, contents; and the last check of a part before it is
// published.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "chunkhit/error.h"
#include "store/part.h"

namespace chunkhit {

/// Throws bad_data, "WHAT: 3, expected 4", where a number differs.
void check_count(const std::string& what, std::uint64_t found, std::uint64_t expected);

/// Samples of a part, one after the other.
struct SampleRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// Throws bad_data unless a chunk has these samples, and bytes that fit them, the container and the file.
void check_chunk(const PartContents& contents, std::size_t index, const SampleRange& samples,
                 const Container& container, std::uint64_t file_bytes);

/// Runs check(i) for each chunk; its errors name the chunk.
template <class Check>
void for_each_chunk(const PartContents& contents, Check check) {
  for (std::size_t i = 0; i < contents.chunks.size(); ++i) {
    try {
      check(i);
    } catch (const Error& error) {
      throw Error(ErrorCode::bad_data, "chunk " + std::to_string(i) + ": " + error.what());
    }
  }
}

/// Throws bad_data unless the sample's or matrix's shape, the filter and the chunk's size suit the container.
void check_part_spec(const PartSpec& spec, const Container& container);

/// Throws bad_data unless mean and std have a number of 0 to 1 for each channel, or none at all.
void check_pixel_stats(const std::vector<double>& mean, const std::vector<double>& std,
                       std::uint32_t channels);

/// Throws bad_data unless chunks and samples fit each other, the spec, and a file of `file_bytes`.
void check_part_contents(const PartContents& contents, const Container& container, std::uint64_t file_bytes);

/// Throws bad_data unless the locations that an external file's chunks and pieces claim are within a file of
/// `file_bytes`, and its labels fit its samples.
void check_external_contents(const PartContents& contents, const Container& container,
                             std::uint64_t file_bytes);

/// Opens what was written aside, reads all that stands beside the chunks' stored bytes, and compares it with
/// the chunks that were to be written; throws cannot_write when anything differs.
[[nodiscard]] PartReport check_written_part(const PendingFile& file,
                                            std::unique_ptr<ChunkReader> (*open)(const std::string& path),
                                            const std::vector<StoredChunk>& chunks);

}  // namespace chunkhit
