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
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <system_error>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/process_state.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

/// A stopped process may hold a lock for ever.
constexpr std::chrono::milliseconds kMaxFileWait{4000}, kFilePoll{1};
constexpr std::uint64_t kStatBlockBytes = 512;  // what stat counts
constexpr const char* kMemoryName = "chunkhit chunks";
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

[[noreturn]] void throw_not_shared_now(const std::string& what) {
  throw NotShared(what + ": " + std::generic_category().message(errno));
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
  if (error) {
    const char* const given = std::getenv("TMPDIR");
    throw NotShared("TMPDIR: " + std::string(given != nullptr ? given : "/tmp") + ": " + error.message());
  }
  const std::string path = temporary / ("chunkhit-" + std::to_string(::geteuid()));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) throw_not_shared_now(path);
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!folder.is_open() || ::fstat(folder.get(), &status) != 0) throw_not_shared_now(path);
  if (status.st_uid != ::geteuid() || (status.st_mode & 077) != 0)
    throw NotShared(path + " is open to other users");
  return folder;
}

/// A file that is locked. A child that is forked meanwhile has the lock, too: closing alone would not end it.
struct LockedFile {
  FileDescriptor fd;
  LockedFile(FileDescriptor locked) : fd(std::move(locked)) {}
  LockedFile(LockedFile&&) = default;
  LockedFile& operator=(LockedFile&&) = delete;
  ~LockedFile() {
    if (fd.is_open()) ::flock(fd.get(), LOCK_UN);
  }
};

/// The file of a name, locked.
LockedFile lock_file(const FileDescriptor& folder, const std::string& name) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    FileDescriptor file(
        ::openat(folder.get(), name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.is_open()) throw_not_shared_now("chunkhit-" + std::to_string(::geteuid()) + "/" + name);
    while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) throw_not_shared_now("flock");
      if (std::chrono::steady_clock::now() - begin > kMaxFileWait)
        throw NotShared("another process holds the lock of " + name);
      std::this_thread::sleep_for(kFilePoll);
    }
    struct stat status {};
    // The last of its processes may have removed it meanwhile.
    if (::fstat(file.get(), &status) == 0 && status.st_nlink > 0) return LockedFile(std::move(file));
  }
}

/// A process that has the memory open.
struct Holder {
  std::uint64_t pid = 0;
  std::uint64_t start = 0;
  int fd = -1;
  [[nodiscard]] bool lives() const {
    const auto state = process_state(pid);
    return state && (!state->is_known || state->start == start);
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

/// Whether a file was last written before the machine was started.
bool is_older_than_boot(const struct stat& status) {
  timespec now{}, since_boot{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  return status.st_mtim.tv_sec < now.tv_sec - since_boot.tv_sec;
}

/// Removes files whose processes have all ended, as after kill -9, or with the machine.
void remove_left_files(const FileDescriptor& folder, const std::string& own) {
  for (const auto& entry : FolderEntries("/proc/self/fd/" + std::to_string(folder.get()))) {
    const std::string name = entry.path().filename();
    if (name == own) continue;
    FileDescriptor file(::openat(folder.get(), name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!file.is_open() || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    const LockedFile locked(std::move(file));
    // Another process may have removed it, and a third one have made it again.
    struct stat status {};
    if (::fstat(locked.fd.get(), &status) != 0 || status.st_nlink == 0) continue;
    // The processes of another machine or container are not seen here.
    if (name.starts_with(neighborhood()) ? read_holders(locked.fd).empty() : is_older_than_boot(status))
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
  if (!state || !state->is_known) throw NotShared("/proc does not show this process");
  return {pid, state->start, fd.get()};
}

FileDescriptor make_memory(std::size_t bytes) {
  FileDescriptor fd(::memfd_create(kMemoryName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
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
  // Behind exec another file may have its number.
  std::array<char, 64> target{};
  if (::readlink(path.c_str(), target.data(), target.size()) < 0) return {};
  if (!std::string_view(target.data(), target.size()).starts_with("/memfd:" + std::string(kMemoryName))) {
    errno = EINVAL;
    return {};
  }
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
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
  const LockedFile file = lock_file(folder, name_);
  std::vector<Holder> holders = read_holders(file.fd);
  const std::size_t all_bytes = bytes + kPageBytes;
  const Holder* denied = nullptr;
  for (const Holder& holder : holders) {
    FileDescriptor fd = open_memory(holder);
    if (!fd.is_open() && (errno == EACCES || errno == EPERM)) denied = &holder;
    if (!has_bytes(fd, all_bytes)) continue;
    MemoryMap memory = MemoryMap::of_file(fd.get(), all_bytes);
    if (std::memcmp(memory.data(), &id, sizeof id) != 0) continue;
    fd_ = std::move(fd);
    memory_ = std::move(memory);
    break;
  }
  if (!fd_.is_open() && denied != nullptr) {
    errno = EACCES;
    throw_not_shared_now("process " + std::to_string(denied->pid) + " has it");
  }
  if (!fd_.is_open()) {
    fd_ = make_memory(all_bytes);
    memory_ = MemoryMap::of_file(fd_.get(), all_bytes);
    populate(memory_.data(), sizeof id);
    std::memcpy(memory_.data(), &id, sizeof id);
  }
  holders.push_back(this_process(fd_));
  write_holders(file.fd, holders);
  announced_ = ::getpid();
}

void SharedMemory::populate(const std::uint8_t* begin, std::size_t bytes) const {
  static const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto offset = static_cast<std::size_t>(begin - memory_.data());
  const std::size_t before = offset % page_bytes;
  if (::madvise(memory_.data() + (offset - before), before + bytes, MADV_POPULATE_WRITE) == 0) return;
  // Linux before 5.14 does not know it.
  if (errno != EINVAL || ::fallocate(fd_.get(), 0, static_cast<off_t>(offset),
                                     static_cast<off_t>(std::max<std::size_t>(bytes, 1))) != 0)
    throw std::bad_alloc();
}

void SharedMemory::announce() {
  const pid_t process = ::getpid();
  if (announced_.exchange(process) == process) return;
  try {
    const LockedFile file = lock_file(open_folder(), name_);
    std::vector<Holder> holders = read_holders(file.fd);
    holders.push_back(this_process(fd_));
    write_holders(file.fd, holders);
  } catch (const std::exception&) {
    // Others cannot open it from here, but this process has it.
  }
}

SharedMemory::~SharedMemory() {
  if (announced_ != ::getpid()) return;
  try {
    const FileDescriptor folder = open_folder();
    const LockedFile file = lock_file(folder, name_);
    std::vector<Holder> holders = read_holders(file.fd);
    const Holder own = this_process(fd_);
    std::erase_if(holders, [&](const Holder& each) { return each.pid == own.pid && each.fd == own.fd; });
    if (holders.empty())
      ::unlinkat(folder.get(), name_.c_str(), 0);
    else
      write_holders(file.fd, holders);
  } catch (const std::exception&) {
    // What stays listed is not opened by anyone: the descriptor is another one by then, or none.
  }
}

std::uint64_t SharedMemory::taken_bytes(std::uint64_t id) {
  try {
    const FileDescriptor folder = open_folder();
    const std::string name = name_of(id);
    if (::faccessat(folder.get(), name.c_str(), F_OK, 0) != 0) return 0;
    const LockedFile file = lock_file(folder, name);
    for (const Holder& holder : read_holders(file.fd)) {
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
