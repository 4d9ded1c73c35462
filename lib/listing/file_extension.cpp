#include "listing/file_extension.h"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/throw_error.h"
#include "listing/class_folders.h"
#include "listing/root_folder.h"

namespace chunkhit {
namespace {

/// So many files are looked for before the folder is walked: one that was deleted says nothing.
constexpr std::size_t kProbedFiles = 8;

std::optional<FolderTree> walk(const std::string& root, bool follow_symlinks) {
  try {
    const FileDescriptor fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    FolderTree tree;
    with_retries([&] { tree.read(fd.get(), root, ".", follow_symlinks); });
    return tree;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The extensions of files that have the name of a listed one, each with its first file; none where a file is
/// listed as it is.
std::map<std::string, std::string> extensions_of(const SampleList& list, const FolderTree& tree) {
  std::vector<std::uint64_t> listed(list.size());
  for (std::size_t index = 0; index < listed.size(); ++index) listed[index] = file_hash(list.file(index));
  std::ranges::sort(listed);
  const auto is_listed = [&](std::string_view file) {
    return std::ranges::binary_search(listed, file_hash(file));
  };
  std::map<std::string, std::string> found;
  for (std::size_t index = 0; index < tree.count(); ++index) {
    const std::string file = tree.path(index).substr(2);  // behind "./"
    if (is_listed(file)) return {};
    const std::size_t dot = file.rfind('.');
    if (dot == file.npos || file.find('/', dot) != file.npos || !evident_kind(file).empty()) continue;
    if (is_listed(std::string_view(file).substr(0, dot))) found.try_emplace(file.substr(dot), file);
  }
  return found;
}

[[noreturn]] void fail_several(const std::map<std::string, std::string>& found, const std::string& root,
                               const std::string& table) {
  std::string files;
  for (const auto& [extension, file] : found) files += (files.empty() ? "" : ", ") + file;
  throw_bad_data(table + ": file names have no extension, and files of these names below " + root +
                 " have several: " + files +
                 "; write the extensions into the table, or give a folder of one kind as `root`");
}

}  // namespace

void append_extension(SampleList& list, const std::string& root, const std::string& table,
                      bool follow_symlinks) {
  const RootFolder folder(root, follow_symlinks);
  for (std::size_t index = 0; index < std::min(list.size(), kProbedFiles); ++index)
    if (!folder.lacks(list.file(index))) return;
  const std::optional<FolderTree> tree = walk(root, follow_symlinks);
  if (!tree) return;
  const std::map<std::string, std::string> found = extensions_of(list, *tree);
  if (found.empty()) return;
  if (found.size() > 1) fail_several(found, root, table);
  const std::string& extension = found.begin()->first;
  TextList files;
  for (std::size_t index = 0; index < list.size(); ++index)
    files.add(std::string(list.file(index)) + extension);
  list.files = std::move(files);
  for (Reject& reject : list.rejects)
    if (!reject.file.empty()) reject.file += extension;
  list.notices.push_back("file names of " + table + " have no extension: " + extension + " is appended");
}

}  // namespace chunkhit
