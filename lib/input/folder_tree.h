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

/// Reads the entries of one folder that are not hidden (no leading dot), in the kernel's order.
class FolderReader {
 public:
  /// Opens `relative_path` below the folder `root_fd` (named `root` in messages); throws bad_data when it
  /// cannot be read.
  FolderReader(int root_fd, const std::string& root, const std::string& relative_path);
  FolderReader(const FolderReader&) = delete;
  FolderReader& operator=(const FolderReader&) = delete;
  ~FolderReader();
  /// Gives the next entry, valid until the next call; false at the end. Links to anything but folders count
  /// as files.
  [[nodiscard]] bool next(std::string_view& name, EntryKind& kind);

 private:
  [[nodiscard]] EntryKind kind_of(const char* name, unsigned char type) const;

  std::string path_;
  void* stream_ = nullptr;
};

/// Everything below a folder that is no folder itself: about 16 bytes an entry beside its name.
class FolderTree {
 public:
  /// Walks the folder and all folders in it, but through no links; replaces what was there before.
  void read(int root_fd, const std::string& root, const std::string& relative_path);
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
  void sort_entries();

  std::vector<std::string> folders_;
  std::string names_;
  std::vector<Entry> entries_;
};

}  // namespace chunkhit
