#include <gtest/gtest.h>
#include <hdf5.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "chunkhit/error.h"
#include "chunkhit/verify.h"
#include "store/hdf5/image_part.h"
#include "store/hdf5/index.h"
#include "store/part_index.h"
#include "support/sized_parts.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

const std::vector<SizedImage>& images() {
  static const std::vector<SizedImage> all = sized_images(23);
  return all;
}

std::string error_of(const std::string& path, const Hdf5Names& names = {}) {
  try {
    static_cast<void>(open_part(path, names));
  } catch (const Error& error) {
    return std::string(error.what()).substr(path.size() + 2);
  }
  return "";
}

struct WrittenPart {
  TemporaryFolder folder;
  std::string path = folder.path("part.h5");
  PartReport report = write_sized_part(path, images(), 5);
};

TEST(SizedHdf5, GivesBackWhatWasWritten) {
  const WrittenPart written;
  EXPECT_EQ(written.report.sample_count, images().size());
  const std::unique_ptr<ChunkReader> part = open_part(written.path);
  const ImageSizes& sizes = part->samples().sizes;
  ByteBuffer chunk;
  std::size_t sample = 0;
  for (std::size_t i = 0; i < part->chunks().size(); ++i) {
    EXPECT_TRUE(part->stored_raw(i)) << "payloads are used where they are";
    part->fetch(i, chunk);
    for (Bytes left = chunk; !left.empty(); ++sample) {
      const SizedImage& image = images()[sample];
      EXPECT_TRUE(std::ranges::equal(left.first(sizes.stored_bytes(sample)), image.payload));
      EXPECT_EQ(sizes.payload_xxh3[sample], xxh3(image.payload));
      EXPECT_EQ(sizes.heights[sample], image.height);
      EXPECT_EQ(sizes.widths[sample], image.width);
      EXPECT_EQ(static_cast<PayloadKind>(sizes.kinds[sample]), image.kind);
      EXPECT_EQ(sizes.orientations[sample], image.orientation);
      left = left.subspan(image.payload.size());
    }
  }
  EXPECT_EQ(sample, images().size());
}

TEST(SizedHdf5, MayBeEmpty) {
  const TemporaryFolder folder;
  write_sized_part(folder.path("part.h5"), {}, 5);
  EXPECT_TRUE(open_part(folder.path("part.h5"))->chunks().empty());
  EXPECT_TRUE(verify_pack(folder.path("part.h5"), {}).problems.empty());
}

/// Opens a part whose index and trailer get right hashes again after a change of the index.
std::string error_of_index(const std::function<void(PartContents&)>& change) {
  const WrittenPart part;
  ByteBuffer bytes = read_file(part.path, 1 << 30);
  std::uint8_t* const trailer = bytes.data() + bytes.size() - kHdf5TrailerBytes;
  const std::size_t index_at = load_little<std::uint64_t>(trailer + 24) + sizeof(PartSpecBytes);
  const std::size_t index_bytes = load_little<std::uint64_t>(trailer + 32) - sizeof(PartSpecBytes);
  PartContents contents;
  contents.spec.samples.emplace<SizedSamples>();
  contents.spec.payload().decode_index(Bytes(bytes).subspan(index_at, index_bytes), {}, contents);
  change(contents);
  const ByteBuffer index =
      contents.spec.payload().encode_index(contents.spec, contents.chunks, contents.samples);
  EXPECT_EQ(index.size(), index_bytes);
  std::ranges::copy(index, bytes.begin() + static_cast<std::ptrdiff_t>(index_at));
  store_little(trailer + 40, xxh3(Bytes(bytes).subspan(index_at - sizeof(PartSpecBytes),
                                                       index_bytes + sizeof(PartSpecBytes))));
  store_little(trailer + 56, xxh3(Bytes(trailer, 56)));
  std::ofstream(part.path, std::ios::binary) << as_text(bytes);
  return error_of(part.path);
}

TEST(SizedHdf5, RefusesSizesThatDoNotFit) {
  EXPECT_EQ(error_of_index([](PartContents&) {}), "");
  for (const std::uint8_t kind : {0, 3, 4, 5})
    EXPECT_EQ(error_of_index([&](PartContents& all) { all.samples.sizes.kinds[1] = kind; }),
              "sample 1: kind " + std::to_string(kind) + ", expected 1 (jpeg) or 2 (raw)");
  EXPECT_EQ(error_of_index([](PartContents& all) { all.samples.sizes.heights[3] = 0; }).substr(0, 17),
            "sample 3: 0 x 71 ");
  EXPECT_EQ(error_of_index([](PartContents& all) { all.samples.sizes.orientations[0] = 0; }),
            "sample 0: orientation 0, expected 1 to 8");
  EXPECT_NE(error_of_index([](PartContents& all) { ++all.samples.sizes.payload_bytes[0]; }), "");
  EXPECT_NE(error_of_index([](PartContents& all) { all.samples.sizes.payload_bytes[2] = 0; }), "");
  EXPECT_NE(error_of_index([](PartContents& all) { ++all.chunks[0].sample_count; }), "");
  EXPECT_NE(error_of_index([](PartContents& all) { all.chunks[1].filtered = true; }), "");
  EXPECT_NE(error_of_index([](PartContents& all) { --all.chunks[1].offset; }), "");
  EXPECT_NE(error_of_index([](PartContents& all) { all.chunks[1].offset = UINT64_MAX; }), "");
  EXPECT_NE(error_of_index([](PartContents& all) { ++all.chunks.back().stored_bytes; }), "");
}

/// Damage anywhere is found: in payloads, in what the HDF5 library reads, in index and trailer.
TEST(SizedHdf5, WithAFlippedByteFailsVerification) {
  const WrittenPart part;
  const ByteBuffer whole = read_file(part.path, 1 << 30);
  ASSERT_TRUE(verify_pack(part.path, {}).problems.empty());
  for (std::size_t at = 9; at < whole.size(); at += whole.size() / 37) {
    ByteBuffer bytes = whole;
    bytes[at] ^= 16;
    std::ofstream(part.path, std::ios::binary) << as_text(bytes);
    EXPECT_FALSE(verify_pack(part.path, {}).problems.empty()) << "byte " << at;
  }
}

TEST(SizedHdf5, IsRefusedOnceAnotherProgramChangedIt) {
  const WrittenPart part;
  H5Fclose(H5Fopen(part.path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
  EXPECT_EQ(error_of(part.path),
            "images of their own sizes without the index behind their HDF5 end of file: another program "
            "changed it, or it was cut off");
}

TEST(SizedHdf5, HasItsOwnLabelsOnly) {
  const WrittenPart part;
  EXPECT_EQ(error_of(part.path, {.labels = "labels"}), "");
  EXPECT_EQ(error_of(part.path, {.labels = "rows"}),
            "images of their own sizes, or with masks or views, have their own labels only");
}

TEST(SizedHdf5, NeedsASpecOfItsKind) {
  const TemporaryFolder folder;
  PartSpec spec = sized_spec();
  spec.codec = "deflate";
  EXPECT_THROW(static_cast<void>(create_hdf5_part(folder.path("part.h5"), spec)), Error);
  spec = sized_spec();
  spec.images().sample.height = 5;
  EXPECT_THROW(static_cast<void>(create_hdf5_part(folder.path("part.h5"), spec)), Error);
}

}  // namespace
}  // namespace chunkhit
