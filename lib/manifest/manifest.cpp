#include "manifest/manifest.h"

#include <algorithm>

#include "base/hash.h"
#include "chunkhit/error.h"
#include "manifest/json_fields.h"
#include "manifest/manifest_numbers.h"
#include "manifest/record_json.h"
#include "manifest/sealed_json.h"

namespace chunkhit {
namespace {

using Json = nlohmann::ordered_json;

Json sample_json(const SampleShape& sample) {
  return {{"height", sample.height},
          {"width", sample.width},
          {"channels", sample.channels},
          {"layout", kLayoutNames[static_cast<std::size_t>(sample.layout)]},
          {"dtype", "uint8"}};
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

std::uint32_t side(const Json& object, const char* key) {
  const std::uint64_t value = count_field(object, key);
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

bool parse_class_labels(const Json& labels) {
  const auto kind = labels.at("kind").get<std::string>();
  if (kind != "class_id" && kind != "numbers")
    throw Error(ErrorCode::bad_data, "labels: kind: expected class_id or numbers, found " + kind);
  return kind == "class_id";
}

std::vector<ClassRecord> parse_classes(const Json& list) {
  std::vector<ClassRecord> classes;
  for (const Json& entry : list)
    classes.push_back(
        {integer_field(entry, "id"), entry.value("name", std::string()), count_field(entry, "samples")});
  return classes;
}

std::optional<SharedStats> parse_shared_stats(const Json& json, const SampleShape& sample) {
  if (!json.contains("normalize")) return std::nullopt;
  const Json& object = json.at("normalize");
  SharedStats stats{object.at("from").get<std::string>(), object.at("mean").get<std::vector<double>>(),
                    object.at("std").get<std::vector<double>>()};
  for (const std::vector<double>* const values : {&stats.mean, &stats.std})
    if (values->size() != sample.channels ||
        !std::ranges::all_of(*values, [](double value) { return value >= 0 && value <= 255; }))
      throw Error(
          ErrorCode::bad_data,
          "normalize: expected mean and std of 0 to 255 for each of the channels, found " + object.dump());
  return stats;
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
  Json json{{"format", kImagesFormat},
            {"version", kManifestVersion},
            {"pack_id", hash_text(manifest.pack_id)},
            {"tool", manifest.tool},
            {"spec", spec_json(manifest.spec)},
            {"input_xxh3", hash_text(manifest.input_xxh3)},
            {"sample", sample_json(manifest.sample)},
            {"container", manifest.container},
            {"codec", manifest.codec},
            {"chunk_samples", manifest.chunk_samples},
            {"chunk_bytes", manifest.chunk_bytes},
            {"rows", manifest.rows},
            {"samples", manifest.samples},
            {"rejected", manifest.rejected},
            {"warned", manifest.warned},
            {"labels",
             {{"kind", manifest.class_labels ? "class_id" : "numbers"}, {"columns", manifest.label_columns}}},
            {"classes", classes_json(manifest.classes)},
            {"mean", manifest.mean},
            {"std", manifest.std}};
  if (manifest.normalize) json["normalize"] = shared_stats_json(*manifest.normalize);
  json["parts"] = std::move(parts);
  json["rejects"] = file_json(manifest.rejects);
  if (manifest.warnings) json["warnings"] = file_json(*manifest.warnings);
  return seal_json(json);
}

Manifest parse_manifest(std::string_view text, const std::string& name) {
  return with_name(name, [&] {
    const Json json = open_format(text, name, kImagesFormat);
    Manifest manifest;
    manifest.pack_id = hash_field(json, "pack_id");
    manifest.tool = json.at("tool").get<std::string>();
    manifest.spec = parse_spec(json.at("spec"));
    manifest.input_xxh3 = hash_field(json, "input_xxh3");
    manifest.sample = parse_sample(json.at("sample"));
    manifest.container = json.at("container").get<std::string>();
    manifest.codec = json.at("codec").get<std::string>();
    manifest.chunk_samples = count_field(json, "chunk_samples");
    manifest.chunk_bytes = count_field(json, "chunk_bytes");
    manifest.rows = count_field(json, "rows");
    manifest.samples = count_field(json, "samples");
    manifest.rejected = count_field(json, "rejected");
    manifest.warned = json.contains("warned") ? count_field(json, "warned") : 0;
    manifest.class_labels = parse_class_labels(json.at("labels"));
    manifest.label_columns = json.at("labels").at("columns").get<std::vector<std::string>>();
    manifest.classes = parse_classes(list_field(json, "classes"));
    manifest.mean = json.at("mean").get<std::vector<double>>();
    manifest.std = json.at("std").get<std::vector<double>>();
    manifest.normalize = parse_shared_stats(json, manifest.sample);
    for (const Json& part : list_field(json, "parts")) manifest.parts.push_back(parse_part(part));
    manifest.rejects = parse_file(json.at("rejects"), kRejectsName);
    if (json.contains("warnings")) manifest.warnings = parse_file(json.at("warnings"), kWarningsName);
    check_numbers(manifest);
    return manifest;
  });
}

}  // namespace chunkhit
