#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "chunkhit/error.h"
#include "codec/chunk_codec.h"
#include "store/part_index.h"
#include "store/shard.h"
#include "support/sized_parts.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

const std::vector<SizedImage>& images() {
  static const std::vector<SizedImage> all = sized_images(23);
  return all;
}

TEST(SizedShard, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part.zst");
  const PartReport report = write_sized_part(path, images(), 5);
  EXPECT_EQ(report.sample_count, images().size());
  const std::unique_ptr<ChunkReader> part = open_part(path);
  EXPECT_EQ(part->spec().payload().kind(), SampleKind::sized_images);
  const ImageSizes& sizes = part->samples().sizes;
  ByteBuffer chunk, room;
  std::size_t sample = 0;
  for (std::size_t i = 0; i < part->chunks().size(); ++i) {
    EXPECT_EQ(part->chunks()[i].offset % kShardAlignment, 0u);
    EXPECT_TRUE(part->stored_raw(i)) << "frames are used where they are";
    part->fetch(i, chunk);
    for (Bytes left = chunk; !left.empty(); ++sample) {
      const SizedImage& image = images()[sample];
      const std::uint64_t frame_bytes = raw_frame_bytes(sizes.payload_bytes[sample]);
      const Bytes payload = raw_bytes_in(left.first(frame_bytes), sizes.payload_bytes[sample], 0,
                                         sizes.payload_bytes[sample], room);
      EXPECT_TRUE(std::ranges::equal(payload, image.payload));
      EXPECT_EQ(sizes.payload_xxh3[sample], xxh3(image.payload));
      EXPECT_EQ(sizes.heights[sample], image.height);
      EXPECT_EQ(sizes.widths[sample], image.width);
      EXPECT_EQ(static_cast<PayloadKind>(sizes.kinds[sample]), image.kind);
      EXPECT_EQ(sizes.orientations[sample], image.orientation);
      left = left.subspan(frame_bytes);
    }
  }
  EXPECT_EQ(sample, images().size());
}

TEST(SizedShard, IsAValidZstdStreamOfThePayloads) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part.zst"), out = folder.path("payloads");
  write_sized_part(path, images(), 5);
  if (std::system("zstd --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "zstd is not installed";
  ASSERT_EQ(std::system(("zstd -qt " + path + " && zstd -qdc " + path + " > " + out).c_str()), 0);
  ByteBuffer expected;
  for (const SizedImage& image : images())
    expected.insert(expected.end(), image.payload.begin(), image.payload.end());
  EXPECT_TRUE(read_file(out, 1 << 30) == expected);
}

/// A shard whose header and index get right hashes again after a change of the index.
std::string error_of_index(const std::function<void(PartContents&)>& change) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part.zst");
  write_sized_part(path, images(), 5);
  ByteBuffer bytes = read_file(path, 1 << 30);
  const auto number = [&](std::size_t at) { return load_little<std::uint64_t>(bytes.data() + at); };
  const std::size_t index_at = number(104) + kSkippableHeaderBytes, index_bytes = number(112);
  PartContents contents;
  contents.spec.samples.emplace<SizedSamples>();
  IndexCursor cursor(Bytes(bytes).subspan(index_at, index_bytes));
  contents.spec.payload().decode_index(cursor, {}, contents);
  change(contents);
  const ByteBuffer index =
      contents.spec.payload().encode_index(contents.spec, contents.chunks, contents.samples);
  EXPECT_EQ(index.size(), index_bytes);
  std::ranges::copy(index, bytes.begin() + static_cast<std::ptrdiff_t>(index_at));
  store_little(bytes.data() + 120, xxh3(index));
  store_little(bytes.data() + kShardAlignment - 8, xxh3(Bytes(bytes).first(kShardAlignment - 8)));
  std::ofstream(path, std::ios::binary) << as_text(bytes);
  try {
    static_cast<void>(open_part(path));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    return std::string(error.what()).substr(path.size() + 2);
  }
  return "";
}

TEST(SizedShard, RefusesSizesThatDoNotFit) {
  EXPECT_EQ(error_of_index([](PartContents&) {}), "");
  EXPECT_EQ(error_of_index([](PartContents& all) { all.samples.sizes.heights[3] = 0; }).substr(0, 17),
            "sample 3: 0 x 71 ");
  EXPECT_EQ(error_of_index([](PartContents& all) { all.samples.sizes.widths[4] = 1u << 21; }).substr(0, 10),
            "sample 4: ");
  EXPECT_EQ(error_of_index([](PartContents& all) {
              all.samples.sizes.widths[0] = 1u << 20;
              all.samples.sizes.heights[0] = 1u << 9;
            }),
            "sample 0: 512 x 1048576 pixels, expected at most 268435456 in all");
  EXPECT_EQ(error_of_index([](PartContents& all) { all.samples.sizes.kinds[0] = 5; }),
            "sample 0: kind 5, expected 1 (jpeg), 2 (raw), 3 (zstd) or 4 (photo)");
  EXPECT_EQ(error_of_index([](PartContents& all) { all.samples.sizes.orientations[0] = 9; }),
            "sample 0: orientation 9, expected 1 to 8");
  EXPECT_EQ(error_of_index([](PartContents& all) { all.samples.sizes.payload_bytes[0] = 0; }),
            "sample 0: no bytes");
  EXPECT_NE(error_of_index([](PartContents& all) { ++all.samples.sizes.payload_bytes[0]; }), "");
  EXPECT_NE(error_of_index([](PartContents& all) { ++all.chunks[0].sample_count; }), "");
  EXPECT_NE(error_of_index([](PartContents& all) { all.chunks[1].sample_count = 0; }), "");
  EXPECT_NE(error_of_index([](PartContents& all) { all.chunks[1].sample_count = UINT64_MAX; }), "");
  EXPECT_NE(error_of_index([](PartContents& all) { all.chunks[1].filtered = true; }), "");
  EXPECT_NE(error_of_index([](PartContents& all) { ++all.chunks[1].first_sample; }), "");
  EXPECT_NE(error_of_index([](PartContents& all) { all.chunks.back().stored_bytes += 4096; }), "");
}

TEST(SizedShard, NeedsASpecOfItsKind) {
  const TemporaryFolder folder;
  const auto error_of = [&](auto change) {
    PartSpec spec = sized_spec();
    change(spec);
    try {
      static_cast<void>(create_shard(folder.path("part.zst"), spec));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("created");
  };
  EXPECT_EQ(error_of([](PartSpec&) {}), "created");
  EXPECT_NE(error_of([](PartSpec& spec) { spec.images().sample.height = 5; }), "created");
  EXPECT_NE(error_of([](PartSpec& spec) { spec.images().sample.channels = 2; }), "created");
  EXPECT_NE(error_of([](PartSpec& spec) { spec.chunk_samples = 5; }), "created");
  EXPECT_NE(error_of([](PartSpec& spec) { spec.codec = "zstd"; }), "created");
}

}  // namespace
}  // namespace chunkhit
