#include "pack/item_columns.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "chunkhit/error.h"

namespace chunkhit {

ItemColumns order_items(std::span<const std::uint32_t> counts, ItemOrder order,
                        std::span<const std::uint32_t> sorted) {
  ItemColumns made;
  if (order == ItemOrder::sorted) {
    made.items.assign(sorted.begin(), sorted.end());
  } else {
    made.items.resize(counts.size());
    std::iota(made.items.begin(), made.items.end(), 0u);
  }
  std::erase_if(made.items, [&](std::uint32_t item) { return item >= counts.size() || counts[item] == 0; });
  if (order == ItemOrder::popularity)
    std::stable_sort(made.items.begin(), made.items.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return counts[a] > counts[b]; });
  return reuse_items(counts, made.items);
}

ItemColumns reuse_items(std::span<const std::uint32_t> counts, std::span<const std::uint32_t> frozen) {
  ItemColumns made;
  made.items.assign(frozen.begin(), frozen.end());
  made.columns.assign(counts.size(), kNoColumn);
  made.counts.resize(frozen.size());
  for (std::size_t column = 0; column < frozen.size(); ++column) {
    const std::uint32_t item = frozen[column];
    if (item >= counts.size()) continue;
    if (made.columns[item] != kNoColumn)
      throw Error(ErrorCode::bad_data, "item number " + std::to_string(item) + " is column " +
                                           std::to_string(made.columns[item]) + " and column " +
                                           std::to_string(column));
    made.columns[item] = static_cast<std::uint32_t>(column);
    made.counts[column] = counts[item];
  }
  return made;
}

}  // namespace chunkhit
