#include <nlohmann/json.hpp>
#include <utility>

#include "chunkhit/pack.h"

namespace chunkhit {
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

}  // namespace

std::string pack_info_json(const PackInfo& info) {
  Json spec = Json::object();
  for (const auto& [name, value] : info.spec) spec[name] = value;
  Json json{
      {"path", info.path},
      {"lone_part", info.lone_part},
      {"container", info.container},
      {"filter", info.filter},
      {"sample",
       {{"height", info.height},
        {"width", info.width},
        {"channels", info.channels},
        {"layout", info.layout},
        {"dtype", "uint8"}}},
      {"samples", info.samples},
      {"rows", info.rows},
      {"rejected", info.rejected},
      {"labels", {{"kind", info.class_labels ? "class_id" : "numbers"}, {"columns", info.label_columns}}},
      {"classes", classes_json(info)},
      {"mean", info.mean},
      {"std", info.std},
      {"chunk_samples", info.chunk_samples},
      {"chunk_bytes", info.chunk_bytes},
      {"raw_bytes", info.raw_bytes},
      {"stored_bytes", info.stored_bytes},
      {"parts", parts_json(info)},
      {"spec", std::move(spec)},
      {"tool", info.tool},
      {"pack_id", info.pack_id},
      {"input_xxh3", info.input_xxh3}};
  if (info.container == "hdf5") {
    json["default_cache"] = cache_json(info.default_cache);
    json["advised_cache"] = cache_json(info.advised_cache);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace chunkhit
