// The classes whose ids a pack takes: those of another pack, or of a list of names.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "listing/sample_list.h"
#include "manifest/manifest.h"
#include "pack/images/image_input.h"
#include "pack/pack_folder.h"

namespace chunkhit {
namespace {

/// Of ImageNet's LOC_synset_mapping.txt the ids alone, which are the names of its folders: n01440764 of
/// "n01440764 tench, Tinca tinca".
std::vector<std::string> without_words(std::vector<std::string> names) {
  constexpr std::size_t kIdLetters = 9;
  const auto has_id = [](const std::string& name) {
    return name.starts_with('n') && name.find_first_not_of("0123456789", 1) == kIdLetters &&
           name[kIdLetters] == ' ';
  };
  if (std::ranges::all_of(names, has_id))
    for (std::string& name : names) name.resize(kIdLetters);
  return names;
}

[[noreturn]] void fail_no_pack(const std::string& folder) {
  std::vector<std::string> packs;
  for (const std::string& name : folder_entries(folder))
    if (holds_pack(folder + "/" + name, kImagePacks)) packs.push_back(name);
  std::ranges::sort(packs);
  if (packs.empty()) throw_bad_data("`classes`: " + folder + " holds no " + std::string(kManifestName));
  throw_bad_data("`classes`: " + folder + " holds " + count_text(packs.size(), "pack") +
                 "; name one of them, as " + folder + "/" + packs.front());
}

}  // namespace

std::vector<std::string> read_classes(const std::string& path, bool are_columns) {
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(path, error);
  const std::string file = is_folder ? manifest_path(path) : path;
  const std::optional<ByteBuffer> found = find_file(file, kMaxManifestBytes);
  if (!found && is_folder) fail_no_pack(path);
  const ByteBuffer& bytes = found ? *found : read_file(file, kMaxManifestBytes);
  if (!is_folder && std::filesystem::path(file).filename() != kManifestName)
    return without_words(parse_class_names(as_text(bytes), file));
  const Manifest manifest = parse_manifest(as_text(bytes), file);
  if (are_columns && !manifest.class_labels) return manifest.label_columns;
  std::vector<std::string> names;
  for (const PackClass& record : manifest.classes) {
    if (record.name.empty() || record.id != static_cast<std::int64_t>(names.size()))
      throw_bad_data(file + ": class " + std::to_string(record.id) +
                     " has no name; `classes` needs a pack whose classes have names");
    names.push_back(record.name);
  }
  if (names.empty()) throw_bad_data(file + ": has no classes for `classes`");
  return names;
}

}  // namespace chunkhit
