#include "base/line_reader.h"

#include <gtest/gtest.h>

#include "chunkhit/error.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

using Texts = std::vector<std::string>;

Texts lines_of(const std::string& path, std::size_t most = 1 << 20) {
  LineReader lines(path, most);
  Texts all;
  for (std::string_view line; lines.next(line);) {
    all.emplace_back(line);
    EXPECT_EQ(lines.line_number(), all.size());
  }
  return all;
}

TEST(LineReader, TakesBothLineEndsAndNoneAtTheEnd) {
  const TemporaryFolder folder;
  EXPECT_EQ(lines_of(folder.write("a", "one\ntwo\r\n\n\r\nlast")), Texts({"one", "two", "", "", "last"}));
  EXPECT_EQ(lines_of(folder.write("a", "one\n")), Texts({"one"}));
  EXPECT_EQ(lines_of(folder.write("a", "")), Texts());
}

TEST(LineReader, LeavesOutAByteOrderMark) {
  const TemporaryFolder folder;
  EXPECT_EQ(lines_of(folder.write("a", "\xef\xbb\xbfone\n\xef\xbb\xbftwo")),
            Texts({"one", "\xef\xbb\xbftwo"}));
}

TEST(LineReader, GivesLinesLongerThanItsBuffer) {
  const TemporaryFolder folder;
  std::string text;
  Texts expected;
  for (int i = 0; i < 40; ++i) {
    expected.push_back(
        std::string(static_cast<std::size_t>(i) * 20'000 + 5, static_cast<char>('a' + i % 26)));
    text += expected.back() + (i % 2 == 0 ? "\n" : "\r\n");
  }
  EXPECT_EQ(lines_of(folder.write("a", text)), expected);
}

TEST(LineReader, RefusesALineThatNeverEnds) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "one\n" + std::string(2'000'000, 'x'));
  try {
    static_cast<void>(lines_of(path, 1'000'000));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), path + ":2: a line of more than 1.0 MB");
  }
}

}  // namespace
}  // namespace chunkhit
