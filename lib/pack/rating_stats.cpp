#include "pack/rating_stats.h"

#include <filesystem>

namespace chunkhit {
namespace {

void add_left_out(const PackRows& pack, RatingStats& stats) {
  const std::string name = pack.name().empty() ? "" : pack.name() + ": ";
  if (pack.stats().users_left_out > 0)
    stats.left_out.emplace_back(name + "users without both given and held-out ratings",
                                pack.stats().users_left_out);
  if (pack.stats().unseen_ratings > 0)
    stats.left_out.emplace_back(name + "ratings of items without ratings for training",
                                pack.stats().unseen_ratings);
}

}  // namespace

RatingStats make_rating_stats(const ReadStats& read, const RatingPacks& packs) {
  RatingStats stats;
  for (const RatingInput& input : read.inputs())
    stats.inputs.push_back({std::filesystem::path(input.name).filename().string(), input.bytes,
                            input.line_count, input.blank_lines, input.comment_lines, input.header_lines,
                            input.rating_count});
  stats.bad_lines = read.total().bad_lines;
  for (const auto& [kind, count] : read.bad_kinds()) stats.reasons.emplace_back(kind, count);
  for (const StepCounts& step : packs.steps)
    stats.steps.push_back({step.name, step.users, step.items, step.ratings});
  for (const PackRows& pack : packs.packs) add_left_out(pack, stats);
  for (const ValueHistogram::Bin& bin : packs.values.bins) stats.values.push_back({bin.low, bin.count});
  return stats;
}

}  // namespace chunkhit
