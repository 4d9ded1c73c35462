// The ids of a pack: written as users.csv and items.csv, read from files that the spec names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "manifest/id_list.h"
#include "pack/ratings/column_table.h"
#include "pack/ratings/sparse_memory.h"
#include "ratings/id_map.h"
#include "ratings/rating_packs.h"

namespace chunkhit {

/// Writes users.csv in a folder: `users` by number and their ratings in X, in the order of rows; with the
/// columns of a table unless it is null.
[[nodiscard]] CompleteList write_users(const std::string& folder, std::span<const std::uint32_t> users,
                                       std::span<const std::uint32_t> ratings, const IdMap& ids,
                                       const ColumnTable* columns = nullptr);

/// Writes items.csv: the items' own ids and their ratings for training, by column; with the columns of a
/// table unless it is null.
[[nodiscard]] CompleteList write_items(const std::string& folder, std::span<const std::string> ids,
                                       std::span<const std::uint64_t> ratings,
                                       const ColumnTable* columns = nullptr);

/// Hashes ids, each with a line feed behind it: the hash that a spec records of a list.
[[nodiscard]] std::string hash_of_ids(std::span<const std::string> ids);

/// Own ids of the items of an items.csv.
struct ItemIds {
  std::vector<std::string> columns;  ///< by column
  std::vector<std::string> unseen;   ///< without a column: of the counted items, those that training lacks
};

/// The items of several parts, and how often training has them.
struct ItemCounts {
  ItemIds ids;
  std::vector<std::uint64_t> ratings;  ///< by column
};

/// Hashes all of them; of columns alone it is hash_of_ids.
[[nodiscard]] std::string hash_of_items(const ItemIds& items);

/// Which flag names a list, and what it must fit into; null: it may take any memory.
struct IdListUse {
  std::string flag;
  const SparseMemory* memory = nullptr;
};

/// Reads the items of an items.csv or of the one in a pack's folder; throws bad_data when it is damaged or
/// names an item twice, usage when it does not fit into memory.
[[nodiscard]] ItemIds read_item_ids(const std::string& path, const IdListUse& use = {});

/// Whether all inputs are lists of items, files that begin as an items.csv; throws bad_data where only some
/// are.
[[nodiscard]] bool are_item_lists(std::span<const std::string> paths);

/// Adds up the counts of lists, and orders their items; `min_item` applies to the sums. Equal counts keep the
/// order of the lists. Throws as read_item_ids, bad_data where no item is left, and usage for a `min_item`
/// that sums cannot decide.
[[nodiscard]] ItemCounts sum_item_lists(std::span<const std::string> paths, const RatingPacksSpec& spec,
                                        const SparseMemory& memory);

/// Writes and publishes a list of counted items: those without a column stand at its end.
void write_item_counts(const std::string& folder, const std::string& name, const ItemCounts& counts);

/// Reads users' own ids, one a line, sorted; blank lines count for nothing. Throws bad_data when a user is
/// there twice, and when there is none, usage when they do not fit into memory.
[[nodiscard]] std::vector<std::string> read_user_ids(const std::string& path, const IdListUse& use = {});

}  // namespace chunkhit
