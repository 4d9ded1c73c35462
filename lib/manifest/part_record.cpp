#include "manifest/part_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/hash.h"
#include "base/throw_error.h"
#include "manifest/json_fields.h"
#include "manifest/manifest.h"
#include "manifest/manifest_numbers.h"

namespace chunkhit {

bool RecordedSpec::has(std::string_view name) const {
  return std::ranges::find(*this, name, &SpecEntry::name) != end();
}

std::string RecordedSpec::get(std::string_view name) const {
  const auto found = std::ranges::find(*this, name, &SpecEntry::name);
  return found == end() ? "" : found->value;
}

/// Compares two recorded specs entry by entry, for the message why a pack is another one.
std::string first_difference(const RecordedSpec& before, const RecordedSpec& now) {
  const auto value = [](const RecordedSpec& spec, const std::string& name) {
    return spec.has(name) ? spec.get(name) : "not given";
  };
  for (const RecordedSpec* const spec : {&now, &before})
    for (const auto& [name, own] : *spec)
      if (const std::string earlier = value(before, name), later = value(now, name); earlier != later)
        return name + ": " + earlier + " before, " + later + " now";
  return {};
}

std::string part_record_name(const std::string& part_file) {
  return part_file.substr(0, part_file.rfind('.')) + ".json";
}

namespace {

using Json = nlohmann::ordered_json;

/// Behind the format of the pack.
constexpr std::string_view kPartSuffix = "-part";

// The key of the reason is `reason` or `warning`, like the column of the CSV file; a warning has no kind.
constexpr std::string_view kReasonKey = "reason";

Json rejects_json(const std::vector<Reject>& rejects, std::string_view reason_key) {
  Json list = Json::array();
  for (const Reject& reject : rejects) {
    list.push_back(
        {{"row", reject.row}, {"file", reject.file}, {"labels", reject.labels}, {reason_key, reject.reason}});
    if (reason_key == kReasonKey) list.back()["kind"] = name_of(reject.kind);
  }
  return list;
}

RejectKind parse_kind(const Json& entry) {
  const auto kind = entry.find("kind");  // older builds did not write them
  return kind == entry.end() ? RejectKind::other
                             : enum_of<RejectKind>(kind->get<std::string>()).value_or(RejectKind::other);
}

std::vector<Reject> parse_rejects(const Json& list, std::string_view reason_key) {
  std::vector<Reject> rejects;
  for (const Json& entry : list)
    rejects.push_back({count_field(entry, "row"), entry.at("file").get<std::string>(),
                       entry.at("labels").get<std::vector<std::string>>(),
                       entry.at(reason_key).get<std::string>(), parse_kind(entry)});
  return rejects;
}

PixelSums parse_sums(const Json& object) {
  PixelSums sums;
  sums.pixel_count = count_field(object, "pixel_count");
  sums.sum = four_counts_field(object, "sum");
  sums.sum_of_squares = four_counts_field(object, "sum_of_squares");
  return sums;
}

// Adds the fields of an image part that the pack's manifest does not list.
void add_image_fields(const PartRecord& record, Json& part) {
  part["pixels"] = {{"pixel_count", record.pixels.pixel_count},
                    {"sum", record.pixels.sum},
                    {"sum_of_squares", record.pixels.sum_of_squares}};
  if (record.inputs) part["inputs"] = input_sizes_json(*record.inputs);
  Json counts = Json::array();
  for (const auto& [id, samples] : record.class_counts) counts.push_back({{"id", id}, {"samples", samples}});
  part["classes"] = std::move(counts);
  part["rejects"] = rejects_json(record.rejects, kReasonKey);
  part["warnings"] = rejects_json(record.warnings, "warning");
}

void parse_image_fields(const Json& part, PartRecord& record) {
  record.pixels = parse_sums(part.at("pixels"));
  record.inputs = parse_input_sizes(part);
  for (const Json& entry : list_field(part, "classes"))
    record.class_counts[integer_field(entry, "id")] = count_field(entry, "samples");
  record.rejects = parse_rejects(list_field(part, "rejects"), kReasonKey);
  if (part.contains("warnings"))  // older builds did not write them
    record.warnings = parse_rejects(list_field(part, "warnings"), "warning");
}

}  // namespace

Json part_json(const PackPart& part) {
  return {{"file", part.file},
          {"bytes", part.bytes},
          {"xxh3", hash_text(part.xxh3)},
          {"rows", part.rows},
          {"samples", part.samples},
          {"chunks", part.chunks},
          {"stored_bytes", part.stored_bytes}};
}

PartRecord parse_part(const Json& object) {
  PartRecord part;
  part.file = object.at("file").get<std::string>();
  if (part.file.empty() || part.file.find('/') != std::string::npos ||
      part.file.find('\0') != std::string::npos || part.file == "." || part.file == "..")
    throw_bad_data("parts: file: expected a name in the pack's folder, found " + part.file);
  part.bytes = count_field(object, "bytes");
  part.xxh3 = hash_field(object, "xxh3");
  part.rows = count_field(object, "rows");
  part.samples = count_field(object, "samples");
  part.chunks = count_field(object, "chunks");
  part.stored_bytes = count_field(object, "stored_bytes");
  return part;
}

std::string part_manifest_text(const PartManifest& manifest) {
  Json part = part_json(manifest.part);
  if (manifest.part.has_sample_hashes) part["sample_hashes"] = true;
  if (!manifest.part.codec_library.empty()) part["codec_library"] = manifest.part.codec_library;
  if (kind_of_format(manifest.format)->has_inputs) add_image_fields(manifest.part, part);
  return seal_json({{"format", manifest.format + std::string(kPartSuffix)},
                    {"version", kManifestVersion},
                    {"pack_id", hash_text(manifest.pack_id)},
                    {"spec", spec_json(manifest.spec)},
                    {"part", std::move(part)}});
}

PartManifest parse_part_manifest(std::string_view text, const std::string& name) {
  return with_name(name, [&] {
    const auto found = open_sealed_json(text, name).at("format").get<std::string>();
    const PackKind* kind = found.ends_with(kPartSuffix)
                               ? kind_of_format(found.substr(0, found.size() - kPartSuffix.size()))
                               : nullptr;
    if (kind == nullptr) kind = kPackKinds.data();  // whose format the message expects
    PartManifest manifest;
    manifest.format = kind->format;
    const Json json = open_format(text, name, manifest.format + std::string(kPartSuffix));
    manifest.pack_id = hash_field(json, "pack_id");
    manifest.spec = parse_spec(json.at("spec"));
    const Json& part = json.at("part");
    manifest.part = parse_part(part);
    if (part.contains("sample_hashes"))
      manifest.part.has_sample_hashes = part.at("sample_hashes").get<bool>();
    if (part.contains("codec_library"))
      manifest.part.codec_library = part.at("codec_library").get<std::string>();
    if (kind->has_inputs) parse_image_fields(part, manifest.part);
    check_numbers(manifest.part);
    return manifest;
  });
}

}  // namespace chunkhit
