#include "compress/chunk_filter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

struct Picture {
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

const std::vector<Picture> kPictures{{"noise", noise}, {"slope", slope}, {"constant", constant}};
const std::vector<SampleShape> kShapes{{1, 1, 1, Layout::nhwc},   {1, 1, 3, Layout::nhwc},
                                       {28, 28, 1, Layout::nchw}, {33, 47, 3, Layout::nhwc},
                                       {33, 47, 3, Layout::nchw}, {16, 16, 4, Layout::nhwc}};

std::string decode_fault(const ChunkFilter& filter, Bytes stored, const SampleShape& shape,
                         std::size_t raw_bytes) {
  ByteBuffer raw(raw_bytes);
  try {
    filter.decode(stored, shape, raw);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    return error.what();
  }
  return "";
}

TEST(ChunkFilter, RestoresEveryPictureAtEveryLevel) {
  for (const ChunkFilter& filter : chunk_filters())
    for (int level = filter.least_level; level <= filter.most_level; ++level)
      for (const SampleShape& shape : kShapes)
        for (const Picture& picture : kPictures) {
          const ByteBuffer raw = picture.make(shape, 5);
          ByteBuffer stored;
          ByteBuffer restored(raw.size());
          filter.encode(raw, shape, level, stored);
          filter.decode(stored, shape, restored);
          ASSERT_EQ(restored, raw) << filter.name << ":" << level << " " << picture.name;
        }
}

TEST(ChunkFilter, GivesTheSameBytesFromAUsedContextAsFromAFreshOne) {
  const SampleShape shape{33, 47, 3, Layout::nhwc};
  const ByteBuffer raw = slope(shape, 3);
  for (const ChunkFilter& filter : chunk_filters()) {
    ByteBuffer first, between, again;
    filter.encode(raw, shape, filter.default_level, first);
    filter.encode(noise(shape, 2), shape, filter.most_level, between);
    filter.encode(raw, shape, filter.default_level, again);
    EXPECT_EQ(first, again) << filter.name;
  }
}

TEST(ChunkFilter, MakesASlopeSmaller) {
  const SampleShape shape{64, 64, 3, Layout::nhwc};
  const ByteBuffer raw = slope(shape, 4);
  for (const char* name : {"deflate", "zstd", "photo"}) {
    ByteBuffer stored;
    chunk_filter(name).encode(raw, shape, chunk_filter(name).default_level, stored);
    EXPECT_LT(stored.size(), raw.size() / 4) << name;
  }
}

TEST(ChunkFilter, RefusesTruncatedBytes) {
  const SampleShape shape{8, 8, 3, Layout::nhwc};
  const ByteBuffer raw = noise(shape, 2);
  for (const ChunkFilter& filter : chunk_filters()) {
    ByteBuffer stored;
    filter.encode(raw, shape, filter.default_level, stored);
    for (std::size_t bytes = 0; bytes < stored.size(); ++bytes)
      ASSERT_NE(decode_fault(filter, Bytes(stored).first(bytes), shape, raw.size()), "")
          << filter.name << " of " << bytes << " bytes";
  }
}

TEST(ChunkFilter, RefusesBytesBehindTheEnd) {
  const SampleShape shape{8, 8, 3, Layout::nhwc};
  const ByteBuffer raw = slope(shape, 2);
  for (const ChunkFilter& filter : chunk_filters()) {
    ByteBuffer stored;
    filter.encode(raw, shape, filter.default_level, stored);
    ByteBuffer twice = stored;
    twice.insert(twice.end(), stored.begin(), stored.end());
    stored.push_back(0);
    EXPECT_NE(decode_fault(filter, stored, shape, raw.size()), "") << filter.name;
    EXPECT_NE(decode_fault(filter, twice, shape, raw.size()), "") << filter.name;
  }
}

TEST(ChunkFilter, RefusesAnotherRawSize) {
  const SampleShape shape{8, 8, 3, Layout::nhwc};
  const ByteBuffer raw = slope(shape, 2);
  for (const ChunkFilter& filter : chunk_filters()) {
    ByteBuffer stored;
    filter.encode(raw, shape, filter.default_level, stored);
    EXPECT_NE(decode_fault(filter, stored, shape, raw.size() - shape.byte_count()), "") << filter.name;
    EXPECT_NE(decode_fault(filter, stored, shape, raw.size() + shape.byte_count()), "") << filter.name;
  }
}

TEST(ChunkFilter, NeverTakesAFlippedBitForTheSamples) {
  const SampleShape shape{8, 8, 3, Layout::nhwc};
  const ByteBuffer raw = slope(shape, 2);
  for (const char* name : {"deflate", "zstd", "photo"}) {
    const ChunkFilter& filter = chunk_filter(name);
    ByteBuffer stored;
    filter.encode(raw, shape, filter.default_level, stored);
    for (std::size_t bit = 0; bit < stored.size() * 8; ++bit) {
      ByteBuffer flipped = stored;
      flipped[bit / 8] = static_cast<std::uint8_t>(flipped[bit / 8] ^ (1 << bit % 8));
      ByteBuffer restored(raw.size());
      try {
        filter.decode(flipped, shape, restored);
        ASSERT_EQ(restored, raw) << name << " bit " << bit;
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::bad_data);
      }
    }
  }
}

TEST(ChunkFilter, NamesTheValidFiltersWhereOneIsMisspelt) {
  try {
    static_cast<void>(chunk_filter("zsdt"));
    FAIL() << "found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_STREQ(error.what(), "filter \"zsdt\": expected one of none, deflate, zstd, photo");
  }
}

}  // namespace
}  // namespace chunkhit
