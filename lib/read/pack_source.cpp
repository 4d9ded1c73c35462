#include "read/pack_source.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <map>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/remote/http_client.h"
#include "base/remote/url.h"
#include "chunkhit/error.h"
#include "chunkhit/remote.h"
#include "manifest/manifest.h"
#include "manifest/plan.h"
#include "types/input_sizes.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;

/// Counts the parts of a plan's pack that have a record.
std::uint64_t count_records(const fs::path& folder) {
  std::uint64_t count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    count += name.starts_with("part-") && name.ends_with(".json") ? 1 : 0;
  }
  return count;
}

/// Says how far the packs of a plan are; empty where the folder has none.
std::string planned_text(const fs::path& folder) {
  const std::string path = (folder / kPlanName).string();
  std::error_code error;
  if (!fs::exists(path, error)) return "";
  std::string text = "planned";
  try {
    const PackPlan plan = parse_plan(as_text(read_file(path, kMaxManifestBytes)), path);
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
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (std::filesystem::exists(entry.path() / kManifestName, error))
      packs.push_back(entry.path().filename().string());
    parts = parts || entry.path().filename().string().starts_with("part-");
  }
  for (const fs::path& at : {fs::path(folder), fs::path(folder).parent_path()})
    if (const std::string planned = planned_text(at); !planned.empty())
      throw Error(ErrorCode::bad_data, folder + ": no finished pack: " + planned);
  std::string message = folder + ": no finished pack: " + std::string(kManifestName) + " is missing";
  if (parts) message += "; rerun the command that began it to resume";
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

/// Throws bad_data if labels have different names in two parts. External files have no names.
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

namespace {

/// Reads the manifest of `source.folder`.
void read_manifest(PackSource& source) {
  const std::string manifest = source.folder + "/" + std::string(kManifestName);
  const ByteBuffer text = read_file(manifest, kMaxManifestBytes);
  if (manifest_format(as_text(text), manifest) == kMatrixFormat)
    source.matrix = parse_matrix_manifest(as_text(text), manifest);
  else
    source.manifest = parse_manifest(as_text(text), manifest);
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
    read_manifest(source);
  } catch (const Error& missing) {
    if (missing.code() != ErrorCode::bad_data) throw;
    throw Error(missing.code(),
                missing.what() +
                    std::string("; expected the URL of a pack's folder, its manifest or one of its parts"));
  }
  return source;
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
  if (!fs::exists(fs::path(source.folder) / kManifestName, error)) refuse_folder(source.folder);
  read_manifest(source);
  return source;
}

std::vector<PackSource> open_sources(const std::vector<std::string>& paths) {
  if (paths.empty()) throw Error(ErrorCode::usage, "no path was given to read from");
  std::vector<PackSource> sources;
  sources.reserve(paths.size());
  for (const std::string& path : paths) sources.push_back(open_source(path));
  return sources;
}

/// Names of datasets apply to external HDF5 files only; given for other sources alone they are an error.
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

std::vector<std::string> roots_of(const std::string& folder, const PackManifest& manifest) {
  std::map<std::uint64_t, std::string> known;
  const std::string path = folder + "/" + std::string(kRunName);
  if (file_exists(path)) known = image_roots(as_text(read_file(path, kMaxManifestBytes)));
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

std::vector<std::unique_ptr<ChunkReader>> open_pack_parts(const std::vector<std::string>& paths) {
  if (paths.empty() || !is_url(paths.front())) return open_parts(paths);
  const Container& container = container_of(paths.front());
  std::vector<std::unique_ptr<ChunkReader>> parts(paths.size());
  std::vector<std::exception_ptr> errors(paths.size());
  std::atomic<std::size_t> next = 0;
  {
    // Opening waits for several answers one after the other: many parts are opened at a time.
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::min(paths.size(), HttpClient::kMaxRequests); ++i)
      threads.emplace_back([&, stop = StopScope::current()] {
        const StopScope scope(stop);
        for (std::size_t part = next++; part < paths.size(); part = next++) {
          try {
            parts[part] = container.open(paths[part]);
          } catch (...) {
            errors[part] = std::current_exception();
            next = paths.size();
          }
        }
      });
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return parts;
}

/// All parts need the same labels, because a batch can have samples of several parts.
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

namespace {

// A line break inside quotes does not end a row.
std::uint64_t count_csv_rows(std::string_view text) {
  std::uint64_t lines = 0;
  bool quoted = false;
  for (const char letter : text) {
    if (letter == '"') quoted = !quoted;
    if (letter == '\n' && !quoted) ++lines;
  }
  return lines == 0 ? 0 : lines - 1;
}

}  // namespace

bool check_size(const std::string& path, std::uint64_t bytes, std::vector<std::string>& problems) {
  try {
    const std::uint64_t found = InputFile(path).byte_count();
    if (found != bytes)
      problems.push_back(path + ": has " + std::to_string(found) + " bytes, expected " +
                         std::to_string(bytes));
    return found == bytes;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;
    problems.emplace_back(error.what());
    return false;
  }
}

bool check_file(const std::string& path, std::uint64_t bytes, std::uint64_t xxh3,
                std::vector<std::string>& problems) {
  if (!check_size(path, bytes, problems)) return false;
  const std::uint64_t found = hash_file(path);
  if (found != xxh3)
    problems.push_back(path + ": checksum of the file " + hash_text(found) + ", expected " + hash_text(xxh3));
  return found == xxh3;
}

void add_damaged(const std::string& folder, std::string_view name, VerifyReport& report) {
  const std::string path = folder + "/" + std::string(name);
  if (!is_url(path) && file_exists(path)) report.remove_to_rebuild.push_back(path);
}

/// Checks size, hash and row count of users.csv, items.csv, rejects.csv or warnings.csv.
void check_list(const std::string& folder, const FileRecord& file, std::uint64_t rows, VerifyReport& report) {
  const std::size_t problems = report.problems.size();
  const std::string path = folder + "/" + file.file;
  if (check_file(path, file.bytes, file.xxh3, report.problems)) {
    const ByteBuffer text = read_file(path, file.bytes);
    const std::uint64_t found = count_csv_rows(as_text(text));
    if (found != rows)
      report.problems.push_back(path + ": rows " + std::to_string(found) + ", expected " +
                                std::to_string(rows));
  }
  if (report.problems.size() > problems) add_damaged(folder, file.file, report);
}

namespace {

/// Formats "LOCATION: WHAT FOUND, expected EXPECTED".
std::string differ(const std::string& location, const std::string& what, const std::string& found,
                   const std::string& expected) {
  return location + ": " + what + " " + found + ", expected " + expected;
}

std::map<std::int64_t, std::uint64_t> counts_of(const std::vector<PackClass>& classes) {
  std::map<std::int64_t, std::uint64_t> counts;
  for (const PackClass& record : classes)
    if (record.samples > 0) counts[record.id] = record.samples;
  return counts;
}

}  // namespace

/// Recomputes from the parts' records what the manifest sums up: classes, warnings, mean and std.
std::vector<std::string> compare_with_parts(const std::string& manifest_path, const Manifest& manifest,
                                            const std::vector<PartManifest>& parts) {
  std::vector<std::string> problems;
  PixelSums pixels;
  std::optional<InputSizes> inputs{std::in_place};
  std::map<std::int64_t, std::uint64_t> counts;
  std::uint64_t warned = 0;
  for (std::size_t index = 0; index < parts.size(); ++index) {
    const PartManifest& part = parts[index];
    const SourcePack& source = manifest.sources[manifest.parts[index].source];
    pixels.add(part.part.pixels);
    add_sizes(part.part.inputs, inputs);
    warned += part.part.warnings.size();
    for (const auto& [id, samples] : part.part.class_counts) counts[source.class_id(id)] += samples;
    if (part.spec != source.spec)
      problems.push_back(manifest_path + ": its spec differs from that of " + part.part.file + ": " +
                         first_difference(part.spec, source.spec));
  }
  if (manifest.class_labels && counts != counts_of(manifest.classes))
    problems.push_back(manifest_path + ": the classes' samples are not those of the parts");
  if (manifest.warned != warned)
    problems.push_back(differ(manifest_path, "samples packed with warnings", std::to_string(manifest.warned),
                              std::to_string(warned)));
  const std::uint32_t channels = manifest.sample.channels;
  if (pixels.mean(channels) != manifest.mean || pixels.std(channels) != manifest.std)
    problems.push_back(manifest_path + ": mean and std are not those of the parts' pixels");
  if (inputs != manifest.inputs)
    problems.push_back(manifest_path + ": the sizes of the input images are not those of the parts");
  if (manifest.own_sizes()) {
    const std::uint64_t raw_bytes = pixels.pixel_count * channels;
    if (manifest.raw_bytes != raw_bytes)
      problems.push_back(differ(manifest_path, "bytes of all pixels", std::to_string(manifest.raw_bytes),
                                std::to_string(raw_bytes)));
    return problems;
  }
  const std::uint64_t chunk_bytes = manifest.chunk_samples * manifest.sample.byte_count();
  if (manifest.chunk_bytes != chunk_bytes)
    problems.push_back(differ(manifest_path, "bytes of a chunk", std::to_string(manifest.chunk_bytes),
                              std::to_string(chunk_bytes)));
  return problems;
}

namespace {

/// Compares the names of a part's classes with those that the manifest gives to their ids.
void compare_classes(const std::string& part_path, const Manifest& manifest, const SourcePack& source,
                     const PartSpec& part, std::vector<std::string>& problems) {
  const auto compare = [&](std::int64_t own_id, const std::string& expected) {
    const auto index = static_cast<std::uint64_t>(own_id);
    const std::string name = own_id >= 0 && index < part.classes.size() ? part.classes[index] : "";
    if (name != expected)
      problems.push_back(differ(part_path, "name of class " + std::to_string(own_id), name, expected));
  };
  if (source.class_ids.empty())
    for (const PackClass& record : manifest.classes) compare(record.id, record.name);
  for (std::size_t own_id = 0; own_id < source.class_ids.size(); ++own_id)
    compare(static_cast<std::int64_t>(own_id),
            manifest.classes[static_cast<std::size_t>(source.class_ids[own_id])].name);
  if (!source.class_ids.empty() && part.classes.size() > source.class_ids.size())
    problems.push_back(differ(part_path, "classes", std::to_string(part.classes.size()),
                              std::to_string(source.class_ids.size())));
}

}  // namespace

std::vector<std::string> compare_with_part(const std::string& part_path, const Manifest& manifest,
                                           const PartRecord& listed, const PartSpec& part) {
  std::vector<std::string> problems;
  const SourcePack& source = manifest.sources[listed.source];
  if (part.pack_id != source.pack_id)
    problems.push_back(
        differ(part_path, "belongs to pack", hash_text(part.pack_id), hash_text(source.pack_id)));
  if (part.sample != manifest.sample || part.own_sizes != manifest.own_sizes())
    problems.push_back(part_path + ": holds samples of another shape than the manifest says");
  if (part.codec != source.codec) problems.push_back(differ(part_path, "codec", part.codec, source.codec));
  if (part.chunk_samples != source.chunk_samples)
    problems.push_back(differ(part_path, "samples of a chunk", std::to_string(part.chunk_samples),
                              std::to_string(source.chunk_samples)));
  compare_classes(part_path, manifest, source, part, problems);
  return problems;
}

std::vector<std::string> compare_with_part(const std::string& part_path, const MatrixManifest& manifest,
                                           const PartRecord& listed, const PartSpec& part) {
  std::vector<std::string> problems;
  const SourcePack& source = manifest.sources[listed.source];
  const auto compare = [&](const char* what, std::uint64_t found, std::uint64_t expected) {
    if (found != expected)
      problems.push_back(differ(part_path, what, std::to_string(found), std::to_string(expected)));
  };
  const MatrixShape& shape = *part.matrix;
  if (part.pack_id != source.pack_id)
    problems.push_back(
        differ(part_path, "belongs to pack", hash_text(part.pack_id), hash_text(source.pack_id)));
  compare("columns", shape.column_count, manifest.columns);
  compare("matrices", shape.matrix_count, manifest.matrices.size());
  if (shape.value_type != manifest.value_type || shape.scale != manifest.scale)
    problems.push_back(part_path + ": values of another type or scale than the manifest says");
  if (part.codec != source.codec) problems.push_back(differ(part_path, "codec", part.codec, source.codec));
  if (source.chunk_samples > 0) compare("rows of a chunk", part.chunk_samples, source.chunk_samples);
  return problems;
}

namespace {

/// Returns whether a folder holds a finished pack or parts of an unfinished one.
bool holds_pack(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / kManifestName, error)) return true;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with("part-")) return true;
  return false;
}

}  // namespace

/// A folder without a pack of its own stands for the packs directly below it, as `--split` writes them.
std::vector<std::string> packs_of(const std::string& path) {
  std::error_code error;
  std::vector<std::string> packs;
  if (!fs::is_directory(path, error) || holds_pack(path)) return {path};
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.is_directory(error) && holds_pack(entry.path())) packs.push_back(entry.path().string());
  std::sort(packs.begin(), packs.end());
  return packs.empty() ? std::vector{path} : packs;
}

std::optional<PartManifest> check_part_record(const std::string& folder, const PackManifest& manifest,
                                              const PartRecord& listed, std::vector<std::string>& problems) {
  const std::string sidecar = folder + "/" + part_record_name(listed.file);
  try {
    PartManifest own = parse_part_manifest(as_text(read_file(sidecar, kMaxManifestBytes)), sidecar);
    const PartRecord& part = own.part;
    // In a merged pack parts have other names than in the packs that they were packed for.
    if (own.pack_id != manifest.pack_id_of(listed) || (part.file != listed.file && !manifest.is_merged) ||
        part.xxh3 != listed.xxh3 || part.bytes != listed.bytes || part.samples != listed.samples ||
        part.rows != listed.rows || part.chunks != listed.chunks || part.stored_bytes != listed.stored_bytes)
      problems.push_back(sidecar + ": differs from what the manifest says of " + listed.file);
    return own;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::try_again) throw;
    problems.emplace_back(error.what());
    return std::nullopt;
  }
}

}  // namespace chunkhit
