// What the commands' flags are made with.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chunkhit {

/// The words that a flag takes.
template <std::size_t kCount>
[[nodiscard]] CLI::IsMember one_of(const std::array<std::string_view, kCount>& names) {
  return CLI::IsMember(std::vector<std::string>(names.begin(), names.end()));
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

  CLI::Option* add_switch(const std::string& flag, bool& value, const std::string& words) {
    return app_.add_flag(flag, value, words)->group(name_);
  }

 private:
  CLI::App& app_;
  std::string name_;
};

/// Adds --images and --labels to a group of the help.
void add_dataset_flags(CLI::App& app, std::string& images, std::optional<std::string>& labels,
                       const std::string& group = "Options");

/// Adds --config to a group of the help: a recipe with the flags' names as keys, whose unknown keys are
/// errors.
void add_config_flag(CLI::App& app, const std::string& group);

/// Writes what a command line means, defaults included, for --config; throws cannot_write.
void save_config(const CLI::App& app, const std::string& path);

}  // namespace chunkhit
