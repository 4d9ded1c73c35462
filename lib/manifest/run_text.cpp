#include <nlohmann/json.hpp>
#include <utility>

#include "manifest/manifest.h"

namespace chunkhit {

std::string run_text(const RunRecord& run) {
  using Json = nlohmann::ordered_json;
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
