#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "chunkhit/error.h"
#include "codec/raw_frame.h"
#include "codec/zstd.h"
#include "store/matrix_index.h"
#include "store/part_index.h"
#include "store/part_rules.h"
#include "store/shard_frames.h"
#include "store/shard_part.h"
#include "store/written_part.h"

namespace chunkhit {
namespace {

constexpr int kIndexLevel = 3;

class ShardWriter final : public ChunkWriter {
 public:
  ShardWriter(const std::string& path, const PartSpec& spec) : spec_(spec), file_(path) {
    // The header's place; what it says is known at the end.
    file_.append(encode_shard_header({.spec = spec}));
  }

  void append(const EncodedChunk& chunk) override {
    StoredChunk stored{.offset = file_.byte_count(),
                       .raw_bytes = chunk.raw_bytes,
                       .first_sample = sample_count_,
                       .sample_count = chunk.sample_count,
                       .xxh3 = chunk.xxh3,
                       .filtered = chunk.filtered};
    if (chunk.filtered)
      file_.append(chunk.stored);
    else
      stored.xxh3 = append_raw_frame(chunk.stored);
    stored.stored_bytes = file_.byte_count() - stored.offset;
    const std::uint64_t padding = shard_padding(spec_, file_.byte_count());
    if (padding != 0) file_.append(encode_shard_padding(padding));
    chunks_.push_back(stored);
    sample_count_ += chunk.sample_count;
  }

  CompletePart complete(const PartSamples& samples) override {
    const ByteBuffer index = encode_index(samples);
    if (index.size() > UINT32_MAX - kSkippableHeaderBytes)
      throw Error(ErrorCode::cannot_write, file_.path() + ": an index of " + std::to_string(index.size()) +
                                               " bytes, expected less than 4 GiB: make smaller parts");
    spec_.classes = {};  // which are in the index now, and are about to be read again
    ShardHeader header{.spec = spec_,
                       .sample_count = sample_count_,
                       .chunk_count = chunks_.size(),
                       .index_offset = file_.byte_count(),
                       .index_bytes = index.size(),
                       .index_xxh3 = xxh3(index)};
    file_.append(encode_index_frame_header(index.size()));
    file_.append(index);
    file_.append(encode_seek_table(spec_, chunks_, index.size()));
    header.file_bytes = file_.byte_count();
    file_.write_at(0, encode_shard_header(header));
    const PartReport report = check_written_part(
        file_, [](const std::string& path) { return open_shard(path); }, chunks_);
    file_.flush();
    return {report, std::move(file_)};
  }

 private:
  /// Rows of matrices are so small that what stands beside them counts: their index is compressed.
  [[nodiscard]] ByteBuffer encode_index(const PartSamples& samples) const {
    if (!spec_.matrix) return encode_part_index(spec_, chunks_, samples);
    const std::vector<ByteBuffer> pieces = encode_matrix_index(spec_, chunks_, samples);
    ByteBuffer compressed;
    encode_zstd(std::vector<Bytes>(pieces.begin(), pieces.end()), kIndexLevel, compressed);
    return compressed;
  }

  /// Appends raw bytes in a frame of raw blocks, without a copy of them; returns the frame's hash.
  std::uint64_t append_raw_frame(Bytes raw) {
    Xxh3Stream hash;
    const auto add = [&](Bytes bytes) {
      file_.append(bytes);
      hash.update(bytes);
    };
    const RawFrameParts frame = frame_raw_bytes(raw);
    add(frame.header);
    for (const auto& block_header : frame.block_headers) {
      const Bytes block = raw.first(std::min<std::size_t>(raw.size(), kRawBlockBytes));
      add(block_header);
      add(block);
      raw = raw.subspan(block.size());
    }
    add(frame.checksum);
    return hash.value();
  }

  PartSpec spec_;
  PendingFile file_;
  std::vector<StoredChunk> chunks_;
  std::uint64_t sample_count_ = 0;
};

}  // namespace

std::unique_ptr<ChunkWriter> create_shard(const std::string& path, const PartSpec& spec) {
  check_part_spec(spec, container("shard"));
  return std::make_unique<ShardWriter>(path, spec);
}

}  // namespace chunkhit
