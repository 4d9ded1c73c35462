#include "store/hdf5/external_check.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <new>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/resources.h"
#include "base/throw_error.h"
#include "chunkhit/error.h"
#include "store/hdf5/anndata.h"
#include "store/hdf5/handle.h"
#include "store/hdf5/image_part.h"
#include "store/hdf5/matrix.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

constexpr const char* kChecker = "pack-verify";
// The commands' folder, seen from the program, the library or the Python package of a build tree, of an
// installation and of a wheel.
constexpr std::array<const char*, 7> kFolders{
    ".", "bin", "../bin", "../../bin", "../tools", "../../../tools", "../../../../bin"};

constexpr rlim_t kMinSeconds = 5;
constexpr rlim_t kMaxSeconds = 60;
// Slower than anything that is read while a file is opened.
constexpr std::uint64_t kBytesOfSecond = 10 << 20;
// Names of rows may be compressed; a chunk that is decompressed has at most 1 GiB.
constexpr std::uint64_t kMinMemoryBytes = std::uint64_t{2} << 30;
constexpr std::uint64_t kMemoryOfByte = 8;

/// Whether a sanitizer takes terabytes of addresses of its own, and ends a process that crashes with code 1.
#ifndef __has_feature
#define __has_feature(feature) 0  // clang's; GCC has macros instead
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

std::uint64_t size_of(const std::string& path) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  return error ? 0 : bytes;
}

rlim_t seconds_for(const std::string& path) {
  return std::min<rlim_t>(kMinSeconds + size_of(path) / kBytesOfSecond, kMaxSeconds);
}

std::uint64_t memory_for(const std::string& path) {
  return std::max(kMinMemoryBytes, size_of(path) * kMemoryOfByte);
}

void lower_limit(__rlimit_resource_t resource, rlim_t soft, rlim_t hard) {
  struct rlimit limit {};
  if (::getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_cur, soft);
  limit.rlim_max = std::min(limit.rlim_max, hard);
  ::setrlimit(resource, &limit);
}

/// The folders of this program and of the file that holds this code.
std::vector<fs::path> own_folders() {
  std::error_code error;
  std::vector<fs::path> folders{fs::read_symlink("/proc/self/exe", error).parent_path()};
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&check_external_file), &here) != 0 && here.dli_fname != nullptr)
    folders.push_back(fs::canonical(here.dli_fname, error).parent_path());
  std::erase(folders, fs::path());
  return folders;
}

/// Finds the command; empty where it is not installed.
std::string find_checker() {
  for (const fs::path& own : own_folders())
    for (const char* folder : kFolders) {
      std::string command = (own / folder / kChecker).string();
      if (::access(command.c_str(), X_OK) == 0) return command;
    }
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    std::string command = std::string(folder) + "/" + kChecker;
    if (!folder.empty() && ::access(command.c_str(), X_OK) == 0) return command;
  }
  return "";
}

/// A path that means the same file in another process, and is no flag.
std::string path_for_child(const std::string& path) {
  constexpr std::string_view kSelf = "/proc/self/";
  if (path.starts_with(kSelf)) return "/proc/" + std::to_string(::getpid()) + "/" + path.substr(kSelf.size());
  return path.starts_with('-') ? "./" + path : path;
}

std::vector<std::string> command_line(const std::string& command, const std::string& path,
                                      const ExternalUse& use) {
  std::vector<std::string> line{command, "--structure", "--images=" + use.names.images};
  if (use.names.labels) line.push_back("--labels=" + *use.names.labels);
  if (use.matrix) line.push_back("--layer=" + *use.matrix);
  line.push_back(path_for_child(path));
  return line;
}

/// Starts the command with its output in `said`; -1 where it cannot be started.
pid_t spawn(std::vector<std::string> line, int said) {
  std::vector<char*> arguments;
  arguments.reserve(line.size() + 1);
  for (std::string& argument : line) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, said, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, said, STDERR_FILENO);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t child = -1;
  if (::posix_spawn(&child, line[0].c_str(), &files, &attributes, arguments.data(), environ) != 0) child = -1;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return child;
}

/// Waits for the end of a child: its signal, or 0 where it ended by itself. Where this process ignores
/// SIGCHLD, nobody learns of the signal: what ends by itself has said something.
int wait_for_signal(pid_t child, int said) {
  int status = 0;
  pid_t ended = -1;
  do ended = ::waitpid(child, &status, 0);
  while (ended < 0 && errno == EINTR);
  if (ended < 0) return ::lseek(said, 0, SEEK_END) > 0 ? 0 : SIGSEGV;
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  return kIsSanitized && WEXITSTATUS(status) == 1 ? SIGSEGV : 0;
}

[[noreturn]] void throw_signal(const std::string& path, int signal) {
  const auto damaged = [&](const std::string& what) {
    throw_bad_data(path + ": damaged: the HDF5 library " + what);
  };
  if (signal == SIGXCPU) damaged("takes more than " + std::to_string(seconds_for(path)) + " s to open it");
  if (signal == SIGABRT)
    damaged("fails over it, or takes more than " + std::to_string(memory_for(path) >> 20) + " MiB of memory");
  constexpr std::array<int, 4> kCrashes{SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  if (std::ranges::find(kCrashes, signal) != kCrashes.end())
    damaged("crashes over it (signal " + std::to_string(signal) + ")");
  throw Error(ErrorCode::try_again,
              path + ": " + kChecker + ", which checks it, was ended by signal " + std::to_string(signal));
}

/// Asks the HDF5 library for all that is read while such a file is opened.
void open_external(const std::string& path, const ExternalUse& use) {
  if (use.matrix || (use.names == Hdf5Names{} && is_matrix_hdf5(path)))
    static_cast<void>(AnnDataFile(path, use.matrix.value_or("X")));
  else
    static_cast<void>(open_single_hdf5(path, use.names));
}

/// The files, as the system numbers them, that this process knows to be opened without a crash.
class CheckedFiles {
 public:
  [[nodiscard]] bool has(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return keys_.contains(key);
  }
  void add(const std::string& key) {
    const std::lock_guard lock(mutex_);
    keys_.insert(key);
  }

 private:
  std::mutex mutex_;
  std::set<std::string> keys_;
};

CheckedFiles checked_files;
std::atomic<bool> is_checker = false;  ///< this process opens a file within limits: it is the other program

/// Stands for the content of a file and what is read of it; empty where the file cannot be found.
std::string key_of(const std::string& path, const ExternalUse& use) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return "";
  std::string key;
  for (const std::uint64_t number :
       {std::uint64_t{file.st_dev}, std::uint64_t{file.st_ino}, static_cast<std::uint64_t>(file.st_size),
        static_cast<std::uint64_t>(file.st_ctim.tv_sec), static_cast<std::uint64_t>(file.st_ctim.tv_nsec)})
    key += std::to_string(number) + ' ';
  for (const std::string& word : command_line("", "", use)) key += word + '\n';
  return key;
}

}  // namespace

void check_external_file(const std::string& path, const ExternalUse& use) {
  if (is_checker) return;
  const std::string key = key_of(path, use);
  if (!key.empty() && checked_files.has(key)) return;
  const std::string command = find_checker();
  if (command.empty()) return;
  const FileDescriptor said(::memfd_create("pack-verify", MFD_CLOEXEC));
  if (!said.is_open()) throw_failed_read(path, "cannot be checked", errno);
  const pid_t child = spawn(command_line(command, path, use), said.get());
  if (child < 0) return;
  if (const int signal = wait_for_signal(child, said.get()); signal != 0) throw_signal(path, signal);
  if (!key.empty()) checked_files.add(key);
}

void open_within_limits(const std::string& path, const ExternalUse& use) {
  is_checker = true;
  const bool is_limited = has_memory_limit();
  lower_limit(RLIMIT_CORE, 0, 0);
  lower_limit(RLIMIT_CPU, seconds_for(path), seconds_for(path) + 5);
  if (!is_limited && !kIsSanitized) lower_limit(RLIMIT_DATA, memory_for(path), RLIM_INFINITY);
  try {
    open_external(path, use);
  } catch (const std::bad_alloc&) {
    if (is_limited) throw;
    std::abort();
  } catch (const Hdf5MemoryError&) {
    if (is_limited) throw;
    std::abort();
  }
}

}  // namespace chunkhit
