#include "codec/chunk_codec.h"

#include <array>
#include <cstring>

#include "chunkhit/error.h"
#include "codec/deflate.h"
#include "codec/photo_predictor.h"
#include "codec/zstd.h"

namespace chunkhit {
namespace {

void encode_none(Bytes raw, const SampleShape&, int, ByteBuffer& stored) {
  stored.resize(raw.size());
  if (!raw.empty()) std::memcpy(stored.data(), raw.data(), raw.size());
}

void decode_none(Bytes stored, const SampleShape&, MutableBytes raw) {
  if (stored.size() != raw.size())
    throw Error(ErrorCode::bad_data,
                std::to_string(stored.size()) + " bytes, expected " + std::to_string(raw.size()));
  if (!raw.empty()) std::memcpy(raw.data(), stored.data(), raw.size());
}

void encode_deflate_chunk(Bytes raw, const SampleShape&, int level, ByteBuffer& stored) {
  encode_deflate(raw, level, stored);
}

void decode_deflate_chunk(Bytes stored, const SampleShape&, MutableBytes raw) { decode_deflate(stored, raw); }

void encode_zstd_chunk(Bytes raw, const SampleShape&, int level, ByteBuffer& stored) {
  encode_zstd(raw, level, stored);
}

void decode_zstd_chunk(Bytes stored, const SampleShape&, MutableBytes raw) { decode_zstd(stored, raw); }

/// One buffer for each thread that uses the photo codec, as large as the largest chunk that it saw.
MutableBytes residual_buffer(std::size_t bytes) {
  thread_local ByteBuffer buffer;
  if (buffer.size() < bytes) buffer.resize(bytes);
  return MutableBytes(buffer).first(bytes);
}

void encode_photo(Bytes raw, const SampleShape& shape, int level, ByteBuffer& stored) {
  const MutableBytes residuals = residual_buffer(raw.size());
  predict_photo(raw, shape, residuals);
  encode_zstd(residuals, level, stored);
}

void decode_photo(Bytes stored, const SampleShape& shape, MutableBytes raw) {
  const MutableBytes residuals = residual_buffer(raw.size());
  decode_zstd(stored, residuals);
  restore_photo(residuals, shape, raw);
}

constexpr std::array<ChunkCodec, 4> kFilters{{
    {"none", 0, 0, 0, encode_none, decode_none},
    {"deflate", 4, 1, 12, encode_deflate_chunk, decode_deflate_chunk},
    {"zstd", 1, 1, 19, encode_zstd_chunk, decode_zstd_chunk},
    {"photo", 1, 1, 19, encode_photo, decode_photo},
}};

}  // namespace

std::span<const ChunkCodec> chunk_codecs() { return kFilters; }

const ChunkCodec& chunk_codec(std::string_view name) {
  for (const ChunkCodec& codec : kFilters)
    if (codec.name == name) return codec;
  std::string names;
  for (const ChunkCodec& codec : kFilters) names += (names.empty() ? "" : ", ") + std::string(codec.name);
  throw Error(ErrorCode::usage, "codec \"" + std::string(name) + "\": expected one of " + names);
}

}  // namespace chunkhit
