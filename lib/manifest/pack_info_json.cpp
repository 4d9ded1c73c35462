#include "manifest/pack_info_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "chunkhit/pack_info.h"
#include "chunkhit/verify.h"

namespace chunkhit {

std::string pack_list_json(const std::vector<std::pair<std::string, std::string>>& named) {
  using Json = nlohmann::ordered_json;
  Json all = Json::object();
  for (const auto& [name, text] : named) all[name] = Json::parse(text);
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
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

Json classes_json(const PackInfo& info) {
  Json list = Json::array();
  for (const PackClass& record : info.classes) {
    Json entry{{"id", record.id}};
    if (!record.name.empty()) entry["name"] = record.name;
    entry["samples"] = record.samples;
    list.push_back(std::move(entry));
  }
  return list;
}

Json parts_json(const PackInfo& info) {
  Json list = Json::array();
  for (const PackPart& part : info.parts)
    list.push_back(
        {{"file", part.file}, {"samples", part.samples}, {"chunks", part.chunks}, {"bytes", part.bytes}});
  return list;
}

Json counts_json(const std::vector<std::pair<std::string, std::uint64_t>>& counts) {
  Json object = Json::object();
  for (const auto& [name, count] : counts) object[name] = count;
  return object;
}

Json stats_json(const MatrixInfo& matrix) {
  Json inputs = Json::array();
  for (const auto& [file, ratings] : matrix.inputs) inputs.push_back({{"file", file}, {"ratings", ratings}});
  Json steps = Json::array();
  for (const PackStep& step : matrix.steps)
    steps.push_back(
        {{"name", step.name}, {"users", step.users}, {"items", step.items}, {"ratings", step.ratings}});
  Json values = Json::array();
  for (const auto& [value, ratings] : matrix.values)
    values.push_back({{"value", value}, {"ratings", ratings}});
  return {{"inputs", std::move(inputs)},
          {"bad_lines", matrix.bad_lines},
          {"reasons", counts_json(matrix.reasons)},
          {"steps", std::move(steps)},
          {"left_out", counts_json(matrix.left_out)},
          {"values", std::move(values)}};
}

Json matrices_json(const MatrixInfo& matrix) {
  Json list = Json::array();
  for (const PackMatrix& each : matrix.matrices)
    list.push_back({{"name", each.name}, {"nnz", each.nnz}, {"longest_row", each.longest_row}});
  return list;
}

Json matrix_info_json(const PackInfo& info, Json spec) {
  return {{"path", info.path},
          {"single_part", info.single_part},
          {"external", info.external},
          {"container", info.container},
          {"codec", info.codec},
          {"rows", info.samples},
          {"columns", info.matrix->columns},
          {"matrices", matrices_json(*info.matrix)},
          {"values", {{"type", info.matrix->value_type}, {"scale", info.matrix->scale}}},
          {"split_name", info.matrix->split_name},
          {"label_columns", info.label_columns},
          {"chunk_rows", info.chunk_samples},
          {"raw_bytes", info.raw_bytes},
          {"stored_bytes", info.stored_bytes},
          {"parts", parts_json(info)},
          {"problems", info.problems},
          {"spec", std::move(spec)},
          {"stats", stats_json(*info.matrix)},
          {"tool", info.tool},
          {"pack_id", info.pack_id},
          {"input_xxh3", info.input_xxh3}};
}

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string pack_info_json(const PackInfo& info) {
  Json spec = Json::object();
  for (const auto& [name, value] : info.spec) spec[name] = value;
  if (info.matrix) return text_of(matrix_info_json(info, std::move(spec)));
  Json json{
      {"path", info.path},
      {"single_part", info.single_part},
      {"external", info.external},
      {"container", info.container},
      {"codec", info.codec},
      {"sample",
       {{"height", info.height},
        {"width", info.width},
        {"channels", info.channels},
        {"layout", info.layout},
        {"dtype", "uint8"}}},
      {"samples", info.samples},
      {"rows", info.rows},
      {"rejected", info.rejected},
      {"warned", info.warned},
      {"labels", {{"kind", info.class_labels ? "class_id" : "numbers"}, {"columns", info.label_columns}}},
      {"classes", classes_json(info)},
      {"mean", info.mean},
      {"std", info.std},
      {"chunk_samples", info.chunk_samples},
      {"chunk_bytes", info.chunk_bytes},
      {"raw_bytes", info.raw_bytes},
      {"stored_bytes", info.stored_bytes},
      {"parts", parts_json(info)},
      {"problems", info.problems},
      {"spec", std::move(spec)},
      {"tool", info.tool},
      {"pack_id", info.pack_id},
      {"input_xxh3", info.input_xxh3}};
  if (info.normalize)
    json["normalize"] = {
        {"from", info.normalize->from}, {"mean", info.normalize->mean}, {"std", info.normalize->std}};
  if (info.container == "hdf5") {
    json["default_cache"] = cache_json(info.default_cache);
    json["advised_cache"] = cache_json(info.advised_cache);
  }
  return text_of(json);
}

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
                  {"last_write", pack.last_write}});
}

std::string verify_report_json(const VerifyReport& report) {
  return text_of({{"parts", report.parts},
                  {"chunks", report.chunks},
                  {"samples", report.samples},
                  {"bytes", report.bytes},
                  {"external", report.external},
                  {"problems", report.problems},
                  {"damaged", report.damaged}});
}

}  // namespace chunkhit
