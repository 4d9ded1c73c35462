// Tables whose columns of users and items look swapped.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace chunkhit {

/// A warning where the ids of all lines look like those of Amazon, items in the column of users: its files of
/// 2018 have this order, those of 2014 the other. Empty where they do not.
[[nodiscard]] std::string swapped_ids_warning(std::span<const std::vector<std::string>> lines,
                                              std::size_t user, std::size_t item);

}  // namespace chunkhit
