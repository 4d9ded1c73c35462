#include "codec/deflate.h"

#include <libdeflate.h>

#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "base/per_thread.h"
#include "base/throw_error.h"

namespace chunkhit {
namespace {

struct FreeCodec {
  void operator()(libdeflate_compressor* codec) const { libdeflate_free_compressor(codec); }
  void operator()(libdeflate_decompressor* codec) const { libdeflate_free_decompressor(codec); }
};

/// The compressor of a thread, of the level that was asked for last.
struct Compressor {
  std::unique_ptr<libdeflate_compressor, FreeCodec> codec;
  int level = 0;
};

libdeflate_compressor* compressor(int level) {
  static PerThread<Compressor> compressors;
  Compressor& kept = compressors.get();
  if (kept.codec == nullptr || kept.level != level) kept = {{}, level};
  if (kept.codec == nullptr) kept.codec.reset(libdeflate_alloc_compressor(level));
  if (kept.codec == nullptr) throw std::bad_alloc();
  return kept.codec.get();
}

libdeflate_decompressor* decompressor() {
  static PerThread<std::unique_ptr<libdeflate_decompressor, FreeCodec>> decompressors;
  std::unique_ptr<libdeflate_decompressor, FreeCodec>& codec = decompressors.get();
  if (codec == nullptr) codec.reset(libdeflate_alloc_decompressor());
  if (codec == nullptr) throw std::bad_alloc();
  return codec.get();
}

[[noreturn]] void throw_bad_stream(const std::string& what) { throw_bad_data("zlib stream: " + what); }

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

namespace {

constexpr std::uint8_t kFirstCopy = 32;
constexpr std::size_t kLongLength = 7;
constexpr std::size_t kMinCopy = 2;

[[noreturn]] void fail(const std::string& what) { throw_bad_data("LZF stream: " + what); }

/// Literal bytes, or a copy of bytes decoded before.
struct Run {
  Bytes literals;            ///< empty: a copy
  std::size_t length = 0;    ///< of either
  std::size_t distance = 0;  ///< how far back a copy begins
};

/// Takes the next run off the front of `stored`, of which `done` bytes were restored before.
Run take_run(Bytes& stored, std::uint64_t done) {
  const std::uint8_t control = stored[0];
  if (control < kFirstCopy) {
    const std::size_t length = std::size_t{control} + 1;
    if (stored.size() <= length) fail("is cut within literal bytes");
    const Run run{stored.subspan(1, length), length, 0};
    stored = stored.subspan(1 + length);
    return run;
  }
  const bool is_long = (control >> 5) == kLongLength;
  const std::size_t bytes = is_long ? 3 : 2;
  if (stored.size() < bytes) fail("is cut within a copy");
  const std::size_t length = (control >> 5) + (is_long ? stored[1] : 0) + kMinCopy;
  const std::size_t distance = ((control & 31) << 8 | stored[bytes - 1]) + 1;
  if (distance > done) fail("copies from before its begin");
  stored = stored.subspan(bytes);
  return {{}, length, distance};
}

}  // namespace

std::uint64_t lzf_content_bytes(Bytes stored) {
  std::uint64_t bytes = 0;
  while (!stored.empty()) bytes += take_run(stored, bytes).length;
  return bytes;
}

void decode_lzf(Bytes stored, MutableBytes raw) {
  std::size_t done = 0;
  while (!stored.empty()) {
    const Run run = take_run(stored, done);
    if (run.length > raw.size() - done)
      fail("gives more than the expected " + std::to_string(raw.size()) + " bytes");
    std::uint8_t* const to = raw.data() + done;
    if (run.distance == 0)
      std::memcpy(to, run.literals.data(), run.length);
    else
      for (std::size_t i = 0; i < run.length; ++i) to[i] = *(to + i - run.distance);
    done += run.length;
  }
  if (done != raw.size())
    fail("gives " + std::to_string(done) + " bytes, expected " + std::to_string(raw.size()));
}

}  // namespace chunkhit
