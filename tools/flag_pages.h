// Pages that are made of a command's own flags: a man page, and completions for shells.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace chunkhit {

/// Adds --flag-page, which the help does not show: it prints one of the pages, for the build to install.
void add_flag_page(CLI::App& app);

/// Returns a page by its form: man, bash, zsh or fish. Throws std::invalid_argument for another form.
[[nodiscard]] std::string flag_page(const std::string& form, const CLI::App& app);

/// Returns the man page of a command in roff; its sources are the command's description, flags and footer.
[[nodiscard]] std::string man_page(const CLI::App& app);

/// Returns a function for bash that completes flags, their words, files and folders.
[[nodiscard]] std::string bash_completion(const CLI::App& app);

/// The same for zsh, as a file of $fpath.
[[nodiscard]] std::string zsh_completion(const CLI::App& app);

/// The same for fish.
[[nodiscard]] std::string fish_completion(const CLI::App& app);

}  // namespace chunkhit
