#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "base/hash.h"
#include "chunkhit/error.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

std::set<std::string> names(const TemporaryFolder& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    names.insert(entry.path().filename().string());
  return names;
}

std::string content(const std::string& path) { return std::string(as_text(read_file(path, 1 << 20))); }

/// The message and code of what `run` throws.
template <class Run>
std::pair<std::string, ErrorCode> error_of(const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    return {error.what(), error.code()};
  }
  return {"no error", ErrorCode::usage};
}

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(FileDescriptor, ClosesWhatItOwnsOnce) {
  const int raw = ::open("/dev/null", O_RDONLY);
  {
    FileDescriptor first(raw);
    FileDescriptor second(std::move(first));
    EXPECT_FALSE(first.is_open());  // NOLINT: what is left is what is asked
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
  const int kept = FileDescriptor(::open("/dev/null", O_RDONLY)).release();
  EXPECT_TRUE(is_open(kept));
  ::close(kept);
}

TEST(FolderEntries, EndWhereAFolderCannotBeListedAnyFurther) {
  const TemporaryFolder folder;
  static_cast<void>(folder.write("data", ""));
  for (const auto& entry : FolderEntries(folder.path())) EXPECT_EQ(entry.path().filename(), "data");
  for (const auto& entry : FolderEntries(folder.path() + "/none")) FAIL() << entry.path();
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : FolderEntries("/proc/" + std::to_string(child) + "/fd")) {
    if (count++ > 0) continue;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  EXPECT_GT(count, 0u);
}

TEST(InputFile, ReadsAtAnyOffset) {
  const TemporaryFolder folder;
  const InputFile file(folder.write("data", "0123456789"));
  EXPECT_EQ(file.byte_count(), 10u);
  std::uint8_t bytes[4];
  file.read_at(3, bytes);
  EXPECT_EQ(as_text(bytes), "3456");
  file.read_at(6, bytes);
  EXPECT_EQ(as_text(bytes), "6789");
  file.read_at(10, MutableBytes());
}

TEST(InputFile, SaysWhereAFileEndsTooEarly) {
  const TemporaryFolder folder;
  const InputFile file(folder.write("data", "0123456789"));
  std::uint8_t bytes[4];
  const auto [message, code] = error_of([&] { file.read_at(8, bytes); });
  EXPECT_EQ(code, ErrorCode::bad_data);
  EXPECT_EQ(message, folder.path("data") + ": ends at byte 10, expected 2 more bytes");
}

TEST(InputFile, TakesRegularFilesOnly) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("fifo").c_str(), 0600), 0);
  for (const std::string& path : {folder.path("fifo"), folder.path(), std::string("/dev/zero")}) {
    const auto [message, code] = error_of([&] { InputFile{path}; });
    EXPECT_EQ(code, ErrorCode::bad_data);
    EXPECT_EQ(message, path + ": not a regular file");
  }
  const auto [message, code] = error_of([&] { InputFile{folder.path("none")}; });
  EXPECT_EQ(code, ErrorCode::bad_data);
  EXPECT_NE(message.find("none: No such file"), std::string::npos) << message;
}

TEST(ReadFile, RefusesALargerFileBeforeItReads) {
  const TemporaryFolder folder;
  const std::string path = folder.write("data", "0123456789");
  EXPECT_EQ(as_text(read_file(path, 10)), "0123456789");
  const auto [message, code] = error_of([&] { static_cast<void>(read_file(path, 9)); });
  EXPECT_EQ(code, ErrorCode::bad_data);
  EXPECT_EQ(message, path + ": has 10 bytes, expected at most 9");
}

TEST(HashFile, EqualsTheHashOfItsBytes) {
  const TemporaryFolder folder;
  for (const std::size_t size : {0u, 1u, (1u << 20) - 1, 1u << 20, (5u << 19) + 3}) {
    std::string bytes(size, '\0');
    for (std::size_t at = 0; at < size; ++at) bytes[at] = static_cast<char>(at % 253);
    EXPECT_EQ(hash_file(folder.write("data", bytes)), xxh3(as_bytes(bytes))) << size;
  }
}

TEST(PendingFile, IsInvisibleUntilItIsPublished) {
  const TemporaryFolder folder;
  PendingFile file(folder.path("part"));
  EXPECT_TRUE(file.aside_path().starts_with(folder.path(".part."))) << file.aside_path();
  file.append(as_bytes("who"));
  file.append(as_bytes("le"));
  file.write_at(0, as_bytes("W"));
  EXPECT_EQ(file.byte_count(), 5u);
  EXPECT_FALSE(names(folder).contains("part"));
  file.publish();
  EXPECT_EQ(names(folder), std::set<std::string>{"part"});
  EXPECT_EQ(content(folder.path("part")), "Whole");
}

TEST(PendingFile, LeavesNothingBehindWhenItIsGivenUp) {
  const TemporaryFolder folder;
  folder.write("part", "earlier");
  {
    PendingFile file(folder.path("part"));
    file.append(as_bytes("never finished"));
  }
  EXPECT_EQ(names(folder), std::set<std::string>{"part"});
  EXPECT_EQ(content(folder.path("part")), "earlier");
}

TEST(PendingFile, ReplacesAnEarlierFileInOneStep) {
  const TemporaryFolder folder;
  const FileDescriptor earlier(::open(folder.write("part", "earlier").c_str(), O_RDONLY));
  publish_file(folder.path("part"), "later");
  EXPECT_EQ(content(folder.path("part")), "later");
  char bytes[8] = {};
  ASSERT_EQ(::pread(earlier.get(), bytes, sizeof bytes, 0), 7);  // whoever had it open still has it whole
  EXPECT_STREQ(bytes, "earlier");
}

TEST(PendingFile, WritesWhatAnotherRunWritesToo) {
  const TemporaryFolder folder;
  PendingFile one(folder.path("part"));
  PendingFile other(folder.path("part"));
  one.append(as_bytes("equal"));
  other.append(as_bytes("eq"));
  one.publish();
  EXPECT_EQ(content(folder.path("part")), "equal");
  other.append(as_bytes("ual"));
  other.publish();
  EXPECT_EQ(content(folder.path("part")), "equal");
  EXPECT_EQ(names(folder), std::set<std::string>{"part"});
}

TEST(PendingFile, DoesNotWriteThroughAPlantedLink) {
  const TemporaryFolder folder;
  const std::string target = folder.write("target", "precious");
  std::filesystem::create_hard_link(target, folder.path(".part.tmp"));
  publish_file(folder.path("part"), "new");
  EXPECT_EQ(content(target), "precious");
}

TEST(PendingFile, TakesThePlaceOfNoDevice) {
  const TemporaryFolder folder;
  const std::string path = folder.path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(PendingFile{path}, Error);
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  EXPECT_EQ(names(folder), std::set<std::string>{"pipe"});
}

TEST(PendingFile, MakesTheFolderAgainThatAnotherRunTookAway) {
  const TemporaryFolder folder;
  publish_file(folder.path("none/part"), "whole");
  EXPECT_EQ(content(folder.path("none/part")), "whole");
}

TEST(PendingFile, IsTriedAgainWhereItsAsideFileIsGone) {
  const TemporaryFolder folder;
  PendingFile file(folder.path("part"));
  std::filesystem::remove(file.aside_path());
  const auto [message, code] = error_of([&] { file.publish(); });
  EXPECT_EQ(code, ErrorCode::try_again) << message;
}

TEST(PendingFile, SaysWhatCannotBeWritten) {
  const TemporaryFolder folder;
  folder.write("none", "a file");
  const auto [message, code] = error_of([&] { PendingFile{folder.path("none/part")}; });
  EXPECT_EQ(code, ErrorCode::cannot_write);
  EXPECT_NE(message.find(": cannot create: Not a directory"), std::string::npos) << message;

  PendingFile file(folder.path("part"));
  std::filesystem::create_directory(folder.path("part"));
  const auto [blocked, blocked_code] = error_of([&] { file.publish(); });
  EXPECT_EQ(blocked_code, ErrorCode::cannot_write);
  EXPECT_NE(blocked.find("part: cannot rename into place"), std::string::npos) << blocked;
}

TEST(WriteError, NamesTheFreeSpaceOfAFullDisk) {
  const auto [full, code] = error_of([] { throw_write_error("/tmp/x", "cannot write", ENOSPC); });
  EXPECT_EQ(code, ErrorCode::cannot_write);
  EXPECT_NE(full.find("/tmp/x: cannot write: No space left on device ("), std::string::npos) << full;
  EXPECT_NE(full.find("inodes are free)"), std::string::npos) << full;
  EXPECT_EQ(error_of([] { throw_write_error("/tmp/x", "cannot write", EIO); }).first,
            "/tmp/x: cannot write: Input/output error");
}

TEST(MakeFolders, MakesTheParentsToo) {
  const TemporaryFolder folder;
  make_folders(folder.path("a/b/c"));
  make_folders(folder.path("a/b/c"));
  EXPECT_TRUE(std::filesystem::is_directory(folder.path("a/b/c")));
  folder.write("file", "");
  for (const char* below : {"file", "file/x"})
    EXPECT_EQ(error_of([&] { make_folders(folder.path(below)); }).second, ErrorCode::cannot_write) << below;
}

}  // namespace
}  // namespace chunkhit
