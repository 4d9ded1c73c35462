// What the processes of a machine read of remote packs to open them: fetched once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/remote/remote_file.h"
#include "cache/chunk_arena.h"

namespace chunkhit {

/// Manifests and indexes in memory that the processes of a machine share. The first process reads them from
/// the server; the others wait for it, and where it ends or takes seconds they read them themselves.
class SharedOpening final : public OpenedFiles {
 public:
  /// `paths`: what is opened together.
  explicit SharedOpening(const std::vector<std::string>& paths);
  ~SharedOpening() override;
  [[nodiscard]] const File* find(const std::string& url) const override;
  [[nodiscard]] bool was_just_read() const override { return was_just_read_; }
  void add(const std::string& url, const File& file) override;
  /// Gives what was added to the others.
  void finish();

 private:
  void append(Bytes bytes);
  void read_files();

  ChunkArena arena_;         // a chunk with the count of bytes, and those that hold them
  bool is_filling_ = false;  // by this process
  bool was_just_read_ = false;
  std::map<std::string, File> files_;  // that another process has read
  std::mutex mutex_;                   // guards all below
  std::uint64_t added_bytes_ = 0;
};

/// While this exists, its thread opens remote files by a SharedOpening.
class OpeningScope {
 public:
  explicit OpeningScope(const std::vector<std::string>& paths);
  OpeningScope(const OpeningScope&) = delete;
  OpeningScope& operator=(const OpeningScope&) = delete;
  ~OpeningScope();
  /// To be called once all is open.
  void finish() const;

 private:
  std::shared_ptr<SharedOpening> opening_;  // null without a URL
};

}  // namespace chunkhit
