// Runs a check in a child process, so that a damaged file can crash only the child.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace chunkhit {

/// Runs `check` in a child (base/serving_child.h) without a limit of time and returns the problems that it
/// found; a child that crashes is an error itself, named `name`. Throws try_again where nothing could be
/// learnt: there can be no child, somebody killed it, or the machine lacks something (base/file.h).
[[nodiscard]] std::vector<std::string> check_isolated(const std::string& name,
                                                      const std::function<std::vector<std::string>()>& check);

}  // namespace chunkhit
