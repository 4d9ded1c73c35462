#include "pack/images/sample_decoder.h"

#include <gtest/gtest.h>

#include <string>

#include "chunkhit/error.h"
#include "jpeg_writer.h"
#include "listing/sample_list.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

std::string jpeg(std::uint64_t seed) {
  const auto bytes = write_jpeg(make_image(40, 30, 3, seed), {});
  return {bytes.begin(), bytes.end()};
}

/// The same two JPEG files below the root, and as ranges of one container beside it.
struct SampleDecoderTest : testing::Test {
  SampleDecoderTest() {
    for (const std::string& bytes : {first, second}) {
      const std::string name = std::to_string(files.size()) + ".jpg";
      folder.write("root/" + name, bytes);
      files.files.add(name);
      ranges.files.add("box/" + name);
    }
    const std::string box = folder.write("box", "head" + first + "between" + second + "tail");
    ranges.containers.push_back(open_container(box));
    ranges.ranges = {{4, first.size(), 0}, {11 + first.size(), second.size(), 0}};
  }
  [[nodiscard]] ByteBuffer sample(const SampleList& list, std::size_t index) {
    ByteBuffer pixels(kShape.byte_count());
    SampleDecoder(context).make(list, index, pixels.data());
    return pixels;
  }

  static constexpr SampleShape kShape{30, 40, 3, Layout::nhwc};
  std::string first = jpeg(1);
  std::string second = jpeg(2);
  TemporaryFolder folder;
  std::string path = folder.make_folder("root");
  RootFolder root{path};
  PackImagesSpec spec;
  DecoderContext context{spec, root, kShape, "0.jpg", MemoryBudget(64 << 20), 16 << 20};
  SampleList files;
  SampleList ranges;
};

TEST_F(SampleDecoderTest, MakesEqualSamplesOfFilesAndOfRanges) {
  for (const std::size_t index : {0, 1}) EXPECT_EQ(sample(ranges, index), sample(files, index)) << index;
  EXPECT_NE(sample(ranges, 0), sample(ranges, 1));
}

TEST_F(SampleDecoderTest, RejectsARangeThatHoldsNoImage) {
  ranges.ranges[0] = {0, 4, 0};
  EXPECT_THROW((void)sample(ranges, 0), ImageError);
}

TEST_F(SampleDecoderTest, RejectsARangeOverTheLimitOfBytes) {
  spec.max_decode_bytes = first.size() - 1;
  try {
    (void)sample(ranges, 0);
    FAIL() << "no reject";
  } catch (const ImageError& error) {
    EXPECT_NE(error.reason().find("over the limit of"), std::string::npos) << error.reason();
  }
}

TEST_F(SampleDecoderTest, SaysOfWhatKindARejectIs) {
  const auto kind_of = [&](const std::string& bytes) {
    folder.write("root/0.jpg", bytes);
    try {
      static_cast<void>(sample(files, 0));
    } catch (const ImageError& error) {
      return error.kind();
    }
    return RejectKind::other;
  };
  std::string deep = first;
  deep[deep.find("\xff\xc0") + 4] = 12;          // bits a sample
  EXPECT_EQ(kind_of(first), RejectKind::other);  // none
  EXPECT_EQ(kind_of(deep), RejectKind::unsupported);
  EXPECT_EQ(kind_of(first.substr(0, first.size() / 2)), RejectKind::damaged);
  EXPECT_EQ(kind_of(""), RejectKind::empty);
  EXPECT_EQ(kind_of("words"), RejectKind::unknown_type);
  std::filesystem::remove(folder.path("root/0.jpg"));
  EXPECT_THROW(static_cast<void>(sample(files, 0)), ImageError);
  spec.max_decode_bytes = 1;
  EXPECT_EQ(kind_of(first), RejectKind::too_large);
}

TEST_F(SampleDecoderTest, EndsTheRunWhereAContainerWasCut) {
  std::filesystem::resize_file(folder.path("box"), first.size());
  try {
    (void)sample(ranges, 0);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    EXPECT_NE(std::string(error.what()).find("box: ends at byte"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace chunkhit
