// What the stages of a plan of ratings leave for each other: lists of items and users, and their sums.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "manifest/ratings_plan.h"
#include "ratings/id_map.h"
#include "ratings/rating_packs.h"

namespace chunkhit {

inline constexpr std::string_view kColumnsName = "columns.json";

/// The name of what a stage leaves of an input: "count-00017".
[[nodiscard]] std::string numbered(const std::string& kind, std::uint64_t index);

/// Whether a list is on disk as its record says.
[[nodiscard]] bool is_whole(const std::string& path, const FileRecord& record);

/// Publishes hashes, 8 bytes each.
[[nodiscard]] FileRecord write_hashes(const std::string& folder, const std::string& name,
                                      const std::vector<std::uint64_t>& hashes);

/// A user, by the hash of the id, and the input that has it.
struct UserOfInput {
  std::uint64_t id = 0;
  std::uint32_t input = 0;
  auto operator<=>(const UserOfInput&) const = default;
};

/// Adds the users of one input.
void add_users(const std::string& path, const FileRecord& record, std::uint64_t input,
               std::vector<UserOfInput>& users);

/// The items of all inputs by their first appearance, and the ratings of each.
struct ItemCounts {
  IdMap ids;
  std::vector<std::uint64_t> ratings;
};

/// Adds the list of one input; throws try_again where it is not what was counted: another process may be
/// replacing it.
void add_items(const std::string& path, const FileRecord& record, ItemCounts& items);

/// The path of a table of columns that was planned, by the hash that the plan has of it; empty without a
/// hash. Throws bad_data where it is another table.
[[nodiscard]] std::string planned_table(const std::string& folder, std::string_view name,
                                        const std::string& hash);

/// Whether some user of the inputs, by the hash of the id, has no row in a table; false for an empty path.
[[nodiscard]] bool lacks_users(const std::string& table_path, const std::vector<UserOfInput>& users);

/// The types that hold all values of an input; throws bad_data naming `path`.
[[nodiscard]] ValueFit value_fit(const PlanCount& count, const std::string& path);

}  // namespace chunkhit
