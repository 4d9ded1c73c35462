#include "pack/images/sample_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "base/random.h"
#include "listing/sample_list.h"
#include "pack/images/group_split.h"

namespace chunkhit {
namespace {

/// Divides `count` by the shares: whole numbers that add up, the largest remainders rounded up.
std::vector<std::uint64_t> divide(std::uint64_t count, const std::vector<SplitShare>& shares) {
  std::vector<std::uint64_t> parts;
  std::vector<std::pair<double, std::size_t>> remainders;
  for (const SplitShare& share : shares) {
    const double exact = share.share * static_cast<double>(count);
    // Shares like 0.9 are not exact in binary: 0.9 · 10 must not lose a sample to 8.999….
    const double whole = std::floor(exact + 1e-9 * static_cast<double>(count + 1));
    remainders.emplace_back(whole - exact, parts.size());
    parts.push_back(static_cast<std::uint64_t>(whole));
  }
  std::sort(remainders.begin(), remainders.end());
  std::uint64_t given = std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
  for (std::size_t next = 0; given < count; ++given, ++next) ++parts[remainders[next % parts.size()].second];
  for (std::size_t next = parts.size(); given > count; --next)
    if (parts[next - 1] > 0) --parts[next - 1], --given;
  return parts;
}

/// Divides files that several rows repeat, most repeated first, each to the share that lacks most rows. All
/// rows of a file stay in one share, so that no image is in both training and validation data.
void assign_repeated(std::span<std::uint32_t> indices, const std::vector<std::uint32_t>& row_counts,
                     const std::vector<SplitShare>& split, std::vector<std::uint8_t>& shares) {
  std::stable_sort(indices.begin(), indices.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return row_counts[a] > row_counts[b]; });
  std::uint64_t row_count = 0;
  for (const std::uint32_t index : indices) row_count += row_counts[index];
  std::vector<std::int64_t> lacking;
  for (const std::uint64_t count : divide(row_count, split))
    lacking.push_back(static_cast<std::int64_t>(count));
  for (const std::uint32_t index : indices) {
    const auto share = std::max_element(lacking.begin(), lacking.end());
    shares[index] = static_cast<std::uint8_t>(share - lacking.begin());
    *share -= row_counts[index];
  }
}

/// Divides the samples of one class. `row_counts` has the rows of each file; empty if each has one.
void assign_class(std::span<std::uint32_t> indices, std::int64_t id, const PackImagesSpec& spec,
                  const std::vector<std::uint32_t>& row_counts, std::vector<std::uint8_t>& shares) {
  shuffle(indices, spec.seed ^ mix_bits(static_cast<std::uint64_t>(id)), Purpose::split);
  const auto repeats = [&](std::uint32_t index) { return row_counts[index] > 1; };
  if (!row_counts.empty() && std::ranges::any_of(indices, repeats))
    return assign_repeated(indices, row_counts, spec.split, shares);
  std::size_t next = 0;
  const std::vector<std::uint64_t> counts = divide(indices.size(), spec.split);
  for (std::size_t share = 0; share < counts.size(); ++share)
    for (std::uint64_t taken = 0; taken < counts[share]; ++taken)
      shares[indices[next++]] = static_cast<std::uint8_t>(share);
}

/// Which share each sample of the list belongs to; all of a file to one, by the label of its first row. A
/// sorted list of indices, because there may be as many classes as samples.
std::vector<std::uint8_t> assign_shares(const SampleList& list, const PackImagesSpec& spec) {
  const auto class_of = [&](std::uint32_t index) {
    return list.label_kind == LabelKind::class_id ? list.class_ids[index] : 0;
  };
  const std::vector<std::uint32_t> firsts = first_samples_of_files(list);
  std::vector<std::uint32_t> row_counts(firsts.size());
  for (const std::uint32_t first : firsts) ++row_counts[first];
  std::vector<std::uint32_t> by_class(list.size());
  std::iota(by_class.begin(), by_class.end(), 0u);
  if (!firsts.empty()) std::erase_if(by_class, [&](std::uint32_t index) { return firsts[index] != index; });
  std::sort(by_class.begin(), by_class.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(class_of(a), a) < std::pair(class_of(b), b);
  });
  std::vector<std::uint8_t> shares(list.size());
  for (auto begin = by_class.begin(); begin != by_class.end();) {
    const std::int64_t id = class_of(*begin);
    const auto end =
        std::find_if(begin, by_class.end(), [&](std::uint32_t index) { return class_of(index) != id; });
    assign_class({begin, end}, id, spec, row_counts, shares);
    begin = end;
  }
  for (std::uint32_t index = 0; index < firsts.size(); ++index) shares[index] = shares[firsts[index]];
  return shares;
}

/// Returns the index of the folder that a row was listed in.
std::size_t folder_of(const SampleList& list, std::uint64_t row) {
  return static_cast<std::size_t>(std::ranges::upper_bound(list.folders, row, {}, &ListedFolder::row_end) -
                                  list.folders.begin());
}

/// An input of train/ and val/ folders is packed folder by folder.
std::vector<PackSamples> packs_of_folders(const SampleList& list, const std::vector<std::uint32_t>& order) {
  std::vector<PackSamples> packs;
  for (const ListedFolder& folder : list.folders) packs.push_back({folder.name, {}, {}});
  for (const std::uint32_t index : order) packs[folder_of(list, list.row(index))].indices.push_back(index);
  for (const Reject& reject : list.rejects) packs[folder_of(list, reject.row)].rejects.push_back(reject);
  return packs;
}

}  // namespace

std::vector<PackSamples> order_samples(const SampleList& list, const PackImagesSpec& spec) {
  std::vector<std::uint32_t> order(list.size());
  std::iota(order.begin(), order.end(), 0u);
  if (spec.order == PackOrder::shuffle) shuffle(std::span(order), spec.seed, Purpose::pack_order);
  if (!list.folders.empty()) return packs_of_folders(list, order);
  if (spec.split.empty()) return {{"", std::move(order), list.rejects}};

  std::vector<PackSamples> packs;
  for (const SplitShare& share : spec.split) packs.push_back({share.name, {}, {}});
  // Rejects of the list belong to no share; the first pack reports them.
  packs.front().rejects = list.rejects;
  const std::vector<std::uint8_t> shares = !spec.split_column.empty()  ? assign_values(list, spec)
                                           : !spec.split_group.empty() ? assign_groups(list, spec)
                                                                       : assign_shares(list, spec);
  for (const std::uint32_t index : order) packs[shares[index]].indices.push_back(index);
  return packs;
}

}  // namespace chunkhit
