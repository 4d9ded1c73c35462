// run.json: how the last run went.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/file.h"

namespace chunkhit {

/// Tells when a run began.
struct RunStart {
  std::string time;  ///< UTC, ISO 8601
  std::chrono::steady_clock::time_point clock;
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - clock).count();
  }
};

/// Begins a run now.
[[nodiscard]] RunStart start_run();

/// Writes run.json aside in a pack's folder.
[[nodiscard]] PendingFile write_run(const std::string& folder, const std::string& tool,
                                    const std::string& command_line, const RunStart& start,
                                    std::uint32_t threads);

}  // namespace chunkhit
