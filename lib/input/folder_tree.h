// The files below one folder, in the order of their paths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace chunkhit {

/// What a folder's entry is.
enum class EntryKind : std::uint8_t { file, folder, link_to_folder, special };

/// Tells a folder from all others of the machine.
struct FolderId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FolderId&) const = default;
};

/// Reads the entries of one folder that are not hidden (no leading dot), in the kernel's order.
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
  /// The folder itself: links that lead back to it have the same.
  [[nodiscard]] FolderId id() const;

 private:
  [[nodiscard]] EntryKind kind_of(const char* name, unsigned char type) const;

  std::string path_;
  void* stream_ = nullptr;
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
};

}  // namespace chunkhit
