#include "pack/run_frame.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/resources.h"
#include "chunkhit/version.h"

namespace chunkhit {
namespace {

/// Above what a command holds when it starts.
constexpr std::uint64_t kCommandBytes = 64 << 20;

}  // namespace

std::string utc_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string absolute_root(const std::string& root) {
  std::error_code error;
  return std::filesystem::canonical(root, error).string();
}

RunFrame::RunFrame(const std::string& tool, const std::string& command_line, const std::atomic<bool>* stop)
    : stop_(stop) {
  const std::uint64_t held = resident_bytes();
  bytes_before_ = held - std::min(held, kCommandBytes);
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  record.tool = tool + " " + version();
  record.command_line = command_line;
  record.host = host;
  record.started = utc_time();
  record.threads = 1;
  for (const auto& [name, number] : library_versions()) record.libraries.push_back({name, number});
}

std::uint64_t RunFrame::held_bytes() const {
  const std::uint64_t now = resident_bytes();
  return now - std::min(now, bytes_before_);
}

double RunFrame::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void RunFrame::execute(std::uint32_t threads, const std::function<void()>& work) {
  record.threads = threads;
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
  tbb::task_arena arena(static_cast<int>(threads));
  arena.execute(work);
}

void RunFrame::publish(const std::string& folder, std::map<std::uint64_t, std::string> roots) const {
  RunRecord run = record;
  run.seconds = seconds();
  run.roots = std::move(roots);
  publish_file(folder + "/" + std::string(kRunName), run_text(run));
}

}  // namespace chunkhit
