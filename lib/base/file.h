// Files: read at an offset, written aside until they are whole, linked, hashed; folders and free space.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/bytes.h"

namespace chunkhit {

/// Owns a file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  /// Hands the descriptor over to the caller, who closes it.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

class RemoteFile;

/// The bytes of a file, on this machine or on a server. Functions as InputFile's.
class FileBytes {
 public:
  FileBytes(std::string path, std::uint64_t bytes) : path_(std::move(path)), bytes_(bytes) {}
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  virtual ~FileBytes() = default;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t byte_count() const { return bytes_; }
  [[nodiscard]] virtual const RemoteFile* remote() const { return nullptr; }
  virtual void require_local(std::string_view) const {}
  [[nodiscard]] virtual FileDescriptor duplicate() const = 0;
  virtual void read_at(std::uint64_t offset, MutableBytes out) const = 0;
  [[nodiscard]] virtual bool has_bad_sector(std::uint64_t, std::size_t) const { return false; }
  virtual void read_ahead(std::uint64_t offset, std::uint64_t bytes) const = 0;
  [[nodiscard]] virtual bool reads_ahead() const { return true; }
  virtual void forget_ahead() const {}

 protected:
  std::string path_;
  std::uint64_t bytes_;
};

/// Reads a regular file, or one that a server has under a URL, at any offset; every failure names the path.
/// Where the machine lacks something (descriptors, memory, storage that answers), so that nothing is known of
/// the file, it is try_again. Files that were opened by their paths stay open as long as these are no more
/// than half of the descriptors that the process may have; the others are opened again for each read, and
/// must still be the same file then.
class InputFile {
 public:
  /// Opens a path or a URL (base/remote/url.h) for reading; throws bad_data when there is no such file.
  explicit InputFile(const std::string& path);
  /// Takes an open file, which stays open; `path` is for messages.
  InputFile(std::string path, FileDescriptor fd);
  /// Shares an open file of `bytes`.
  InputFile(std::string path, std::shared_ptr<const FileDescriptor> fd, std::uint64_t bytes);
  [[nodiscard]] const std::string& path() const { return file_->path(); }
  [[nodiscard]] std::uint64_t byte_count() const { return file_->byte_count(); }
  /// Throws usage where a server has the file, which is `what`: "an external HDF5 file".
  void require_local(std::string_view what) const { file_->require_local(what); }
  /// Opens the file once more, for libraries that read through a descriptor.
  [[nodiscard]] FileDescriptor duplicate() const { return file_->duplicate(); }
  /// Fills `out` from `offset`; throws bad_data when the file ends earlier.
  void read_at(std::uint64_t offset, MutableBytes out) const { file_->read_at(offset, out); }
  /// Tells a bad sector from storage that does not answer, after `read_at` failed: whether these bytes cannot
  /// be read while others of the file can.
  [[nodiscard]] bool has_bad_sector(std::uint64_t offset, std::size_t bytes) const {
    return file_->has_bad_sector(offset, bytes);
  }
  /// Asks the system, or the server, for bytes that will be read soon. What a server sends stays in memory
  /// until it is read or forgotten.
  void read_ahead(std::uint64_t offset, std::uint64_t bytes) const { file_->read_ahead(offset, bytes); }
  /// Whether many small reads cost little where they were asked for together: the system keeps the file open
  /// and has a page cache for it, or a server is asked.
  [[nodiscard]] bool reads_ahead() const { return file_->reads_ahead(); }
  /// Ends what was asked for of a remote file and has not arrived: a caller that waits for it gets try_again.
  /// Also ends its opening, during which small reads take more than their bytes.
  void forget_ahead() const { file_->forget_ahead(); }
  /// The file on its server; null for a local one.
  [[nodiscard]] const RemoteFile* remote() const { return file_->remote(); }
  /// The same file, of a remote one a copy in memory, for libraries that read it in many pieces.
  [[nodiscard]] InputFile in_memory() const;

 private:
  std::shared_ptr<const FileBytes> file_;
};

/// What a folder holds. It ends where the folder cannot be listed any further, as std::filesystem's iterator,
/// whose ++ throws then, does not.
class FolderEntries {
 public:
  explicit FolderEntries(const std::filesystem::path& folder) : begin_(folder, error_) {}
  class Iterator {
   public:
    explicit Iterator(std::filesystem::directory_iterator at) : at_(std::move(at)) {}
    const std::filesystem::directory_entry& operator*() const { return *at_; }
    Iterator& operator++() {
      std::error_code error;
      at_.increment(error);
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    std::filesystem::directory_iterator at_;
  };
  [[nodiscard]] Iterator begin() const { return Iterator(begin_); }
  [[nodiscard]] static Iterator end() { return Iterator({}); }

 private:
  std::error_code error_;
  std::filesystem::directory_iterator begin_;
};

/// Returns whether there is a file or a folder, or under a URL a file; throws where this cannot be known.
[[nodiscard]] bool file_exists(const std::string& path);

/// Reads a whole file of at most `max_bytes`; throws bad_data when it is larger or cannot be read.
[[nodiscard]] ByteBuffer read_file(const std::string& path, std::uint64_t max_bytes);

/// Reads a whole file as `read_file` does; nothing where there is none. Another process may remove it at any
/// time, so nothing asks for it before.
[[nodiscard]] std::optional<ByteBuffer> find_file(const std::string& path, std::uint64_t max_bytes);

/// Hashes a whole file with XXH3.
[[nodiscard]] std::uint64_t hash_file(const std::string& path);

/// Writes a file aside, in the same folder under a name of its own (base/aside_name.h), so that several
/// processes may write the same file; only `publish` makes it visible under its name, whole and on disk. What
/// is not published is removed by the destructor.
class PendingFile {
 public:
  /// Creates the file aside; throws cannot_write.
  explicit PendingFile(std::string path);
  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&&) = delete;
  ~PendingFile();
  /// The name under which the file is being written.
  [[nodiscard]] const std::string& aside_path() const { return aside_path_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Appends bytes; throws cannot_write.
  void append(Bytes bytes);
  /// Writes bytes at an offset without moving the end of what was appended; throws cannot_write.
  void write_at(std::uint64_t offset, Bytes bytes);
  /// Fills `out` with bytes that were written; throws cannot_write.
  void read_at(std::uint64_t offset, MutableBytes out) const;
  /// How many bytes were appended.
  [[nodiscard]] std::uint64_t byte_count() const { return bytes_; }
  /// Flushes to disk and closes; nothing more can be written. A failed flush is never tried again: the file
  /// is given up.
  void flush();
  /// Flushes, renames and flushes the folder. Throws try_again where the file aside is gone.
  void publish();

 private:
  std::string path_;
  std::string aside_path_;  ///< empty: published, or moved from
  FileDescriptor fd_;
  std::uint64_t bytes_ = 0;
};

/// Publishes a small file in one go.
void publish_file(const std::string& path, std::string_view text);

/// Gives a file a second name, in place of whatever has that name: a hard link. False where it can have none:
/// on another file system, say. Throws bad_data, cannot_write.
[[nodiscard]] bool link_file(const std::string& from, const std::string& to);

/// The last folder that all of `paths` are in, or are; they are whole and normal.
[[nodiscard]] std::string common_folder(std::span<const std::string> paths);

/// Creates a folder and its parents, on disk when this returns; throws cannot_write. `mode`: of the folder.
void make_folders(const std::string& path, unsigned mode = 0777);

/// Gives errno in words, whatever the locale.
[[nodiscard]] std::string error_text(int error_number);

/// Throws that a file or folder cannot be read: try_again where the machine lacks something (descriptors,
/// memory, storage that answers), so that nothing is known of the file; else bad_data.
[[noreturn]] void throw_failed_read(const std::string& path, const std::string& what, int error_number);

/// Gives the bytes that this user may still write on the file system of a file or folder that exists; the
/// largest number where the system does not know.
[[nodiscard]] std::uint64_t free_bytes(const std::string& path);

/// Writes all bytes at an offset, however many each pwrite takes. Returns 0 or the error number: ENOSPC where
/// nothing was written.
[[nodiscard]] int write_all_at(int fd, std::uint64_t offset, Bytes bytes);

/// Throws cannot_write with the path, what was tried and errno in words (with free space where the disk is
/// full).
[[noreturn]] void throw_write_error(const std::string& path, const char* what, int error_number);

}  // namespace chunkhit
