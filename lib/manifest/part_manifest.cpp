// part-NNNNN.json: a finished part, what a restart trusts.
#include "base/hash.h"
#include "manifest/json_fields.h"
#include "manifest/manifest.h"
#include "manifest/manifest_numbers.h"
#include "manifest/record_json.h"
#include "manifest/sealed_json.h"

namespace chunkhit {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPartFormat = "chunkhit-images-part";

// A warning lies under a name of its own, as in its table.
Json rejects_json(const std::vector<Reject>& rejects, const char* reason_key) {
  Json list = Json::array();
  for (const Reject& reject : rejects)
    list.push_back(
        {{"row", reject.row}, {"file", reject.file}, {"labels", reject.labels}, {reason_key, reject.reason}});
  return list;
}

std::vector<Reject> parse_rejects(const Json& list, const char* reason_key) {
  std::vector<Reject> rejects;
  for (const Json& entry : list)
    rejects.push_back({count_field(entry, "row"), entry.at("file").get<std::string>(),
                       entry.at("labels").get<std::vector<std::string>>(),
                       entry.at(reason_key).get<std::string>()});
  return rejects;
}

PixelSums parse_sums(const Json& object) {
  PixelSums sums;
  sums.pixel_count = count_field(object, "pixel_count");
  sums.sum = four_counts_field(object, "sum");
  sums.sum_of_squares = four_counts_field(object, "sum_of_squares");
  return sums;
}

}  // namespace

std::string part_manifest_text(const PartManifest& manifest) {
  Json part = part_json(manifest.part);
  part["pixels"] = {{"pixel_count", manifest.part.pixels.pixel_count},
                    {"sum", manifest.part.pixels.sum},
                    {"sum_of_squares", manifest.part.pixels.sum_of_squares}};
  Json counts = Json::array();
  for (const auto& [id, samples] : manifest.part.class_counts)
    counts.push_back({{"id", id}, {"samples", samples}});
  part["classes"] = std::move(counts);
  part["rejects"] = rejects_json(manifest.part.rejects, "reason");
  part["warnings"] = rejects_json(manifest.part.warnings, "warning");
  return seal_json({{"format", kPartFormat},
                    {"version", kManifestVersion},
                    {"pack_id", hash_text(manifest.pack_id)},
                    {"spec", spec_json(manifest.spec)},
                    {"part", std::move(part)}});
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
    for (const Json& entry : list_field(part, "classes"))
      manifest.part.class_counts[integer_field(entry, "id")] = count_field(entry, "samples");
    manifest.part.rejects = parse_rejects(list_field(part, "rejects"), "reason");
    if (part.contains("warnings"))  // builds that listed none lack them
      manifest.part.warnings = parse_rejects(list_field(part, "warnings"), "warning");
    check_numbers(manifest.part);
    return manifest;
  });
}

}  // namespace chunkhit
