#include "cache/shared_memory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/process_state.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

/// A stopped process may hold a lock for ever.
constexpr std::chrono::milliseconds kMaxFileWait{4000}, kFilePoll{1};
constexpr std::uint64_t kStatBlockBytes = 512;  // what stat counts
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

[[noreturn]] void throw_not_shared(const std::string& what) {
  throw Error(ErrorCode::try_again, "memory is not shared with other processes: " + what);
}

[[noreturn]] void throw_not_shared_now(const std::string& what) {
  throw_not_shared(what + ": " + std::generic_category().message(errno));
}

/// Tells the processes that see each other in /proc from all others, on other machines too.
const std::string& neighborhood() {
  static const std::string text = [] {
    std::ifstream boot("/proc/sys/kernel/random/boot_id");
    std::string id;
    std::getline(boot, id);
    std::error_code error;
    id += fs::read_symlink("/proc/self/ns/pid", error).string();
    return hash_text(xxh3(Bytes(reinterpret_cast<const std::uint8_t*>(id.data()), id.size())));
  }();
  return text;
}

/// The folder in which this user's processes find each other.
FileDescriptor open_folder() {
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  if (error) throw_not_shared("TMPDIR: " + error.message());
  const std::string path = temporary / ("chunkhit-" + std::to_string(::geteuid()));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) throw_not_shared_now(path);
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!folder.is_open() || ::fstat(folder.get(), &status) != 0) throw_not_shared_now(path);
  if (status.st_uid != ::geteuid() || (status.st_mode & 077) != 0)
    throw_not_shared(path + " is open to other users");
  return folder;
}

/// The file of a name, locked; closing it gives the lock back.
FileDescriptor lock_file(const FileDescriptor& folder, const std::string& name) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    FileDescriptor file(
        ::openat(folder.get(), name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.is_open()) throw_not_shared_now("chunkhit-" + std::to_string(::geteuid()) + "/" + name);
    while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) throw_not_shared_now("flock");
      if (std::chrono::steady_clock::now() - begin > kMaxFileWait)
        throw_not_shared("another process holds the lock of " + name);
      std::this_thread::sleep_for(kFilePoll);
    }
    struct stat status {};
    // The last of its processes may have removed it meanwhile.
    if (::fstat(file.get(), &status) == 0 && status.st_nlink > 0) return file;
  }
}

/// A process that has the memory open.
struct Holder {
  std::uint64_t pid = 0;
  std::uint64_t start = 0;
  int fd = -1;
  [[nodiscard]] bool lives() const {
    const auto state = process_state(pid);
    return state && state->start == start;
  }
};

/// The processes that a file lists and that live. Lines that a killed process has left half are passed over.
std::vector<Holder> read_holders(const FileDescriptor& file) {
  std::string text(1 << 20, '\0');
  const ssize_t count = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  std::istringstream lines(text);
  std::vector<Holder> holders;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    Holder holder;
    if (fields >> holder.pid >> holder.start >> holder.fd && holder.lives()) holders.push_back(holder);
  }
  return holders;
}

void write_holders(const FileDescriptor& file, const std::vector<Holder>& holders) {
  std::string text;
  for (const Holder& holder : holders)
    text.append(std::to_string(holder.pid))
        .append(" ")
        .append(std::to_string(holder.start))
        .append(" ")
        .append(std::to_string(holder.fd))
        .append("\n");
  const auto bytes = static_cast<ssize_t>(text.size());
  if (::pwrite(file.get(), text.data(), text.size(), 0) != bytes || ::ftruncate(file.get(), bytes) != 0)
    throw_not_shared_now("its list of processes");
}

/// Removes files whose processes have all ended, as after kill -9.
void remove_left_files(const FileDescriptor& folder, const std::string& own) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd/" + std::to_string(folder.get()), error)) {
    const std::string name = entry.path().filename();
    if (name == own || !name.starts_with(neighborhood())) continue;
    const FileDescriptor file(::openat(folder.get(), name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (file.is_open() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 && read_holders(file).empty())
      ::unlinkat(folder.get(), name.c_str(), 0);
  }
}

bool has_bytes(const FileDescriptor& fd, std::uint64_t bytes) {
  struct stat status {};
  return fd.is_open() && ::fstat(fd.get(), &status) == 0 &&
         static_cast<std::uint64_t>(status.st_size) == bytes;
}

Holder this_process(const FileDescriptor& fd) {
  const auto pid = static_cast<std::uint64_t>(::getpid());
  const auto state = process_state(pid);
  if (!state) throw_not_shared("/proc does not show this process");
  return {pid, state->start, fd.get()};
}

FileDescriptor make_memory(std::size_t bytes) {
  FileDescriptor fd(::memfd_create("chunkhit chunks", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.is_open() || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0)
    throw_not_shared_now("memfd_create");
  return fd;
}

std::string name_of(std::uint64_t id) { return neighborhood() + "-" + hash_text(id); }

/// Opens the memory of a process; nothing, with errno, where that is denied or its descriptor is something
/// else by now.
FileDescriptor open_memory(const Holder& holder) {
  const std::string path = "/proc/" + std::to_string(holder.pid) + "/fd/" + std::to_string(holder.fd);
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_open()) return fd;
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  errno = EINVAL;
  return seals >= 0 && (seals & kSeals) == kSeals ? std::move(fd) : FileDescriptor();
}

}  // namespace

// The first bytes hold the id: whatever stands in the file, no other memory is taken for this one.
SharedMemory::SharedMemory(std::uint64_t id, std::size_t bytes) : name_(name_of(id)) {
  const FileDescriptor folder = open_folder();
  remove_left_files(folder, name_);
  const FileDescriptor file = lock_file(folder, name_);
  std::vector<Holder> holders = read_holders(file);
  const std::size_t all_bytes = bytes + kIdBytes;
  for (const Holder& holder : holders) {
    FileDescriptor fd = open_memory(holder);
    if (!fd.is_open() && (errno == EACCES || errno == EPERM))
      throw_not_shared_now("process " + std::to_string(holder.pid) + " has it");
    if (!has_bytes(fd, all_bytes)) continue;
    MemoryMap memory = MemoryMap::of_file(fd.get(), all_bytes);
    if (std::memcmp(memory.data(), &id, sizeof id) != 0) continue;
    fd_ = std::move(fd);
    memory_ = std::move(memory);
    break;
  }
  if (!fd_.is_open()) {
    fd_ = make_memory(all_bytes);
    memory_ = MemoryMap::of_file(fd_.get(), all_bytes);
    std::memcpy(memory_.data(), &id, sizeof id);
  }
  holders.push_back(this_process(fd_));
  write_holders(file, holders);
  announced_ = ::getpid();
}

void SharedMemory::announce() {
  const pid_t process = ::getpid();
  if (announced_.exchange(process) == process) return;
  try {
    const FileDescriptor file = lock_file(open_folder(), name_);
    std::vector<Holder> holders = read_holders(file);
    holders.push_back(this_process(fd_));
    write_holders(file, holders);
  } catch (const std::exception&) {
    // Others cannot open it from here, but this process has it.
  }
}

SharedMemory::~SharedMemory() {
  if (announced_ != ::getpid()) return;
  try {
    const FileDescriptor folder = open_folder();
    const FileDescriptor file = lock_file(folder, name_);
    std::vector<Holder> holders = read_holders(file);
    const Holder own = this_process(fd_);
    std::erase_if(holders, [&](const Holder& each) { return each.pid == own.pid && each.fd == own.fd; });
    if (holders.empty())
      ::unlinkat(folder.get(), name_.c_str(), 0);
    else
      write_holders(file, holders);
  } catch (const std::exception&) {
    // What stays listed is not opened by anyone: the descriptor is another one by then, or none.
  }
}

std::uint64_t SharedMemory::taken_bytes(std::uint64_t id) {
  try {
    const FileDescriptor folder = open_folder();
    const std::string name = name_of(id);
    if (::faccessat(folder.get(), name.c_str(), F_OK, 0) != 0) return 0;
    for (const Holder& holder : read_holders(lock_file(folder, name))) {
      const FileDescriptor fd = open_memory(holder);
      struct stat status {};
      if (fd.is_open() && ::fstat(fd.get(), &status) == 0)
        return static_cast<std::uint64_t>(status.st_blocks) * kStatBlockBytes;
    }
  } catch (const Error&) {
    return 0;
  }
  return 0;
}

std::string SharedMemory::obstacle() {
  try {
    const FileDescriptor folder = open_folder();
    static_cast<void>(this_process(make_memory(1)));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace chunkhit
