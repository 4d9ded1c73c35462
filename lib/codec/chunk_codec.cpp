#include "codec/chunk_codec.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/per_thread.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/version.h"
#include "codec/deflate.h"
#include "codec/photo_predictor.h"
#include "codec/zstd.h"

namespace chunkhit {
namespace {

constexpr std::uint32_t kZstdMagic = 0xfd2fb528;
// Single segment, 8 bytes of content size, content checksum, no dictionary.
constexpr std::uint8_t kFrameDescriptor = 0xe4;

[[noreturn]] void throw_bad_raw_frame(const std::string& what) { throw_bad_data("raw zstd frame: " + what); }

std::array<std::uint8_t, kRawFrameHeaderBytes> frame_header(std::uint64_t raw_bytes) {
  std::array<std::uint8_t, kRawFrameHeaderBytes> header{};
  store_little(header.data(), kZstdMagic);
  header[4] = kFrameDescriptor;
  store_little(header.data() + 5, raw_bytes);
  return header;
}

/// Bit 0: last block; bits 1–2: kind 0, raw; from bit 3 on: bytes.
std::array<std::uint8_t, kRawBlockHeaderBytes> block_header(std::uint64_t bytes, bool last) {
  const std::uint64_t bits = bytes << 3 | (last ? 1 : 0);
  return {static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(bits >> 8),
          static_cast<std::uint8_t>(bits >> 16)};
}

}  // namespace

/// Frames raw bytes as zstd without compressing them: headers, raw blocks and checksum, so that `zstd -d`
/// reads the shard.
RawFrameParts frame_raw_bytes(Bytes raw) {
  RawFrameParts parts;
  parts.header = frame_header(raw.size());
  for (std::uint64_t at = 0; at < raw.size(); at += kRawBlockBytes) {
    const auto bytes = std::min<std::uint64_t>(kRawBlockBytes, raw.size() - at);
    parts.block_headers.push_back(block_header(bytes, at + bytes == raw.size()));
  }
  store_little(parts.checksum.data(), static_cast<std::uint32_t>(XXH64(raw.data(), raw.size(), 0)));
  return parts;
}

/// Compares all headers with the expected ones; the checksum is not needed, because chunks have a hash of
/// their own.
void append_raw_frame(Bytes raw, ByteBuffer& out) {
  const auto append = [&](Bytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); };
  const RawFrameParts frame = frame_raw_bytes(raw);
  append(frame.header);
  for (const auto& block_header : frame.block_headers) {
    const Bytes block = raw.first(std::min<std::size_t>(raw.size(), kRawBlockBytes));
    append(block_header);
    append(block);
    raw = raw.subspan(block.size());
  }
  append(frame.checksum);
}

Bytes raw_bytes_in(Bytes frame, std::uint64_t raw_bytes, std::uint64_t begin, std::uint64_t end,
                   ByteBuffer& room) {
  if (begin / kRawBlockBytes == (end - 1) / kRawBlockBytes)
    return frame.subspan(raw_frame_position(begin), end - begin);
  room.resize(end - begin);
  copy_raw_bytes(frame, raw_bytes, begin, room);
  return room;
}

void copy_raw_bytes(Bytes frame, std::uint64_t raw_bytes, std::uint64_t begin, MutableBytes out) {
  if (raw_bytes == 0 || frame.size() != raw_frame_bytes(raw_bytes))
    throw_bad_raw_frame("has " + std::to_string(frame.size()) + " bytes, expected " +
                        std::to_string(raw_frame_bytes(raw_bytes)));
  const auto header = frame_header(raw_bytes);
  if (!std::equal(header.begin(), header.end(), frame.begin())) throw_bad_raw_frame("another frame header");
  while (!out.empty()) {
    const std::uint64_t first = begin / kRawBlockBytes * kRawBlockBytes;
    const auto block_bytes = std::min<std::uint64_t>(kRawBlockBytes, raw_bytes - first);
    const std::uint8_t* const block = frame.data() + raw_frame_position(first);
    const auto expected = block_header(block_bytes, first + block_bytes == raw_bytes);
    if (!std::equal(expected.begin(), expected.end(), block - kRawBlockHeaderBytes))
      throw_bad_raw_frame("another header of block " + std::to_string(first / kRawBlockBytes));
    const std::size_t bytes = std::min<std::size_t>(out.size(), first + block_bytes - begin);
    std::memcpy(out.data(), block + (begin - first), bytes);
    begin += bytes;
    out = out.subspan(bytes);
  }
}

namespace {

/// Frames of one block cost no bytes: longer ones are cut into blocks, which are compressed one by one.
constexpr std::uint64_t kZstdBlockBytes = 128 << 10;

void encode_none(Bytes raw, const SampleShape&, int, bool, ByteBuffer& stored) {
  stored.resize(raw.size());
  if (!raw.empty()) std::memcpy(stored.data(), raw.data(), raw.size());
}

void decode_none(Bytes stored, const SampleShape&, const ChunkUse&, MutableBytes raw) {
  if (stored.size() != raw.size())
    throw_bad_data(std::to_string(stored.size()) + " bytes, expected " + std::to_string(raw.size()));
  if (!raw.empty()) std::memcpy(raw.data(), stored.data(), raw.size());
}

void encode_deflate_chunk(Bytes raw, const SampleShape&, int level, bool, ByteBuffer& stored) {
  encode_deflate(raw, level, stored);
}

void decode_deflate_chunk(Bytes stored, const SampleShape&, const ChunkUse&, MutableBytes raw) {
  decode_deflate(stored, raw);
}

/// Calls `encode` for the samples of each frame.
template <class Encode>
void encode_frames(Bytes raw, const SampleShape& shape, bool splits, Encode encode) {
  const std::uint64_t sample_bytes = std::max<std::uint64_t>(1, shape.byte_count());
  const std::uint64_t frame_bytes =
      splits ? std::max<std::uint64_t>(1, kZstdBlockBytes / sample_bytes) * sample_bytes : raw.size();
  for (std::size_t at = 0; at < raw.size(); at += frame_bytes)
    encode(raw.subspan(at, std::min<std::uint64_t>(frame_bytes, raw.size() - at)));
}

/// Calls `decode` for each frame that holds samples that are wanted.
template <class Decode>
void decode_frames(Bytes stored, const SampleShape& shape, const ChunkUse& use, MutableBytes raw,
                   Decode decode) {
  std::span<const std::uint64_t> wanted = use.wanted;
  const std::uint64_t sample_bytes = std::max<std::uint64_t>(1, shape.byte_count());
  const bool wants_all = wanted.empty();
  std::uint64_t at = 0;
  for (ZstdFrame frame; at < raw.size(); at += frame.raw_bytes, stored = stored.subspan(frame.stored_bytes)) {
    frame = first_zstd_frame(stored);
    if (frame.raw_bytes == 0 || frame.raw_bytes > raw.size() - at || frame.raw_bytes % sample_bytes != 0)
      throw_bad_data("zstd frame: holds " + std::to_string(frame.raw_bytes) + " bytes, expected samples of " +
                     std::to_string(sample_bytes) + ", at most " + std::to_string(raw.size() - at) +
                     " bytes");
    const std::uint64_t end = (at + frame.raw_bytes) / sample_bytes;
    if (!wants_all && (wanted.empty() || wanted.front() >= end)) continue;
    decode(stored.first(frame.stored_bytes), raw.subspan(at, frame.raw_bytes));
    while (!wanted.empty() && wanted.front() < end) wanted = wanted.subspan(1);
  }
  if (!stored.empty())
    throw_bad_data(std::to_string(stored.size()) + " bytes are left behind the last zstd frame");
}

void encode_zstd_chunk(Bytes raw, const SampleShape& shape, int level, bool splits, ByteBuffer& stored) {
  stored.clear();
  encode_frames(raw, shape, splits, [&](Bytes samples) { append_zstd(samples, raw.size(), level, stored); });
}

void decode_zstd_chunk(Bytes stored, const SampleShape& shape, const ChunkUse& use, MutableBytes raw) {
  decode_frames(stored, shape, use, raw,
                [&](Bytes frame, MutableBytes samples) { decode_zstd(frame, samples, !use.was_compared); });
}

/// Returns this thread's buffer for the residuals of the photo codec; `large` where they are of a large
/// image, whose memory must not stay.
MutableBytes residual_buffer(std::size_t bytes, ByteBuffer& large) {
  constexpr std::size_t kKeptBytes = 16 << 20;
  static PerThread<ByteBuffer> kept;
  ByteBuffer& buffer = bytes > kKeptBytes ? large : kept.get();
  if (buffer.size() < bytes) buffer.resize(bytes);
  return MutableBytes(buffer).first(bytes);
}

/// Smaller planes gain less than a block of their own costs.
constexpr std::uint64_t kMinPlaneBytes = std::uint64_t{96} * 96;
/// Of a plane, which are compressed both ways.
constexpr std::uint64_t kTrialBytes = 16 << 10;

/// A frame that is made smaller than this share of its samples is no photograph.
constexpr std::uint64_t kDrawingShare = 6;

/// Whether residuals are no larger without matches, in the first block of a plane: those of photographs,
/// where matches are chance. Masks repeat themselves, and so may views.
bool lacks_matches(Bytes residuals, const SampleShape& shape, int level) {
  const std::uint64_t plane = std::uint64_t{shape.height} * shape.width;
  if (plane < kMinPlaneBytes || !shape.pairs.empty()) return false;
  // Of green, which other planes differ little from: theirs may be zeros.
  const Bytes trial = residuals.subspan(shape.channels == 3 ? plane : 0, std::min(plane, kTrialBytes));
  ByteBuffer matched, literals;
  append_zstd(trial, trial.size(), level, matched);
  append_zstd_literals(trial, trial.size(), literals);
  return literals.size() <= matched.size();
}

void encode_photo(Bytes raw, const SampleShape& shape, int level, bool splits, ByteBuffer& stored) {
  stored.clear();
  std::optional<bool> is_plain;  // of the chunk, by its first frame
  encode_frames(raw, shape, splits, [&](Bytes samples) {
    ByteBuffer large;
    const MutableBytes residuals = residual_buffer(samples.size(), large);
    predict_photo(samples, shape, residuals);
    if (!is_plain) is_plain = lacks_matches(residuals, shape, level);
    if (!*is_plain) return append_zstd(residuals, raw.size(), level, stored);
    const std::size_t begin = stored.size();
    append_zstd_literals(residuals, std::uint64_t{shape.height} * shape.width, stored);
    if ((stored.size() - begin) * kDrawingShare > samples.size()) return;
    ByteBuffer matched;
    append_zstd(residuals, raw.size(), level, matched);
    if (matched.size() >= stored.size() - begin) return;
    stored.resize(begin);
    stored.insert(stored.end(), matched.begin(), matched.end());
  });
}

void decode_photo(Bytes stored, const SampleShape& shape, const ChunkUse& use, MutableBytes raw) {
  decode_frames(stored, shape, use, raw, [&](Bytes frame, MutableBytes samples) {
    ByteBuffer large;
    const MutableBytes residuals = residual_buffer(samples.size(), large);
    decode_zstd(frame, residuals, !use.was_compared);
    restore_photo(residuals, shape, samples);
  });
}

constexpr std::array<ChunkCodec, 4> kFilters{{
    {"none", "", 0, 0, 0, encode_none, decode_none},
    {"deflate", "libdeflate", 4, 1, 12, encode_deflate_chunk, decode_deflate_chunk},
    {"zstd", "zstd", 1, 1, 19, encode_zstd_chunk, decode_zstd_chunk},
    {"photo", "zstd", 1, 1, 19, encode_photo, decode_photo},
}};

}  // namespace

std::span<const ChunkCodec> chunk_codecs() { return kFilters; }

const ChunkCodec& chunk_codec(std::string_view name) {
  for (const ChunkCodec& codec : kFilters)
    if (codec.name == name) return codec;
  throw_usage("codec \"" + std::string(name) + "\": expected one of " +
              joined(kFilters, ", ", &ChunkCodec::name));
}

std::string codec_library(std::string_view codec) {
  const std::string_view library = chunk_codec(codec.substr(0, codec.find(':'))).library;
  for (const auto& [name, version] : library_versions())
    if (name == library) return name + " " + version;
  return "";
}

CodecChoice parse_codec(const std::string& text, const std::string& container,
                        std::span<const std::string_view> codecs) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  if (std::find(codecs.begin(), codecs.end(), name) == codecs.end())
    throw_usage("`codec`: '" + name + "' is not for " + container + ", expected one of " + joined(codecs));
  const ChunkCodec& codec = chunk_codec(name);
  CodecChoice choice{std::string(codec.name), codec.default_level};
  if (colon == std::string::npos) return choice;
  if (!parse_all(text.substr(colon + 1), choice.level) || choice.level < codec.min_level ||
      choice.level > codec.max_level)
    throw_usage("`codec`: " + text + ": expected a level from " + std::to_string(codec.min_level) + " to " +
                std::to_string(codec.max_level));
  return choice;
}

std::string codec_text(const CodecChoice& choice) {
  return choice.codec == "none" ? "none" : choice.codec + ":" + std::to_string(choice.level);
}

}  // namespace chunkhit
