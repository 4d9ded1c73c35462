#include "manifest/pack_info_json.h"

#include <nlohmann/json.hpp>

#include "chunkhit/pack_info.h"
#include "chunkhit/verify.h"
#include "manifest/json_fields.h"
#include "store/part.h"
#include "types/enum_names.h"
#include "types/input_sizes.h"

namespace chunkhit {

std::string pack_list_json(const std::vector<std::pair<std::string, std::string>>& named) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const auto& [name, text] : named) all[name] = nlohmann::ordered_json::parse(text);
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

namespace {

using Json = nlohmann::ordered_json;

Json cache_json(const CachePrediction& cache) {
  // Where the cache is passed by there is no rate, rather than one of 0.
  const auto rate = [&](double hits) { return cache.bypass ? Json(nullptr) : Json(hits); };
  return {{"rdcc_nbytes", cache.rdcc_nbytes},
          {"rdcc_nslots", cache.rdcc_nslots},
          {"rdcc_w0", cache.rdcc_w0},
          {"sequential", rate(cache.sequential)},
          {"windowed", rate(cache.windowed)},
          {"random", rate(cache.random)},
          {"bypass", cache.bypass}};
}

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json spread_json(const Spread& spread) {
  return {{"min", spread.min}, {"median", spread.median}, {"max", spread.max}};
}

Json images_json(const PackInfo& info, const ImagesInfo& images) {
  Json json{{"sample", sample_json({images.height, images.width, images.channels, images.layout})},
            {"samples", info.samples},
            {"rows", images.rows},
            {"rejected", images.rejected},
            {"warned", images.warned},
            {"labels", labels_json(images.label_kind == LabelKind::class_id, info.label_columns)},
            {"classes", classes_json(images.classes)},
            {"mean", images.mean},
            {"std", images.std},
            {"chunk_samples", images.chunk_samples},
            {"chunk_bytes", images.chunk_bytes}};
  if (!images.label_counts.empty()) json["label_counts"] = images.label_counts;
  if (!images.columns.empty()) json["columns"] = columns_json(images.columns);
  if (images.own_sizes) json["own_sizes"] = true;
  for (const auto& [name, role] : images.fields) json["fields"][name] = name_of(role);
  if (images.sizes)
    json["sizes"] = {{"height", spread_json(images.sizes->height)},
                     {"width", spread_json(images.sizes->width)},
                     {"stored_bytes", spread_json(images.sizes->stored_bytes)},
                     {"jpeg", images.sizes->jpeg},
                     {"raw", images.sizes->raw},
                     {"zstd", images.sizes->zstd},
                     {"photo", images.sizes->photo}};
  if (images.inputs) {
    json["inputs"] = input_sizes_json(*images.inputs);
    json["input_notices"] = input_notices(*images.inputs);
  }
  if (images.normalize) json["normalize"] = shared_stats_json(*images.normalize);
  if (container(info.container).is_read_by_library && !images.own_sizes) {
    json["default_cache"] = cache_json(images.default_cache);
    json["advised_cache"] = cache_json(images.advised_cache);
  }
  return json;
}

Json matrix_json(const PackInfo& info, const MatrixInfo& matrix) {
  Json json{{"rows", info.samples},
            {"columns", matrix.columns},
            {"matrices", matrices_json(matrix.matrices)},
            {"values", values_json(matrix.values)},
            {"split_name", matrix.split_name},
            {"lost", matrix.lost},
            {"label_columns", info.label_columns},
            {"chunk_rows", matrix.chunk_rows},
            {"stats", stats_json(matrix.stats)}};
  add_kept(matrix.item_columns, matrix.user_columns, matrix.times, matrix.has_repeats, json);
  return json;
}

Json pairs_json(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json object = Json::object();
  for (const auto& [name, value] : pairs) object[name] = value;
  return object;
}

Json sources_json(const std::vector<MergedPack>& sources) {
  Json list = Json::array();
  for (const MergedPack& source : sources)
    list.push_back({{"pack_id", source.pack_id},
                    {"tool", source.tool},
                    {"root", source.root},
                    {"spec", pairs_json(source.spec)},
                    {"input_xxh3", source.input_xxh3},
                    {"rows", source.rows},
                    {"samples", source.samples},
                    {"parts", source.parts},
                    {"codec", source.codec},
                    {"chunk_samples", source.chunk_samples}});
  return list;
}

}  // namespace

std::string pack_info_json(const PackInfo& info) {
  Json parts = Json::array();
  for (const PackPart& part : info.parts) parts.push_back(part_json(part));
  Json json{{"path", info.path},
            {"single_part", info.single_part},
            {"external", info.external},
            {"container", info.container},
            {"codec", info.codec},
            {"raw_bytes", info.raw_bytes},
            {"stored_bytes", info.stored_bytes}};
  json.update(info.is_matrix() ? matrix_json(info, info.matrix()) : images_json(info, info.images()));
  json.update(Json{{"parts", std::move(parts)},
                   {"problems", info.problems},
                   {"spec", pairs_json(info.spec)},
                   {"tool", info.tool},
                   {"pack_id", info.pack_id},
                   {"input_xxh3", info.input_xxh3}});
  if (!info.sources.empty()) json["sources"] = sources_json(info.sources);
  return text_of(json);
}

std::string error_json(const std::string& error) { return text_of({{"error", error}}); }

std::string unfinished_pack_json(const UnfinishedPack& pack) {
  return text_of({{"path", pack.path},
                  {"finished", false},
                  {"parts", pack.parts},
                  {"rows", pack.rows},
                  {"samples", pack.samples},
                  {"rejected", pack.rejected},
                  {"warned", pack.warned},
                  {"bytes", pack.bytes},
                  {"begun", pack.begun},
                  {"has_rejects", pack.has_rejects},
                  {"last_write", pack.last_write}});
}

std::string verify_report_json(const VerifyReport& report) {
  return text_of({{"parts", report.parts},
                  {"chunks", report.chunks},
                  {"samples", report.samples},
                  {"bytes", report.bytes},
                  {"external", report.external},
                  {"problems", report.problems},
                  {"notices", report.notices},
                  {"remove_to_rebuild", report.remove_to_rebuild}});
}

}  // namespace chunkhit
