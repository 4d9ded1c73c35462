// Processes that share memory with a test.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace chunkhit {

/// Processes that find each other in a folder of the test's own.
class SharedArena : public testing::Test {
 protected:
  SharedArena() { ::setenv("TMPDIR", folder_.path().c_str(), 1); }
  ~SharedArena() override { ::setenv("TMPDIR", before_.c_str(), 1); }

  [[nodiscard]] std::string own_folder() const {
    return folder_.path("chunkhit-" + std::to_string(::geteuid()));
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(own_folder())) files.push_back(entry.path());
    return files;
  }

  std::string before_ = std::filesystem::temp_directory_path();
  TemporaryFolder folder_;
};

/// A child that does `work`, which returns whether it went well, and then waits for its end.
template <class Work>
pid_t start_child(const Work& work) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (!work()) ::_exit(1);
    static_cast<void>(!::write(ends[1], "r", 1));
    for (;;) ::pause();
  }
  ::close(ends[1]);
  char ready = 0;
  EXPECT_EQ(::read(ends[0], &ready, 1), 1) << "the child ended early";
  ::close(ends[0]);
  return child;
}

inline void kill_child(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace chunkhit
