#include "manifest/manifest.h"

#include <algorithm>

#include "base/hash.h"
#include "chunkhit/error.h"
#include "manifest/sealed_json.h"

namespace chunkhit {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::string_view kPackFormat = "chunkhit-images";
constexpr std::string_view kPartFormat = "chunkhit-images-part";

// ---- values → JSON

Json spec_json(const std::vector<SpecEntry>& spec) {
  Json object = Json::object();
  for (const SpecEntry& entry : spec) object[entry.name] = entry.value;
  return object;
}

Json sample_json(const SampleShape& sample) {
  return {{"height", sample.height},
          {"width", sample.width},
          {"channels", sample.channels},
          {"layout", kLayoutNames[static_cast<std::size_t>(sample.layout)]},
          {"dtype", "uint8"}};
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

Json classes_json(const std::vector<ClassRecord>& classes) {
  Json list = Json::array();
  for (const ClassRecord& record : classes) {
    Json entry{{"id", record.id}};
    if (!record.name.empty()) entry["name"] = record.name;
    entry["samples"] = record.samples;
    list.push_back(std::move(entry));
  }
  return list;
}

Json rejects_json(const std::vector<RejectRecord>& rejects) {
  Json list = Json::array();
  for (const RejectRecord& reject : rejects)
    list.push_back(
        {{"row", reject.row}, {"file", reject.file}, {"labels", reject.labels}, {"reason", reject.reason}});
  return list;
}

// ---- JSON → values; every access throws nlohmann's exception when a field is missing or of another type

std::uint64_t number(const Json& object, const char* key) {
  const Json& value = object.at(key);
  if (!value.is_number_unsigned())
    throw Error(ErrorCode::bad_data, std::string(key) + ": expected a count, found " + value.dump());
  return value.get<std::uint64_t>();
}

std::uint64_t hash_field(const Json& object, const char* key) {
  const auto text = object.at(key).get<std::string>();
  std::uint64_t hash = 0;
  if (!parse_hash(text, hash))
    throw Error(ErrorCode::bad_data, std::string(key) + ": expected 16 hexadecimal digits, found " + text);
  return hash;
}

std::vector<SpecEntry> parse_spec(const Json& object) {
  std::vector<SpecEntry> spec;
  for (const auto& [name, value] : object.items()) spec.push_back({name, value.get<std::string>()});
  return spec;
}

std::uint32_t side(const Json& object, const char* key) {
  const std::uint64_t value = number(object, key);
  if (value < 1 || value > 0x7fffffff)
    throw Error(ErrorCode::bad_data,
                std::string("sample: ") + key + ": expected 1 to 2147483647, found " + std::to_string(value));
  return static_cast<std::uint32_t>(value);
}

SampleShape parse_sample(const Json& object) {
  SampleShape sample{side(object, "height"), side(object, "width"), side(object, "channels"), Layout::nhwc};
  const auto layout = object.at("layout").get<std::string>();
  const auto* found = std::find(kLayoutNames.begin(), kLayoutNames.end(), layout);
  if (found == kLayoutNames.end())
    throw Error(ErrorCode::bad_data, "sample: layout: expected nhwc or nchw, found " + layout);
  sample.layout = static_cast<Layout>(found - kLayoutNames.begin());
  if (sample.channels > 4)
    throw Error(ErrorCode::bad_data,
                "sample: channels: expected 1 to 4, found " + std::to_string(sample.channels));
  return sample;
}

PartRecord parse_part(const Json& object) {
  PartRecord part;
  part.file = object.at("file").get<std::string>();
  if (part.file.empty() || part.file.find('/') != std::string::npos ||
      part.file.find('\0') != std::string::npos)
    throw Error(ErrorCode::bad_data, "parts: file: expected a name in the pack's folder, found " + part.file);
  part.bytes = number(object, "bytes");
  part.xxh3 = hash_field(object, "xxh3");
  part.rows = number(object, "rows");
  part.samples = number(object, "samples");
  part.chunks = number(object, "chunks");
  part.stored_bytes = number(object, "stored_bytes");
  return part;
}

PixelSums parse_sums(const Json& object) {
  PixelSums sums;
  sums.pixel_count = number(object, "pixel_count");
  sums.sum = object.at("sum").get<std::array<std::uint64_t, 4>>();
  sums.sum_of_squares = object.at("sum_of_squares").get<std::array<std::uint64_t, 4>>();
  return sums;
}

std::vector<RejectRecord> parse_rejects(const Json& list) {
  std::vector<RejectRecord> rejects;
  for (const Json& entry : list)
    rejects.push_back({number(entry, "row"), entry.at("file").get<std::string>(),
                       entry.at("labels").get<std::vector<std::string>>(),
                       entry.at("reason").get<std::string>()});
  return rejects;
}

std::vector<ClassRecord> parse_classes(const Json& list) {
  std::vector<ClassRecord> classes;
  for (const Json& entry : list)
    classes.push_back(
        {entry.at("id").get<std::int64_t>(), entry.value("name", std::string()), number(entry, "samples")});
  return classes;
}

Json open_format(std::string_view text, const std::string& name, std::string_view format) {
  Json json = open_sealed_json(text, name);
  const auto found = json.at("format").get<std::string>();
  if (found != format)
    throw Error(ErrorCode::bad_data, "format: expected " + std::string(format) + ", found " + found);
  if (number(json, "version") != kVersion)
    throw Error(ErrorCode::bad_data, "version: expected 1, found " + json.at("version").dump());
  return json;
}

/// Adds the file's name to whatever is wrong inside it.
template <class Parse>
auto with_name(const std::string& name, Parse parse) {
  try {
    return parse();
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::bad_data, name + ": " + error.what());
  } catch (const Error& error) {
    const std::string message = error.what();
    throw Error(error.code(), message.starts_with(name) ? message : name + ": " + message);
  }
}

void check_counts(const Manifest& manifest) {
  std::uint64_t samples = 0;
  std::uint64_t rows = 0;
  for (const PartRecord& part : manifest.parts) {
    samples += part.samples;
    rows += part.rows;
  }
  if (samples != manifest.samples || manifest.rows != manifest.samples + manifest.rejected ||
      rows > manifest.rows)
    throw Error(ErrorCode::bad_data, "counts do not add up: " + std::to_string(manifest.rows) + " rows, " +
                                         std::to_string(manifest.samples) + " samples, " +
                                         std::to_string(manifest.rejected) + " rejected, " +
                                         std::to_string(samples) + " samples in parts");
}

}  // namespace

std::string first_difference(const std::vector<SpecEntry>& before, const std::vector<SpecEntry>& now) {
  for (std::size_t index = 0; index < std::max(before.size(), now.size()); ++index) {
    if (index >= before.size()) return now[index].name + ": absent before, " + now[index].value + " now";
    if (index >= now.size()) return before[index].name + ": " + before[index].value + " before, absent now";
    if (before[index].name != now[index].name)
      return before[index].name + " before, " + now[index].name + " now";
    if (before[index].value != now[index].value)
      return now[index].name + ": " + before[index].value + " before, " + now[index].value + " now";
  }
  return {};
}

std::string manifest_text(const Manifest& manifest) {
  Json parts = Json::array();
  for (const PartRecord& part : manifest.parts) parts.push_back(part_json(part));
  return seal_json(
      {{"format", kPackFormat},
       {"version", kVersion},
       {"pack_id", hash_text(manifest.pack_id)},
       {"tool", manifest.tool},
       {"spec", spec_json(manifest.spec)},
       {"input_xxh3", hash_text(manifest.input_xxh3)},
       {"sample", sample_json(manifest.sample)},
       {"container", manifest.container},
       {"filter", manifest.filter},
       {"chunk_samples", manifest.chunk_samples},
       {"chunk_bytes", manifest.chunk_bytes},
       {"rows", manifest.rows},
       {"samples", manifest.samples},
       {"rejected", manifest.rejected},
       {"labels",
        {{"kind", manifest.class_labels ? "class_id" : "numbers"}, {"columns", manifest.label_columns}}},
       {"classes", classes_json(manifest.classes)},
       {"mean", manifest.mean},
       {"std", manifest.std},
       {"parts", std::move(parts)},
       {"rejects",
        {{"file", kRejectsName},
         {"bytes", manifest.rejects_bytes},
         {"xxh3", hash_text(manifest.rejects_xxh3)}}}});
}

std::string part_manifest_text(const PartManifest& manifest) {
  Json part = part_json(manifest.part);
  part["pixels"] = {{"pixel_count", manifest.part.pixels.pixel_count},
                    {"sum", manifest.part.pixels.sum},
                    {"sum_of_squares", manifest.part.pixels.sum_of_squares}};
  Json counts = Json::array();
  for (const auto& [id, samples] : manifest.part.class_counts)
    counts.push_back({{"id", id}, {"samples", samples}});
  part["classes"] = std::move(counts);
  part["rejects"] = rejects_json(manifest.part.rejects);
  return seal_json({{"format", kPartFormat},
                    {"version", kVersion},
                    {"pack_id", hash_text(manifest.pack_id)},
                    {"spec", spec_json(manifest.spec)},
                    {"part", std::move(part)}});
}

Manifest parse_manifest(std::string_view text, const std::string& name) {
  return with_name(name, [&] {
    const Json json = open_format(text, name, kPackFormat);
    Manifest manifest;
    manifest.pack_id = hash_field(json, "pack_id");
    manifest.tool = json.at("tool").get<std::string>();
    manifest.spec = parse_spec(json.at("spec"));
    manifest.input_xxh3 = hash_field(json, "input_xxh3");
    manifest.sample = parse_sample(json.at("sample"));
    manifest.container = json.at("container").get<std::string>();
    manifest.filter = json.at("filter").get<std::string>();
    manifest.chunk_samples = number(json, "chunk_samples");
    manifest.chunk_bytes = number(json, "chunk_bytes");
    manifest.rows = number(json, "rows");
    manifest.samples = number(json, "samples");
    manifest.rejected = number(json, "rejected");
    manifest.class_labels = json.at("labels").at("kind").get<std::string>() == "class_id";
    manifest.label_columns = json.at("labels").at("columns").get<std::vector<std::string>>();
    manifest.classes = parse_classes(json.at("classes"));
    manifest.mean = json.at("mean").get<std::vector<double>>();
    manifest.std = json.at("std").get<std::vector<double>>();
    for (const Json& part : json.at("parts")) manifest.parts.push_back(parse_part(part));
    manifest.rejects_bytes = number(json.at("rejects"), "bytes");
    manifest.rejects_xxh3 = hash_field(json.at("rejects"), "xxh3");
    check_counts(manifest);
    return manifest;
  });
}

PartManifest parse_part_manifest(std::string_view text, const std::string& name) {
  return with_name(name, [&] {
    const Json json = open_format(text, name, kPartFormat);
    PartManifest manifest;
    manifest.pack_id = hash_field(json, "pack_id");
    manifest.spec = parse_spec(json.at("spec"));
    const Json& part = json.at("part");
    manifest.part = parse_part(part);
    manifest.part.pixels = parse_sums(part.at("pixels"));
    for (const Json& entry : part.at("classes"))
      manifest.part.class_counts[entry.at("id").get<std::int64_t>()] = number(entry, "samples");
    manifest.part.rejects = parse_rejects(part.at("rejects"));
    if (manifest.part.rows != manifest.part.samples + manifest.part.rejects.size())
      throw Error(ErrorCode::bad_data, "counts do not add up: " + std::to_string(manifest.part.rows) +
                                           " rows, " + std::to_string(manifest.part.samples) + " samples");
    return manifest;
  });
}

std::string run_text(const RunRecord& run) {
  Json libraries = Json::object();
  for (const SpecEntry& library : run.libraries) libraries[library.name] = library.value;
  return Json{{"tool", run.tool},
              {"command_line", run.command_line},
              {"host", run.host},
              {"started", run.started},
              {"seconds", run.seconds},
              {"threads", run.threads},
              {"libraries", std::move(libraries)}}
             .dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace chunkhit
