#include "manifest/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/throw_error.h"
#include "manifest/json_fields.h"
#include "manifest/manifest_numbers.h"
#include "store/part_rules.h"
#include "types/enum_names.h"

namespace chunkhit {
namespace {

using Json = nlohmann::ordered_json;

std::vector<PackClass> parse_classes(const Json& list) {
  std::vector<PackClass> classes;
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
  if (stats.mean.empty()) throw_bad_data("normalize: no mean");
  check_pixel_stats(stats.mean, stats.std, sample.channels);
  return stats;
}

std::vector<SourcePack> parse_sources(const Json& list, const char* chunk_key) {
  std::vector<SourcePack> sources;
  for (const Json& entry : list) {
    SourcePack& source = sources.emplace_back();
    source.pack_id = hash_field(entry, "pack_id");
    source.tool = entry.at("tool").get<std::string>();
    source.spec = parse_spec(entry.at("spec"));
    source.input_xxh3 = hash_field(entry, "input_xxh3");
    source.rows = count_field(entry, "rows");
    source.codec = entry.at("codec").get<std::string>();
    source.chunk_samples = count_field(entry, chunk_key);
    if (!entry.contains("classes")) continue;
    for (const Json& id : list_field(entry, "classes"))
      source.class_ids.push_back(integer_field(Json{{"classes", id}}, "classes"));
  }
  return sources;
}

Json sources_json(const PackManifest& manifest, const char* chunk_key) {
  Json list = Json::array();
  for (const SourcePack& source : manifest.sources) {
    Json entry{{"pack_id", hash_text(source.pack_id)},
               {"tool", source.tool},
               {"spec", spec_json(source.spec)},
               {"input_xxh3", hash_text(source.input_xxh3)},
               {"rows", source.rows},
               {"codec", source.codec},
               {chunk_key, source.chunk_samples}};
    if (!source.class_ids.empty()) entry["classes"] = source.class_ids;
    list.push_back(std::move(entry));
  }
  return list;
}

constexpr const char* kChunkSamples = "chunk_samples";
constexpr const char* kChunkRows = "chunk_rows";

/// Parses the fields that packs of images and of matrices have in common. A pack that is not merged is its
/// own and only source.
void parse_common(const Json& json, const char* chunk_key, PackManifest& manifest) {
  manifest.pack_id = hash_field(json, "pack_id");
  manifest.tool = json.at("tool").get<std::string>();
  manifest.spec = parse_spec(json.at("spec"));
  manifest.input_xxh3 = hash_field(json, "input_xxh3");
  manifest.container = json.at("container").get<std::string>();
  manifest.codec = json.at("codec").get<std::string>();
  manifest.rows = count_field(json, "rows");
  for (const Json& part : list_field(json, "parts")) {
    manifest.parts.push_back(parse_part(part));
    manifest.parts.back().number = manifest.parts.size() - 1;
  }
  manifest.is_merged = count_field(json, "version") == kMergedVersion || json.contains("sources");
  if (!manifest.is_merged) {
    manifest.sources = {{manifest.pack_id,
                         manifest.tool,
                         manifest.spec,
                         manifest.input_xxh3,
                         manifest.rows,
                         manifest.codec,
                         count_field(json, chunk_key),
                         {}}};
    return;
  }
  manifest.sources = parse_sources(list_field(json, "sources"), chunk_key);
  for (std::size_t i = 0; i < manifest.parts.size(); ++i) {
    manifest.parts[i].source = count_field(json.at("parts")[i], "source");
    manifest.parts[i].number = count_field(json.at("parts")[i], "number");
  }
}

Json parts_json(const PackManifest& manifest) {
  Json parts = Json::array();
  for (const PartRecord& part : manifest.parts) {
    parts.push_back(part_json(part));
    if (manifest.is_merged) parts.back().update(Json{{"source", part.source}, {"number", part.number}});
  }
  return parts;
}

/// The version of a pack whose samples have fields beside their image.
std::optional<std::uint64_t> pairs_version(const SampleShape& sample) {
  if (sample.pairs.empty()) return std::nullopt;
  return sample.has_usual_fields() ? traits_of(sample.pairs.front().role).manifest_version : kFieldsVersion;
}

std::uint64_t version_of(const PackManifest& manifest) {
  return manifest.is_merged ? kMergedVersion : kManifestVersion;
}

}  // namespace

Json classes_json(const std::vector<PackClass>& classes) {
  Json list = Json::array();
  for (const PackClass& record : classes) {
    Json entry{{"id", record.id}};
    if (!record.name.empty()) entry["name"] = record.name;
    entry["samples"] = record.samples;
    list.push_back(std::move(entry));
  }
  return list;
}

Json labels_json(bool class_labels, const std::vector<std::string>& columns) {
  return {{"kind", class_labels ? "class_id" : "numbers"}, {"columns", columns}};
}

bool parse_class_labels(const Json& labels) {
  const auto kind = labels.at("kind").get<std::string>();
  if (kind != "class_id" && kind != "numbers")
    throw_bad_data("labels: kind: expected class_id or numbers, found " + kind);
  return kind == "class_id";
}

Json shared_stats_json(const SharedStats& stats) {
  return {{"from", stats.from}, {"mean", stats.mean}, {"std", stats.std}};
}

std::string manifest_text(const Manifest& manifest) {
  Json json{{"format", kImagePacks.format},
            {"version", pairs_version(manifest.sample).value_or(version_of(manifest))},
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
            {"labels", labels_json(manifest.class_labels, manifest.label_columns)},
            {"classes", classes_json(manifest.classes)},
            {"mean", manifest.mean},
            {"std", manifest.std}};
  if (!manifest.columns.empty()) json["columns"] = columns_json(manifest.columns);
  if (manifest.own_sizes()) json["raw_bytes"] = manifest.raw_bytes;
  if (manifest.inputs) json["inputs"] = input_sizes_json(*manifest.inputs);
  if (manifest.normalize) json["normalize"] = shared_stats_json(*manifest.normalize);
  if (manifest.is_merged) json["sources"] = sources_json(manifest, kChunkSamples);
  json["parts"] = parts_json(manifest);
  json["rejects"] = file_json(manifest.rejects);
  if (manifest.warnings) json["warnings"] = file_json(*manifest.warnings);
  return seal_json(json);
}

Manifest parse_manifest(std::string_view text, const std::string& name) {
  return with_name(name, [&] {
    const Json json = open_format(text, name, kImagePacks.format, kFieldsVersion);
    Manifest manifest;
    parse_common(json, kChunkSamples, manifest);
    manifest.sample = parse_sample(json.at("sample"));
    const std::uint64_t found = count_field(json, "version");
    const auto expected = pairs_version(manifest.sample);
    if (expected ? found != *expected : found > kMergedVersion)
      throw_bad_data("version: expected " + (expected ? std::to_string(*expected) : "1 or 2") + ", found " +
                     std::to_string(found));
    manifest.chunk_samples = count_field(json, "chunk_samples");
    manifest.chunk_bytes = count_field(json, "chunk_bytes");
    manifest.samples = count_field(json, "samples");
    manifest.raw_bytes = manifest.own_sizes() ? count_field(json, "raw_bytes")
                                              : manifest.samples * manifest.sample.byte_count();
    manifest.rejected = count_field(json, "rejected");
    manifest.warned = json.contains("warned") ? count_field(json, "warned") : 0;
    manifest.class_labels = parse_class_labels(json.at("labels"));
    manifest.label_columns = json.at("labels").at("columns").get<std::vector<std::string>>();
    manifest.columns = parse_columns(json, "columns");
    manifest.classes = parse_classes(list_field(json, "classes"));
    manifest.mean = json.at("mean").get<std::vector<double>>();
    manifest.std = json.at("std").get<std::vector<double>>();
    manifest.inputs = parse_input_sizes(json);
    manifest.normalize = parse_shared_stats(json, manifest.sample);
    manifest.rejects = parse_file(json.at("rejects"), kRejectsName, manifest.is_merged);
    if (json.contains("warnings"))
      manifest.warnings = parse_file(json.at("warnings"), kWarningsName, manifest.is_merged);
    check_numbers(manifest);
    return manifest;
  });
}

namespace {

using NamedCounts = std::vector<std::pair<std::string, std::uint64_t>>;

std::vector<PackMatrix> parse_matrices(const Json& list) {
  std::vector<PackMatrix> matrices;
  for (const Json& entry : list)
    matrices.push_back(
        {entry.at("name").get<std::string>(), count_field(entry, "nnz"), count_field(entry, "longest_row")});
  const bool known = (matrices.size() == 1 || (matrices.size() == 2 && matrices[1].name == "held_out")) &&
                     matrices[0].name == "X";
  if (!known) throw_bad_data("matrices: expected X, or X and held_out");
  return matrices;
}

Json counts_json(const NamedCounts& counts) {
  Json object = Json::object();
  for (const auto& [name, count] : counts) object[name] = count;
  return object;
}

NamedCounts parse_counts(const Json& object) {
  NamedCounts counts;
  for (const auto& [name, value] : object.items())
    counts.emplace_back(name, count_field(object, name.c_str()));
  return counts;
}

Json column_table_json(const ColumnTableStats& table) {
  return {{"file", table.file},
          {"rows", table.rows},
          {"unused_rows", table.unused_rows},
          {"without_row", table.without_row}};
}

std::optional<ColumnTableStats> parse_column_table(const Json& object, const char* key) {
  if (!object.contains(key)) return std::nullopt;
  const Json& table = object.at(key);
  return ColumnTableStats{table.at("file").get<std::string>(), count_field(table, "rows"),
                          count_field(table, "unused_rows"), count_field(table, "without_row")};
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
  stats.value_ranges = object.value("value_ranges", false);
  stats.item_columns = parse_column_table(object, "item_columns");
  stats.user_columns = parse_column_table(object, "user_columns");
  return stats;
}

ValueType parse_value_type(const Json& values) {
  const auto name = values.at("type").get<std::string>();
  const std::optional<ValueType> found = enum_of<ValueType>(name);
  if (!found) throw_bad_data("values: type: expected none, u8, u16 or f32, found " + name);
  return *found;
}

}  // namespace

Json values_json(const StoredValues& values) {
  return {{"type", name_of(values.type)}, {"scale", values.scale}};
}

Json matrices_json(const std::vector<PackMatrix>& matrices) {
  Json list = Json::array();
  for (const PackMatrix& each : matrices)
    list.push_back({{"name", each.name}, {"nnz", each.nnz}, {"longest_row", each.longest_row}});
  return list;
}

Json stats_json(const RatingStats& stats) {
  Json inputs = Json::array();
  for (const InputStats& each : stats.inputs)
    inputs.push_back({{"file", each.file},
                      {"bytes", each.bytes},
                      {"lines", each.lines},
                      {"blank_lines", each.blank_lines},
                      {"comment_lines", each.comment_lines},
                      {"header_lines", each.header_lines},
                      {"ratings", each.ratings}});
  Json steps = Json::array();
  for (const PackStep& each : stats.steps)
    steps.push_back(
        {{"name", each.name}, {"users", each.users}, {"items", each.items}, {"ratings", each.ratings}});
  Json values = Json::array();
  for (const ValueCount& each : stats.values)
    values.push_back({{"value", each.value}, {"ratings", each.ratings}});
  Json json{{"inputs", std::move(inputs)},
            {"bad_lines", stats.bad_lines},
            {"reasons", counts_json(stats.reasons)},
            {"steps", std::move(steps)},
            {"left_out", counts_json(stats.left_out)},
            {"values", std::move(values)}};
  if (stats.value_ranges) json["value_ranges"] = true;
  if (stats.item_columns) json["item_columns"] = column_table_json(*stats.item_columns);
  if (stats.user_columns) json["user_columns"] = column_table_json(*stats.user_columns);
  return json;
}

std::uint64_t version_of(const MatrixManifest& manifest) {
  if (manifest.has_repeats) return kRepeatsVersion;
  const bool has_columns = !manifest.item_columns.empty() || !manifest.user_columns.empty();
  return has_columns || !manifest.times.empty() ? kColumnsVersion
                                                : version_of(static_cast<const PackManifest&>(manifest));
}

std::string matrix_manifest_text(const MatrixManifest& manifest) {
  Json json{{"format", kMatrixPacks.format},
            {"version", version_of(manifest)},
            {"pack_id", hash_text(manifest.pack_id)},
            {"tool", manifest.tool},
            {"spec", spec_json(manifest.spec)},
            {"input_xxh3", hash_text(manifest.input_xxh3)},
            {"rows", manifest.rows},
            {"columns", manifest.columns},
            {"matrices", matrices_json(manifest.matrices)},
            {"values", values_json({manifest.value_type, manifest.scale})},
            {"container", manifest.container},
            {"codec", manifest.codec},
            {"chunk_rows", manifest.chunk_rows},
            {"label_columns", manifest.label_columns}};
  if (manifest.is_merged) json["sources"] = sources_json(manifest, kChunkRows);
  json.update(Json{{"parts", parts_json(manifest)},
                   {"users", file_json(manifest.users)},
                   {"items", file_json(manifest.items)},
                   {"stats", stats_json(manifest.stats)}});
  add_kept(manifest.item_columns, manifest.user_columns, manifest.times, manifest.has_repeats, json);
  return seal_json(json);
}

MatrixManifest parse_matrix_manifest(std::string_view text, const std::string& name) {
  return with_name(name, [&] {
    const Json json = open_format(text, name, kMatrixPacks.format, kRepeatsVersion);
    MatrixManifest manifest;
    parse_common(json, kChunkRows, manifest);
    manifest.columns = count_field(json, "columns");
    manifest.matrices = parse_matrices(list_field(json, "matrices"));
    manifest.value_type = parse_value_type(json.at("values"));
    manifest.scale = json.at("values").at("scale").get<double>();
    manifest.chunk_rows = count_field(json, "chunk_rows");
    manifest.label_columns = json.at("label_columns").get<std::vector<std::string>>();
    manifest.users = parse_file(json.at("users"), kUsersName, manifest.is_merged);
    manifest.items = parse_file(json.at("items"), kItemsName, manifest.is_merged);
    manifest.stats = parse_stats(json.at("stats"));
    manifest.item_columns = parse_columns(json, "item_columns");
    manifest.user_columns = parse_columns(json, "user_columns");
    manifest.times = json.value("times", "");
    manifest.has_repeats = json.value("repeats", false);
    check_numbers(manifest);
    return manifest;
  });
}

std::string merged_table_name(std::string_view table, std::uint64_t pack_id) {
  const std::size_t dot = table.rfind('.');
  return std::string(table.substr(0, dot)) + '-' + hash_text(pack_id) + std::string(table.substr(dot));
}

std::string plain_table_name(std::string_view name) {
  const std::size_t dash = name.find('-');
  std::uint64_t pack_id = 0;
  if (dash == std::string_view::npos || !parse_hash(name.substr(dash + 1, 16), pack_id))
    return std::string(name);
  const std::string table = std::string(name.substr(0, dash)) + std::string(name.substr(dash + 17));
  const auto has_table = [&](const PackKind& kind) {
    return std::ranges::find(kind.tables, table) != kind.tables.end();
  };
  return std::ranges::any_of(kPackKinds, has_table) ? table : std::string(name);
}

std::vector<FileRecord> tables(const Manifest& manifest) {
  std::vector<FileRecord> files{manifest.rejects};
  if (manifest.warnings) files.push_back(*manifest.warnings);
  return files;
}

std::vector<FileRecord> tables(const MatrixManifest& manifest) { return {manifest.users, manifest.items}; }

std::string manifest_format(std::string_view text, const std::string& name) {
  return with_name(name, [&] { return open_sealed_json(text, name).at("format").get<std::string>(); });
}

AnyManifest parse_any_manifest(const PackKind& kind, std::string_view text, const std::string& name) {
  AnyManifest parsed;
  if (kind.has_inputs)
    parsed.images = parse_manifest(text, name);
  else
    parsed.ratings = parse_matrix_manifest(text, name);
  return parsed;
}

namespace {

AnyManifest parse_found(std::string_view text, const std::string& path) {
  const PackKind* const kind = kind_of_format(manifest_format(text, path));
  return parse_any_manifest(kind != nullptr ? *kind : kImagePacks, text, path);
}

}  // namespace

AnyManifest read_manifest(const std::string& folder) {
  const std::string path = manifest_path(folder);
  return parse_found(as_text(read_file(path, kMaxManifestBytes)), path);
}

std::optional<AnyManifest> find_manifest(const std::string& folder) {
  const std::string path = manifest_path(folder);
  const std::optional<ByteBuffer> text = find_file(path, kMaxManifestBytes);
  return text ? std::optional(parse_found(as_text(*text), path)) : std::nullopt;
}

std::vector<std::uint64_t> content_ids(const PackManifest& manifest) {
  std::vector<std::vector<std::uint64_t>> hashes;
  if (manifest.is_merged)
    for (const SourcePack& source : manifest.sources) hashes.push_back({source.pack_id});
  else
    hashes.push_back({manifest.pack_id});
  for (const PartRecord& part : manifest.parts) hashes[part.source].push_back(part.xxh3);
  std::vector<std::uint64_t> ids;
  ids.reserve(hashes.size());
  for (const std::vector<std::uint64_t>& each : hashes) ids.push_back(hash_of_ids(each));
  return ids;
}

std::uint64_t hash_of_ids(std::span<const std::uint64_t> ids) {
  std::string text;
  for (const std::uint64_t id : ids) text += hash_text(id) + "\n";
  return xxh3(as_bytes(text));
}

}  // namespace chunkhit
