// What all commands share: options with sizes in words, exit codes, signals.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/words.h"

namespace chunkhit {

/// Runs a command: parses, calls `body`, turns every failure into a message on stderr and the documented exit
/// code.
int run_command(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

/// Adds --version (with the libraries' versions) and --help to a group of the help, and sets its width.
void add_common_flags(CLI::App& app, const std::string& group = "Options");

/// Reads "250", "64K", "2G", "1.5GiB" (powers of 1024) as bytes; throws usage naming the flag.
[[nodiscard]] std::uint64_t parse_bytes(const std::string& flag, const std::string& text);

/// Writes a value of ratings, or their scale, with as few digits as give the 32-bit float back: "0.05".
[[nodiscard]] std::string value_text(float value);

/// Set by SIGINT, SIGTERM and SIGHUP; a second signal ends the process at once.
extern std::atomic<bool> stop_requested;

/// Handles signals for a command that can stop cleanly: first signal sets `stop_requested`, the second exits;
/// a closed pipe is no reason to stop.
void handle_signals();

/// 128 + the signal that was seen, 0 without one.
[[nodiscard]] int signal_exit_code();

/// The command line as it could be typed again.
[[nodiscard]] std::string command_line(int argc, char** argv);

}  // namespace chunkhit
