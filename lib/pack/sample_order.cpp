#include "pack/sample_order.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/random.h"

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

/// Which share each sample of the list belongs to.
std::vector<std::uint8_t> assign_shares(const SampleList& list, const PackImagesSpec& spec) {
  std::map<std::int64_t, std::vector<std::uint32_t>> members;
  for (std::size_t index = 0; index < list.size(); ++index)
    members[list.label_kind == LabelKind::class_id ? list.class_ids[index] : 0].push_back(
        static_cast<std::uint32_t>(index));
  std::vector<std::uint8_t> shares(list.size());
  for (auto& [id, indices] : members) {
    shuffle(std::span(indices), spec.seed ^ mix_bits(static_cast<std::uint64_t>(id)), Purpose::split);
    std::size_t next = 0;
    const std::vector<std::uint64_t> counts = divide(indices.size(), spec.split);
    for (std::size_t share = 0; share < counts.size(); ++share)
      for (std::uint64_t taken = 0; taken < counts[share]; ++taken)
        shares[indices[next++]] = static_cast<std::uint8_t>(share);
  }
  return shares;
}

}  // namespace

std::vector<PackSamples> order_samples(const SampleList& list, const PackImagesSpec& spec) {
  std::vector<std::uint32_t> order(list.size());
  std::iota(order.begin(), order.end(), 0u);
  if (spec.order == Order::shuffle) shuffle(std::span(order), spec.seed, Purpose::pack_order);
  if (spec.split.empty()) return {{"", std::move(order)}};

  std::vector<PackSamples> packs;
  for (const SplitShare& share : spec.split) packs.push_back({share.name, {}});
  const std::vector<std::uint8_t> shares = assign_shares(list, spec);
  for (const std::uint32_t index : order) packs[shares[index]].indices.push_back(index);
  return packs;
}

}  // namespace chunkhit
