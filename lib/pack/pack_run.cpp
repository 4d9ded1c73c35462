#include "pack/pack_run.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

[[noreturn]] void throw_other_pack(const std::string& folder, const std::string& difference) {
  throw Error(ErrorCode::cannot_write, folder + ": holds another pack (" + difference +
                                           "); `force` starts from scratch, another `output` keeps both");
}

void check_part(const std::string& folder, const PartManifest& part, const PackIdentity& wanted) {
  if (part.format != wanted.format)
    throw_other_pack(folder, part.format + " before, " + std::string(wanted.format) + " now");
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

/// Reads the fields of a manifest that both kinds of packs have.
std::optional<PackManifest> finished_pack(const std::string& folder, std::string_view format) {
  if (format == kImagesFormat) return OutputFolder::finished_pack(folder);
  return OutputFolder::finished_matrix_pack(folder);
}

}  // namespace

std::string absolute_root(const std::string& root) {
  std::error_code error;
  return std::filesystem::canonical(root, error).string();
}

/// An unfinished pack is identified by the records of its parts.
std::uint64_t pack_id(const std::vector<SpecEntry>& spec, std::uint64_t input_xxh3) {
  std::string text = hash_text(input_xxh3);
  for (const SpecEntry& entry : spec) text += "\n" + entry.name + "=" + entry.value;
  return xxh3(as_bytes(text));
}

void check_same_pack(const std::string& folder, const PackIdentity& wanted) {
  if (const std::optional<PackManifest> finished = finished_pack(folder, wanted.format)) {
    if (finished->pack_id != wanted.pack_id)
      throw_other_pack(folder, wanted.difference({finished->pack_id, finished->spec, finished->rows}));
    return;
  }
  for (const std::string& name : folder_entries(folder))
    if (const auto part_index = recorded_part(name))
      if (const std::optional<PartManifest> part = OutputFolder::part_manifest(folder, *part_index))
        check_part(folder, *part, wanted);
}

PackRun::PackRun(const OutputFolder& folder, PackIdentity identity)
    : folder_(folder), identity_(std::move(identity)) {
  if (!identity_.check_plan) check_same_pack(folder_.path(), identity_);
}

/// Reads the record of a part of this pack. In a plan, damaged or other records count as missing.
std::optional<PartManifest> PackRun::part_manifest(std::uint64_t part_index) const {
  try {
    std::optional<PartManifest> found = folder_.part_manifest(part_index);
    if (!found) return std::nullopt;
    const bool is_own = found->format == identity_.format && found->pack_id == identity_.pack_id;
    if (is_own) return found;
    if (!identity_.check_plan) check_part(folder_.path(), *found, identity_);
  } catch (const Error& error) {
    if (!identity_.check_plan || error.code() != ErrorCode::bad_data) throw;
  }
  return std::nullopt;
}

std::optional<PartRecord> PackRun::finished_part(std::uint64_t part_index) const {
  std::optional<PartManifest> found = part_manifest(part_index);
  if (!found) return std::nullopt;
  if (identity_.accepts && !identity_.accepts(found->part, part_index)) return std::nullopt;
  if (!folder_.holds(found->part.file, found->part.bytes)) return std::nullopt;
  return std::move(found->part);
}

void PackRun::add_part(PartRecord record, bool is_kept) {
  parts_kept_ += is_kept ? 1 : 0;
  parts_.push_back(std::move(record));
}

PartRecord PackRun::publish_part(std::uint64_t part_index, CompleteRecord part) const {
  // Another run of the same pack may have been here first; what it published has the same bytes.
  if (std::optional<PartRecord> published = finished_part(part_index)) return std::move(*published);
  if (identity_.check_plan) identity_.check_plan();
  if (part.stamps) part.stamps->publish();
  part.file.publish();
  publish_file(
      folder_.file(part_stem(part_index) + ".json"),
      part_manifest_text({std::string(identity_.format), identity_.pack_id, identity_.spec, part.record}));
  return std::move(part.record);
}

void PackRun::describe(const RunCall& call, std::uint64_t input_xxh3, PackManifest& manifest) const {
  manifest.pack_id = identity_.pack_id;
  manifest.tool = call.tool;
  manifest.spec = identity_.spec;
  manifest.input_xxh3 = input_xxh3;
  manifest.parts = parts_;
}

void PackRun::publish(const PackManifest& manifest, const std::vector<FileRecord>& tables,
                      std::string_view text, const RunCall& call) const {
  std::map<std::uint64_t, std::string> roots;
  if (!call.root.empty()) roots.emplace(content_ids(manifest).front(), call.root);
  write_run(folder_.path(), call.tool, call.command_line, call.start, call.threads, std::move(roots))
      .publish();
  if (!folder_.is_whole(manifest, tables))
    throw Error(ErrorCode::try_again,
                folder_.path() + ": another process changed this folder; rerun the same command to resume");
  publish_file(folder_.file(kManifestName), text);
}

void add_written(const PartReport& written, std::string file, PartRecord& record) {
  record.file = std::move(file);
  record.bytes = written.bytes;
  record.xxh3 = written.xxh3;
  record.chunks = written.chunk_count;
  record.stored_bytes = written.stored_bytes;
}

}  // namespace chunkhit
