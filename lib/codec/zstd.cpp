#include "codec/zstd.h"

// For the estimate of a context's size, for the compression of literals, and for ignoring checksums.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/per_thread.h"
#include "base/throw_error.h"

namespace chunkhit {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

/// One context for each thread: making one costs more than compressing a small chunk.
template <class Context, Context* (*kCreate)()>
Context* thread_context() {
  static PerThread<std::unique_ptr<Context, FreeContext>> contexts;
  std::unique_ptr<Context, FreeContext>& context = contexts.get();
  if (context == nullptr) context.reset(kCreate());
  if (context == nullptr) throw std::bad_alloc();
  return context.get();
}

ZSTD_CCtx* compression_context() { return thread_context<ZSTD_CCtx, ZSTD_createCCtx>(); }

ZSTD_DCtx* decompression_context() { return thread_context<ZSTD_DCtx, ZSTD_createDCtx>(); }

ZSTD_CCtx* prepare_context(int level) {
  ZSTD_CCtx* context = compression_context();
  ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  return context;
}

/// Appends a frame of pieces, each in blocks of its own.
void append_pieces(ZSTD_CCtx* context, std::span<const Bytes> pieces, ByteBuffer& stored) {
  // Upper bound of the cost of ending a block early: its header and that of an empty block after it.
  constexpr std::size_t kBytesPerPiece = 64;
  std::size_t raw_bytes = 0;
  for (const Bytes piece : pieces) raw_bytes += piece.size();
  ZSTD_CCtx_setPledgedSrcSize(context, raw_bytes);
  const std::size_t begin = stored.size();
  stored.resize(begin + ZSTD_compressBound(raw_bytes) + kBytesPerPiece * (pieces.size() + 1));
  ZSTD_outBuffer out{stored.data(), stored.size(), begin};
  for (std::size_t index = 0; index < pieces.size(); ++index) {
    ZSTD_inBuffer in{pieces[index].data(), pieces[index].size(), 0};
    const ZSTD_EndDirective end = index + 1 == pieces.size() ? ZSTD_e_end : ZSTD_e_flush;
    // 0: nothing is left inside; there is room for any result, so only memory can be missing.
    if (ZSTD_compressStream2(context, &out, &in, end) != 0) throw std::bad_alloc();
  }
  stored.resize(out.pos);
}

[[noreturn]] void throw_bad_frame(const std::string& what) { throw_bad_data("zstd frame: " + what); }

}  // namespace

void encode_zstd(Bytes raw, int level, ByteBuffer& stored) {
  stored.clear();
  append_zstd(raw, raw.size(), level, stored);
}

// A level finds shorter matches in smaller frames, of which residuals have many by chance: they cost bytes,
// and a tenth of the time that decompressing takes.
void append_zstd(Bytes raw, std::uint64_t all_bytes, int level, ByteBuffer& stored) {
  ZSTD_CCtx* context = prepare_context(level);
  const ZSTD_compressionParameters of_all = ZSTD_getCParams(level, all_bytes, 0);
  ZSTD_CCtx_setParameter(context, ZSTD_c_minMatch, static_cast<int>(of_all.minMatch));
  ZSTD_CCtx_setParameter(context, ZSTD_c_strategy, of_all.strategy);
  const std::size_t begin = stored.size();
  stored.resize(begin + ZSTD_compressBound(raw.size()));
  const std::size_t bytes =
      ZSTD_compress2(context, stored.data() + begin, stored.size() - begin, raw.data(), raw.size());
  if (ZSTD_isError(bytes) != 0)
    throw std::bad_alloc();  // with room for any result only memory can be missing
  stored.resize(begin + bytes);
}

std::uint64_t zstd_context_bytes(int level, std::uint64_t raw_bytes) {
  return ZSTD_estimateCCtxSize_usingCParams(ZSTD_getCParams(level, raw_bytes, 0));
}

void encode_zstd(std::span<const Bytes> pieces, int level, ByteBuffer& stored) {
  constexpr int kLongMatch = 7;
  constexpr int kMinHashLog = 6;  // log2 of the hash table size, the smallest that zstd accepts
  ZSTD_CCtx* context = prepare_context(level);
  if (level == 1) {
    // Level 1 would encode chance repetitions of 4 bytes, which cost more than the bytes themselves.
    ZSTD_CCtx_setParameter(context, ZSTD_c_minMatch, kLongMatch);
    ZSTD_CCtx_setParameter(context, ZSTD_c_hashLog, kMinHashLog);
  }
  stored.clear();
  append_pieces(context, pieces, stored);
}

void append_zstd_literals(Bytes raw, std::uint64_t piece_bytes, ByteBuffer& stored) {
  ZSTD_CCtx* context = prepare_context(ZSTD_minCLevel());  // steps over all that could match
  ZSTD_CCtx_setParameter(context, ZSTD_c_literalCompressionMode, ZSTD_ps_enable);
  std::vector<Bytes> pieces;
  for (std::uint64_t at = 0; at < raw.size(); at += piece_bytes)
    pieces.push_back(raw.subspan(at, std::min<std::uint64_t>(piece_bytes, raw.size() - at)));
  append_pieces(context, pieces, stored);
}

std::uint64_t zstd_content_bytes(Bytes stored) {
  const unsigned long long bytes = ZSTD_getFrameContentSize(stored.data(), stored.size());
  if (bytes == ZSTD_CONTENTSIZE_ERROR) throw_bad_frame("not a frame");
  if (bytes == ZSTD_CONTENTSIZE_UNKNOWN) throw_bad_frame("does not say how many bytes it holds");
  return bytes;
}

ZstdFrame first_zstd_frame(Bytes stored) {
  const std::uint64_t raw_bytes = zstd_content_bytes(stored);
  const std::size_t frame_bytes = ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  if (ZSTD_isError(frame_bytes) != 0) throw_bad_frame(ZSTD_getErrorName(frame_bytes));
  return {frame_bytes, raw_bytes};
}

void decode_zstd(Bytes stored, MutableBytes raw, bool checks) {
  const ZstdFrame frame = first_zstd_frame(stored);
  if (frame.raw_bytes != raw.size())
    throw_bad_frame("holds " + std::to_string(frame.raw_bytes) + " bytes, expected " +
                    std::to_string(raw.size()));
  if (frame.stored_bytes != stored.size())
    throw_bad_frame("has " + std::to_string(frame.stored_bytes) + " bytes, expected " +
                    std::to_string(stored.size()));
  ZSTD_DCtx* const context = decompression_context();
  ZSTD_DCtx_setParameter(context, ZSTD_d_forceIgnoreChecksum,
                         checks ? ZSTD_d_validateChecksum : ZSTD_d_ignoreChecksum);
  const std::size_t got = ZSTD_decompressDCtx(context, raw.data(), raw.size(), stored.data(), stored.size());
  if (ZSTD_isError(got) != 0) throw_bad_frame(ZSTD_getErrorName(got));
  if (got != raw.size())
    throw_bad_frame("gave " + std::to_string(got) + " bytes, expected " + std::to_string(raw.size()));
}

std::size_t decode_zstd_head(Bytes stored, MutableBytes raw) {
  // Of its own: the buffers of a stream are as large as the frame, which the threads' contexts would keep.
  const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (context == nullptr) throw std::bad_alloc();
  ZSTD_inBuffer in{stored.data(), stored.size(), 0};
  ZSTD_outBuffer out{raw.data(), raw.size(), 0};
  while (in.pos < in.size && out.pos < out.size) {
    const std::size_t left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left) != 0) throw_bad_frame(ZSTD_getErrorName(left));
    if (left == 0) break;
  }
  return out.pos;
}

}  // namespace chunkhit
