// Pages that are made of a command's own flags: a man page, completions for shells, a page of the site.
#pragma once

#include <string>
#include <vector>

#include "command.h"

namespace chunkhit {

/// Returns the forms that a page has: man, in roff; completions for bash, zsh and fish; markdown.
[[nodiscard]] std::vector<std::string> page_forms();

/// Returns the page of a command in one of the forms.
[[nodiscard]] std::string flag_page(const std::string& form, const Command& command);

}  // namespace chunkhit
