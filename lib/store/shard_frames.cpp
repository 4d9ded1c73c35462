#include "store/shard_frames.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "chunkhit/error.h"
#include "store/part_index.h"
#include "store/shard_part.h"

namespace chunkhit {
namespace {

constexpr std::uint32_t kHeaderMagic = 0x184d2a50;
constexpr std::uint32_t kIndexMagic = 0x184d2a51;
constexpr std::uint32_t kPaddingMagic = 0x184d2a52;
constexpr std::uint32_t kSeekTableMagic = 0x184d2a5e;
constexpr std::uint32_t kSeekTableFooterMagic = 0x8f92eab1;

constexpr std::string_view kShardMagic = "chunkhit shard\r\n";
constexpr std::uint32_t kShardVersion = 1;
constexpr auto kImages = static_cast<std::uint32_t>(SampleKind::images);
constexpr auto kMatrices = static_cast<std::uint32_t>(SampleKind::matrices);
constexpr std::size_t kSpecAt = 32;
constexpr std::size_t kCountsAt = 88;
constexpr std::size_t kHeaderHashAt = kShardAlignment - 8;

[[noreturn]] void throw_bad_header(const std::string& what) {
  throw Error(ErrorCode::bad_data, "shard header: " + what);
}

void store_frame_header(std::uint8_t* to, std::uint32_t magic, std::uint64_t frame_bytes) {
  store_little(to, magic);
  store_little(to + 4, static_cast<std::uint32_t>(frame_bytes - kSkippableHeaderBytes));
}

}  // namespace

bool is_shard(Bytes first_bytes) {
  return first_bytes.size() >= 24 && load_little<std::uint32_t>(first_bytes.data()) == kHeaderMagic &&
         as_text(first_bytes.subspan(8, kShardMagic.size())) == kShardMagic;
}

ShardHeaderBytes encode_shard_header(const ShardHeader& header) {
  ShardHeaderBytes bytes{};
  store_frame_header(bytes.data(), kHeaderMagic, bytes.size());
  std::memcpy(bytes.data() + 8, kShardMagic.data(), kShardMagic.size());
  store_little(bytes.data() + 24, kShardVersion);
  store_little(bytes.data() + 28, header.spec.matrix ? kMatrices : kImages);
  std::ranges::copy(encode_part_spec(header.spec), bytes.begin() + kSpecAt);
  std::uint8_t* to = bytes.data() + kCountsAt;
  for (const std::uint64_t number : {header.sample_count, header.chunk_count, header.index_offset,
                                     header.index_bytes, header.index_xxh3, header.file_bytes}) {
    store_little(to, number);
    to += sizeof number;
  }
  store_little(bytes.data() + kHeaderHashAt, xxh3(Bytes(bytes).first(kHeaderHashAt)));
  return bytes;
}

ShardHeader decode_shard_header(const ShardHeaderBytes& bytes) {
  const auto version = load_little<std::uint32_t>(bytes.data() + 24);
  const auto kind = load_little<std::uint32_t>(bytes.data() + 28);
  const std::uint64_t found = xxh3(Bytes(bytes).first(kHeaderHashAt));
  const auto expected = load_little<std::uint64_t>(bytes.data() + kHeaderHashAt);
  if (!is_shard(bytes)) throw_bad_header("another magic text");
  if (version != kShardVersion)
    throw_bad_header("version " + std::to_string(version) + ", this reader knows version " +
                     std::to_string(kShardVersion));
  if (found != expected)
    throw_bad_header("checksum " + hash_text(found) + ", expected " + hash_text(expected));
  if (kind != kImages && kind != kMatrices)
    throw_bad_header("kind " + std::to_string(kind) + ", expected 1 (images) or 2 (matrices)");
  PartSpecBytes spec{};
  std::copy_n(bytes.begin() + kSpecAt, spec.size(), spec.begin());
  ShardHeader header{.spec = kind == kImages ? decode_part_spec(spec) : decode_matrix_part_spec(spec)};
  const std::uint8_t* from = bytes.data() + kCountsAt;
  for (std::uint64_t* number : {&header.sample_count, &header.chunk_count, &header.index_offset,
                                &header.index_bytes, &header.index_xxh3, &header.file_bytes}) {
    *number = load_little<std::uint64_t>(from);
    from += sizeof *number;
  }
  return header;
}

ByteBuffer encode_shard_padding(std::uint64_t bytes) {
  ByteBuffer frame(bytes);
  std::ranges::fill(frame, std::uint8_t{0});
  store_frame_header(frame.data(), kPaddingMagic, bytes);
  return frame;
}

std::array<std::uint8_t, kSkippableHeaderBytes> encode_index_frame_header(std::uint64_t index_bytes) {
  std::array<std::uint8_t, kSkippableHeaderBytes> header{};
  store_frame_header(header.data(), kIndexMagic, index_bytes + kSkippableHeaderBytes);
  return header;
}

ByteBuffer encode_seek_table(const PartSpec& spec, const std::vector<StoredChunk>& chunks,
                             std::uint64_t index_bytes) {
  ByteBuffer table(kSkippableHeaderBytes);
  std::uint32_t frames = 0;
  const auto add = [&](std::uint64_t stored_bytes, std::uint64_t raw_bytes) {
    append_little(table, static_cast<std::uint32_t>(stored_bytes));
    append_little(table, static_cast<std::uint32_t>(raw_bytes));
    ++frames;
  };
  add(kShardAlignment, 0);
  for (const StoredChunk& chunk : chunks) {
    add(chunk.stored_bytes, chunk.raw_bytes);
    const std::uint64_t padding = shard_padding(spec, chunk.offset + chunk.stored_bytes);
    if (padding != 0) add(padding, 0);
  }
  add(kSkippableHeaderBytes + index_bytes, 0);
  append_little(table, frames);
  table.push_back(0);
  append_little(table, kSeekTableFooterMagic);
  store_frame_header(table.data(), kSeekTableMagic, table.size());
  return table;
}

}  // namespace chunkhit
