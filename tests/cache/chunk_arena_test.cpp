// Memory of chunks that processes share: each chunk is filled once, whatever becomes of those that fill it.
#include "cache/chunk_arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/own_process.h"
#include "support/shared_processes.h"

namespace chunkhit {
namespace {

using Claim = ChunkArena::Claim;

constexpr std::uint64_t kId = 17;
const std::vector<std::uint64_t> kSizes{100, 5000, 0, 70'000};

std::string why_not_shared() {
  try {
    const ChunkArena arena(kSizes, kId);
  } catch (const NotShared& error) {
    return error.what();
  }
  return "";
}

/// Fills each chunk that nobody has filled; returns how many these were.
std::uint64_t fill(ChunkArena& arena) {
  std::uint64_t filled = 0;
  for (std::size_t chunk = 0; chunk < kSizes.size(); ++chunk) {
    if (arena.claim(chunk) != Claim::own) continue;
    std::fill_n(arena.chunk(chunk), kSizes[chunk], static_cast<std::uint8_t>(chunk + 1));
    arena.finish(chunk);
    ++filled;
  }
  return filled;
}

bool is_right(const ChunkArena& arena) {
  for (std::size_t chunk = 0; chunk < kSizes.size(); ++chunk)
    for (std::uint64_t i = 0; i < kSizes[chunk]; ++i)
      if (arena.chunk(chunk)[i] != chunk + 1) return false;
  return true;
}

/// Waits until a child waits for a chunk, or has ended.
void await_futex(pid_t child) {
  const std::string path = "/proc/" + std::to_string(child) + "/";
  for (;;) {
    std::string call, state;
    std::ifstream(path + "syscall") >> call;
    std::ifstream(path + "stat") >> state >> state >> state;
    if (call == std::to_string(SYS_futex) || state == "Z" || state.empty()) return;
    ::usleep(1000);
  }
}

TEST_F(SharedArena, ManyProcessesFillEachChunkOnce) {
  ChunkArena arena(kSizes, kId);
  struct Found {
    std::uint64_t filled;
    bool is_right;
  };
  std::uint64_t filled = 0;
  for (const Found& found : in_own_processes(64, [](std::size_t) {
         ChunkArena own(kSizes, kId);
         const std::uint64_t own_filled = fill(own);
         return Found{own_filled, is_right(own)};
       })) {
    filled += found.filled;
    EXPECT_TRUE(found.is_right);
  }
  EXPECT_EQ(filled, kSizes.size());
  EXPECT_TRUE(is_right(arena));
  EXPECT_TRUE(arena.is_shared());
}

TEST_F(SharedArena, OtherIdsAndNoIdHaveOtherMemory) {
  ChunkArena arena(kSizes, kId), same(kSizes, kId), other(kSizes, kId + 1), own(kSizes, std::nullopt);
  EXPECT_EQ(fill(arena), kSizes.size());
  EXPECT_EQ(fill(same), 0u);
  EXPECT_EQ(fill(other), kSizes.size());
  EXPECT_EQ(fill(own), kSizes.size());
}

TEST_F(SharedArena, AnotherProcessTakesOverFromAKilledOne) {
  ChunkArena arena(kSizes, kId);
  const pid_t child = start_child([] {
    ChunkArena own(kSizes, kId);
    const bool is_own = own.claim(1) == Claim::own;
    own.chunk(1)[0] = 99;
    return is_own;
  });
  EXPECT_EQ(arena.try_claim(1), Claim::stuck);
  ::kill(child, SIGKILL);
  // Its parent has not fetched its end yet.
  EXPECT_EQ(arena.claim(1), Claim::own);
  arena.give_up(1);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(fill(arena), kSizes.size());
  EXPECT_TRUE(is_right(arena));
}

TEST_F(SharedArena, NobodyTakesOverFromALivingOneWhereNoFileCanBeOpened) {
  ChunkArena arena(kSizes, kId);
  ASSERT_EQ(arena.claim(1), Claim::own);
  const pid_t child = ::fork();
  if (child == 0) {
    static_cast<void>(arena.claim(0));  // its own state is read before
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_NOFILE, &none);
    ::_exit(arena.try_claim(1) == Claim::stuck ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  arena.give_up(0);  // what another process has claimed stays
  EXPECT_FALSE(arena.is_empty(0));
}

TEST_F(SharedArena, NobodyWaitsForAStoppedProcess) {
  ChunkArena arena(kSizes, kId);
  const pid_t child = start_child([] {
    ChunkArena own(kSizes, kId);
    return own.claim(1) == Claim::own;
  });
  ::kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  EXPECT_EQ(arena.claim(1), Claim::stuck);
  EXPECT_EQ(arena.claim(0), Claim::own);
  kill_child(child);
  EXPECT_EQ(arena.claim(1), Claim::own);
}

TEST_F(SharedArena, WhoeverWaitsGoesOnWhenTheChunkIsReadyOrGivenUp) {
  ChunkArena arena(kSizes, kId);
  ASSERT_EQ(arena.claim(0), Claim::own);
  ASSERT_EQ(arena.claim(1), Claim::own);
  const pid_t waits = ::fork();
  if (waits == 0) {
    ChunkArena own(kSizes, kId);
    ::_exit(own.claim(0) == Claim::filled && own.claim(1) == Claim::own ? 0 : 1);
  }
  await_futex(waits);
  arena.finish(0);
  await_futex(waits);
  arena.give_up(1);
  int status = 1;
  ::waitpid(waits, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(SharedArena, AForkedChildHandsTheMemoryOn) {
  auto arena = std::make_unique<ChunkArena>(kSizes, kId);
  EXPECT_EQ(fill(*arena), kSizes.size());
  const pid_t child = start_child([&] { return fill(*arena) == 0; });
  arena.reset();
  ChunkArena later(kSizes, kId);
  EXPECT_EQ(fill(later), 0u);
  EXPECT_TRUE(is_right(later));
  kill_child(child);
}

TEST_F(SharedArena, NothingIsLeftOfProcessesThatEndedOrWereKilled) {
  { ChunkArena arena(kSizes, kId); }
  EXPECT_EQ(files(), std::vector<std::string>());
  kill_child(start_child([] {
    static ChunkArena killed(kSizes, kId);
    return killed.is_shared();
  }));
  EXPECT_EQ(files().size(), 1u);
  { ChunkArena other(kSizes, kId + 1); }
  EXPECT_EQ(files(), std::vector<std::string>());
  // Of a machine that ran before this one was started, and of one that may run beside it.
  for (const char* name : {"ended-machine", "other-machine"})
    std::ofstream(own_folder() + "/" + name) << "1 1 1\n";
  const timespec long_ago[2]{{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (own_folder() + "/ended-machine").c_str(), long_ago, 0), 0);
  { ChunkArena other(kSizes, kId + 1); }
  EXPECT_EQ(files(), std::vector<std::string>{own_folder() + "/other-machine"});
  // The memory went with them.
  ChunkArena arena(kSizes, kId);
  EXPECT_EQ(fill(arena), kSizes.size());
}

TEST_F(SharedArena, AListWithWrongLinesOpensNothingElse) {
  ChunkArena other(kSizes, kId + 1), arena(kSizes, kId);
  EXPECT_EQ(fill(other), kSizes.size());
  // Each line of the other memory's list, as if a descriptor had been used again.
  for (const std::string& path : files()) {
    std::string lines;
    for (const std::string& each : files()) {
      std::ifstream in(each);
      for (std::string line; std::getline(in, line);) lines += line + "\n";
    }
    std::ofstream(path) << "no number\n-1 -1 -1\n" << lines << ::getpid() << " 1 0\n1 2";
  }
  ChunkArena third(kSizes, kId);
  EXPECT_EQ(fill(third), kSizes.size());
  EXPECT_EQ(fill(arena), 0u);
}

TEST_F(SharedArena, AFolderThatOthersMayWriteToIsNotUsed) {
  ASSERT_EQ(::mkdir(own_folder().c_str(), 0700), 0);
  ASSERT_EQ(::chmod(own_folder().c_str(), 0777), 0);
  EXPECT_NE(why_not_shared().find(own_folder() + " is open to other users"), std::string::npos);
}

TEST_F(SharedArena, NobodyWaitsForALockThatIsHeldForEver) {
  ChunkArena arena(kSizes, kId);
  const int file = ::open(files().front().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  EXPECT_NE(why_not_shared().find("holds the lock"), std::string::npos);
  ::close(file);
}

TEST_F(SharedArena, TheFirstUseIsOneOfAllProcesses) {
  ChunkArena arena(kSizes, kId);
  std::uint64_t first = 0;
  for (const int is_first :
       in_own_processes(8, [](std::size_t) { return ChunkArena(kSizes, kId).first_use(3) ? 1 : 0; }))
    first += static_cast<std::uint64_t>(is_first);
  EXPECT_EQ(first, 1u);
  EXPECT_FALSE(arena.first_use(3));
}

TEST_F(SharedArena, TakenMemoryIsKnownBeforeItIsOpened) {
  EXPECT_EQ(SharedMemory::taken_bytes(kId), 0u);
  ChunkArena arena(kSizes, kId);
  fill(arena);
  EXPECT_GE(SharedMemory::taken_bytes(kId), kSizes.back());
  EXPECT_LE(SharedMemory::taken_bytes(kId), 4 * kSizes.back());
}

}  // namespace
}  // namespace chunkhit
