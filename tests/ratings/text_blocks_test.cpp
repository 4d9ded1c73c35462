#include "ratings/text_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

using Texts = std::vector<std::string>;

Texts blocks_of(const std::string& path, TextQuoting quoting, std::size_t block_bytes) {
  TextStream stream(path);
  (void)stream.head();  // what was looked at is read all the same
  TextBlocks blocks(stream, quoting, block_bytes);
  Texts texts;
  for (ByteBuffer text; blocks.next(text);) texts.emplace_back(as_text(text));
  EXPECT_EQ(blocks.xxh3(), hash_file(path));
  EXPECT_EQ(blocks.byte_count(), std::filesystem::file_size(path));
  return texts;
}

std::string joined(const Texts& texts) {
  std::string all;
  for (const std::string& text : texts) all += text;
  return all;
}

TEST(TextBlocks, CutsAtLineEnds) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "1,2\n33,44\n555,666\n7");
  EXPECT_EQ(blocks_of(path, TextQuoting::none, 8), (Texts{"1,2\n", "33,44\n", "555,666\n7"}));
  EXPECT_EQ(blocks_of(path, TextQuoting::none, 1000), (Texts{"1,2\n33,44\n555,666\n7"}));
}

TEST(TextBlocks, NeverCutsInsideQuotes) {
  const TemporaryFolder folder;
  const std::string text = "\"a\nb\",1\n\"c\"\"\n\n\",2\nd,3\n";
  const std::string path = folder.write("a", text);
  for (std::size_t bytes = 1; bytes < text.size() + 2; ++bytes) {
    const Texts texts = blocks_of(path, TextQuoting::double_quote, bytes);
    EXPECT_EQ(joined(texts), text);
    for (const std::string& block : texts)
      EXPECT_EQ(std::count(block.begin(), block.end(), '"') % 2, 0) << block;
  }
}

TEST(TextBlocks, DropsAByteOrderMark) {
  const TemporaryFolder folder;
  EXPECT_EQ(joined(blocks_of(folder.write("a",
                                          "\xef\xbb\xbf"
                                          "1,2\n3,4\n"),
                             TextQuoting::none, 1)),
            "1,2\n3,4\n");
}

TEST(TextBlocks, EndsWithALineThatIsTooLong) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "1,2\n" + std::string(3 * kMaxLineBytes, 'x'));
  TextStream stream(path);
  TextBlocks blocks(stream, TextQuoting::none, 1000);
  ByteBuffer text;
  ASSERT_TRUE(blocks.next(text));
  EXPECT_EQ(as_text(text), "1,2\n");
  ASSERT_TRUE(blocks.next(text));
  EXPECT_GT(text.size(), kMaxLineBytes);
  EXPECT_LT(text.size(), 2 * kMaxLineBytes);
  EXPECT_FALSE(blocks.next(text));
}

TEST(TextBlocks, GivesNothingOfAnEmptyFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(blocks_of(folder.write("a", ""), TextQuoting::none, 10), Texts{});
}

}  // namespace
}  // namespace chunkhit
