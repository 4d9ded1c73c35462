#include "codec/deflate.h"

#include <libdeflate.h>

#include <memory>
#include <new>
#include <string>

#include "chunkhit/error.h"

namespace chunkhit {
namespace {

struct FreeCodec {
  void operator()(libdeflate_compressor* codec) const { libdeflate_free_compressor(codec); }
  void operator()(libdeflate_decompressor* codec) const { libdeflate_free_decompressor(codec); }
};

/// Keeps one compressor for each thread, of the level that was asked for last.
libdeflate_compressor* compressor(int level) {
  thread_local std::unique_ptr<libdeflate_compressor, FreeCodec> codec;
  thread_local int codec_level = 0;
  if (codec == nullptr || codec_level != level) {
    codec.reset(libdeflate_alloc_compressor(level));
    codec_level = level;
  }
  if (codec == nullptr) throw std::bad_alloc();
  return codec.get();
}

libdeflate_decompressor* decompressor() {
  thread_local const std::unique_ptr<libdeflate_decompressor, FreeCodec> codec(
      libdeflate_alloc_decompressor());
  if (codec == nullptr) throw std::bad_alloc();
  return codec.get();
}

[[noreturn]] void throw_bad_stream(const std::string& what) {
  throw Error(ErrorCode::bad_data, "zlib stream: " + what);
}

}  // namespace

void encode_deflate(Bytes raw, int level, ByteBuffer& stored) {
  libdeflate_compressor* codec = compressor(level);
  stored.resize(libdeflate_zlib_compress_bound(codec, raw.size()));
  stored.resize(libdeflate_zlib_compress(codec, raw.data(), raw.size(), stored.data(), stored.size()));
}

void decode_deflate(Bytes stored, MutableBytes raw) {
  std::size_t used = 0;
  std::size_t got = 0;
  const libdeflate_result result = libdeflate_zlib_decompress_ex(decompressor(), stored.data(), stored.size(),
                                                                 raw.data(), raw.size(), &used, &got);
  if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
    throw_bad_stream("gives more than the expected " + std::to_string(raw.size()) + " bytes");
  if (result != LIBDEFLATE_SUCCESS) throw_bad_stream("damaged");
  if (got != raw.size())
    throw_bad_stream("gives " + std::to_string(got) + " bytes, expected " + std::to_string(raw.size()));
  if (used != stored.size())
    throw_bad_stream("has " + std::to_string(used) + " bytes, expected " + std::to_string(stored.size()));
}

}  // namespace chunkhit
