// Reads a part with known pixels, possibly damaged, and says what came of it.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "chunkhit/error.h"
#include "store/part.h"
#include "support/known_parts.h"

namespace chunkhit {

enum class ReadOutcome { right, refused, wrong, crashed };

/// Opens, fetches and decodes all; `wrong` where anything differs from the known part without an Error.
inline ReadOutcome read_known_part(const std::string& path, const PartSpec& spec, std::uint64_t count) {
  try {
    const std::unique_ptr<ChunkReader> part = open_part(path);
    const PartSamples& found = part->samples();
    const PartSamples expected = known_part_samples(spec, count);
    if (found.rows != expected.rows || found.labels.ids != expected.labels.ids ||
        found.labels.values != expected.labels.values || found.files.text != expected.files.text ||
        part->spec().images().classes != spec.images().classes ||
        part->spec().images().sample != spec.images().sample)
      return ReadOutcome::wrong;
    // A part of ours that is read as an external file has none.
    if (part->has_hashes() && (found.mean != expected.mean || found.std != expected.std))
      return ReadOutcome::wrong;
    ByteBuffer stored;
    for (std::size_t i = 0; i < part->chunks().size(); ++i) {
      const StoredChunk& chunk = part->chunks()[i];
      ByteBuffer raw(chunk.raw_bytes);
      part->fetch(i, stored);
      decode_chunk(*part, i, stored, raw);
      const ByteBuffer samples = known_samples(spec.images().sample, chunk.first_sample, chunk.sample_count);
      if (!std::equal(samples.begin(), samples.end(), raw.begin())) return ReadOutcome::wrong;
    }
  } catch (const Error&) {
    return ReadOutcome::refused;
  }
  return ReadOutcome::right;
}

/// The same in a child process, which may crash: the HDF5 library does not check all of a file's structure.
inline ReadOutcome read_known_part_in_child(const std::string& path, const PartSpec& spec,
                                            std::uint64_t count) {
  constexpr unsigned kMaxSeconds = 20;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kMaxSeconds);
    ::_exit(static_cast<int>(read_known_part(path, spec, count)));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? static_cast<ReadOutcome>(WEXITSTATUS(status)) : ReadOutcome::crashed;
}

}  // namespace chunkhit
