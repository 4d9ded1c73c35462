#include "cache/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/aside_name.h"
#include "base/remote/http_client.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMarkName = "chunkhit-disk-cache";
constexpr std::string_view kMarkText = "chunkhit disk cache 1\n";
constexpr std::string_view kUsedName = "used-bytes";
constexpr std::string_view kLockName = "lock";
constexpr std::string_view kChunkExtension = ".chunk";
constexpr std::string_view kBegunExtension = ".begun";
constexpr std::uint64_t kBlockBytes = 4096;  // what the smallest file takes
constexpr int kMaxClaimTries = 16;
constexpr double kMaxLockSeconds = 10;  // counting the files of a large cache takes less
constexpr std::chrono::milliseconds kLockPoll{20};
constexpr std::chrono::milliseconds kUsedPoll{1};
constexpr int kMaxUsedTries = 100;

// Chunks may be of packs that need keys: other users of the machine read none.
constexpr mode_t kFolderMode = 0700, kFileMode = 0600;

FileDescriptor open_to_write(const std::string& path) {
  return FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kFileMode));
}

/// Whether it is a file with one name, or just removed: another name may be that of a file which is not the
/// cache's.
bool is_own_file(const FileDescriptor& fd) {
  struct stat status {};
  return ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink <= 1;
}

FileDescriptor open_lock(const std::string& path) {
  FileDescriptor fd = open_to_write(path);
  if (!fd.is_open()) throw_write_error(path, "cannot create", errno);
  if (!is_own_file(fd)) throw_usage("cache_dir: " + path + ": expected a file of one name");
  return fd;
}

/// Opens the folder of a pack, which no link may stand for: it would lead what is removed out of the cache.
FileDescriptor open_pack(const std::string& path) {
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::string opened_path(const FileDescriptor& folder) {
  return "/proc/self/fd/" + std::to_string(folder.get());
}

/// Shares a lock, which its owner may never give back: a stopped process, or another user's.
void share_lock(const FileDescriptor& lock, const std::string& path) {
  using Clock = std::chrono::steady_clock;
  const double seconds = std::min(kMaxLockSeconds, retry_seconds());
  const auto begin = Clock::now();
  const auto* const stop = stop_of_thread();
  const std::string what = path + ": locked by another process";
  bool has_waited = false;
  while (::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (stop != nullptr && *stop) throw Error(ErrorCode::try_again, "reading was stopped");
    if (std::chrono::duration<double>(Clock::now() - begin).count() > seconds)
      throw CacheLocked(ErrorCode::try_again,
                        what + " for " + number_text(seconds) + " s; chunks are read without the cache");
    HttpClient::shared()->set_trouble(what + ", waited for up to " + number_text(seconds) +
                                      " s, then read without the cache");
    std::this_thread::sleep_for(kLockPoll);
    has_waited = true;
  }
  if (has_waited) HttpClient::shared()->set_trouble("");
}

bool is_same_file(const FileDescriptor& fd, const std::string& path) {
  struct stat opened {
  }, named{};
  return ::fstat(fd.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

/// Bytes of a file on the disk.
std::uint64_t disk_bytes(std::uint64_t bytes) {
  return round_up(std::max<std::uint64_t>(1, bytes), kBlockBytes);
}

std::string pack_folder(const std::string& folder, std::uint64_t pack_id) {
  std::array<char, 24> name{};
  std::snprintf(name.data(), name.size(), "/%016llx", static_cast<unsigned long long>(pack_id));
  return folder + name.data();
}

/// Calls `use` for each file in the packs' folders.
template <class Use>
void for_each_cached_file(const std::string& folder, const Use& use) {
  for (const auto& pack : FolderEntries(folder)) {
    const FileDescriptor opened = open_pack(pack.path().string());
    if (!opened.is_open()) continue;
    for (const auto& file : FolderEntries(opened_path(opened))) use(file);
  }
}

}  // namespace

/// The bytes of all chunks in the folder: a number in a file, which all processes read and write under its
/// lock. It is not mapped: where another process cuts the file, touching the map would end this one.
class DiskCache::UsedBytes {
 public:
  /// `count` counts the chunks where the file does not have the number.
  UsedBytes(const std::string& path, std::function<std::uint64_t()> count)
      : fd_(open_lock(path)), count_(std::move(count)) {}
  [[nodiscard]] std::uint64_t get() {
    const Locked locked(*this);
    const std::optional<std::uint64_t> stored = read();
    return stored ? *stored : count_();
  }
  void set(std::uint64_t bytes) {
    const Locked locked(*this);
    write(bytes);
  }
  /// Adds a chunk that was stored; where there is no number, all are counted, which has it.
  void add(std::uint64_t bytes) {
    const Locked locked(*this);
    const std::optional<std::uint64_t> before = read();
    write(before ? *before + bytes : count_());
  }
  /// The same of a chunk that was removed. A process that was killed may have left too small a number.
  void take_away(std::uint64_t bytes) {
    const Locked locked(*this);
    const std::optional<std::uint64_t> before = read();
    write(before ? *before - std::min(*before, bytes) : count_());
  }

 private:
  /// Threads share the file's lock, so they also need one of their own.
  class Locked {
   public:
    explicit Locked(UsedBytes& used) : guard_(used.mutex_), fd_(used.fd_.get()) {
      // Its owner may be stopped: the number is then a little wrong, as after a kill.
      for (int tries = 0; ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && tries < kMaxUsedTries; ++tries)
        std::this_thread::sleep_for(kUsedPoll);
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    ~Locked() { ::flock(fd_, LOCK_UN); }

   private:
    std::lock_guard<std::mutex> guard_;
    int fd_;
  };

  /// Nothing where the file was cut.
  [[nodiscard]] std::optional<std::uint64_t> read() const {
    std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
    const ssize_t got = ::pread(fd_.get(), bytes.data(), bytes.size(), 0);
    if (got != static_cast<ssize_t>(bytes.size())) return std::nullopt;
    return load_little<std::uint64_t>(bytes.data());
  }
  /// A full disk is no reason to stop: the number is counted then.
  void write(std::uint64_t count) {
    std::array<std::uint8_t, sizeof count> bytes{};
    store_little(bytes.data(), count);
    static_cast<void>(write_all_at(fd_.get(), 0, bytes));
  }

  FileDescriptor fd_;
  std::function<std::uint64_t()> count_;
  std::mutex mutex_;
};

DiskCache::Claim::~Claim() {
  if (!path_.empty() && fd_.is_open()) ::unlink(path_.c_str());
}

DiskCache::DiskCache(const ChunkSet& chunks, const std::string& folder, std::uint64_t max_bytes)
    : chunks_(chunks), folder_(folder), max_bytes_(max_bytes) {
  while (folder_.size() > 1 && folder_.ends_with('/')) folder_.pop_back();
  if (folder_.starts_with('~'))
    throw_usage("cache_dir: " + folder_ + ": ~ is for shells: write the whole path");
  try {
    open();
  } catch (const CacheLocked& locked) {
    throw CacheLocked(locked.code(), std::string("cache_dir: ") + locked.what());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::usage) throw;
    throw Error(error.code(), std::string("cache_dir: ") + error.what());
  }
  if (max_bytes_ == 0) max_bytes_ = (used_->get() + free_bytes(folder_)) / 2;
}

void DiskCache::open() {
  open_folder();
  lock_ = open_lock(folder_ + "/" + std::string(kLockName));
  used_ =
      std::make_unique<UsedBytes>(folder_ + "/" + std::string(kUsedName), [this] { return chunk_bytes(); });
  // The only process counts the files: a killed process has left the number wrong, and files begun.
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) count_files();
  share_lock(lock_, folder_ + "/" + std::string(kLockName));
  lock_packs();
}

DiskCache::~DiskCache() = default;

/// Makes the folder, or checks that it is a cache: only of one are files ever removed.
void DiskCache::open_folder() {
  make_folders(folder_, kFolderMode);
  const std::string mark = folder_ + "/" + std::string(kMarkName);
  if (const std::optional<ByteBuffer> text = find_file(mark, 256)) {
    if (as_text(*text) != kMarkText)
      throw_usage("cache_dir: " + mark + ": found " + printable_text(as_text(*text)) + ", expected " +
                  printable_text(kMarkText) + ": made by another version; take another folder");
    return;
  }
  for (const auto& entry : FolderEntries(folder_)) {
    const std::string name = entry.path().filename().string();
    // Another process may be about to write the mark.
    if (name == kLockName || name == kUsedName || name == kMarkName || name_written_aside(name) == kMarkName)
      continue;
    throw_usage("cache_dir: " + folder_ + ": holds " + printable_text(name) +
                ", expected an empty folder or a cache");
  }
  publish_file(mark, kMarkText);
}

std::uint64_t DiskCache::chunk_bytes() const {
  std::uint64_t bytes = 0;
  for_each_cached_file(folder_, [&](const fs::directory_entry& file) {
    std::error_code error;
    const std::uintmax_t size = file.file_size(error);
    if (!error && file.path().extension() == kChunkExtension) bytes += disk_bytes(size);
  });
  return bytes;
}

/// Removes what killed processes began, and counts the chunks.
void DiskCache::count_files() {
  for_each_cached_file(folder_, [](const fs::directory_entry& file) {
    if (file.path().extension() == kBegunExtension) ::unlink(file.path().c_str());
  });
  used_->set(chunk_bytes());
}

/// Makes the packs' folders, and tells other processes that they are in use.
void DiskCache::lock_packs() {
  for (const auto& part : chunks_.parts()) {
    const std::uint64_t pack_id = part->spec().pack_id;
    if (pack_locks_.contains(pack_id)) continue;
    const std::string path = pack_folder(folder_, pack_id);
    make_folders(path, kFolderMode);
    FileDescriptor opened = open_pack(path);
    if (!opened.is_open()) throw_write_error(path, "cannot open the folder", errno);
    // Earlier versions made it readable for all; where it is another user's, this user may not change it.
    static_cast<void>(::fchmod(opened.get(), kFolderMode));
    FileDescriptor& lock = pack_locks_[pack_id];
    lock = open_lock(opened_path(opened) + "/" + std::string(kLockName));
    share_lock(lock, path + "/" + std::string(kLockName));
    pack_folders_[pack_id] = std::move(opened);
  }
}

/// A name says all that tells a chunk from others, its hash included.
std::string DiskCache::path_of(std::size_t chunk) const {
  const ChunkSet::Location location = chunks_.find(chunk);
  const PartSpec& spec = chunks_.part(location).spec();
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "/%05u-%08zu-%016llx", spec.part_index, location.chunk,
                static_cast<unsigned long long>(chunks_.stored(location).xxh3));
  return opened_path(pack_folders_.at(spec.pack_id)) + name.data() + std::string(kChunkExtension);
}

DiskCache::Claim DiskCache::claim(std::size_t chunk) {
  const std::string path = path_of(chunk);
  const std::string begun = path + std::string(kBegunExtension);
  for (int i = 0; i < kMaxClaimTries; ++i) {
    if (::access(path.c_str(), F_OK) == 0) return {State::stored, {}, {}};
    FileDescriptor fd = open_to_write(begun);
    if (!fd.is_open() || !is_own_file(fd)) return {};
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return {State::busy, {}, {}};
    // Between opening and locking, its owner may have published or removed it.
    if (!is_same_file(fd, begun)) continue;
    if (::access(path.c_str(), F_OK) != 0) return {State::claimed, begun, std::move(fd)};
    ::unlink(begun.c_str());
  }
  return {};
}

bool DiskCache::load(std::size_t chunk, MutableBytes stored) {
  const std::string path = path_of(chunk);
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) return false;
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) != stored.size()) {
    remove_file(path);
    return false;
  }
  for (off_t at = 0; !stored.empty();) {
    const ssize_t got = ::pread(fd.get(), stored.data(), stored.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    stored = stored.subspan(static_cast<std::size_t>(got));
  }
  note_use(chunk);
  return true;
}

bool DiskCache::store(std::size_t chunk, Claim claim, Bytes stored) {
  if (claim.state() != State::claimed) return claim.state() != State::failed;  // another one stores it
  if (!make_room(chunk, disk_bytes(stored.size()))) return false;
  // Not flushed: a file that a crash of the machine has damaged is found by its hash.
  if (::ftruncate(claim.fd_.get(), 0) != 0 || write_all_at(claim.fd_.get(), 0, stored) != 0) return false;
  if (::rename(claim.path_.c_str(), path_of(chunk).c_str()) != 0) return false;
  claim.path_.clear();
  used_->add(disk_bytes(stored.size()));
  note_use(chunk);
  return true;
}

bool DiskCache::remove_file(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || ::unlink(path.c_str()) != 0) return false;
  used_->take_away(disk_bytes(static_cast<std::uint64_t>(status.st_size)));
  return true;
}

void DiskCache::remove(std::size_t chunk) { remove_file(path_of(chunk)); }

void DiskCache::begin_epoch(NextVisit next_visit) {
  const std::lock_guard lock(mutex_);
  next_visit_ = std::move(next_visit);
  used_up_ = {};
}

void DiskCache::note_use(std::size_t chunk) {
  const std::lock_guard lock(mutex_);
  if (next_visit_) used_up_.emplace(next_visit_(chunk), chunk);
}

/// Makes room for a chunk that was used just now, by removing what is needed later than it; returns whether
/// there is room then. Chunks that the epoch has not used yet are needed sooner.
bool DiskCache::make_room(std::size_t chunk, std::uint64_t bytes) {
  const auto is_full = [&] { return used_->get() + bytes > max_bytes_; };
  if (!is_full()) return true;
  const std::lock_guard lock(mutex_);
  if (!std::exchange(has_looked_for_unused_, true)) remove_unused_packs();
  while (is_full() && next_visit_ && !used_up_.empty() && used_up_.top().first > next_visit_(chunk)) {
    remove(used_up_.top().second);
    used_up_.pop();
  }
  return !is_full();
}

/// Removes the chunks of packs that no process uses.
void DiskCache::remove_unused_packs() {
  for (const auto& pack : FolderEntries(folder_)) {
    const FileDescriptor opened = open_pack(pack.path().string());
    if (!opened.is_open()) continue;
    const fs::path path = opened_path(opened);
    const FileDescriptor lock = open_to_write((path / kLockName).string());
    if (!lock.is_open() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    for (const auto& file : FolderEntries(path))
      if (file.path().extension() == kChunkExtension) remove_file(file.path().string());
  }
}

}  // namespace chunkhit
