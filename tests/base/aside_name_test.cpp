#include "base/aside_name.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

std::string entry_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

/// What a process that ended left, as kill -9 does.
std::string left_by_a_dead_process(const TemporaryFolder& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
    const PendingFile file(folder.path("part-00000.h5"));
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("")))
    if (!name_written_aside(entry.path().filename().string()).empty()) return entry_of(entry.path());
  return "";
}

TEST(AsideName, NamesTheFileAndItsWriter) {
  const std::string entry = entry_of(make_aside_path("/packs/train/part-00000.h5"));
  EXPECT_EQ(name_written_aside(entry), "part-00000.h5");
  EXPECT_NE(aside_writer_text(entry).find("process " + std::to_string(::getpid())), std::string::npos);
  EXPECT_NE(make_aside_path("part"), make_aside_path("part"));
}

TEST(AsideName, KnowsOldAndOtherNames) {
  EXPECT_EQ(name_written_aside(".part-00000.h5.tmp"), "part-00000.h5");
  EXPECT_EQ(name_written_aside(".part-00000.h5.node-7-12-345-0123abcd.tmp"), "part-00000.h5");
  EXPECT_EQ(aside_writer_text(".items.csv.node-7-12-345-0123abcd.tmp"), "host node-7, process 12");
  for (const char* other : {"part-00000.h5", ".tmp", "..tmp", ".notes", "notes.tmp", ""})
    EXPECT_EQ(name_written_aside(other), "") << other;
}

TEST(AsideName, FindsALivingWriter) {
  const TemporaryFolder folder;
  const PendingFile file(folder.path("part"));
  EXPECT_EQ(find_aside_writer(folder.path(""), entry_of(file.aside_path())), AsideWriter::lives);
}

TEST(AsideName, FindsThatAWriterIsGone) {
  const TemporaryFolder folder;
  const std::string entry = left_by_a_dead_process(folder);
  ASSERT_NE(entry, "");
  EXPECT_EQ(find_aside_writer(folder.path(""), entry), AsideWriter::is_gone);
}

TEST(AsideName, TakesALockForAWriterThatIsNotSeen) {
  const TemporaryFolder folder;
  const PendingFile file(folder.path("part"));
  // As a container of the same host name sees it: the process is not there.
  std::string entry = entry_of(file.aside_path());
  const std::string pid = std::string("-").append(std::to_string(::getpid())).append("-");
  entry.replace(entry.rfind(pid), pid.size(), "-4194305-");
  std::filesystem::rename(file.aside_path(), folder.path(entry));
  EXPECT_EQ(find_aside_writer(folder.path(""), entry), AsideWriter::lives);
}

TEST(AsideName, LeavesTheFilesOfOtherMachinesForADay) {
  const TemporaryFolder folder;
  const std::string entry = ".part-00000.h5.node7-12-345-0123abcd.tmp";
  const std::string path = folder.write(entry, "begun");
  EXPECT_EQ(find_aside_writer(folder.path(""), entry), AsideWriter::unknown);
  std::filesystem::last_write_time(path,
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  EXPECT_EQ(find_aside_writer(folder.path(""), entry), AsideWriter::is_gone);
}

}  // namespace
}  // namespace chunkhit
