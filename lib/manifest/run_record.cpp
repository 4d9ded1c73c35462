#include "manifest/run_record.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/hash.h"

namespace chunkhit {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

bool is_merge_run(std::string_view run_text) {
  const Json json = Json::parse(run_text, nullptr, false);
  const auto tool = json.is_object() ? json.find("tool") : json.end();
  return tool != json.end() && tool->is_string() &&
         tool->get_ref<const std::string&>().starts_with("pack-merge ");
}

std::string run_text(const RunRecord& run) {
  Json libraries = Json::object();
  for (const SpecEntry& library : run.libraries) libraries[library.name] = library.value;
  Json json{{"tool", run.tool},
            {"command_line", run.command_line},
            {"host", run.host},
            {"started", run.started},
            {"seconds", run.seconds},
            {"threads", run.threads},
            {"libraries", std::move(libraries)}};
  for (const auto& [content, root] : run.roots) json["roots"][hash_text(content)] = root;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::map<std::uint64_t, std::string> image_roots(std::string_view run_text) {
  std::map<std::uint64_t, std::string> roots;
  const Json json = Json::parse(run_text, nullptr, false);
  const auto listed = json.is_object() ? json.find("roots") : json.end();
  if (listed == json.end() || !listed->is_object()) return roots;
  for (const auto& [content, root] : listed->items())
    if (root.is_string()) roots.emplace(std::strtoull(content.c_str(), nullptr, 16), root.get<std::string>());
  return roots;
}

}  // namespace chunkhit
