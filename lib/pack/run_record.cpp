#include "pack/run_record.h"

#include <unistd.h>

#include <ctime>

#include "base/file.h"
#include "chunkhit/version.h"
#include "manifest/manifest.h"

namespace chunkhit {

RunStart start_run() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, std::chrono::steady_clock::now()};
}

PendingFile write_run(const std::string& folder, const std::string& tool, const std::string& command_line,
                      const RunStart& start, std::uint32_t threads) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  RunRecord record{tool, command_line, host, start.time, start.seconds(), threads, {}};
  for (const auto& [name, version] : library_versions()) record.libraries.push_back({name, version});
  PendingFile file(folder + "/" + std::string(kRunName));
  file.append(as_bytes(run_text(record)));
  file.flush();
  return file;
}

}  // namespace chunkhit
