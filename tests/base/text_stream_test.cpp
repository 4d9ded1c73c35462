#include "base/text_stream.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "chunkhit/error.h"
#include "listing/sample_list.h"
#include "support/depth.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

using namespace std::string_view_literals;

// Made by `printf 'file,label\na.jpg,1\n' | gzip -n9` and `zstd -19`: another program's bytes.
constexpr std::string_view kPlain = "file,label\na.jpg,1\n";
constexpr std::string_view kGzip =
    "\037\213\010\000\000\000\000\000\002\003\113\313\314\111\325\311\111\114\112\315\341\112\324\313\052\110\327\061\344\002\000\236\173\107\367\023\000\000\000"sv;
constexpr std::string_view kZstd =
    "\050\265\057\375\004\150\231\000\000\146\151\154\145\054\154\141\142\145\154\012\141\056\152\160\147\054\061\012\311\216\327\145"sv;

std::string text_of(const std::string& path) {
  TextStream stream(path);
  std::string text;
  ByteBuffer piece(5);
  for (std::size_t count = 1; count > 0;) {
    count = stream.read(piece);
    text += as_text(Bytes(piece).first(count));
  }
  return text;
}

std::string error_of(const std::string& path) {
  try {
    (void)text_of(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    return error.what();
  }
  return "none";
}

TEST(TextStream, TellsCompressionByContent) {
  const TemporaryFolder folder;
  EXPECT_EQ(text_of(folder.write("plain.gz", kPlain)), kPlain);
  EXPECT_EQ(text_of(folder.write("gzip.csv", kGzip)), kPlain);
  EXPECT_EQ(text_of(folder.write("zstd.txt", kZstd)), kPlain);
}

TEST(TextStream, ReadsMembersAndFramesOneAfterTheOther) {
  const TemporaryFolder folder;
  const std::string twice = std::string(kPlain) + std::string(kPlain);
  EXPECT_EQ(text_of(folder.write("a", std::string(kGzip) + std::string(kGzip))), twice);
  EXPECT_EQ(text_of(folder.write("b", std::string(kZstd) + std::string(kZstd))), twice);
}

TEST(TextStream, GivesLatin1AsUtf8InPiecesOfAnySize) {
  const TemporaryFolder folder;
  const std::string path = folder.write("latin1",
                                        "\xe9\xff"
                                        "ab\xa0\xc0");
  for (std::size_t bytes = 1; bytes < 8; ++bytes) {
    TextStream stream(path, nullptr, true);
    std::string text;
    ByteBuffer piece(bytes);
    while (const std::size_t count = stream.read(piece)) text += as_text(Bytes(piece).first(count));
    EXPECT_EQ(text, "\u00e9\u00ffab\u00a0\u00c0") << bytes;
  }
}

TEST(TextStream, ReadsAnEmptyFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(text_of(folder.write("empty", "")), "");
}

TEST(TextStream, ReadsAFifo) {
  const TemporaryFolder folder;
  const std::string fifo = folder.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(fifo) << kGzip; });
  EXPECT_EQ(text_of(fifo), kPlain);
  writer.join();
}

TEST(TextStream, FindsATruncatedFile) {
  const TemporaryFolder folder;
  for (const auto& whole : {kGzip, kZstd})
    for (std::size_t bytes = 12; bytes < whole.size(); ++bytes)
      EXPECT_NE(error_of(folder.write("cut", whole.substr(0, bytes))), "none") << bytes;
}

TEST(TextStream, FindsAFlippedByte) {
  const TemporaryFolder folder;
  std::string zstd(kZstd);
  zstd[zstd.size() - 6] ^= 1;
  EXPECT_NE(error_of(folder.write("flipped", zstd)), "none");
}

// Packed 92 of 300 times before: libarchive compares neither CRC nor length.
TEST(TextStream, FindsEveryFlippedBitOfGzipThatChangesTheText) {
  const TemporaryFolder folder;
  const std::string twice = std::string(kGzip) + std::string(kGzip);
  // A file that does not begin with gzip's two bytes is text.
  for (std::size_t bit = 16; bit < twice.size() * 8; bit += sweep_stride(3)) {
    std::string flipped = twice;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    const std::string path = folder.write("flipped", flipped);
    const std::string error = error_of(path);
    if (error == "none") {
      EXPECT_EQ(text_of(path), std::string(kPlain) + std::string(kPlain)) << bit;
    }
  }
}

TEST(TextStream, FindsASecondGzipMemberThatIsCutOrBroken) {
  const TemporaryFolder folder;
  const std::string whole(kGzip);
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes)
    EXPECT_EQ(error_of(folder.write("cut", whole + whole.substr(0, bytes))),
              folder.path("cut") +
                  ": cannot be read: gzip member 2: is truncated: the file ends inside it; copy or download "
                  "it again");
  EXPECT_EQ(error_of(folder.write("broken", whole + "x" + whole.substr(1))),
            folder.path("broken") +
                ": cannot be read: gzip member 1: is followed by bytes that begin no other member");
  EXPECT_EQ(text_of(folder.write("padded", whole + std::string(512, '\0'))), kPlain);
  EXPECT_NE(error_of(folder.write("hidden", whole + std::string(512, '\0') + whole)), "none");
}

TEST(TextStream, NamesWhatIsWrongWithGzip) {
  const TemporaryFolder folder;
  const std::string whole(kGzip);
  const auto damaged = [&](std::size_t at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    return error_of(folder.write("d", bytes));
  };
  const std::string begin = folder.path("d") + ": cannot be read: gzip member 1: is damaged: ";
  EXPECT_EQ(damaged(whole.size() - 8), begin + "incorrect data check");
  EXPECT_EQ(damaged(whole.size() - 4), begin + "incorrect length check");
  EXPECT_EQ(damaged(2), begin + "unknown compression method");
}

// Made by gzip of a header with all optional fields: an extra field, a name, a comment, a CRC-16.
TEST(TextStream, ReadsGzipHeadersWithEveryField) {
  const TemporaryFolder folder;
  std::string header("\x1f\x8b\x08\x1e\0\0\0\0\0\x03\x03\0abcname\0comment\0"sv);
  const std::string body = std::string(kGzip).substr(10);
  const std::string crc("\x79\x71"sv);
  EXPECT_EQ(text_of(folder.write("a", header + crc + body)), kPlain);
  EXPECT_NE(error_of(folder.write("a", header + "xx" + body)).find("header crc mismatch"), std::string::npos);
  header[10] = '\xff';  // an extra field that reaches behind the file's end
  EXPECT_NE(error_of(folder.write("a", header + crc + body)), "none");
}

TEST(TextStream, NamesWhatCannotBeOpened) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of(folder.path("none")),
            folder.path("none") + ": cannot be opened: No such file or directory");
  EXPECT_EQ(error_of(folder.path()), folder.path() + ": is a folder, expected a file");
}

TEST(TextStream, GivesAListOneHashHoweverItIsCompressed) {
  const TemporaryFolder folder;
  const std::uint64_t hash = list_label_csv(folder.write("a.csv", kPlain), {}).xxh3;
  EXPECT_EQ(list_label_csv(folder.write("a.csv.gz", kGzip), {}).xxh3, hash);
  EXPECT_EQ(list_label_csv(folder.write("a.csv.zst", kZstd), {}).xxh3, hash);
}

}  // namespace
}  // namespace chunkhit
