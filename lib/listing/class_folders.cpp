#include "listing/class_folders.h"

#include <fcntl.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "listing/file_extension.h"
#include "listing/root_folder.h"
#include "listing/sample_list.h"

namespace chunkhit {
namespace {

// Extensions of files that operating systems, annotators and people leave beside images. None is a format of
// images: a file of any other name is opened and detected by its bytes.
constexpr auto kExtensions = std::to_array<std::string_view>(
    {".7z",      ".avi",         ".bib",    ".bz2",      ".c",      ".cfg",  ".ckpt", ".cpp",    ".css",
     ".csv",     ".db",          ".doc",    ".docx",     ".exe",    ".flac", ".gz",   ".h",      ".h5",
     ".hdf5",    ".htm",         ".html",   ".ini",      ".ipynb",  ".jar",  ".js",   ".json",   ".jsonl",
     ".lmdb",    ".lnk",         ".lock",   ".log",      ".m4a",    ".mat",  ".md",   ".md5",    ".mdb",
     ".mkv",     ".mov",         ".mp3",    ".mp4",      ".mpeg",   ".mpg",  ".npz",  ".ogg",    ".onnx",
     ".parquet", ".pdf",         ".pickle", ".pkl",      ".pt",     ".pth",  ".py",   ".pyc",    ".rar",
     ".rst",     ".safetensors", ".sh",     ".sha1",     ".sha256", ".so",   ".sql",  ".sqlite", ".srt",
     ".tar",     ".tbz",         ".tbz2",   ".tfrecord", ".tgz",    ".toml", ".tsv",  ".txt",    ".txz",
     ".wav",     ".webm",        ".wmv",    ".xls",      ".xlsx",   ".xml",  ".xz",   ".yaml",   ".yml",
     ".zip",     ".zst"});
constexpr auto kNames = std::to_array<std::string_view>(
    {"thumbs.db", "desktop.ini", "license", "readme", "checksums", "makefile", "ds_store"});

std::string files_text(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " file" : " files");
}

}  // namespace

std::string evident_kind(std::string_view name) {
  std::string letters = lower(name);
  if (std::ranges::find(kNames, letters) != kNames.end()) return letters;
  const std::size_t dot = letters.rfind('.');
  if (dot == std::string::npos) return "";
  const std::string extension = letters.substr(dot);
  return std::ranges::find(kExtensions, extension) != kExtensions.end() ? extension : "";
}

/// A glob without a slash matches names, one with a slash whole paths; without globs evident non-images are
/// skipped.
bool FileNames::take(const std::string& path) {
  const std::string name(file_name(path));
  if (include_.empty()) {
    const std::string kind = evident_kind(name);
    if (kind.empty()) return true;
    ++kinds_[kind];
  } else {
    const auto matches = [&](const std::string& glob) {
      const bool of_path = glob.find('/') != std::string::npos;
      return ::fnmatch(glob.c_str(), (of_path ? path : name).c_str(), of_path ? FNM_PATHNAME : 0) == 0;
    };
    if (std::ranges::any_of(include_, matches)) return true;
  }
  if (left_out_++ == 0) first_ = path;
  return false;
}

std::vector<std::string> FileNames::notices() const {
  if (left_out_ == 0) return {};
  if (!include_.empty()) return {files_text(left_out_) + " match no `include`; the first is " + first_};
  const auto text_of = [](const auto& kind) { return std::to_string(kind.second) + " " + kind.first; };
  return {files_text(left_out_) +
          (left_out_ == 1 ? " is skipped as evidently no image (" : " are skipped as evidently no images (") +
          joined(kinds_, ", ", text_of) + "); `include` '*' takes all"};
}

// Class folders, in the order of torchvision 0.14's datasets.folder (find_classes and make_dataset).

namespace {

constexpr std::size_t kNamesInNotice = 5;
constexpr std::size_t kEmptyFoldersInNotice = 100;  // that a folder is no class shifts ids

FileDescriptor open_root(const std::string& root) {
  FileDescriptor fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.is_open()) return fd;
  throw_failed_read(root, "cannot be opened as a folder: ", errno);
}

std::string joined_path(const std::string& folder, const std::string& name) {
  return folder.empty() || name.empty() ? folder + name : folder + "/" + name;
}

std::string first_names(const std::vector<std::string>& names, std::size_t count = kNamesInNotice) {
  std::string text;
  for (std::size_t index = 0; index < std::min(names.size(), count); ++index)
    text += (index == 0 ? "" : ", ") + names[index];
  return text + (names.size() > count ? ", …" : "");
}

/// Lists one class after the other.
class ClassFolders {
 public:
  ClassFolders(const std::string& root, const ClassFoldersSpec& spec, const FolderRules& rules,
               SampleList& list)
      : root_(root),
        spec_(spec),
        follow_symlinks_(rules.follow_symlinks),
        has_classes_(rules.has_classes),
        list_(list),
        rows_(list) {}

  void list() {
    if (spec_.split_folders.empty()) list_folder("");
    for (const std::string& folder : spec_.split_folders) {
      list_folder(folder);
      list_.folders.push_back({folder, list_.row_count});
    }
    if (list_.size() == 0) fail_without_files("");
    list_.xxh3 = hash_.value();
    for (std::string& notice : file_names_.notices()) list_.notices.push_back(std::move(notice));
    notice_system_folders();
    if (!has_classes_) return;
    number_classes();
    notice_empty_folders();
    notice_missing_classes();
    notice_high_root();
    notice_single_class();
  }

 private:
  using NamedEntry = std::pair<std::string, EntryKind>;

  [[nodiscard]] bool is_folder(EntryKind kind) const {
    return kind == EntryKind::folder || (follow_symlinks_ && kind == EntryKind::link_to_folder);
  }

  // Lists the class folders in the root, or in one of its split folders.
  void list_folder(const std::string& folder) {
    std::set<std::int64_t>& classes = classes_of_folders_.emplace_back();
    const std::size_t before = list_.size();
    if (!has_classes_) list_class(folder.empty() ? "." : folder, "", classes);
    for (const auto& [name, kind] :
         !has_classes_ ? std::vector<NamedEntry>() : with_retries([&] { return entries_of(folder); })) {
      if (is_folder(kind))
        list_class(joined_path(folder, name), name, classes);
      else
        reject_entry(joined_path(folder, name), name, kind);
    }
    if (!folder.empty() && list_.size() == before) fail_without_files(folder);
  }

  /// How the labels of files without class folders are given. Hugging Face's ImageFolder has them in
  /// metadata.csv or metadata.jsonl.
  [[nodiscard]] std::string labels_advice(const std::string& folder) const {
    const std::string path = joined_path(root_, folder);
    const auto has = [&](const char* name) {
      std::error_code error;
      return std::filesystem::exists(joined_path(path, name), error);
    };
    for (const char* const name : {"metadata.csv", "metadata.jsonl"})
      if (has(name)) return "`labels` " + joined_path(path, name) + " `file_column` file_name";
    return "`labels` FILE.csv";
  }

  [[noreturn]] void fail_without_files(const std::string& folder) const {
    const std::string path = joined_path(root_, folder);
    if (!spec_.include.empty() && file_names_.left_out() > 0)
      throw_bad_data(path + ": none of the " + count_text(file_names_.left_out(), "file") +
                     " in sub-folders matches `include`");
    if (beside_classes_ > 0)
      throw_bad_data(path + ": no files to pack in sub-folders, which are the classes, but " +
                     count_text(beside_classes_, "file") +
                     " in the folder itself; for images without class folders give their labels with " +
                     labels_advice(folder) + "; `label_type` none packs them without labels");
    if (!has_classes_) throw_bad_data(path + ": no files to pack");
    throw_bad_data(
        path + ": no files to pack in sub-folders; a class is a sub-folder (or give a list with `labels`)");
  }

  // Returns the possible class folders, sorted; files beside them have no class.
  std::vector<NamedEntry> entries_of(const std::string& folder) {
    std::vector<NamedEntry> entries;
    std::uint64_t file_count = 0;
    FolderReader reader(fd_.get(), root_, folder.empty() ? "." : folder, follow_symlinks_);
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
    for (const std::string& skipped : reader.skipped()) system_folders_.insert(joined_path(folder, skipped));
    beside_classes_ = file_count;
    if (file_count > 0)
      list_.notices.push_back(std::to_string(file_count) + (file_count == 1 ? " file" : " files") +
                              " directly under " + joined_path(root_, folder) +
                              (file_count == 1 ? " has" : " have") + " no class and will not be packed");
    return entries;
  }

  /// Lists the files of a class folder at any depth; links to folders and odd names are rejected, not
  /// skipped.
  void list_class(const std::string& folder, const std::string& name, std::set<std::int64_t>& classes) {
    with_retries([&] { tree_.read(fd_.get(), root_, folder, follow_symlinks_); });
    for (const std::string& skipped : tree_.skipped())
      system_folders_.insert(skipped.substr(folder == "." ? 2 : 0));
    const std::size_t before = list_.size();
    const auto id =
        has_classes_ ? ids_.try_emplace(name, static_cast<std::int64_t>(ids_.size())).first->second : -1;
    for (std::size_t index = 0; index < tree_.count(); ++index) {
      const std::string path = tree_.path(index).substr(folder == "." ? 2 : 0);
      if (tree_.kind(index) == EntryKind::file && !file_names_.take(path)) continue;
      if (tree_.kind(index) != EntryKind::file || !is_utf8(path)) {
        reject_entry(path, name, tree_.kind(index));
        continue;
      }
      hash_.add(path);
      rows_.add(path);
      has_shallow_files_ = has_shallow_files_ || path.find('/', folder.size() + 1) == std::string::npos;
      list_.class_ids.push_back(id);
    }
    if (list_.size() != before)
      classes.insert(id);
    else
      empty_folders_.push_back(escape_bytes(folder));
  }

  void reject_entry(const std::string& path, const std::string& class_name, EntryKind kind) {
    hash_.add(path);
    rows_.reject(path, {class_name},
                 kind == EntryKind::file      ? "file name is not UTF-8"
                 : kind == EntryKind::special ? "not a regular file"
                 : follow_symlinks_           ? "a link to a folder that holds it"
                                              : "a link to a folder, which is not followed");
  }

  // Renumbers the classes from the order in which they were found to that of their names, without empty ones.
  void number_classes() {
    std::vector<std::int64_t> new_ids(ids_.size(), -1);
    for (const auto& [name, id] : ids_) {
      const auto has = [id = id](const std::set<std::int64_t>& classes) { return classes.contains(id); };
      if (std::ranges::none_of(classes_of_folders_, has)) continue;
      new_ids[static_cast<std::size_t>(id)] = static_cast<std::int64_t>(list_.classes.size());
      list_.classes.push_back(name);
    }
    for (std::int64_t& id : list_.class_ids) id = new_ids[static_cast<std::size_t>(id)];
  }

  // Notes classes that are missing in a split folder: training would never see them, or validation not ask.
  void notice_missing_classes() {
    if (spec_.split_folders.size() < 2) return;
    for (std::size_t folder = 0; folder < spec_.split_folders.size(); ++folder) {
      std::vector<std::string> missing;
      for (const auto& [name, id] : ids_)
        if (!classes_of_folders_[folder].contains(id) &&
            std::binary_search(list_.classes.begin(), list_.classes.end(), name))
          missing.push_back(name);
      if (!missing.empty())
        list_.notices.push_back(spec_.split_folders[folder] + " has no samples of " +
                                std::to_string(missing.size()) +
                                (missing.size() == 1 ? " class: " : " classes: ") + first_names(missing));
    }
  }

  void notice_single_class() {
    if (list_.classes.size() == 1 && has_shallow_files_)
      list_.notices.push_back("there is only one class, " + list_.classes[0] +
                              ": a class is a folder directly under " + root_);
  }

  // With a root one level too high every image is in a subfolder of its class folder: train/cat/1.jpg.
  void notice_high_root() {
    if (list_.size() == 0 || !spec_.split_folders.empty()) return;
    const std::string split = split_names(list_);
    if (!split.empty())
      list_.notices.push_back("the classes " + split + " have the names of a split; `split_folders` " +
                              split + " makes a pack of each, whose sub-folders are the classes");
    if (has_shallow_files_ || !split.empty()) return;
    const std::string_view file = list_.file(0);
    const std::size_t first = file.find('/');
    const std::size_t second = file.find('/', first + 1);
    const std::string folder(file.substr(0, first));
    list_.notices.push_back("no class folder holds an image itself, only in sub-folders like " +
                            std::string(file.substr(0, second)) + "; did you mean " + root_ + "/" + folder +
                            " as `root`, or `split_folders` " + folder + ",…?");
  }

  /// A class may have such a name.
  void notice_system_folders() {
    if (system_folders_.empty()) return;
    const std::size_t count = system_folders_.size();
    list_.notices.push_back(count_text(count, "folder") + (count == 1 ? " is" : " are") +
                            " skipped as those that systems leave beside files: " +
                            first_names({system_folders_.begin(), system_folders_.end()}));
  }

  void notice_empty_folders() {
    if (empty_folders_.empty()) return;
    const std::size_t count = empty_folders_.size();
    list_.notices.push_back(
        (count == 1 ? "1 sub-folder holds" : std::to_string(count) + " sub-folders hold") +
        " no files to pack and " + (count == 1 ? "is" : "are") +
        " no class: " + first_names(empty_folders_, kEmptyFoldersInNotice));
  }

  std::string root_;
  const ClassFoldersSpec& spec_;
  bool follow_symlinks_;
  bool has_classes_;
  FileDescriptor fd_ = open_root(root_);
  SampleList& list_;
  SampleRows rows_;
  FolderTree tree_;
  FileNames file_names_{spec_.include};
  TextHash hash_;
  std::map<std::string, std::int64_t> ids_;  // in the order in which class folders were found
  std::vector<std::set<std::int64_t>> classes_of_folders_;
  std::vector<std::string> empty_folders_;
  std::set<std::string> system_folders_;  // skipped; a set, because folders may be read again
  std::uint64_t beside_classes_ = 0;      // files beside the class folders that were listed last
  bool has_shallow_files_ = false;        // directly in a class folder
};

}  // namespace

SampleList list_class_folders(const std::string& root, const ClassFoldersSpec& spec,
                              const FolderRules& rules) {
  SampleList list;
  list.label_columns = {"label"};
  ClassFolders(root, spec, rules, list).list();
  return list;
}

}  // namespace chunkhit
