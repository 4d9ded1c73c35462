// What all commands share: texts of flags and shells, exit codes, signals.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.h"
#include "chunkhit/pack_info.h"

namespace chunkhit {

/// Returns the folder of a plan, which may also be named by its plan.json.
[[nodiscard]] std::string plan_folder(std::string path);

/// Reads numbers of tasks as schedulers write them: "17", "3,17,40-42"; at most a million.
[[nodiscard]] std::vector<std::uint64_t> parse_tasks(const std::string& flag, const std::string& text);

/// What messages call `root`: the argument ROOT, or the flag of a command that has one.
extern std::string_view root_name;

/// Puts flags in the place of a message's fields: "`part_bytes`: must be at least 1" becomes "--part-bytes:
/// …".
[[nodiscard]] std::string flag_text(const std::string& message);

/// The steps that changed something, and the first.
[[nodiscard]] std::vector<PackStep> changing_steps(const std::vector<PackStep>& steps);

/// Writes a path as one word of a shell, in quotes where it needs them.
[[nodiscard]] std::string shell_word(const std::string& path);

/// Returns what `body` does; says meanwhile what a server fails with, if URLs are among the arguments.
int warn_of_servers(const std::string& name, std::span<char* const> arguments,
                    const std::function<int()>& body);

/// Set by SIGINT, SIGTERM and SIGHUP; a second signal ends the process at once.
extern std::atomic<bool> stop_requested;

/// Handles signals for a command that can stop cleanly: first signal sets `stop_requested`, the second exits;
/// a closed pipe is no reason to stop.
void handle_signals();

/// 128 + the signal that was seen, 0 without one.
[[nodiscard]] int signal_exit_code();

/// The exit code of a run that was stopped, or was not: that of the signal, 0.
[[nodiscard]] int exit_code(bool interrupted);

/// The command line as it could be typed again.
[[nodiscard]] std::string command_line(int argc, char** argv);

}  // namespace chunkhit
