#include "store/written_part.h"

#include <algorithm>
#include <string>

#include "base/hash.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

constexpr std::size_t kBlockBytes = 1 << 20;

/// Reads a file from its begin to its end, by pieces.
class Sweep {
 public:
  explicit Sweep(const InputFile& file) : file_(file), block_(kBlockBytes) {}

  /// Reads on to `end` and returns the hash of these bytes.
  std::uint64_t hash_to(std::uint64_t end) {
    Xxh3Stream piece;
    while (at_ < end) {
      const MutableBytes bytes(block_.data(), std::min<std::uint64_t>(block_.size(), end - at_));
      file_.read_at(at_, bytes);
      piece.update(bytes);
      whole_.update(bytes);
      at_ += bytes.size();
    }
    return piece.value();
  }

  [[nodiscard]] std::uint64_t hash_of_all() const { return whole_.value(); }

 private:
  const InputFile& file_;
  ByteBuffer block_;
  Xxh3Stream whole_;
  std::uint64_t at_ = 0;
};

PartReport sweep_part(const std::string& path, const std::vector<StoredChunk>& chunks) {
  const InputFile file(path);
  PartReport report{.bytes = file.byte_count(), .chunk_count = chunks.size()};
  Sweep sweep(file);
  for (const StoredChunk& chunk : chunks) {
    sweep.hash_to(chunk.offset);
    const std::uint64_t found = sweep.hash_to(chunk.offset + chunk.stored_bytes);
    if (found != chunk.xxh3)
      throw Error(ErrorCode::bad_data, "chunk of sample " + std::to_string(chunk.first_sample) +
                                           ": checksum " + hash_text(found) + ", expected " +
                                           hash_text(chunk.xxh3));
    report.sample_count += chunk.sample_count;
    report.stored_bytes += chunk.stored_bytes;
  }
  sweep.hash_to(file.byte_count());
  report.xxh3 = sweep.hash_of_all();
  return report;
}

}  // namespace

PartReport check_written_part(const PendingFile& file,
                              std::unique_ptr<ChunkReader> (*open)(const std::string& path),
                              const std::vector<StoredChunk>& chunks) {
  try {
    if (open(file.aside_path())->chunks() != chunks)
      throw Error(ErrorCode::bad_data, "other chunks than were written");
    return sweep_part(file.aside_path(), chunks);
  } catch (const Error& error) {
    throw Error(ErrorCode::cannot_write,
                file.path() + ": what was written does not read back: " + error.what());
  }
}

}  // namespace chunkhit
