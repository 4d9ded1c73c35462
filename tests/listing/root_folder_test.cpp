#include "listing/root_folder.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "chunkhit/error.h"
#include "support/simulated_clock.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

constexpr const char* kLeadsOut =
    "[leads out of the root folder (by .., an absolute path or a symbolic link)]";

namespace fs = std::filesystem;

/// Opens and reads: the file's text, or what is wrong in square brackets.
std::string content(const RootFolder& root, std::string_view path) {
  const RootFolder::File file = root.open(path);
  if (file.error) return '[' + file.error.reason() + ']';
  ByteBuffer buffer;
  const std::string error = file.read(buffer).reason();
  return error.empty() ? std::string(as_text(buffer)) : '[' + error + ']';
}

/// A root with a file, beside a secret that no path may reach.
struct RootFolderTest : testing::Test {
  TemporaryFolder outside;
  std::string secret = outside.write("secret", "secret");
  std::string path = outside.make_folder("root");
  std::string file = outside.write("root/cat/a.jpg", "pixels");
  RootFolder root{path};
};

/// Runs a check in a process of its own in which openat2 fails with `error_number`.
bool passes_without_openat2(unsigned error_number, const std::function<bool()>& check) {
  const pid_t child = ::fork();
  if (child == 0) {
    sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error_number),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{4, rules};
    const bool ready = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                       ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
                       ::syscall(SYS_openat2, -1, "", nullptr, 0) == -1 &&
                       errno == static_cast<int>(error_number);
    ::_exit(ready && check() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(RootFolderTest, KnowsAnAbsolutePathByAnyOfItsNames) {
  fs::create_directory_symlink("root", outside.path("alias"));
  for (const std::string& name : {path, outside.path("alias"), path + "/../root", path + "/cat/.."})
    for (const char* rest : {"cat/a.jpg", "missing/b.jpg", ""})
      EXPECT_EQ(root.rest_below(name + "/" + rest), rest) << name;
  EXPECT_EQ(root.rest_below(path + "//cat/a.jpg"), "cat/a.jpg");
  for (const std::string& elsewhere :
       {secret, outside.path(), outside.path("missing/root"), std::string("/")})
    EXPECT_EQ(root.rest_below(elsewhere), std::nullopt) << elsewhere;
  EXPECT_EQ(root.rest_below("cat/a.jpg"), std::nullopt);
}

TEST_F(RootFolderTest, ReadsAFileBelowIt) { EXPECT_EQ(content(root, "cat/a.jpg"), "pixels"); }

TEST_F(RootFolderTest, TellsTheBytesBeforeReadingThem) { EXPECT_EQ(root.open("cat/a.jpg").bytes, 6u); }

TEST_F(RootFolderTest, ReusesTheBufferForASmallerFile) {
  outside.write("root/small", "ab");
  ByteBuffer buffer(100, 'x');
  EXPECT_FALSE(root.open("small").read(buffer));
  EXPECT_EQ(as_text(buffer), "ab");
}

TEST_F(RootFolderTest, RefusesPathsThatLeadOut) {
  fs::create_symlink("../secret", path + "/link");
  fs::create_symlink(secret, path + "/absolute_link");
  fs::create_directory_symlink("..", path + "/up");
  for (const std::string& out : {std::string("../secret"), std::string("cat/../../secret"), secret,
                                 std::string("link"), std::string("absolute_link"), std::string("up/secret")})
    EXPECT_EQ(content(root, out), kLeadsOut) << out;
}

TEST_F(RootFolderTest, AbsolutePathsBelowItLedOut) {
  EXPECT_EQ(content(root, file), "pixels");
  EXPECT_EQ(content(root, path + "//cat/../cat/a.jpg"), "pixels");
  fs::create_directory_symlink(path, outside.path("other"));
  const RootFolder linked(outside.path("other"));
  EXPECT_EQ(content(linked, outside.path("other/cat/a.jpg")), "pixels");
  EXPECT_EQ(content(linked, file), "pixels");
  for (const std::string& out : {path + "/../secret", path + "/cat/../../secret", path + "-beside/a.jpg"})
    EXPECT_EQ(content(root, out), kLeadsOut) << out;
}

TEST_F(RootFolderTest, FollowsLinksOutOnlyWhereThatIsAskedFor) {
  fs::create_symlink("../secret", path + "/link");
  fs::create_directory_symlink("..", path + "/up");
  const RootFolder following(path, true);
  EXPECT_EQ(content(following, "link"), "secret");
  EXPECT_EQ(content(following, "up/secret"), "secret");
  EXPECT_EQ(content(following, "cat/a.jpg"), "pixels");
  for (const std::string& out : {std::string("../secret"), std::string("cat/../../secret"), secret})
    EXPECT_EQ(content(following, out), kLeadsOut) << out;
  EXPECT_EQ(RootFolder("/proc/self", true).open("root/etc/passwd").error.reason(),
            "symbolic links that go round in circles or lead through /proc");
}

TEST_F(RootFolderTest, FollowsPathsAndLinksThatStayInside) {
  fs::create_symlink("cat/a.jpg", path + "/link");
  fs::create_directory_symlink("cat", path + "/folder_link");
  for (const char* inside : {"link", "folder_link/a.jpg", "cat/../cat/a.jpg", "./cat//a.jpg"})
    EXPECT_EQ(content(root, inside), "pixels") << inside;
}

TEST_F(RootFolderTest, AnAbsoluteLinkThatStaysInsideLedOut) {
  fs::create_symlink(file, path + "/absolute_link");
  fs::create_directory_symlink(path + "/cat", path + "/folder_link");
  fs::create_directory_symlink("..", path + "/up");
  for (const char* inside : {"absolute_link", "folder_link/a.jpg", "up/root/cat/a.jpg"})
    EXPECT_EQ(content(root, inside), "pixels") << inside;
  for (const char* out : {"../root/cat/a.jpg", "up/secret"}) EXPECT_EQ(content(root, out), kLeadsOut);
}

TEST_F(RootFolderTest, AnEmptyFolderOutsideWasTakenForAMissingMount) {
  const std::string empty = outside.make_folder("empty");
  EXPECT_NO_THROW(root.check_mounted(empty + "/a.jpg"));
  EXPECT_NO_THROW(root.check_mounted("../empty/a.jpg"));
  outside.make_folder("root/empty");
  EXPECT_THROW(root.check_mounted("empty/a.jpg"), MachineError);
  EXPECT_THROW(root.check_mounted(path + "/empty/deep/a.jpg"), MachineError);
}

TEST_F(RootFolderTest, SaysWhatIsNoFile) {
  ASSERT_EQ(::mkfifo((path + "/fifo").c_str(), 0600), 0);
  outside.write("root/empty", "");
  fs::create_symlink("loop", path + "/loop");
  EXPECT_EQ(content(root, "fifo"), "[not a regular file]");
  EXPECT_EQ(content(root, "cat"), "[is a folder]");
  EXPECT_EQ(content(root, "."), "[is a folder]");
  EXPECT_EQ(content(root, "empty"), "[is empty]");
  EXPECT_EQ(content(root, "none.jpg"), "[no such file]");
  EXPECT_EQ(content(root, "cat/a.jpg/b"), "[no such file: a part of its path is not a folder]");
  EXPECT_EQ(content(root, ""), "[no file name]");
  EXPECT_EQ(content(root, std::string_view("cat/a.jpg\0.png", 14)), "[a NUL in the file name]");
  EXPECT_EQ(content(root, std::string(5000, 'x')), "[cannot be opened: File name too long]");
  EXPECT_EQ(content(root, "loop"), "[symbolic links that go round in circles or lead through /proc]");
}

TEST_F(RootFolderTest, RefusesADeviceAndProcLinks) {
  fs::create_symlink("/dev/zero", path + "/zero");
  EXPECT_EQ(content(root, "zero"), kLeadsOut);
  EXPECT_EQ(content(RootFolder("/dev"), "zero"), "[not a regular file]");
  const std::string error = RootFolder("/proc/self").open("root/etc/passwd").error.reason();
  EXPECT_EQ(error, "symbolic links that go round in circles or lead through /proc");
}

TEST_F(RootFolderTest, SeesAFileThatChangesWhileItIsRead) {
  for (const std::uintmax_t new_size : {0, 3, 7, 100000}) {
    outside.write("root/changing", "pixels");
    const RootFolder::File opened = root.open("changing");
    fs::resize_file(path + "/changing", new_size);
    ByteBuffer buffer;
    EXPECT_EQ(opened.read(buffer).kind, FileError::Kind::changed) << new_size;
  }
}

TEST_F(RootFolderTest, TakesARootThatIsALink) {
  fs::create_directory_symlink(path, outside.path("root_link"));
  EXPECT_EQ(content(RootFolder(outside.path("root_link")), "cat/a.jpg"), "pixels");
}

TEST_F(RootFolderTest, NeedsAFolder) {
  for (const std::string& wrong : {secret, outside.path("none")}) {
    try {
      const RootFolder none(wrong);
      FAIL() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data);
      EXPECT_TRUE(std::string_view(error.what()).starts_with(wrong)) << error.what();
    }
  }
}

TEST_F(RootFolderTest, IsAsStrictWhereTheKernelLacksOpenat2) {
  fs::create_symlink("../secret", path + "/link");
  fs::create_symlink("cat/a.jpg", path + "/inside");
  fs::create_directories(outside.path("root-sibling"));
  outside.write("root-sibling/a.jpg", "secret");
  ASSERT_EQ(::mkfifo((path + "/fifo").c_str(), 0600), 0);
  const auto check = [&] {
    for (const std::string& out : {std::string("../secret"), secret, std::string("link"),
                                   std::string("../root-sibling/a.jpg"), std::string("cat/../../secret")})
      if (content(root, out) != kLeadsOut) return false;
    return content(root, "cat/a.jpg") == "pixels" && content(root, file) == "pixels" &&
           content(root, "inside") == "pixels" && content(root, "fifo") == "[not a regular file]" &&
           content(root, "cat") == "[is a folder]" && content(root, ".") == "[is a folder]" &&
           content(root, "none") == "[no such file]" &&
           content(RootFolder("/"), file.substr(1)) == "pixels" && content(RootFolder("/"), file) == "pixels";
  };
  EXPECT_TRUE(passes_without_openat2(ENOSYS, check));
  EXPECT_TRUE(passes_without_openat2(EPERM, check));
}

TEST_F(RootFolderTest, ServesManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) good += content(root, "cat/a.jpg") == "pixels" ? 1 : 0;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 800);
}

TEST_F(RootFolderTest, StampsAFileByItsSizeAndTime) {
  const FileStamp stamp = root.stamp("cat/a.jpg");
  EXPECT_EQ(stamp.bytes, 6u);
  EXPECT_EQ(stamp, root.open("cat/a.jpg").stamp);
  EXPECT_EQ(root.stamp("cat/none.jpg"), FileStamp{});
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::nanoseconds(1));
  EXPECT_NE(root.stamp("cat/a.jpg"), stamp);
}

TEST_F(RootFolderTest, TakesAnEmptyFolderForOneThatIsNotMounted) {
  EXPECT_NO_THROW(root.check_mounted("cat/none.jpg"));
  EXPECT_NO_THROW(root.check_mounted("none/none.jpg"));
  outside.make_folder("root/disk");
  EXPECT_THROW(root.check_mounted("disk/none.jpg"), MachineError);
  EXPECT_THROW(root.check_mounted("disk/deep/none.jpg"), MachineError);
}

TEST_F(RootFolderTest, SeesThatItIsAnotherFolderNow) {
  fs::rename(path, outside.path("moved"));
  EXPECT_THROW(root.check_mounted("cat/none.jpg"), MachineError);
  outside.make_folder("root/cat");
  EXPECT_THROW(root.check_mounted("cat/none.jpg"), MachineError);
}

TEST(WithRetries, TriesThreeTimes) {
  const SimulatedClock clock;
  int tries = 0;
  EXPECT_EQ(with_retries([&] { return ++tries < 3 ? throw MachineError("stale") : tries; }), 3);
  EXPECT_EQ(clock.slept(), std::chrono::seconds(2));
  EXPECT_THROW(with_retries([&]() -> int { throw MachineError("stale"); }), MachineError);
}

}  // namespace
}  // namespace chunkhit
