// Which items are the columns of the packs, and in which order.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace chunkhit {

/// The order of the columns. popularity: items with more ratings first, of equal ones the one that the input
/// has first; first: as the input has them; sorted: by id.
enum class ItemOrder { popularity, first, sorted };
inline constexpr std::array<std::string_view, 3> kItemOrderNames{"popularity", "first", "sorted"};

inline constexpr std::uint32_t kNoColumn = UINT32_MAX;
inline constexpr std::uint32_t kNoItem = UINT32_MAX;

/// The columns; all packs of a split share them.
struct ItemColumns {
  std::vector<std::uint32_t> items;    ///< number of the item, by column; kNoItem: the input has not this one
  std::vector<std::uint32_t> columns;  ///< by item; kNoColumn: not in the packs
  std::vector<std::uint64_t> counts;   ///< ratings for training, by column
};

/// Makes columns of all items with ratings for training (`counts`, by item). `sorted`: the items in the order
/// of their ids; may hold more than those; for ItemOrder::sorted only.
[[nodiscard]] ItemColumns order_items(std::span<const std::uint32_t> counts, ItemOrder order,
                                      std::span<const std::uint32_t> sorted);

/// Makes the columns that another pack has: `frozen` has the item of each, which may be one that the input
/// has not, kNoItem included. Throws bad_data when an item is there twice.
[[nodiscard]] ItemColumns reuse_items(std::span<const std::uint32_t> counts,
                                      std::span<const std::uint32_t> frozen);

}  // namespace chunkhit
