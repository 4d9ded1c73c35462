#include "manifest/record_json.h"

#include "base/hash.h"
#include "manifest/json_fields.h"
#include "manifest/sealed_json.h"

namespace chunkhit {

using Json = nlohmann::ordered_json;

Json open_format(std::string_view text, const std::string& name, std::string_view format) {
  Json json = open_sealed_json(text, name);
  const auto found = json.at("format").get<std::string>();
  if (found != format)
    throw Error(ErrorCode::bad_data, "format: expected " + std::string(format) + ", found " + found);
  if (count_field(json, "version") != kManifestVersion)
    throw Error(ErrorCode::bad_data, "version: expected 1, found " + json.at("version").dump());
  return json;
}

Json spec_json(const std::vector<SpecEntry>& spec) {
  Json object = Json::object();
  for (const SpecEntry& entry : spec) object[entry.name] = entry.value;
  return object;
}

std::vector<SpecEntry> parse_spec(const Json& object) {
  if (!object.is_object())
    throw Error(ErrorCode::bad_data, "spec: expected an object, found " + object.dump());
  std::vector<SpecEntry> spec;
  for (const auto& [name, value] : object.items()) spec.push_back({name, value.get<std::string>()});
  return spec;
}

Json shared_stats_json(const SharedStats& stats) {
  return {{"from", stats.from}, {"mean", stats.mean}, {"std", stats.std}};
}

Json part_json(const PartRecord& part) {
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
    throw Error(ErrorCode::bad_data, "parts: file: expected a name in the pack's folder, found " + part.file);
  part.bytes = count_field(object, "bytes");
  part.xxh3 = hash_field(object, "xxh3");
  part.rows = count_field(object, "rows");
  part.samples = count_field(object, "samples");
  part.chunks = count_field(object, "chunks");
  part.stored_bytes = count_field(object, "stored_bytes");
  return part;
}

Json file_json(const FileRecord& file) {
  return {{"file", file.file}, {"bytes", file.bytes}, {"xxh3", hash_text(file.xxh3)}};
}

FileRecord parse_file(const Json& object, std::string_view expected) {
  FileRecord file{object.at("file").get<std::string>(), count_field(object, "bytes"),
                  hash_field(object, "xxh3")};
  if (file.file != expected)
    throw Error(ErrorCode::bad_data, "file: expected " + std::string(expected) + ", found " + file.file);
  return file;
}

}  // namespace chunkhit
