#include "read/pack_source.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <map>
#include <system_error>

#include "base/file.h"
#include "base/remote/http_client.h"
#include "base/remote/url.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "chunkhit/verify.h"
#include "manifest/plan.h"
#include "manifest/run_record.h"
#include "manifest/split_packs.h"
#include "read/worker_threads.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

/// Counts the parts of a plan's pack that have a record.
std::uint64_t count_records(const fs::path& folder) {
  std::uint64_t count = 0;
  for (const auto& entry : FolderEntries(folder)) {
    const std::string name = entry.path().filename().string();
    count += name.starts_with("part-") && name.ends_with(".json") ? 1 : 0;
  }
  return count;
}

/// Says how far the packs of a plan are; empty where the folder has none.
std::string planned_text(const fs::path& folder) {
  const std::string path = (folder / kPlanName).string();
  std::string text = "planned";
  try {
    const std::optional<ByteBuffer> bytes = find_file(path, kMaxManifestBytes);
    if (!bytes) return "";
    const PackPlan plan = parse_plan(as_text(*bytes), path);
    std::uint64_t done = 0;
    for (const PlannedPack& pack : plan.packs) done += count_records(folder / pack.name);
    text += ", " + std::to_string(done) + " of " + std::to_string(plan.parts()) + " parts done";
  } catch (const Error&) {
    // pack-run says what is wrong with the plan, or it is of a kind that has no parts yet.
  }
  return text + ": run pack-run " + (folder.empty() ? "." : folder.string());
}

/// Explains why a folder is no pack: unfinished, never packed, or a folder of several packs.
[[noreturn]] void refuse_folder(const std::string& folder) {
  std::vector<std::string> packs;
  bool parts = false;
  std::error_code error;
  for (const auto& entry : FolderEntries(folder)) {
    if (std::filesystem::exists(entry.path() / kManifestName, error))
      packs.push_back(entry.path().filename().string());
    parts = parts || entry.path().filename().string().starts_with("part-");
  }
  for (const fs::path& at : {fs::path(folder), fs::path(folder).parent_path()})
    if (const std::string planned = planned_text(at); !planned.empty())
      throw_bad_data(folder + ": no finished pack: " + planned);
  std::string message = folder + ": no finished pack: " + std::string(kManifestName) + " is missing";
  if (parts) message += "; rerun the command that began it to resume";
  if (!parts) message += "; pack it first with pack-images, or pack-sparse for ratings";
  std::sort(packs.begin(), packs.end());
  if (!packs.empty())
    message = folder +
              (packs.size() == 1 ? ": holds a pack; name it:" : ": holds several packs; name one of them:");
  for (const std::string& pack : packs) message += " " + folder + "/" + pack;
  throw_bad_data(message);
}

std::size_t label_columns_of(const ChunkReader& part) {
  const std::size_t samples = part.samples().rows.size();
  return samples == 0 ? 0 : part.samples().labels.values.size() / samples;
}

/// Throws bad_data if labels have different names in two parts. External files have no names.
void check_same_label_names(const ChunkReader& part, const ChunkReader& first) {
  const std::vector<std::string>& found = part.spec().label_columns;
  const std::vector<std::string>& expected = first.spec().label_columns;
  const auto has_names = [](const std::vector<std::string>& names) {
    return std::ranges::none_of(names, &std::string::empty);
  };
  if (found == expected || !has_names(found) || !has_names(expected)) return;
  throw_bad_data(part.path() + ": labels " + joined(found) + ", expected " + joined(expected) + " as in " +
                 first.path());
}

/// Takes what a manifest says of its pack.
void take_manifest(AnyManifest read, PackSource& source) {
  source.manifest = std::move(read.images);
  source.matrix = std::move(read.ratings);
}

std::string without_slashes(std::string folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder;
}

/// A server has no folders that could be asked for: a part is known by its name's end.
PackSource open_remote_source(const std::string& url) {
  PackSource source;
  source.path = url;
  check_url(url);
  const fs::path name = fs::path(url).filename();
  for (const Container& each : containers()) {
    if (name.extension() != each.extension) continue;
    source.part = url;
    return source;
  }
  source.folder = without_slashes(name == kManifestName ? fs::path(url).parent_path().string() : url);
  try {
    take_manifest(read_manifest(source.folder), source);
  } catch (const Error& missing) {
    if (missing.code() != ErrorCode::bad_data) throw;
    throw Error(missing.code(),
                missing.what() +
                    std::string("; expected the URL of a pack's folder, its manifest or one of its parts"));
  }
  return source;
}

/// A pack beside others, and what it says of its split.
struct FoundPack {
  fs::path parent;
  std::string name;                   ///< of its folder
  std::string split_name;             ///< its own; empty without a split
  std::vector<std::string> expected;  ///< the packs of its split
};

/// Reads what a pack says of its split. A damaged manifest says nothing, and a merged pack belongs to none.
FoundPack find_pack(const std::string& path) {
  FoundPack found{fs::path(path).parent_path(), fs::path(path).filename().string(), {}, {}};
  try {
    const std::optional<AnyManifest> read = find_manifest(path);
    if (!read || read->manifest().is_merged) return found;
    found.split_name = read->manifest().spec.get("split-name");
    if (!found.split_name.empty()) found.expected = split_pack_names(read->manifest().spec);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;
  }
  return found;
}

/// Returns whether a folder holds a finished pack or parts of an unfinished one.
bool holds_pack(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / kManifestName, error)) return true;
  for (const auto& entry : FolderEntries(folder))
    if (entry.path().filename().string().starts_with("part-")) return true;
  return false;
}

}  // namespace

/// A path is a pack's folder, its manifest, or a single part.
PackSource open_source(const std::string& path) {
  if (is_url(path)) return open_remote_source(path);
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
  source.folder = without_slashes(source.folder);
  std::optional<AnyManifest> manifest = find_manifest(source.folder);
  if (!manifest) refuse_folder(source.folder);
  take_manifest(*std::move(manifest), source);
  return source;
}

std::vector<PackSource> open_sources(const std::vector<std::string>& paths) {
  if (paths.empty()) throw_usage("no path was given to read from");
  std::vector<PackSource> sources;
  sources.reserve(paths.size());
  for (const std::string& path : paths) sources.push_back(open_source(path));
  return sources;
}

/// Names of datasets apply to external HDF5 files only; given for other sources alone they are an error.
void check_names(std::span<const PackSource> sources, const Hdf5Names& names) {
  const auto takes_names = [](const PackSource& source) {
    return !source.part.empty() && container_of(source.part).is_read_by_library;
  };
  if (names == Hdf5Names{} || std::ranges::any_of(sources, takes_names)) return;
  const PackSource& first = sources.front();
  const std::string what = first.part.empty() ? first.folder + ": is a pack" : first.part + ": is a shard";
  throw_usage(what + ", whose images and labels are known; names of datasets are for HDF5 external files");
}

std::vector<std::string> roots_of(const std::string& folder, const PackManifest& manifest) {
  std::map<std::uint64_t, std::string> known;
  const std::string path = folder + "/" + std::string(kRunName);
  if (const auto run = find_file(path, kMaxManifestBytes)) known = image_roots(as_text(*run));
  std::vector<std::string> roots;
  for (const std::uint64_t content : content_ids(manifest)) roots.push_back(known[content]);
  return roots;
}

std::vector<std::string> part_paths(const std::string& folder, const std::vector<PartRecord>& parts) {
  std::vector<std::string> paths;
  paths.reserve(parts.size());
  for (const PartRecord& part : parts) paths.push_back(folder + "/" + part.file);
  return paths;
}

void count_samples_before(std::span<const std::unique_ptr<ChunkReader>> parts) {
  std::uint64_t before = 0;
  for (const std::unique_ptr<ChunkReader>& part : parts) {
    part->set_samples_before(before);
    before += part->samples().rows.size();
  }
}

std::vector<std::unique_ptr<ChunkReader>> open_pack_parts(const std::string& folder,
                                                          const Manifest& manifest) {
  const std::vector<std::string> paths = part_paths(folder, manifest.parts);
  const Container& of_all = container(manifest.container);  // without a request for the first bytes
  std::vector<std::unique_ptr<ChunkReader>> parts(paths.size());
  std::vector<std::exception_ptr> errors(paths.size());
  std::atomic<std::size_t> next = 0;
  // Opening waits for several answers of a server one after the other: many parts are opened at a time.
  const std::size_t threads = is_url(folder) ? HttpClient::kMaxRequests : 1;
  run_on_threads(std::min(paths.size(), threads), [&] {
    for (std::size_t part = next++; part < paths.size(); part = next++) {
      try {
        parts[part] = of_all.open(paths[part]);
      } catch (...) {
        errors[part] = std::current_exception();
        next = paths.size();
      }
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  count_samples_before(parts);
  return parts;
}

/// All parts need the same labels, because a batch can have samples of several parts.
std::size_t count_label_columns(const ChunkSet& chunks) {
  const ChunkReader& first = *chunks.parts().front();
  for (const auto& part : chunks.parts()) {
    if (label_columns_of(*part) != label_columns_of(first) && !part->chunks().empty())
      throw_bad_data(part->path() + ": labels of " + std::to_string(label_columns_of(*part)) +
                     " numbers, expected " + std::to_string(label_columns_of(first)) + " as in " +
                     first.path());
    if (label_columns_of(first) > 0) check_same_label_names(*part, first);
  }
  return label_columns_of(first);
}

/// A folder without a pack of its own stands for the packs directly below it, as `--split` writes them.
std::vector<std::string> packs_of(const std::string& path) {
  std::error_code error;
  std::vector<std::string> packs;
  if (!fs::is_directory(path, error) || holds_pack(path)) return {path};
  const auto add_packs = [&](const fs::path& folder) {
    for (const auto& entry : FolderEntries(folder))
      if (entry.is_directory(error) && holds_pack(entry.path())) packs.push_back(entry.path().string());
  };
  add_packs(path);
  for (const auto& entry : FolderEntries(path))
    if (entry.is_directory(error) && !holds_pack(entry.path())) add_packs(entry.path());
  std::sort(packs.begin(), packs.end());
  return packs.empty() ? std::vector{path} : packs;
}

std::map<std::string, std::string> missing_packs(const std::string& path) {
  const std::vector<std::string> packs = packs_of(path);
  if (packs.front() == path) return {};
  std::vector<FoundPack> found;
  found.reserve(packs.size());
  for (const std::string& pack : packs) found.push_back(find_pack(pack));
  std::map<std::string, std::string> missing;
  for (const FoundPack& pack : found)
    for (const std::string& name : pack.expected) {
      const auto is_it = [&](const FoundPack& other) {
        return other.parent == pack.parent && (other.name == name || other.split_name == name);
      };
      const std::string wanted = (pack.parent / name).string();
      if (std::ranges::none_of(found, is_it))
        missing.try_emplace(wanted, wanted + ": is missing: " + (pack.parent / pack.name).string() +
                                        " is of the split " + joined(pack.expected) +
                                        "; restore it, or rerun the command that packed them (see run.json)");
    }
  return missing;
}

}  // namespace chunkhit
