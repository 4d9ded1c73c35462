#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "chunkhit/error.h"
#include "listing/sample_list.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

/// Two containers, "0123456789" and "abcdef", and a list of ranges of them.
struct SampleFileTest : testing::Test {
  SampleFileTest() {
    for (const std::string& path : {digits, letters}) list.containers.push_back(open_container(path));
  }
  void add(const std::string& name, const FileRange& range) {
    list.files.add(name);
    list.ranges.push_back(range);
  }
  /// Opens and reads a sample: its text, or in square brackets why it is a reject or an error.
  [[nodiscard]] std::string content(std::size_t index) const {
    try {
      const SampleFile sample = open_sample(root, list, index);
      if (sample.error) return '[' + sample.error.reason() + ']';
      ByteBuffer buffer;
      const std::string error = sample.read(buffer).reason();
      return error.empty() ? std::string(as_text(buffer)) : '[' + error + ']';
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data);
      return std::string("[error: ") + error.what() + ']';
    }
  }

  TemporaryFolder folder;
  std::string digits = folder.write("digits", "0123456789");
  std::string letters = folder.write("letters", "abcdef");
  std::string below = folder.write("root/a.jpg", "pixels");
  RootFolder root{folder.path("root")};
  SampleList list;
};

TEST_F(SampleFileTest, ReadsRangesOfItsContainers) {
  add("x", {2, 3, 0});
  add("y", {0, 6, 1});
  add("z", {9, 1, 0});
  EXPECT_EQ(content(0), "234");
  EXPECT_EQ(content(1), "abcdef");
  EXPECT_EQ(content(2), "9");
  EXPECT_EQ(open_sample(root, list, 1).bytes, 6u);
}

TEST_F(SampleFileTest, IsAFileBelowTheRootWhereThereAreNoRanges) {
  list.files.add("a.jpg");
  list.files.add("missing.jpg");
  EXPECT_EQ(content(0), "pixels");
  EXPECT_EQ(content(1), "[no such file]");
  EXPECT_EQ(stamp_sample(root, list, 0), root.stamp("a.jpg"));
}

TEST_F(SampleFileTest, RejectsAnEmptyRange) {
  add("x", {4, 0, 0});
  EXPECT_EQ(content(0), "[is empty]");
}

TEST_F(SampleFileTest, IsAnErrorWhereItsRangeIsNotInItsContainer) {
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  add("behind the end", {8, 3, 0});
  add("far behind it", {11, 0, 0});
  add("overflowing", {2, kHuge, 1});
  add("overflowing, too", {kHuge, 2, 1});
  add("in no container", {0, 1, 2});
  EXPECT_EQ(content(0), "[error: " + digits + ": has 10 bytes, but a sample of 3 bytes lies at offset 8]");
  for (std::size_t index = 1; index < 4; ++index)
    EXPECT_NE(content(index).find(" bytes lies at offset "), std::string::npos) << index;
  EXPECT_EQ(content(4), "[error: a sample lies in container 2 of 2]");
}

TEST_F(SampleFileTest, IsAnErrorInAContainerThatWasCut) {
  add("x", {6, 4, 0});
  fs::resize_file(digits, 7);
  EXPECT_EQ(content(0), "[error: " + digits + ": ends at byte 7, expected 3 more bytes]");
}

TEST_F(SampleFileTest, IsAnErrorInAContainerThatChanged) {
  add("x", {0, 2, 0});
  std::ofstream(digits, std::ios::app) << "more";
  EXPECT_NE(content(0).find("digits: changed while it was packed: it had 10 bytes and has 14"),
            std::string::npos)
      << content(0);
  add("y", {0, 2, 1});
  fs::last_write_time(letters, fs::last_write_time(letters) + std::chrono::seconds(1));
  EXPECT_NE(content(1).find("had 6 bytes and has 6, written at another time"), std::string::npos)
      << content(1);
}

TEST_F(SampleFileTest, StaysReadableWhereItsContainerHasLostItsName) {
  add("x", {6, 4, 0});
  fs::remove(digits);
  EXPECT_EQ(content(0), "6789");
}

TEST_F(SampleFileTest, IsStampedAsTheSourceOfATemporaryContainer) {
  const FileStamp source{1234, 5678};
  list.containers[0] = make_container(InputFile(digits), source);
  add("x", {0, 2, 0});
  EXPECT_EQ(content(0), "01");
  EXPECT_EQ(open_sample(root, list, 0).stamp, source);
  EXPECT_EQ(stamp_sample(root, list, 0), source);
}

}  // namespace
}  // namespace chunkhit
