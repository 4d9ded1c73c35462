#include "manifest/matrix_manifest.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "chunkhit/error.h"
#include "manifest/json_fields.h"
#include "manifest/manifest_numbers.h"
#include "manifest/record_json.h"
#include "manifest/sealed_json.h"

namespace chunkhit {
namespace {

using Json = nlohmann::ordered_json;
using NamedCounts = std::vector<std::pair<std::string, std::uint64_t>>;

Json matrices_json(const std::vector<MatrixRecord>& matrices) {
  Json list = Json::array();
  for (const MatrixRecord& each : matrices)
    list.push_back({{"name", each.name}, {"nnz", each.nnz}, {"longest_row", each.longest_row}});
  return list;
}

Json counts_json(const NamedCounts& counts) {
  Json object = Json::object();
  for (const auto& [name, count] : counts) object[name] = count;
  return object;
}

Json stats_json(const RatingStats& stats) {
  Json inputs = Json::array();
  for (const InputRecord& each : stats.inputs)
    inputs.push_back({{"file", each.file},
                      {"bytes", each.bytes},
                      {"lines", each.lines},
                      {"blank_lines", each.blank_lines},
                      {"comment_lines", each.comment_lines},
                      {"header_lines", each.header_lines},
                      {"ratings", each.ratings}});
  Json steps = Json::array();
  for (const StepRecord& each : stats.steps)
    steps.push_back(
        {{"name", each.name}, {"users", each.users}, {"items", each.items}, {"ratings", each.ratings}});
  Json values = Json::array();
  for (const ValueCount& each : stats.values)
    values.push_back({{"value", each.value}, {"ratings", each.ratings}});
  return {{"inputs", std::move(inputs)},
          {"bad_lines", stats.bad_lines},
          {"reasons", counts_json(stats.reasons)},
          {"steps", std::move(steps)},
          {"left_out", counts_json(stats.left_out)},
          {"values", std::move(values)}};
}

std::vector<MatrixRecord> parse_matrices(const Json& list) {
  std::vector<MatrixRecord> matrices;
  for (const Json& entry : list)
    matrices.push_back(
        {entry.at("name").get<std::string>(), count_field(entry, "nnz"), count_field(entry, "longest_row")});
  const bool known = (matrices.size() == 1 || (matrices.size() == 2 && matrices[1].name == "held_out")) &&
                     matrices[0].name == "X";
  if (!known) throw Error(ErrorCode::bad_data, "matrices: expected X, or X and held_out");
  return matrices;
}

NamedCounts parse_counts(const Json& object) {
  NamedCounts counts;
  for (const auto& [name, value] : object.items())
    counts.emplace_back(name, count_field(object, name.c_str()));
  return counts;
}

RatingStats parse_stats(const Json& object) {
  RatingStats stats;
  for (const Json& entry : list_field(object, "inputs"))
    stats.inputs.push_back({entry.at("file").get<std::string>(), count_field(entry, "bytes"),
                            count_field(entry, "lines"), count_field(entry, "blank_lines"),
                            count_field(entry, "comment_lines"), count_field(entry, "header_lines"),
                            count_field(entry, "ratings")});
  stats.bad_lines = count_field(object, "bad_lines");
  stats.reasons = parse_counts(object.at("reasons"));
  for (const Json& entry : list_field(object, "steps"))
    stats.steps.push_back({entry.at("name").get<std::string>(), count_field(entry, "users"),
                           count_field(entry, "items"), count_field(entry, "ratings")});
  stats.left_out = parse_counts(object.at("left_out"));
  for (const Json& entry : list_field(object, "values"))
    stats.values.push_back({entry.at("value").get<float>(), count_field(entry, "ratings")});
  return stats;
}

ValueType parse_value_type(const Json& values) {
  const auto name = values.at("type").get<std::string>();
  const auto* const found = std::find(kValueTypeNames.begin(), kValueTypeNames.end(), name);
  if (found == kValueTypeNames.end())
    throw Error(ErrorCode::bad_data, "values: type: expected none, u8, u16 or f32, found " + name);
  return static_cast<ValueType>(found - kValueTypeNames.begin());
}

}  // namespace

std::string matrix_manifest_text(const MatrixManifest& manifest) {
  Json parts = Json::array();
  for (const PartRecord& part : manifest.parts) parts.push_back(part_json(part));
  return seal_json({{"format", kMatrixFormat},
                    {"version", kManifestVersion},
                    {"pack_id", hash_text(manifest.pack_id)},
                    {"tool", manifest.tool},
                    {"spec", spec_json(manifest.spec)},
                    {"input_xxh3", hash_text(manifest.input_xxh3)},
                    {"rows", manifest.rows},
                    {"columns", manifest.columns},
                    {"matrices", matrices_json(manifest.matrices)},
                    {"values",
                     {{"type", kValueTypeNames[static_cast<std::size_t>(manifest.value_type)]},
                      {"scale", manifest.scale}}},
                    {"container", manifest.container},
                    {"codec", manifest.codec},
                    {"chunk_rows", manifest.chunk_rows},
                    {"label_columns", manifest.label_columns},
                    {"parts", std::move(parts)},
                    {"users", file_json(manifest.users)},
                    {"items", file_json(manifest.items)},
                    {"stats", stats_json(manifest.stats)}});
}

MatrixManifest parse_matrix_manifest(std::string_view text, const std::string& name) {
  return with_name(name, [&] {
    const Json json = open_format(text, name, kMatrixFormat);
    MatrixManifest manifest;
    manifest.pack_id = hash_field(json, "pack_id");
    manifest.tool = json.at("tool").get<std::string>();
    manifest.spec = parse_spec(json.at("spec"));
    manifest.input_xxh3 = hash_field(json, "input_xxh3");
    manifest.rows = count_field(json, "rows");
    manifest.columns = count_field(json, "columns");
    manifest.matrices = parse_matrices(list_field(json, "matrices"));
    manifest.value_type = parse_value_type(json.at("values"));
    manifest.scale = json.at("values").at("scale").get<double>();
    manifest.container = json.at("container").get<std::string>();
    manifest.codec = json.at("codec").get<std::string>();
    manifest.chunk_rows = count_field(json, "chunk_rows");
    manifest.label_columns = json.at("label_columns").get<std::vector<std::string>>();
    for (const Json& part : list_field(json, "parts")) manifest.parts.push_back(parse_part(part));
    manifest.users = parse_file(json.at("users"), kUsersName);
    manifest.items = parse_file(json.at("items"), kItemsName);
    manifest.stats = parse_stats(json.at("stats"));
    check_numbers(manifest);
    return manifest;
  });
}

std::string manifest_format(std::string_view text, const std::string& name) {
  return with_name(name, [&] { return open_sealed_json(text, name).at("format").get<std::string>(); });
}

}  // namespace chunkhit
