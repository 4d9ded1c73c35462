// Codecs for the bytes of a chunk: raw samples ↔ stored bytes. Their layouts are in schemas/codecs.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "types/sample_shape.h"

namespace chunkhit {

inline constexpr std::uint64_t kRawBlockBytes = 131072;
inline constexpr std::uint64_t kRawFrameHeaderBytes = 13;
inline constexpr std::uint64_t kRawBlockHeaderBytes = 3;
inline constexpr std::uint64_t kRawFrameChecksumBytes = 4;

/// Counts the bytes of the frame of `raw_bytes` bytes, at least 1.
[[nodiscard]] constexpr std::uint64_t raw_frame_bytes(std::uint64_t raw_bytes) {
  const std::uint64_t blocks = (raw_bytes + kRawBlockBytes - 1) / kRawBlockBytes;
  return kRawFrameHeaderBytes + blocks * kRawBlockHeaderBytes + raw_bytes + kRawFrameChecksumBytes;
}

/// Finds raw byte `at` in its frame.
[[nodiscard]] constexpr std::uint64_t raw_frame_position(std::uint64_t at) {
  return kRawFrameHeaderBytes + kRawBlockHeaderBytes * (at / kRawBlockBytes + 1) + at;
}

/// The bytes of a raw frame that stand around the raw bytes.
struct RawFrameParts {
  std::array<std::uint8_t, kRawFrameHeaderBytes> header;
  std::vector<std::array<std::uint8_t, kRawBlockHeaderBytes>> block_headers;
  std::array<std::uint8_t, kRawFrameChecksumBytes> checksum;
};

/// Makes the frame around raw bytes, at least 1; they themselves go between the block headers,
/// `kRawBlockBytes` each.
[[nodiscard]] RawFrameParts frame_raw_bytes(Bytes raw);

/// Appends the frame of raw bytes, at least 1.
void append_raw_frame(Bytes raw, ByteBuffer& out);

/// Looks at raw bytes [begin, end), at least one, in their frame, which has raw_frame_bytes(raw_bytes): where
/// they are in one block, else in `room`, where they are put together. Throws bad_data as copy_raw_bytes.
[[nodiscard]] Bytes raw_bytes_in(Bytes frame, std::uint64_t raw_bytes, std::uint64_t begin, std::uint64_t end,
                                 ByteBuffer& room);

/// Copies raw bytes out of their frame, from the one at `begin` on, after checking all that stands around
/// them but the checksum; throws bad_data.
void copy_raw_bytes(Bytes frame, std::uint64_t raw_bytes, std::uint64_t begin, MutableBytes out);
inline void decode_raw_frame(Bytes frame, MutableBytes raw) { copy_raw_bytes(frame, raw.size(), 0, raw); }

/// How a chunk is restored.
struct ChunkUse {
  /// Samples, ascending: of several frames those that hold them are enough. Empty: all.
  std::span<const std::uint64_t> wanted = {};
  bool was_compared = false;  ///< the stored bytes, with their hash: checksums in them are not needed
};

/// Compresses and restores chunks; one static row per filter.
struct ChunkCodec {
  std::string_view name;
  std::string_view library;  ///< that compresses, as in library_versions(); empty: none
  int default_level;
  int min_level;
  int max_level;
  /// Encodes whole samples of `shape` into `stored` (replaced). `raw.size()` is a multiple of the sample's
  /// bytes. `splits`: into several zstd frames, where the codec makes frames.
  void (*encode)(Bytes raw, const SampleShape& shape, int level, bool splits, ByteBuffer& stored);
  /// Restores exactly `raw.size()` bytes, or those that are wanted; throws bad_data when the stored bytes do
  /// not give them.
  void (*decode)(Bytes stored, const SampleShape& shape, const ChunkUse& use, MutableBytes raw);
};

/// All codecs: none, deflate (zlib stream), zstd (frames with their content sizes), photo (predictor, then
/// zstd).
[[nodiscard]] std::span<const ChunkCodec> chunk_codecs();

/// Finds a codec by name; throws usage with the list of valid names.
[[nodiscard]] const ChunkCodec& chunk_codec(std::string_view name);

/// The library that compresses chunks, and its version in this build ("zstd 1.5.4"): another version may give
/// other bytes. Empty for none. `codec`: a name, or a name and a level ("zstd:3").
[[nodiscard]] std::string codec_library(std::string_view codec);

/// A codec of chunks and its level.
struct CodecChoice {
  std::string codec;
  int level = 0;
};

/// Reads a codec's name, which ":LEVEL" may follow; throws usage unless it is one of `codecs`, which those
/// for `container` are.
[[nodiscard]] CodecChoice parse_codec(const std::string& text, const std::string& container,
                                      std::span<const std::string_view> codecs);

/// Writes it as a flag: "zstd:1", "none".
[[nodiscard]] std::string codec_text(const CodecChoice& choice);

}  // namespace chunkhit
