#include "codec/chunk_codec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "chunkhit/error.h"
#include "codec/zstd.h"

namespace chunkhit {
namespace {

struct Image {
  std::string name;
  ByteBuffer (*make)(const SampleShape& shape, std::uint64_t count);
};

ByteBuffer noise(const SampleShape& shape, std::uint64_t count) {
  ByteBuffer bytes(shape.byte_count() * count);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(mix_bits(i));
  return bytes;
}

ByteBuffer slope(const SampleShape& shape, std::uint64_t count) {
  ByteBuffer bytes(shape.byte_count() * count);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i / 3);
  return bytes;
}

ByteBuffer constant(const SampleShape& shape, std::uint64_t count) {
  ByteBuffer bytes(shape.byte_count() * count);
  std::fill(bytes.begin(), bytes.end(), std::uint8_t{200});
  return bytes;
}

const std::vector<Image> kImages{{"noise", noise}, {"slope", slope}, {"constant", constant}};
const std::vector<SampleShape> kShapes{{1, 1, 1, Layout::nhwc},   {1, 1, 3, Layout::nhwc},
                                       {28, 28, 1, Layout::nchw}, {33, 47, 3, Layout::nhwc},
                                       {33, 47, 3, Layout::nchw}, {16, 16, 4, Layout::nhwc}};

std::string decode_error(const ChunkCodec& codec, Bytes stored, const SampleShape& shape,
                         std::size_t raw_bytes) {
  ByteBuffer raw(raw_bytes);
  try {
    codec.decode(stored, shape, {}, raw);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    return error.what();
  }
  return "";
}

TEST(ChunkCodec, RestoresEveryImageAtEveryLevel) {
  for (const ChunkCodec& codec : chunk_codecs())
    for (int level = codec.min_level; level <= codec.max_level; ++level)
      for (const SampleShape& shape : kShapes)
        for (const Image& image : kImages) {
          const ByteBuffer raw = image.make(shape, 5);
          ByteBuffer stored;
          ByteBuffer restored(raw.size());
          codec.encode(raw, shape, level, false, stored);
          codec.decode(stored, shape, {}, restored);
          ASSERT_EQ(restored, raw) << codec.name << ":" << level << " " << image.name;
        }
}

TEST(ChunkCodec, RestoresTheFramesThatHoldWhatIsWanted) {
  const SampleShape shape{50, 50, 3, Layout::nhwc};  // 17 samples in a frame
  const std::uint64_t sample_bytes = shape.byte_count();
  const ByteBuffer raw = slope(shape, 60);
  for (const char* name : {"zstd", "photo"}) {
    const ChunkCodec& codec = chunk_codec(name);
    ByteBuffer stored;
    codec.encode(raw, shape, codec.default_level, true, stored);
    ByteBuffer all(raw.size());
    codec.decode(stored, shape, {}, all);
    EXPECT_EQ(all, raw) << name;
    const std::vector<std::uint64_t> wanted{18, 18, 33, 59};
    ByteBuffer some(raw.size());
    std::fill(some.begin(), some.end(), std::uint8_t{77});
    codec.decode(stored, shape, {wanted}, some);
    for (std::uint64_t sample = 0; sample < 60; ++sample) {
      const bool restored = (sample >= 17 && sample < 34) || sample >= 51;
      const std::uint64_t at = sample * sample_bytes + sample_bytes / 2;
      EXPECT_EQ(some[at], restored ? raw[at] : 77) << name << " sample " << sample;
    }
    ByteBuffer one;
    codec.encode(raw, shape, codec.default_level, false, one);
    EXPECT_LT(one.size(), stored.size()) << name;
  }
}

TEST(ChunkCodec, RefusesFramesOfParts) {
  const SampleShape shape{8, 8, 3, Layout::nhwc};
  const ByteBuffer raw = slope(shape, 4);
  ByteBuffer stored;
  append_zstd(Bytes(raw).first(300), raw.size(), 1, stored);
  append_zstd(Bytes(raw).subspan(300), raw.size(), 1, stored);
  EXPECT_NE(decode_error(chunk_codec("zstd"), stored, shape, raw.size()).find("expected samples of 192"),
            std::string::npos);
}

TEST(ChunkCodec, GivesTheSameBytesFromAUsedContextAsFromAFreshOne) {
  const SampleShape shape{33, 47, 3, Layout::nhwc};
  const ByteBuffer raw = slope(shape, 3);
  for (const ChunkCodec& codec : chunk_codecs()) {
    ByteBuffer first, between, again;
    codec.encode(raw, shape, codec.default_level, false, first);
    codec.encode(noise(shape, 2), shape, codec.max_level, false, between);
    codec.encode(raw, shape, codec.default_level, false, again);
    EXPECT_EQ(first, again) << codec.name;
  }
}

TEST(ChunkCodec, MakesASlopeSmaller) {
  const SampleShape shape{64, 64, 3, Layout::nhwc};
  const ByteBuffer raw = slope(shape, 4);
  for (const char* name : {"deflate", "zstd", "photo"}) {
    ByteBuffer stored;
    chunk_codec(name).encode(raw, shape, chunk_codec(name).default_level, false, stored);
    EXPECT_LT(stored.size(), raw.size() / 4) << name;
  }
}

TEST(ChunkCodec, RefusesTruncatedBytes) {
  const SampleShape shape{8, 8, 3, Layout::nhwc};
  const ByteBuffer raw = noise(shape, 2);
  for (const ChunkCodec& codec : chunk_codecs()) {
    ByteBuffer stored;
    codec.encode(raw, shape, codec.default_level, false, stored);
    for (std::size_t bytes = 0; bytes < stored.size(); ++bytes)
      ASSERT_NE(decode_error(codec, Bytes(stored).first(bytes), shape, raw.size()), "")
          << codec.name << " of " << bytes << " bytes";
  }
}

TEST(ChunkCodec, RefusesBytesBehindTheEnd) {
  const SampleShape shape{8, 8, 3, Layout::nhwc};
  const ByteBuffer raw = slope(shape, 2);
  for (const ChunkCodec& codec : chunk_codecs()) {
    ByteBuffer stored;
    codec.encode(raw, shape, codec.default_level, false, stored);
    ByteBuffer twice = stored;
    twice.insert(twice.end(), stored.begin(), stored.end());
    stored.push_back(0);
    EXPECT_NE(decode_error(codec, stored, shape, raw.size()), "") << codec.name;
    EXPECT_NE(decode_error(codec, twice, shape, raw.size()), "") << codec.name;
  }
}

TEST(ChunkCodec, RefusesAnotherRawSize) {
  const SampleShape shape{8, 8, 3, Layout::nhwc};
  const ByteBuffer raw = slope(shape, 2);
  for (const ChunkCodec& codec : chunk_codecs()) {
    ByteBuffer stored;
    codec.encode(raw, shape, codec.default_level, false, stored);
    EXPECT_NE(decode_error(codec, stored, shape, raw.size() - shape.byte_count()), "") << codec.name;
    EXPECT_NE(decode_error(codec, stored, shape, raw.size() + shape.byte_count()), "") << codec.name;
  }
}

TEST(ChunkCodec, NeverTakesAFlippedBitForTheSamples) {
  const SampleShape shape{8, 8, 3, Layout::nhwc};
  const ByteBuffer raw = slope(shape, 2);
  for (const char* name : {"deflate", "zstd", "photo"}) {
    const ChunkCodec& codec = chunk_codec(name);
    ByteBuffer stored;
    codec.encode(raw, shape, codec.default_level, false, stored);
    for (std::size_t bit = 0; bit < stored.size() * 8; ++bit) {
      ByteBuffer flipped = stored;
      flipped[bit / 8] = static_cast<std::uint8_t>(flipped[bit / 8] ^ (1 << bit % 8));
      ByteBuffer restored(raw.size());
      try {
        codec.decode(flipped, shape, {}, restored);
        ASSERT_EQ(restored, raw) << name << " bit " << bit;
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::bad_data);
      }
    }
  }
}

TEST(ChunkCodec, IgnoresChecksumsOfBytesThatWereCompared) {
  const SampleShape shape{8, 8, 3, Layout::nhwc};
  const ByteBuffer raw = slope(shape, 2);
  for (const char* name : {"zstd", "photo"}) {
    const ChunkCodec& codec = chunk_codec(name);
    ByteBuffer stored, restored(raw.size());
    codec.encode(raw, shape, codec.default_level, false, stored);
    stored.back() ^= 1;  // of the checksum
    EXPECT_NE(decode_error(codec, stored, shape, raw.size()), "") << name;
    codec.decode(stored, shape, {.was_compared = true}, restored);
    EXPECT_EQ(restored, raw) << name;
  }
}

/// Samples whose neighbours differ by noise: no two rows are alike, as in a photograph.
ByteBuffer photograph(const SampleShape& shape, std::uint64_t count) {
  ByteBuffer bytes(shape.byte_count() * count);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint64_t bits = mix_bits(i);
    bytes[i] = static_cast<std::uint8_t>(i / 700 + (bits & 3) + (bits >> 2 & 3) + (bits >> 4 & 3));
  }
  return bytes;
}

/// A pattern of 16 x 16 pixels, again and again.
ByteBuffer drawing(const SampleShape& shape, std::uint64_t count) {
  constexpr std::uint64_t kSide = 16;
  ByteBuffer bytes(shape.byte_count() * count);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint64_t pixel = i / shape.channels, x = pixel % shape.width, y = pixel / shape.width;
    bytes[i] = static_cast<std::uint8_t>(mix_bits(y % kSide * kSide + x % kSide));
  }
  return bytes;
}

/// Squares of 8 x 8 pixels, black and white.
ByteBuffer squares(const SampleShape& shape, std::uint64_t count) {
  ByteBuffer bytes(shape.byte_count() * count);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint64_t pixel = i / shape.channels, x = pixel % shape.width, y = pixel / shape.width;
    bytes[i] = (x / 8 + y / 8) % 2 == 0 ? 0 : 255;
  }
  return bytes;
}

/// How many blocks a frame of zstd has.
std::size_t block_count(Bytes frame) {
  // Behind the magic: a descriptor, a window unless the frame is one segment, and the content size.
  const unsigned size_code = frame[4] >> 6, is_segment = frame[4] >> 5 & 1;
  const std::size_t size_bytes = size_code == 0 ? is_segment : std::size_t{1} << size_code;
  std::size_t count = 0;
  for (std::size_t at = 5 + (1 - is_segment) + size_bytes; at + 3 <= frame.size(); ++count) {
    const std::uint32_t header = frame[at] | frame[at + 1] << 8 | frame[at + 2] << 16;
    const bool is_repeated = (header >> 1 & 3) == 1;
    at += 3 + (is_repeated ? 1 : header >> 3);
    if ((header & 1) != 0) return count + 1;
  }
  return count;
}

TEST(ChunkCodec, PhotoGivesPlanesBlocksOfTheirOwnWhereNothingRepeats) {
  const SampleShape shape{96, 96, 3, Layout::nhwc}, small{95, 95, 3, Layout::nhwc};
  SampleShape masked = shape;
  masked.pairs = {{"mask", FieldRole::mask}};
  const ChunkCodec& codec = chunk_codec("photo");
  const auto blocks_of = [&](const SampleShape& of, const auto& make) {
    const ByteBuffer raw = make(of, 1);
    ByteBuffer stored, restored(raw.size());
    codec.encode(raw, of, codec.default_level, true, stored);
    codec.decode(stored, of, {}, restored);
    EXPECT_EQ(restored, raw);
    return block_count(stored);
  };
  EXPECT_EQ(blocks_of(shape, photograph), 3u);
  EXPECT_EQ(blocks_of(shape, drawing), 1u);
  EXPECT_EQ(blocks_of(small, photograph), 1u);
  EXPECT_EQ(blocks_of(masked, photograph), 1u);
}

TEST(ChunkCodec, PhotoKeepsTheMatchesOfADrawingBehindAPhotograph) {
  const SampleShape shape{224, 224, 3, Layout::nhwc};  // one sample in a frame
  ByteBuffer both = photograph(shape, 1), stored, restored(2 * shape.byte_count());
  const ByteBuffer second = squares(shape, 1);
  both.insert(both.end(), second.begin(), second.end());
  const ChunkCodec& codec = chunk_codec("photo");
  codec.encode(both, shape, codec.default_level, true, stored);
  codec.decode(stored, shape, {}, restored);
  EXPECT_EQ(restored, both);
  EXPECT_LT(stored.size() - first_zstd_frame(stored).stored_bytes, 3000u);
}

TEST(ChunkCodec, NamesTheValidFiltersWhereOneIsMisspelt) {
  try {
    static_cast<void>(chunk_codec("zsdt"));
    FAIL() << "found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_STREQ(error.what(), "codec \"zsdt\": expected one of none, deflate, zstd, photo");
  }
}

}  // namespace
}  // namespace chunkhit
