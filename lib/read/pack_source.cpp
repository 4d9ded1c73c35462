#include "read/pack_source.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

[[noreturn]] void refuse_folder(const std::string& folder) {
  std::vector<std::string> packs;
  bool parts = false;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (std::filesystem::exists(entry.path() / kManifestName, error))
      packs.push_back(entry.path().filename().string());
    parts = parts || entry.path().filename().string().starts_with("part-");
  }
  std::string message = folder + ": no finished pack: " + std::string(kManifestName) + " is missing";
  if (parts) message += "; the command that began it goes on where it stopped";
  if (!parts) message += "; pack it first with pack-images, or pack-sparse for ratings";
  std::sort(packs.begin(), packs.end());
  if (!packs.empty())
    message = folder +
              (packs.size() == 1 ? ": holds a pack; name it:" : ": holds several packs; name one of them:");
  for (const std::string& pack : packs) message += " " + folder + "/" + pack;
  throw Error(ErrorCode::bad_data, message);
}

std::size_t label_columns_of(const ChunkReader& part) {
  const std::size_t samples = part.samples().rows.size();
  return samples == 0 ? 0 : part.samples().labels.values.size() / samples;
}

std::string list_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Throws bad_data where equal numbers of labels have other names. External files name none.
void check_same_label_names(const ChunkReader& part, const ChunkReader& first) {
  const std::vector<std::string>& found = part.spec().label_columns;
  const std::vector<std::string>& expected = first.spec().label_columns;
  const auto has_names = [](const std::vector<std::string>& names) {
    return std::ranges::none_of(names, &std::string::empty);
  };
  if (found == expected || !has_names(found) || !has_names(expected)) return;
  throw Error(ErrorCode::bad_data, part.path() + ": labels " + list_text(found) + ", expected " +
                                       list_text(expected) + " as in " + first.path());
}

}  // namespace

PackSource open_source(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  PackSource source;
  source.path = path;
  const bool is_folder = fs::is_directory(path, error);
  if (!is_folder && fs::path(path).filename() != kManifestName) {
    source.part = path;
    return source;
  }
  source.folder = is_folder ? path : fs::path(path).parent_path().string();
  if (source.folder.empty()) source.folder.push_back('.');
  while (source.folder.size() > 1 && source.folder.ends_with('/')) source.folder.pop_back();
  const std::string manifest = source.folder + "/" + std::string(kManifestName);
  if (!fs::exists(manifest, error)) refuse_folder(source.folder);
  const ByteBuffer text = read_file(manifest, kMaxManifestBytes);
  if (manifest_format(as_text(text), manifest) == kMatrixFormat)
    source.matrix = parse_matrix_manifest(as_text(text), manifest);
  else
    source.manifest = parse_manifest(as_text(text), manifest);
  return source;
}

std::vector<PackSource> open_sources(const std::vector<std::string>& paths) {
  if (paths.empty()) throw Error(ErrorCode::usage, "no path was given to read from");
  std::vector<PackSource> sources;
  sources.reserve(paths.size());
  for (const std::string& path : paths) sources.push_back(open_source(path));
  return sources;
}

void check_names(std::span<const PackSource> sources, const Hdf5Names& names) {
  const auto takes_names = [](const PackSource& source) {
    return !source.part.empty() && container_of(source.part).name == "hdf5";
  };
  if (names == Hdf5Names{} || std::ranges::any_of(sources, takes_names)) return;
  const PackSource& first = sources.front();
  const std::string what = first.part.empty() ? first.folder + ": is a pack" : first.part + ": is a shard";
  throw Error(ErrorCode::usage, what +
                                    ", whose images and labels are known; names of datasets are for HDF5 "
                                    "external files");
}

std::vector<std::string> part_paths(const std::string& folder, const std::vector<PartRecord>& parts) {
  std::vector<std::string> paths;
  paths.reserve(parts.size());
  for (const PartRecord& part : parts) paths.push_back(folder + "/" + part.file);
  return paths;
}

void check_part_hash(const ChunkReader& part, const PartRecord& listed) {
  const std::uint64_t found = part.hash_of_all();
  if (found != listed.xxh3)
    throw Error(ErrorCode::bad_data, part.path() + ": checksum of the part " + hash_text(found) +
                                         ", expected " + hash_text(listed.xxh3) +
                                         " as its pack's manifest says: damaged, or of another pack");
}

std::size_t count_label_columns(const ChunkSet& chunks) {
  const ChunkReader& first = *chunks.parts().front();
  for (const auto& part : chunks.parts()) {
    if (label_columns_of(*part) != label_columns_of(first) && !part->chunks().empty())
      throw Error(ErrorCode::bad_data, part->path() + ": labels of " +
                                           std::to_string(label_columns_of(*part)) + " numbers, expected " +
                                           std::to_string(label_columns_of(first)) + " as in " +
                                           first.path());
    if (label_columns_of(first) > 0) check_same_label_names(*part, first);
  }
  return label_columns_of(first);
}

}  // namespace chunkhit
