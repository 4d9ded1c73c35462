// A file on a server, read by ranges.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/remote/http_client.h"

namespace chunkhit {

/// What was read of remote files while they were opened, by this process or another one. Any thread may call
/// anything.
class OpenedFiles : public std::enable_shared_from_this<OpenedFiles> {
 public:
  struct Range {
    std::uint64_t offset;
    Bytes bytes;
  };
  struct File {
    RemoteFileInfo info;
    std::vector<Range> ranges;
  };
  virtual ~OpenedFiles() = default;
  /// What another process has read of a file; null where none has.
  [[nodiscard]] virtual const File* find(const std::string& url) const = 0;
  /// Whether that was read just now, so that nobody needs to ask whether the file is still the same.
  [[nodiscard]] virtual bool was_just_read() const = 0;
  /// Takes what this process has read.
  virtual void add(const std::string& url, const File& file) = 0;
};

/// What remote files of this thread are opened with; may be null. A plain pointer: see PerThread.
[[nodiscard]] OpenedFiles*& opened_files_of_thread();

/// Any thread may read.
class RemoteFile final : public FileBytes {
 public:
  /// Asks for the begin of the file, which says its size, or for a byte of one that is among
  /// `opened_files_of_thread`. Throws usage for a URL that makes no sense, else as Transfer.
  explicit RemoteFile(const std::string& url);
  ~RemoteFile() override;
  [[nodiscard]] const RemoteFile* remote() const override { return this; }
  void require_local(std::string_view what) const override;
  /// Throws usage: there is none.
  [[nodiscard]] FileDescriptor duplicate() const override;
  /// Fills `out` from `offset`; throws as Transfer.
  void read_at(std::uint64_t offset, MutableBytes out) const override;
  /// Asks for bytes, which arrive in `out`. Throws bad_data where the file has not as many.
  [[nodiscard]] std::shared_ptr<Transfer> receive(std::uint64_t offset, MutableBytes out) const;
  /// Asks for bytes, which are in memory until they are read, or `forget_ahead` is called.
  void read_ahead(std::uint64_t offset, std::uint64_t byte_count) const override;
  /// Ends what was asked for and has not arrived: a caller that waits for it gets try_again. At its first
  /// call the head and tail that were read while the file was opened stay: they are read again for its hash.
  /// Small reads after it ask for no more than their bytes: until then they are taken for those that open a
  /// file, and more is read around them.
  void forget_ahead() const override;

 private:
  using Transfers = std::list<std::shared_ptr<Transfer>>;
  [[nodiscard]] RemoteFileInfo ask_for_info(std::uint64_t byte_count);
  [[nodiscard]] bool take_opened();
  void add_opened() const;
  [[nodiscard]] std::shared_ptr<Transfer> find(std::uint64_t offset) const;
  [[nodiscard]] std::shared_ptr<Transfer> ask(std::uint64_t offset, std::uint64_t end, Transfers& list) const;
  [[nodiscard]] std::uint64_t next_asked(std::uint64_t offset) const;
  [[nodiscard]] std::shared_ptr<Transfer> request_at(std::uint64_t offset, std::uint64_t end) const;
  void drop(const std::shared_ptr<Transfer>& transfer) const;
  void leave_parent() const;
  void require_bytes(std::uint64_t offset, std::uint64_t byte_count) const;

  double retry_seconds_;
  std::shared_ptr<OpenedFiles> opened_;
  RemoteFileInfo info_;
  mutable std::mutex mutex_;  // guards all below
  mutable std::shared_ptr<HttpClient> client_;
  mutable pid_t process_;
  mutable Transfers ahead_;    // dropped once they are read
  mutable Transfers opening_;  // stay while the file is opened
  mutable bool is_opening_ = true;
  mutable std::uint64_t last_end_ = 0;  // of the last read that nothing was asked ahead for
};

}  // namespace chunkhit
