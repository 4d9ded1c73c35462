#include "listing/file_extension.h"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "base/throw_error.h"
#include "base/words.h"
#include "listing/class_folders.h"

namespace chunkhit {
namespace {

/// So many files are looked for before the folder is walked: one that was deleted says nothing.
constexpr std::size_t kProbedFiles = 8;

bool is_mask(std::string_view file) {
  const std::string_view extension = file.substr(without_extension(file).size());
  return std::ranges::find(kMaskExtensions, extension) != kMaskExtensions.end();
}

bool is_no_other(std::string_view file) { return evident_kind(file).empty(); }

/// Names in a table, and where their files lie.
struct ListedNames {
  const TextList& files;
  std::string what;  ///< for messages: "file names of labels.csv"
  const std::string& folder;
  bool follow_symlinks = false;
  std::string flag = "`root`";
  bool (*is_kind)(std::string_view file) = is_no_other;
};

/// What a folder has in the place of files that are not there.
struct FoundNames {
  std::map<std::string, std::string> extensions;  ///< of files that have the name of a listed one: the first
  std::string elsewhere;  ///< a file that has the first listed name, in another folder
};

bool exists(const RootFolder& folder, std::string_view file) {
  try {
    return !folder.open(file).error.is_missing();
  } catch (const MachineError&) {
    return true;
  }
}

/// Nothing where a file is listed as it is.
FoundNames find_names(const ListedNames& names, const FolderTree& tree) {
  std::vector<std::uint64_t> listed(names.files.size());
  for (std::size_t index = 0; index < listed.size(); ++index) listed[index] = file_hash(names.files[index]);
  std::ranges::sort(listed);
  const auto is_listed = [&](std::string_view file) {
    return std::ranges::binary_search(listed, file_hash(file));
  };
  const std::string_view first = file_name(names.files[0]);
  FoundNames found;
  for (std::size_t index = 0; index < tree.count(); ++index) {
    const std::string file = tree.path(index).substr(2);  // behind "./"
    if (is_listed(file)) return {};
    const std::string_view stem = without_extension(file);
    const bool is_kind = names.is_kind(file);
    const std::string_view name = file_name(file);
    if (found.elsewhere.empty() && is_kind && (name == first || file_name(stem) == first))
      found.elsewhere = file;
    if (stem.size() < file.size() && is_kind && is_listed(stem))
      found.extensions.try_emplace(file.substr(stem.size()), file);
  }
  return found;
}

[[noreturn]] void fail_several(const ListedNames& names, const std::map<std::string, std::string>& found) {
  const auto file_of = [](const auto& each) { return each.second; };
  throw_bad_data(names.what + " have no extension, and files of these names below " + names.folder +
                 " have several: " + joined(found, ", ", file_of) +
                 "; write the extensions into the table, or give a folder of one kind as " + names.flag);
}

/// Whether a listed path has folders before those of a file that is there.
bool is_below(std::string_view listed, std::string_view file) {
  return listed.ends_with("/" + std::string(file)) ||
         listed.ends_with("/" + std::string(without_extension(file)));
}

/// The extension that all names lack; empty where none is missing.
std::string missing_extension(const ListedNames& names) {
  if (names.files.empty()) return "";
  const RootFolder folder(names.folder, names.follow_symlinks);
  for (std::size_t index = 0; index < std::min(names.files.size(), kProbedFiles); ++index)
    if (exists(folder, names.files[index])) return "";
  const std::optional<FolderTree> tree = walk_folder(names.folder, names.follow_symlinks);
  if (!tree) return "";
  const FoundNames found = find_names(names, *tree);
  if (found.extensions.size() > 1) fail_several(names, found.extensions);
  if (!found.extensions.empty()) return found.extensions.begin()->first;
  if (!found.elsewhere.empty())
    throw_bad_data(names.what + " are paths below " + names.folder +
                   ": none of them is there, the first is " + std::string(names.files[0]) + ", but " +
                   found.elsewhere + " is; " +
                   (is_below(names.files[0], found.elsewhere)
                        ? "give the folder in which these paths begin as " + names.flag
                        : "write the folders into the table"));
  return "";
}

TextList with_extension(const TextList& names, const std::string& extension) {
  TextList files;
  for (std::size_t index = 0; index < names.size(); ++index) files.add(std::string(names[index]) + extension);
  return files;
}

}  // namespace

std::optional<FolderTree> walk_folder(const std::string& folder, bool follow_symlinks) {
  try {
    const FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    FolderTree tree;
    with_retries([&] { tree.read(fd.get(), folder, ".", follow_symlinks); });
    return tree;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view without_extension(std::string_view path) {
  const std::size_t dot = path.rfind('.'), slash = path.rfind('/');
  const bool has_extension =
      dot != std::string_view::npos && (slash == std::string_view::npos || dot > slash + 1);
  return path.substr(0, has_extension ? dot : path.size());
}

void append_extension(SampleList& list, const std::string& root, const std::string& table,
                      bool follow_symlinks) {
  const ListedNames names{list.files, table + ": file names", root, follow_symlinks};
  const std::string extension = missing_extension(names);
  if (extension.empty()) return;
  list.files = with_extension(list.files, extension);
  for (Reject& reject : list.rejects)
    if (!reject.file.empty()) reject.file += extension;
  list.notices.push_back("file names of " + table + " have no extension: " + extension + " is appended");
}

void append_field_extension(SampleList& list, ListedField& field, const std::string& folder,
                            const std::string& table, bool follow_symlinks) {
  const std::string names = "names of " + plural_of(field.field);
  const bool is_view = traits_of(field.field.role).is_image;
  const std::string extension = missing_extension({field.files, table + ": " + names, folder, follow_symlinks,
                                                   "`pair`", is_view ? is_no_other : is_mask});
  if (extension.empty()) return;
  field.files = with_extension(field.files, extension);
  list.notices.push_back(names + " in " + table + " have no extension: " + extension + " is appended");
}

}  // namespace chunkhit
