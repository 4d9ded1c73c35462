// The files below one folder, in the order of their paths, their sizes and times; errors of the machine, and
// retries after them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/file_error.h"
#include "chunkhit/error.h"

namespace chunkhit {

/// Size and modification time, to detect a changed file; all 0 if it cannot be opened.
struct FileStamp {
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

/// The stamp of an open file as it is now; throws as InputFile.
[[nodiscard]] FileStamp stamp_of(const InputFile& file);

/// The machine could not read an input (EIO, ESTALE, ENOTCONN, EMFILE, ENOMEM, …): that says nothing of the
/// input, and may pass. The code is try_again.
class MachineError : public Error {
 public:
  explicit MachineError(const std::string& message) : Error(ErrorCode::try_again, message) {}
};

/// Calls `read` up to three times, within about two seconds, while it throws try_again.
template <class Read>
auto with_retries(Read read) -> decltype(read()) {
  for (const auto pause : {std::chrono::milliseconds(400), std::chrono::milliseconds(1600)}) {
    try {
      return read();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::try_again) throw;
      std::this_thread::sleep_for(pause);
    }
  }
  return read();
}

/// The names with accents of folders, by what their Unicode forms have in common.
struct NameForms {
  std::mutex mutex;
  std::map<std::string, std::unordered_map<std::string, std::string>> of_folder;
};

/// Opens files below one folder; a path that leads out of it (`..`, absolute elsewhere, a symbolic link) is
/// an error. A link may be absolute where it leads to a file below the folder. A name that no entry has is
/// looked for in the other Unicode form.
class RootFolder {
 public:
  /// A file that was opened, or why it was not: then the rest means nothing.
  struct File {
    FileError error;
    std::uint64_t bytes = 0;
    FileStamp stamp;
    FileDescriptor fd;
    /// Reads all of it into `buffer` (resized), or returns what went wrong. Throws MachineError.
    [[nodiscard]] FileError read(ByteBuffer& buffer) const;
  };

  /// Opens the folder; throws bad_data when it is none, try_again when the machine cannot read it. With
  /// `follow_symlinks` links may lead out of it.
  explicit RootFolder(const std::string& path, bool follow_symlinks = false);
  /// Opens a regular file of at least one byte. A path is relative, or absolute and below the folder. Never
  /// waits on a FIFO or device. Throws MachineError. Thread-safe.
  [[nodiscard]] File open(std::string_view path) const;
  /// Whether both are one folder.
  [[nodiscard]] bool is(const RootFolder& other) const { return real_path_ == other.real_path_; }
  /// The rest of an absolute path behind the folder, by whatever name of the folder the path leads there;
  /// nothing where it leads elsewhere.
  [[nodiscard]] std::optional<std::string_view> rest_below(std::string_view absolute) const;
  /// The stamp of a file without opening it; throws MachineError. Thread-safe.
  [[nodiscard]] FileStamp stamp(std::string_view path) const;
  /// Throws MachineError where a file may be missing because the file system that holds it is: this folder is
  /// not the one that was opened, or the file's own folder below it is as empty as a bare mount point.
  void check_mounted(std::string_view missing_file) const;
  /// Returns whether a file was deleted: its folder can be opened and has no entry of its name. A link's
  /// target was deleted if its folder has other entries.
  [[nodiscard]] bool lacks(std::string_view file) const;

 private:
  [[nodiscard]] std::string below_root(std::string_view path) const;
  [[nodiscard]] std::string in_form_of_entries(const std::string& below) const;
  [[nodiscard]] std::string entry_like(const std::string& folder, const std::string& name) const;

  std::string path_;
  std::string real_path_;
  bool follow_symlinks_;
  FileDescriptor fd_;
  std::unique_ptr<NameForms> forms_ = std::make_unique<NameForms>();
};

/// What a folder's entry is.
enum class EntryKind : std::uint8_t { file, folder, link_to_folder, special };

/// Identifies a folder among all others of the machine.
struct FolderId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FolderId&) const = default;
};

/// Reads the entries of one folder that are not hidden (no leading dot) and no folder that a system
/// leaves beside files (@eaDir, $RECYCLE.BIN, lost+found, __MACOSX), in the kernel's order.
class FolderReader {
 public:
  /// Opens `relative_path` below the folder `root_fd` (named `root` in messages); throws bad_data when it
  /// cannot be read, or is a link that is not to be followed, try_again when that is the machine's error.
  FolderReader(int root_fd, const std::string& root, const std::string& relative_path,
               bool follow_symlinks = false);
  FolderReader(const FolderReader&) = delete;
  FolderReader& operator=(const FolderReader&) = delete;
  ~FolderReader();
  /// Gives the next entry, valid until the next call; false at the end. Links to anything but folders count
  /// as files.
  [[nodiscard]] bool next(std::string_view& name, EntryKind& kind);
  /// Folders of systems that were skipped so far, by name.
  [[nodiscard]] const std::vector<std::string>& skipped() const { return skipped_; }
  /// The folder itself: links that lead back to it have the same.
  [[nodiscard]] FolderId id() const;

 private:
  [[nodiscard]] EntryKind kind_of(const char* name, unsigned char type) const;

  std::string path_;
  void* stream_ = nullptr;
  std::vector<std::string> skipped_;
};

/// Everything below a folder that is no folder itself: about 16 bytes an entry beside its name.
class FolderTree {
 public:
  /// Walks the folder and all folders in it; replaces what was there before. Links to folders are entries,
  /// unless `follow_symlinks`: then only those that lead back to a folder above are.
  void read(int root_fd, const std::string& root, const std::string& relative_path, bool follow_symlinks);
  [[nodiscard]] std::size_t count() const { return entries_.size(); }
  /// Gives the path of an entry relative to the root. Entries are sorted by folder, then by name, as bytes.
  [[nodiscard]] std::string path(std::size_t index) const;
  [[nodiscard]] EntryKind kind(std::size_t index) const { return entries_[index].kind; }
  /// Paths of folders of systems that were skipped.
  [[nodiscard]] const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  struct Entry {
    std::uint64_t name_begin;
    std::uint32_t folder;
    std::uint16_t name_bytes;
    EntryKind kind;
  };
  [[nodiscard]] std::string_view name(const Entry& entry) const {
    return std::string_view(names_).substr(entry.name_begin, entry.name_bytes);
  }
  struct Folder {
    std::string path;
    std::uint32_t parent;
    FolderId id;
  };
  [[nodiscard]] bool leads_back(std::uint32_t folder) const;
  void add_entry(std::uint32_t folder, std::string_view name, EntryKind kind);
  void sort_entries();

  std::vector<Folder> folders_;
  std::string names_;
  std::vector<Entry> entries_;
  std::vector<std::string> skipped_;
};

}  // namespace chunkhit
