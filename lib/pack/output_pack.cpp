#include "pack/output_pack.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/aside_name.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/remote/url.h"
#include "base/throw_error.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "pack/parallel_files.h"

namespace chunkhit {
namespace {

[[noreturn]] void refuse_other_kind(const std::string& path, const PackKind& found) {
  throw_cannot_write(path + ": holds " + std::string(found.name) +
                     "; `force` removes it, another `output` keeps both");
}

/// Returns whether a folder is a finished pack. A manifest alone is no proof: other programs write one, too.
bool is_finished_pack(const std::filesystem::path& folder) {
  return file_exists(folder / kManifestName) &&
         (file_exists(folder / kRejectsName) || file_exists(folder / kItemsName) ||
          !held_format(folder.string()).empty());
}

/// Lists the folders of a path that do not exist, the deepest first.
std::vector<std::string> missing_folders(const std::string& path) {
  std::vector<std::string> missing;
  std::error_code error;
  std::filesystem::path at(path);
  while (!at.empty() && !std::filesystem::exists(std::filesystem::symlink_status(at, error))) {
    missing.push_back(at.string());
    at = at.parent_path();
  }
  return missing;
}

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

/// Makes a folder and opens it; retries if another run that made it removes it in between.
FileDescriptor open_made_folder(const std::string& path) {
  for (int tries = 1;; ++tries) {
    make_folders(path);
    FileDescriptor folder(::open(path.c_str(), kFolderFlags));
    if (folder.is_open() || errno != ENOENT || tries == 3) return folder;
  }
}

FileDescriptor lock_folder(const std::string& path, FileDescriptor lock, int operation = LOCK_EX) {
  if (!lock.is_open()) throw_write_error(path, "cannot open the folder", errno);
  // A lock on the folder itself leaves no file behind and ends with the process. On file systems without
  // locks there is none.
  if (::flock(lock.get(), operation | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(ErrorCode::try_again, path + ": another process is writing this pack: wait until it is done");
  return lock;
}

/// A folder with files of the other kind of pack is not overwritten.
void check_kind(const std::string& path, const PackKind& kind) {
  for (const std::string& name : folder_entries(path))
    if (const PackKind* const found = kind_of_file(name); found != nullptr && found->format != kind.format)
      refuse_other_kind(path, *found);
}

/// Returns a manifest's format; the error for a damaged manifest says how to repair it.
std::string format_of(std::string_view text, const std::string& folder) {
  try {
    return manifest_format(text, manifest_path(folder));
  } catch (const Error& error) {
    const std::string run = folder + "/" + std::string(kRunName);
    if (const auto record = find_file(run, kMaxManifestBytes); record && is_merge_run(as_text(*record)))
      throw;  // no packing command made it
    throw Error(error.code(),
                std::string(error.what()) + "; remove this file, and the same command writes it again");
  }
}

/// Throws cannot_write if a missing folder could not be made.
void check_can_be_made(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 && errno != ENOENT)
    throw_write_error(path, "cannot create the folder", errno);
  std::filesystem::path at = std::filesystem::absolute(path);
  std::error_code error;
  while (!std::filesystem::exists(std::filesystem::symlink_status(at, error)) && at.has_relative_path())
    at = at.parent_path();
  if (!std::filesystem::is_directory(at, error)) throw_write_error(path, "cannot create the folder", ENOTDIR);
  if (::access(at.c_str(), W_OK | X_OK) != 0) throw_write_error(path, "cannot create the folder", errno);
}

/// Returns whether a temporary file may be removed; `force` includes recent ones of other machines.
bool is_unowned(const std::string& folder, const std::string& name, bool force) {
  const AsideWriter writer = find_aside_writer(folder, name);
  return writer == AsideWriter::is_gone || (force && writer == AsideWriter::unknown);
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_write_error(path, "cannot remove", errno);
}

[[noreturn]] void throw_other_pack(const std::string& folder, const std::string& difference) {
  throw_cannot_write(folder + ": holds another pack (" + difference +
                     "); `force` starts from scratch, another `output` keeps both");
}

void check_part(const std::string& folder, const PartManifest& part, const PackKind& kind,
                const PackIdentity& wanted) {
  if (part.format != kind.format)
    throw_other_pack(folder, part.format + " before, " + std::string(kind.format) + " now");
  if (part.pack_id != wanted.pack_id)
    throw_other_pack(folder, wanted.difference({part.pack_id, part.spec, std::nullopt}));
}

/// Returns the number of the part whose record a file name is; nullopt for other names.
std::optional<std::uint64_t> recorded_part(const std::string& name) {
  if (!name.starts_with("part-") || !name.ends_with(".json")) return std::nullopt;
  const std::string digits = name.substr(5, name.size() - 10);
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != digits.npos)
    return std::nullopt;
  const std::uint64_t index = std::stoull(digits);
  return part_stem(index) + ".json" == name ? std::optional(index) : std::nullopt;
}

}  // namespace

bool has_size(const std::string& path, std::uint64_t bytes) {
  std::error_code error;
  return std::filesystem::file_size(path, error) == bytes && !error;
}

std::string part_stem(std::uint64_t part_index) {
  std::string digits = std::to_string(part_index);
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  return "part-" + digits;
}

void throw_resumable(const Error& error, const FinishedParts& finished, std::uint64_t rows_left) {
  const std::string kept = finished.count == 0   ? ""
                           : finished.count == 1 ? "1 finished part is kept; "
                                                 : count_text(finished.count) + " finished parts are kept; ";
  const double row_bytes =
      finished.rows == 0 ? 0 : static_cast<double>(finished.bytes) / static_cast<double>(finished.rows);
  const std::string room = row_bytes == 0 || rows_left == 0
                               ? "room"
                               : "room for about " + bytes_text(row_bytes * static_cast<double>(rows_left));
  const std::string_view what = error.what();
  const auto is_reason = [&](int reason) {
    return what.find(std::generic_category().message(reason)) != std::string_view::npos;
  };
  const std::string way_out = std::ranges::any_of(std::array{EACCES, EPERM, EROFS}, is_reason)
                                  ? "with permission to write"
                                  : "with " + room;
  throw_cannot_write(error.what() + ("; " + kept) + way_out + " there, the same command resumes");
}

namespace {

/// A URL without what may be secret in it: a user with a password, and a query.
std::string shown_url(const std::string& url) {
  std::string shown = url.substr(0, url.find_first_of("?#"));
  const std::size_t host = shown.find("://") + 3;
  const std::size_t at = shown.substr(0, shown.find('/', host)).rfind('@');
  if (at != std::string::npos && at >= host) shown.erase(host, at + 1 - host);
  return shown;
}

}  // namespace

void check_local_input(const char* option, const std::string& input) {
  if (!is_url(input)) return;
  const std::string url = shown_url(input);
  const std::string name = std::filesystem::path(url).filename().string();
  const bool is_file = name.find('.') != std::string::npos;
  const std::string copy = !url.starts_with("s3://") ? (is_file ? "wget " : "wget -r -np ") + url
                           : is_file                 ? "aws s3 cp " + url + " ."
                                     : "aws s3 sync " + url + " " + (name.empty() ? "." : name);
  throw_usage(std::string(option) + ": " + url +
              " is on a server, expected files here: mount it (mount-s3, rclone mount), or copy it: " + copy +
              "; a finished pack can be read from there (lib/remote-packs.md)");
}

void check_outside_packs(const std::string& output) {
  if (is_url(output))
    throw_usage("`output`: " + shown_url(output) +
                " is on a server, expected a folder here: a pack is written to a local one, and any tool "
                "uploads it (lib/remote-packs.md)");
  std::error_code error;
  const std::string ending = std::filesystem::path(output).extension().string();
  constexpr std::array<std::string_view, 4> kFileEndings{".h5", ".hdf5", ".h5ad", ".shard"};
  if (std::ranges::find(kFileEndings, ending) != kFileEndings.end() &&
      !std::filesystem::exists(output, error))
    throw_usage("`output`: " + output + " would be a folder, whose parts are the files: leave out " + ending);
  std::filesystem::path at = std::filesystem::weakly_canonical(std::filesystem::absolute(output), error);
  while (at.has_relative_path()) {
    at = at.parent_path();
    if (is_finished_pack(at))
      throw_usage("`output`: " + output + " lies in the pack " + at.string() + "; choose a folder outside");
  }
}

/// An unfinished pack is identified by the records of its parts.
std::uint64_t pack_id(const RecordedSpec& spec, std::uint64_t input_xxh3) {
  std::string text = hash_text(input_xxh3);
  for (const SpecEntry& entry : spec) text += "\n" + entry.name + "=" + entry.value;
  return xxh3(as_bytes(text));
}

std::string pack_path(const std::string& output, const std::string& pack_name) {
  return pack_name.empty() ? output : output + "/" + pack_name;
}

std::optional<AnyManifest> held_pack(const std::string& folder, const PackKind& kind) {
  const std::string path = manifest_path(folder);
  const std::optional<ByteBuffer> text = find_file(path, kMaxManifestBytes);
  if (!text) return std::nullopt;
  const PackKind* const found = kind_of_format(format_of(as_text(*text), folder));
  if (found != nullptr && found->format != kind.format) refuse_other_kind(folder, *found);
  return parse_any_manifest(kind, as_text(*text), path);
}

std::optional<AnyManifest> finished_pack(const std::string& folder, const PackKind& kind) {
  std::optional<AnyManifest> held = held_pack(folder, kind);
  if (held && held->manifest().is_merged)
    throw_cannot_write(folder +
                       ": holds a merged pack (pack-merge), which is finished and cannot be packed further; "
                       "`force` removes it, another `output` keeps it");
  return held;
}

std::optional<PartManifest> part_manifest(const std::string& folder, std::uint64_t part_index) {
  const std::string path = folder + "/" + part_stem(part_index) + ".json";
  const std::optional<ByteBuffer> text = find_file(path, kMaxManifestBytes);
  if (!text) return std::nullopt;
  return parse_part_manifest(as_text(*text), path);
}

void check_same_pack(const std::string& folder, const PackKind& kind, const PackIdentity& wanted) {
  if (const std::optional<AnyManifest> finished = finished_pack(folder, kind)) {
    const PackManifest& manifest = finished->manifest();
    if (manifest.pack_id != wanted.pack_id)
      throw_other_pack(folder, wanted.difference({manifest.pack_id, manifest.spec, manifest.rows}));
    return;
  }
  for (const std::string& name : folder_entries(folder))
    if (const auto part_index = recorded_part(name))
      if (const std::optional<PartManifest> part = part_manifest(folder, *part_index))
        check_part(folder, *part, kind, wanted);
}

/// Tasks of a plan share the folder and remove nothing; a single run owns it and clears temporary files.
OutputPack::OutputPack(const PackKind& kind, const std::string& path, bool force, bool is_shared)
    : kind_(kind), path_(path) {
  if (is_shared) {
    lock_ = lock_folder(path_, open_made_folder(path_), LOCK_SH);
    return;
  }
  made_ = missing_folders(path_);
  lock_ = lock_folder(path_, open_made_folder(path_));
  check_only_our_files(path_);
  remove_entries(force);
  check_kind(path_, kind_);
}

void OutputPack::check(const PackKind& kind, const std::string& path, bool force) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    check_can_be_made(path);
    return;
  }
  const FileDescriptor lock = lock_folder(path, FileDescriptor(::open(path.c_str(), kFolderFlags)));
  check_only_our_files(path);
  if (!force) check_kind(path, kind);
}

/// Removes the folders that this run made, as long as they are empty.
OutputPack::~OutputPack() {
  for (const std::string& folder : made_)
    if (::rmdir(folder.c_str()) != 0) break;
}

void OutputPack::remove_entries(bool all) const {
  // The manifest goes first: a pack without it is unfinished, whatever happens meanwhile.
  if (all) remove_file(file(kManifestName));
  for (const std::string& name : folder_entries(path_))
    if (is_left_over(name) ? is_unowned(path_, name, all) : all) remove_file(file(name));
}

void OutputPack::remove_others(const PackManifest& manifest, const std::vector<FileRecord>& tables) const {
  std::set<std::string> names{std::string(kManifestName), std::string(kRunName)};
  for (const PartRecord& part : manifest.parts) names.insert({part.file, part_record_name(part.file)});
  for (const FileRecord& table : tables) names.insert(table.file);
  for (const std::string& name : folder_entries(path_))
    if (!names.contains(name) && !is_left_over(name)) remove_file(file(name));
}

void OutputPack::remove() const {
  clear();
  if (::rmdir(path_.c_str()) != 0) throw_write_error(path_, "cannot remove", errno);
}

std::optional<PartManifest> planned_part(const std::string& folder, const PackKind& kind,
                                         std::uint64_t pack_id, std::uint64_t part_index) {
  try {
    std::optional<PartManifest> found = part_manifest(folder, part_index);
    if (found && found->format == kind.format && found->pack_id == pack_id &&
        has_size(folder + "/" + found->part.file, found->part.bytes))
      return found;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
  }
  return std::nullopt;
}

std::optional<PartManifest> whole_part(const std::string& folder, const PackManifest& manifest,
                                       const PartRecord& listed) {
  if (!has_size(folder + "/" + listed.file, listed.bytes)) return std::nullopt;
  const std::string path = folder + "/" + part_record_name(listed.file);
  const std::optional<ByteBuffer> text = find_file(path, kMaxManifestBytes);
  if (!text) return std::nullopt;
  try {
    PartManifest own = parse_part_manifest(as_text(*text), path);
    const bool has_name = own.part.file == listed.file || manifest.is_merged;
    if (own.pack_id == manifest.pack_id_of(listed) && has_name && own.part.xxh3 == listed.xxh3) return own;
  } catch (const Error& failure) {
    if (failure.code() != ErrorCode::bad_data) throw;  // says nothing about the part itself
  }
  return std::nullopt;
}

bool OutputPack::is_whole(const PackManifest& manifest, const std::vector<FileRecord>& tables) const {
  std::atomic<bool> are_whole{true};
  for_each_file(manifest.parts.size(), [&](std::size_t part_index) {
    if (are_whole && !whole_part(path_, manifest, manifest.parts[part_index])) are_whole = false;
  });
  return are_whole && std::ranges::all_of(tables, [&](const FileRecord& table) {
           return has_size(file(table.file), table.bytes);
         });
}

/// Makes a finished pack unfinished again, without its damaged parts. The manifest goes first.
void OutputPack::reopen(const PackManifest& manifest) const {
  remove_file(file(kManifestName));
  for (std::size_t part_index = 0; part_index < manifest.parts.size(); ++part_index) {
    const std::string& part = manifest.parts[part_index].file;
    if (!whole_part(path_, manifest, manifest.parts[part_index]))
      remove_part(part_index, std::string_view(part).substr(part.rfind('.')));
  }
}

// The record is removed first: without it no run takes the other files for a finished part.
void OutputPack::remove_part(std::uint64_t part_index, std::string_view extension) const {
  for (const std::string_view end : {std::string_view(".json"), kInputsExtension, extension})
    remove_file(file(part_stem(part_index) + std::string(end)));
}

std::string OutputPack::other_writers_notice() const {
  std::string text;
  for (const std::string& name : folder_entries(path_))
    if (is_left_over(name) && find_aside_writer(path_, name) == AsideWriter::unknown)
      text.append(text.empty() ? "" : "; ").append(name);
  if (text.empty()) return text;
  return path_ + ": another machine writes, or left within a day: " + text +
         "; if none writes there any more, remove it";
}

std::string OutputPack::other_codecs_notice() const {
  const std::string& own = identity_.codec_library;
  const auto is_other = [&](const PartRecord& part) {
    return !part.codec_library.empty() && part.codec_library != own;
  };
  const auto first = std::ranges::find_if(parts_, is_other);
  if (first == parts_.end()) return "";
  return path_ + ": " + count_text(std::ranges::count_if(parts_, is_other), "part") + " compressed by " +
         first->codec_library + ", others by " + own + ": same contents, but not the bytes of one build";
}

std::vector<std::string> OutputPack::notices() const {
  std::vector<std::string> notices{other_writers_notice(), other_codecs_notice()};
  std::erase(notices, "");
  return notices;
}

void OutputPack::check_space(const SpaceNeed& need) const {
  const std::string error = space_error(need, free_bytes(path_));
  if (!error.empty()) throw_cannot_write(path_ + ": " + error);
}

void OutputPack::identify(PackIdentity identity) {
  identity_ = std::move(identity);
  if (!identity_.check_plan) check_same_pack(path_, kind_, identity_);
}

std::optional<PartRecord> OutputPack::finished_part(std::uint64_t part_index) const {
  std::optional<PartManifest> found;
  if (identity_.check_plan) {
    found = planned_part(path_, kind_, identity_.pack_id, part_index);
  } else {
    found = part_manifest(path_, part_index);
    if (found) check_part(path_, *found, kind_, identity_);
  }
  if (!found || (identity_.accepts && !identity_.accepts(found->part, part_index)) ||
      !has_size(file(found->part.file), found->part.bytes))
    return std::nullopt;
  return std::move(found->part);
}

void OutputPack::add_part(PartRecord record, bool is_kept) {
  parts_kept_ += is_kept ? 1 : 0;
  parts_.push_back(std::move(record));
}

PartRecord OutputPack::publish_part(std::uint64_t part_index, CompleteRecord part) const {
  // Another run of the same pack may have been here first; what it published has the same bytes.
  if (std::optional<PartRecord> published = finished_part(part_index)) return std::move(*published);
  if (identity_.check_plan) identity_.check_plan();
  part.record.codec_library = identity_.codec_library;
  if (part.stamps) part.stamps->publish();
  part.file.publish();
  publish_file(
      file(part_stem(part_index) + ".json"),
      part_manifest_text({std::string(kind_.format), identity_.pack_id, identity_.spec, part.record}));
  return std::move(part.record);
}

void OutputPack::describe(const RunFrame& frame, std::uint64_t input_xxh3, PackManifest& manifest) const {
  manifest.pack_id = identity_.pack_id;
  manifest.tool = frame.record.tool;
  manifest.spec = identity_.spec;
  manifest.input_xxh3 = input_xxh3;
  manifest.parts = parts_;
}

void OutputPack::publish(const PackManifest& manifest, const std::vector<FileRecord>& tables,
                         std::string_view text, const RunFrame& frame) const {
  std::map<std::uint64_t, std::string> roots;
  if (!frame.root.empty()) roots.emplace(content_ids(manifest).front(), frame.root);
  frame.publish(path_, std::move(roots));
  if (!is_whole(manifest, tables))
    throw Error(ErrorCode::try_again,
                path_ + ": another process changed this folder; rerun the same command to resume");
  publish_file(file(kManifestName), text);
}

void add_written(const PartReport& written, std::string file, PartRecord& record) {
  record.file = std::move(file);
  record.bytes = written.bytes;
  record.xxh3 = written.xxh3;
  record.chunks = written.chunk_count;
  record.stored_bytes = written.stored_bytes;
}

}  // namespace chunkhit
