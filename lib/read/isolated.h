// Runs a check in a child process, so that a damaged file can crash only the child.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace chunkhit {

/// Runs `check` in a forked child and returns the faults that it found; a child that crashes is a fault
/// itself, named `name`. The caller must not have other threads running.
[[nodiscard]] std::vector<std::string> run_isolated(const std::string& name,
                                                    const std::function<std::vector<std::string>()>& check);

}  // namespace chunkhit
