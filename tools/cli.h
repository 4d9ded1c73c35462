// What all commands share: flags with sizes in words, configuration files, exit codes, signals, the running
// of a command.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/words.h"
#include "chunkhit/pack.h"
#include "types/enum_names.h"
#include "types/fields.h"

namespace chunkhit {

/// The words that a flag takes; what is none of them is an error that lists them.
[[nodiscard]] inline CLI::Validator one_of(std::vector<std::string> words) {
  const std::string set = CLI::detail::generate_set(words);  // for the flag pages
  return {[words = std::move(words)](const std::string& found) -> std::string {
            if (std::ranges::find(words, found) != words.end()) return {};
            std::string expected;
            for (const std::string& word : words)
              if (!word.empty()) expected += (expected.empty() ? "" : ", ") + word;
            return "found " + (found.empty() ? "nothing" : found) + ", expected one of " + expected +
                   did_you_mean(found, words);
          },
          set};
}
template <class Enum>
[[nodiscard]] CLI::Validator one_of() {
  return one_of(std::vector<std::string>(kEnumWords<Enum>.begin(), kEnumWords<Enum>.end()));
}

/// A group of the help. The defaults of its flags are part of a saved recipe.
class FlagGroup {
 public:
  FlagGroup(CLI::App& app, std::string name) : app_(app), name_(std::move(name)) {}

  /// Adds a flag with a value; `shape` stands for the value in the help.
  template <class Value>
  CLI::Option* add(const std::string& flag, const std::string& shape, Value& value,
                   const std::string& words) {
    return app_.add_option(flag, value, words)->option_text(shape)->group(name_)->capture_default_str();
  }

  [[nodiscard]] const std::string& name() const { return name_; }

  CLI::Option* add_switch(const std::string& flag, bool& value, const std::string& words) {
    return app_.add_flag(flag, value, words)->group(name_);
  }

 private:
  CLI::App& app_;
  std::string name_;
};

/// Adds --progress.
void add_progress_flag(FlagGroup& group, std::string& progress);

/// Adds --config and --save-config to a group of the help: a recipe with the flags' names as keys, whose
/// unknown keys are errors.
void add_config_flags(CLI::App& app, FlagGroup& group, std::string& save_config);

/// Adds --images and --labels to a group of the help.
void add_dataset_flags(CLI::App& app, std::string& images, std::optional<std::string>& labels,
                       const std::string& group = "Options");

/// Writes what a command line means, defaults included, for --config; throws cannot_write.
void save_config(const CLI::App& app, const std::string& path);

/// Returns the folder of a plan, which may also be named by its plan.json.
[[nodiscard]] std::string plan_folder(std::string path);

/// Reads numbers of tasks as schedulers write them: "17", "3,17,40-42"; at most a million.
[[nodiscard]] std::vector<std::uint64_t> parse_tasks(const std::string& flag, const std::string& text);

/// Gives the enumerator of a name; CLI11 checked that it is one.
template <class Enum>
[[nodiscard]] Enum parse_choice(const std::string& text) {
  return enum_of<Enum>(text).value();
}

/// Puts flags in the place of a message's fields: "`part_bytes`: must be at least 1" becomes "--part-bytes:
/// …".
[[nodiscard]] std::string flag_text(const std::string& message);

/// Writes a path as one word of a shell, in quotes where it needs them.
[[nodiscard]] std::string shell_word(const std::string& path);

/// Runs a command: parses, calls `body`, turns every failure into a message on stderr and the documented exit
/// code.
int run_command(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

/// Returns what `body` does; says meanwhile what a server fails with, if URLs are among the arguments.
int warn_of_servers(const std::string& name, std::span<char* const> arguments,
                    const std::function<int()>& body);

/// Adds --version (with the libraries' versions) and --help to a group of the help, and sets its width.
void add_common_flags(CLI::App& app, const std::string& group = "Options");

/// Writes a value of ratings, or their scale, with as few digits as give the 32-bit float back: "0.05".
[[nodiscard]] std::string value_text(float value);

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
