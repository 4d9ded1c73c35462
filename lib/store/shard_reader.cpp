#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "chunkhit/error.h"
#include "codec/zstd.h"
#include "store/matrix_index.h"
#include "store/part_index.h"
#include "store/part_rules.h"
#include "store/shard_frames.h"
#include "store/shard_part.h"

namespace chunkhit {
namespace {

[[noreturn]] void throw_damaged(const std::string& what) { throw Error(ErrorCode::bad_data, what); }

ShardHeader read_header(const InputFile& file) {
  ShardHeaderBytes bytes{};
  if (file.byte_count() < bytes.size())
    throw_damaged("has " + std::to_string(file.byte_count()) + " bytes, expected at least " +
                  std::to_string(bytes.size()));
  file.read_at(0, bytes);
  ShardHeader header = decode_shard_header(bytes);
  if (header.file_bytes != file.byte_count())
    throw_damaged("has " + std::to_string(file.byte_count()) + " bytes, expected " +
                  std::to_string(header.file_bytes));
  return header;
}

ByteBuffer read_index(const InputFile& file, const ShardHeader& header) {
  const std::uint64_t room = file.byte_count() - std::min(header.index_offset, file.byte_count());
  if (room < kSkippableHeaderBytes ||
      header.index_bytes > std::min<std::uint64_t>(room - kSkippableHeaderBytes, UINT32_MAX))
    throw_damaged("the index lies outside of the file");
  auto frame_header = encode_index_frame_header(header.index_bytes);
  file.read_at(header.index_offset, frame_header);
  if (frame_header != encode_index_frame_header(header.index_bytes))
    throw_damaged("the index has another frame header");
  ByteBuffer index(header.index_bytes);
  file.read_at(header.index_offset + kSkippableHeaderBytes, index);
  const std::uint64_t found = xxh3(index);
  if (found != header.index_xxh3)
    throw_damaged("index: checksum " + hash_text(found) + ", expected " + hash_text(header.index_xxh3));
  return index;
}

/// Undoes the compression of a matrices' index. A row takes some bytes of the file and not many more of the
/// index: what claims to be larger than kMaxShrinking files is refused before memory is taken for it.
ByteBuffer expand_index(Bytes compressed, std::uint64_t file_bytes, std::uint64_t memory_bytes) {
  constexpr std::uint64_t kMaxShrinking = 1024;
  const std::uint64_t bytes = zstd_content_bytes(compressed);
  if (bytes / kMaxShrinking > file_bytes)
    throw_damaged("index: claims " + std::to_string(bytes) + " bytes in a file of " +
                  std::to_string(file_bytes));
  check_index_memory(bytes, memory_bytes);
  ByteBuffer index(bytes);
  decode_zstd(compressed, index);
  return index;
}

/// Chunks and index follow one another, with nothing but padding between them.
void check_order(const PartSpec& spec, const std::vector<StoredChunk>& chunks, std::uint64_t index_offset) {
  std::uint64_t expected = kShardAlignment;
  const auto check = [&](const std::string& what, std::uint64_t offset) {
    if (offset != expected)
      throw_damaged(what + " begins at byte " + std::to_string(offset) + ", expected " +
                    std::to_string(expected));
  };
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    check("chunk " + std::to_string(i), chunks[i].offset);
    const std::uint64_t end = chunks[i].offset + chunks[i].stored_bytes;
    expected = end + shard_padding(spec, end);
  }
  check("the index", index_offset);
}

void check_seek_table(const InputFile& file, const ShardHeader& header,
                      const std::vector<StoredChunk>& chunks) {
  const ByteBuffer expected = encode_seek_table(header.spec, chunks, header.index_bytes);
  const std::uint64_t offset = header.index_offset + kSkippableHeaderBytes + header.index_bytes;
  if (file.byte_count() - offset != expected.size()) throw_damaged("the seek table has another size");
  ByteBuffer found(expected.size());
  file.read_at(offset, found);
  if (found != expected) throw_damaged("the seek table does not fit the index");
}

PartContents read_contents(const InputFile& file, std::uint64_t memory_bytes) {
  const ShardHeader header = read_header(file);
  const Container& shard = container("shard");
  PartContents contents;
  contents.spec = header.spec;
  check_part_spec(contents.spec, shard);
  const ByteBuffer index = read_index(file, header);
  if (contents.spec.matrix)
    decode_matrix_index(expand_index(index, file.byte_count(), memory_bytes), contents, memory_bytes);
  else
    decode_part_index(index, contents);
  if (contents.samples.rows.size() != header.sample_count || contents.chunks.size() != header.chunk_count)
    throw_damaged("the header's counts are not the index's");
  check_part_contents(contents, shard, file.byte_count());
  check_order(contents.spec, contents.chunks, header.index_offset);
  check_seek_table(file, header, contents.chunks);
  return contents;
}

}  // namespace

bool is_matrix_shard(const std::string& path) {
  const InputFile file(path);
  try {
    return read_header(file).spec.matrix.has_value();
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.what());
  }
}

std::unique_ptr<ChunkReader> open_shard(const std::string& path, std::uint64_t memory_bytes) {
  InputFile file(path);
  try {
    PartContents contents = read_contents(file, memory_bytes);
    return std::make_unique<ChunkReader>(std::move(file), std::move(contents));
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.what());
  }
}

}  // namespace chunkhit
