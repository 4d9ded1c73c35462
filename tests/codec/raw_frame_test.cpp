#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "chunkhit/error.h"
#include "codec/chunk_codec.h"
#include "codec/zstd.h"

namespace chunkhit {
namespace {

ByteBuffer noise(std::uint64_t bytes) {
  ByteBuffer buffer(bytes);
  for (std::uint64_t i = 0; i < bytes; ++i) buffer[i] = static_cast<std::uint8_t>(mix_bits(i));
  return buffer;
}

ByteBuffer whole_frame(Bytes raw) {
  const RawFrameParts parts = frame_raw_bytes(raw);
  ByteBuffer frame(parts.header.begin(), parts.header.end());
  for (const auto& header : parts.block_headers) {
    const Bytes block = raw.first(std::min<std::size_t>(raw.size(), kRawBlockBytes));
    frame.insert(frame.end(), header.begin(), header.end());
    frame.insert(frame.end(), block.begin(), block.end());
    raw = raw.subspan(block.size());
  }
  frame.insert(frame.end(), parts.checksum.begin(), parts.checksum.end());
  return frame;
}

constexpr std::uint64_t kSizes[] = {1,      2,      255,        256,        65535 + 256, 131071,
                                    131072, 131073, 2 * 131072, 300 * 1000, 1 << 20};

TEST(RawFrame, IsAFrameThatZstdReads) {
  for (const std::uint64_t bytes : kSizes) {
    const ByteBuffer raw = noise(bytes);
    ByteBuffer restored(bytes);
    decode_zstd(whole_frame(raw), restored);
    ASSERT_EQ(restored, raw) << bytes;
  }
}

TEST(RawFrame, HasEveryByteWhereTheArithmeticSays) {
  for (const std::uint64_t bytes : kSizes) {
    const ByteBuffer raw = noise(bytes);
    const ByteBuffer frame = whole_frame(raw);
    ASSERT_EQ(frame.size(), raw_frame_bytes(bytes));
    for (std::uint64_t at = 0; at < bytes; ++at) ASSERT_EQ(frame[raw_frame_position(at)], raw[at]) << at;
  }
}

TEST(RawFrame, GivesItsRawBytesBackWithoutZstd) {
  for (const std::uint64_t bytes : kSizes) {
    const ByteBuffer raw = noise(bytes);
    ByteBuffer restored(bytes);
    decode_raw_frame(whole_frame(raw), restored);
    ASSERT_EQ(restored, raw) << bytes;
  }
}

TEST(RawFrame, GivesARangeOfItsBytes) {
  const ByteBuffer raw = noise(300 * 1000), frame = whole_frame(raw);
  ByteBuffer room;
  for (const auto& [begin, end] : {std::pair<std::uint64_t, std::uint64_t>{0, 1},
                                   {131071, 131072},
                                   {131072, 262144},
                                   {131071, 131073},
                                   {5, 299995},
                                   {262143, 300000}}) {
    const Bytes found = raw_bytes_in(frame, raw.size(), begin, end, room);
    ASSERT_TRUE(std::ranges::equal(found, Bytes(raw).subspan(begin, end - begin))) << begin << " to " << end;
    EXPECT_EQ(found.data() == room.data(), begin / kRawBlockBytes != (end - 1) / kRawBlockBytes) << begin;
  }
}

TEST(RawFrame, RefusesAFlippedBitInWhatStandsAroundTheBytes) {
  const ByteBuffer frame = whole_frame(noise(131073));
  ByteBuffer restored(131073);
  for (const std::size_t at : {0, 4, 5, 12, 13, 14, 15, 16 + 131072, 17 + 131072, 18 + 131072}) {
    ByteBuffer damaged = frame;
    damaged[at] ^= 1;
    EXPECT_THROW(decode_raw_frame(damaged, restored), Error) << at;
  }
}

TEST(RawFrame, RefusesAnotherLength) {
  const ByteBuffer frame = whole_frame(noise(1000));
  ByteBuffer restored(1000);
  ByteBuffer longer(1001);
  EXPECT_THROW(decode_raw_frame(Bytes(frame).first(frame.size() - 1), restored), Error);
  EXPECT_THROW(decode_raw_frame(frame, longer), Error);
  EXPECT_THROW(decode_raw_frame({}, {}), Error);
}

}  // namespace
}  // namespace chunkhit
