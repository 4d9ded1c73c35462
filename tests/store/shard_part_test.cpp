#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <utility>

#include "base/hash.h"
#include "chunkhit/error.h"
#include "store/part_index.h"
#include "store/shard.h"
#include "support/known_parts.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

constexpr std::size_t kHeaderHashAt = 4088;

/// A shard whose bytes a test changes; header and index then get right hashes again, so that the checks
/// behind the hashes are reached.
struct ForgedShard {
  TemporaryFolder folder;
  std::string path = folder.path("part.zst");
  std::string bytes;

  ForgedShard() {
    write_known_part(container("shard"), path, known_spec({8, 7, 3, Layout::nhwc}, "photo"), 10);
    bytes = std::string(as_text(read_file(path, 1 << 30)));
  }
  [[nodiscard]] std::uint64_t number(std::size_t at) const {
    return load_little<std::uint64_t>(reinterpret_cast<const std::uint8_t*>(bytes.data()) + at);
  }
  void set(std::size_t at, std::uint64_t value) {
    store_little(reinterpret_cast<std::uint8_t*>(bytes.data()) + at, value);
  }
  void set_in_index(std::size_t at, std::uint64_t value) {
    const std::size_t index = number(104) + 8;
    set(index + at, value);
    set(120, xxh3(as_bytes(bytes).subspan(index, number(112))));
  }
  std::string error() {
    set(kHeaderHashAt, xxh3(as_bytes(bytes).first(kHeaderHashAt)));
    std::ofstream(path, std::ios::binary) << bytes;
    try {
      static_cast<void>(open_shard(path));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data);
      return std::string(error.what()).substr(path.size() + 2);
    }
    return "";
  }
};

TEST(Shard, OpensWhenNothingIsForged) {
  ForgedShard shard;
  shard.set_in_index(0, shard.number(96));
  EXPECT_EQ(shard.error(), "");
}

TEST(Shard, BeginsEveryChunkAtAPage) {
  ForgedShard shard;
  const std::unique_ptr<ChunkReader> part = open_shard(shard.path);
  EXPECT_EQ(part->chunks()[0].offset, 4096u);
  for (const StoredChunk& chunk : part->chunks()) EXPECT_EQ(chunk.offset % 4096, 0u);
}

TEST(Shard, StoresNoChunkAsItIs) {
  const TemporaryFolder folder;
  const std::string path = folder.path("part.zst");
  write_known_part(container("shard"), path, known_spec({20, 17, 3, Layout::nhwc}, "none"), 10);
  EXPECT_FALSE(open_part(path)->stored_raw(0)) << "a frame's header stands before every block";
}

TEST(Shard, PadsWithRoomForAFrame) {
  for (std::uint64_t end = 4096; end < 3 * 4096; ++end) {
    const std::uint64_t padding = shard_padding({}, end);
    ASSERT_EQ((end + padding) % 4096, 0u) << end;
    ASSERT_TRUE(padding == 0 || padding >= 8) << end;
    ASSERT_LT(padding, 4096u + 8) << end;
  }
}

TEST(Shard, RefusesAnotherVersionByNumber) {
  ForgedShard shard;
  shard.bytes[24] = 3;
  EXPECT_EQ(shard.error(), "shard header: version 3, this reader knows versions 1 and 2");
  shard.bytes[24] = 2;
  EXPECT_EQ(shard.error(), "shard header: version 2 of a part that has version 1");
}

TEST(Shard, RefusesAnotherKind) {
  ForgedShard shard;
  shard.bytes[28] = 4;
  EXPECT_EQ(shard.error(),
            "shard header: kind 4, expected 1 (images), 2 (matrices) or 3 (images of their own sizes)");
}

TEST(Shard, RefusesFieldsThatItDoesNotKnow) {
  for (const std::uint32_t fields : {4u, 9u << 16, 2u << 16 | 4, ~0u}) {
    ForgedShard shard;
    store_little(reinterpret_cast<std::uint8_t*>(shard.bytes.data()) + 60, fields);
    EXPECT_EQ(shard.error(), "fields " + std::to_string(fields) + ", which this reader does not know");
  }
}

TEST(Shard, FieldsComeBackByTheirNames) {
  const TemporaryFolder folder;
  PartSpec spec = known_spec({20, 17, 3, Layout::nhwc}, "zstd");
  std::vector<SampleField>& fields = spec.images().sample.pairs;
  fields = {{"mask", FieldRole::mask}, {"depth", FieldRole::view}, {"parts", FieldRole::mask}};
  write_known_part(container("shard"), folder.path("part.zst"), spec, 10);
  EXPECT_EQ(open_shard(folder.path("part.zst"))->spec().images().sample, spec.images().sample);
  for (const char* bad : {"mask", "rows", "No", ""}) {
    fields[2].name = bad;
    EXPECT_THROW(write_known_part(container("shard"), folder.path("bad.zst"), spec, 10), Error)
        << bad;  // reads it back
  }
}

TEST(Shard, RefusesAHeaderWithoutItsHash) {
  ForgedShard shard;
  shard.bytes[700] = 1;
  std::ofstream(shard.path, std::ios::binary) << shard.bytes;
  EXPECT_THROW(static_cast<void>(open_shard(shard.path)), Error);
}

TEST(Shard, ChannelsOfMasksAndViewsThatWrapTo0DividedByZero) {
  constexpr std::uint32_t kMask = 2, kView = 3;
  for (const auto& [channels, fields] : {std::pair{~std::uint32_t{0}, kMask}, std::pair{1u << 31, kView}}) {
    ForgedShard shard;
    auto* const header = reinterpret_cast<std::uint8_t*>(shard.bytes.data());
    store_little(header + 56, channels);
    store_little(header + 60, fields);
    EXPECT_NE(shard.error().find("is larger than a chunk may be"), std::string::npos) << channels;
  }
}

TEST(Shard, RefusesNumbersThatDoNotFit) {
  constexpr std::uint64_t kHuge = 1ull << 62;
  ForgedShard shard;
  const std::string whole = shard.bytes;
  // Offsets in the header, then in the index, by schemas/shard.md.
  for (const std::size_t at : {40, 48, 52, 56, 64, 80, 88, 96, 104, 112, 120, 128})
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{12345}, kHuge, ~std::uint64_t{0}}) {
      shard.bytes = whole;
      const std::uint64_t before = shard.number(at);
      shard.set(at, value);
      if (at == 40) shard.set(44, 77);  // the part index may be any, the layout not
      if (value == before) continue;
      EXPECT_NE(shard.error(), "") << at << " = " << value;
    }
  for (std::size_t at = 0; at < 72 + 56 * 3; at += 8) {
    const bool is_chunk_hash = at >= 72 && (at - 72) % 56 == 40;
    for (const std::uint64_t value : {std::uint64_t{12345}, kHuge, kHuge / 7, ~std::uint64_t{0}}) {
      shard.bytes = whole;
      shard.set_in_index(at, value);
      EXPECT_EQ(shard.error() == "", is_chunk_hash) << at << " = " << value;
    }
  }
}

TEST(Shard, RefusesAClassThatIsNone) {
  ForgedShard shard;
  shard.set_in_index(72 + 56 * 3, 3);
  EXPECT_EQ(shard.error(), "a class id is none of the 3 classes");
}

TEST(Shard, RefusesASeekTableThatDoesNotFit) {
  ForgedShard shard;
  shard.bytes[shard.bytes.size() - 20] ^= 1;
  EXPECT_EQ(shard.error(), "the seek table does not fit the index");
}

TEST(Shard, IsWrittenWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const PartSpec spec = known_spec({8, 7, 3, Layout::nhwc}, "photo");
  const std::unique_ptr<ChunkWriter> writer = create_shard(folder.path("part.zst"), spec);
  append_known_chunk(*writer, container("shard"), spec, 0, 4);
  // Fewer names than samples: such a part could not be opened.
  EXPECT_THROW(static_cast<void>(writer->finish(known_part_samples(spec, 3))), Error);
  EXPECT_FALSE(std::filesystem::exists(folder.path("part.zst")));
}

}  // namespace
}  // namespace chunkhit
