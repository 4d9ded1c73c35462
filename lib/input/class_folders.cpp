// Class folders, in the order of torchvision 0.14's datasets.folder (find_classes and make_dataset).
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "chunkhit/error.h"
#include "input/folder_tree.h"
#include "input/sample_list.h"
#include "input/sample_rows.h"
#include "input/utf8.h"

namespace chunkhit {
namespace {

constexpr std::size_t kNamesInNotice = 5;

FileDescriptor open_root(const std::string& root) {
  FileDescriptor fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.is_open()) return fd;
  throw Error(ErrorCode::bad_data, root + ": cannot be opened as a folder: " + error_text(errno));
}

/// Lists one class after the other.
class ClassFolders {
 public:
  ClassFolders(const std::string& root, SampleList& list) : root_(root), list_(list), rows_(list) {}

  void list() {
    for (const auto& [name, kind] : entries_of_root()) {
      if (kind == EntryKind::folder)
        list_class(name);
      else
        reject_entry(name, name, kind);
    }
    list_.xxh3 = hash_.value();
    notice_empty_folders();
    notice_deep_classes();
    notice_single_class();
  }

 private:
  using NamedEntry = std::pair<std::string, EntryKind>;

  // Gives what may be a class, sorted; files right below the root have none.
  std::vector<NamedEntry> entries_of_root() {
    std::vector<NamedEntry> entries;
    std::uint64_t file_count = 0;
    FolderReader reader(fd_.get(), root_, ".");
    std::string_view name;
    EntryKind kind{};
    while (reader.next(name, kind)) {
      const bool is_class = kind == EntryKind::folder || kind == EntryKind::link_to_folder;
      if (is_class)
        entries.emplace_back(name, kind);
      else
        ++file_count;
    }
    std::sort(entries.begin(), entries.end());
    if (file_count > 0)
      list_.notices.push_back(std::to_string(file_count) + (file_count == 1 ? " file" : " files") +
                              " directly under " + root_ + (file_count == 1 ? " has" : " have") +
                              " no class and will not be packed");
    return entries;
  }

  void list_class(const std::string& name) {
    tree_.read(fd_.get(), root_, name);
    const std::size_t before = list_.size();
    const auto id = static_cast<std::int64_t>(list_.classes.size());
    for (std::size_t index = 0; index < tree_.count(); ++index) {
      const std::string path = tree_.path(index);
      if (tree_.kind(index) != EntryKind::file || !is_utf8(path)) {
        reject_entry(path, name, tree_.kind(index));
        continue;
      }
      hash_.add(path);
      rows_.add(path);
      has_shallow_files_ = has_shallow_files_ || path.find('/', name.size() + 1) == std::string::npos;
      list_.class_ids.push_back(id);
    }
    // Files that were rejected, all of a folder whose name is not UTF-8 say, are files too.
    if (list_.size() != before)
      list_.classes.push_back(name);
    else if (tree_.count() == 0)
      empty_folders_.push_back(escape_bytes(name));
  }

  void reject_entry(const std::string& path, const std::string& class_name, EntryKind kind) {
    hash_.add(path);
    rows_.reject(path, {class_name},
                 kind == EntryKind::file      ? "file name is not UTF-8"
                 : kind == EntryKind::special ? "not a regular file"
                                              : "a link to a folder, which is not followed");
  }

  void notice_single_class() {
    if (list_.classes.size() == 1 && has_shallow_files_)
      list_.notices.push_back("there is only one class, " + list_.classes[0] +
                              ": a class is a folder directly under " + root_);
  }

  // A level too high every picture lies in a folder of its class folder: train/cat/1.jpg.
  void notice_deep_classes() {
    if (list_.size() == 0 || has_shallow_files_) return;
    const std::string_view file = list_.file(0);
    const std::size_t first = file.find('/');
    const std::size_t second = file.find('/', first + 1);
    list_.notices.push_back("no class folder holds a picture itself, only in sub-folders like " +
                            std::string(file.substr(0, second)) + "; did you mean " + root_ + "/" +
                            std::string(file.substr(0, first)) + " as ROOT?");
  }

  void notice_empty_folders() {
    if (empty_folders_.empty()) return;
    const std::size_t count = empty_folders_.size();
    std::string text = count == 1 ? "1 sub-folder holds" : std::to_string(count) + " sub-folders hold";
    text += " no files and will be no class: ";
    for (std::size_t index = 0; index < std::min(count, kNamesInNotice); ++index)
      text += (index == 0 ? "" : ", ") + empty_folders_[index];
    list_.notices.push_back(text + (count > kNamesInNotice ? ", …" : ""));
  }

  std::string root_;
  FileDescriptor fd_ = open_root(root_);
  SampleList& list_;
  SampleRows rows_;
  FolderTree tree_;
  TextHash hash_;
  std::vector<std::string> empty_folders_;
  bool has_shallow_files_ = false;  // directly in a class folder
};

}  // namespace

SampleList list_class_folders(const std::string& root) {
  SampleList list;
  list.label_columns = {"label"};
  ClassFolders(root, list).list();
  if (list.row_count == 0 || list.size() == 0)
    throw Error(ErrorCode::bad_data,
                root + ": no files in sub-folders; a class is a sub-folder (or give a list with --labels)");
  return list;
}

}  // namespace chunkhit
