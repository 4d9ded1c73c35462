// Chunks of remote packs on a local disk, shared by the processes of a machine. Layout:
// schemas/disk-cache.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "cache/chunk_set.h"
#include "chunkhit/error.h"

namespace chunkhit {

/// When the next epoch needs a chunk: its place in the known order, in which each chunk comes once.
using NextVisit = std::function<std::uint64_t(std::uint64_t chunk)>;

/// Another process holds a lock of the cache for too long.
struct CacheLocked : Error {
  using Error::Error;
};

/// Keeps whole chunks as files, and removes those first that are needed last. Any thread may call anything.
class DiskCache {
 public:
  /// Opens or makes the cache in a folder, of at most `max_bytes` over all packs in it; 0: half of what is
  /// free on the disk and used by the cache. Throws usage for a folder that holds something else,
  /// cannot_write where it cannot be written, CacheLocked, and where waiting was stopped try_again.
  DiskCache(const ChunkSet& chunks, const std::string& folder, std::uint64_t max_bytes);
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;
  ~DiskCache();

  enum class State : std::uint8_t {
    stored,   ///< its file is there
    claimed,  ///< this claim is the only one: its owner fetches the chunk
    busy,     ///< another thread or process fetches it
    failed,   ///< the disk is full, or cannot be written
  };
  /// The right to store a chunk. It ends with the claim, or with its process.
  class Claim {
   public:
    Claim() = default;
    Claim(State state, std::string path, FileDescriptor fd)
        : state_(state), path_(std::move(path)), fd_(std::move(fd)) {}
    Claim(Claim&& other) noexcept = default;
    Claim& operator=(Claim&& other) noexcept {
      std::swap(state_, other.state_);
      std::swap(path_, other.path_);
      std::swap(fd_, other.fd_);
      return *this;
    }
    ~Claim();
    [[nodiscard]] State state() const { return state_; }

   private:
    friend class DiskCache;
    State state_ = State::failed;
    std::string path_;  ///< of the file being written; empty: published, or nothing is
    FileDescriptor fd_;
  };
  [[nodiscard]] Claim claim(std::size_t chunk);
  /// Reads a stored chunk; false where its file is gone, or has another size, for which it is removed.
  [[nodiscard]] bool load(std::size_t chunk, MutableBytes stored);
  /// Stores a chunk whose hash was compared, where it is worth its space; returns false where it is not, or
  /// the disk is full.
  bool store(std::size_t chunk, Claim claim, Bytes stored);
  /// Removes a damaged chunk.
  void remove(std::size_t chunk);
  /// Begins an epoch, each of whose chunks is asked for once. Without it, those are kept that came first.
  void begin_epoch(NextVisit next_visit);
  [[nodiscard]] std::uint64_t max_bytes() const { return max_bytes_; }

 private:
  class UsedBytes;
  [[nodiscard]] std::string path_of(std::size_t chunk) const;
  void open();
  void open_folder();
  void count_files();
  [[nodiscard]] std::uint64_t chunk_bytes() const;
  void lock_packs();
  void note_use(std::size_t chunk);
  [[nodiscard]] bool make_room(std::size_t chunk, std::uint64_t bytes);
  void remove_unused_packs();
  bool remove_file(const std::string& path);

  const ChunkSet& chunks_;
  std::string folder_;
  std::uint64_t max_bytes_;
  FileDescriptor lock_;
  std::unique_ptr<UsedBytes> used_;
  std::map<std::uint64_t, FileDescriptor> pack_locks_;  // of the packs that this process uses
  std::map<std::uint64_t, FileDescriptor> pack_folders_;
  std::mutex mutex_;  // guards all below
  NextVisit next_visit_;
  /// Stored chunks that this epoch has used, and so needs no more, by their next visit, the last one on top.
  std::priority_queue<std::pair<std::uint64_t, std::size_t>> used_up_;
  bool has_looked_for_unused_ = false;
};

}  // namespace chunkhit
