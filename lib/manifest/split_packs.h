// The packs of a split, as the recorded spec of one of them names them, and the ratings that they lack.
#pragma once

#include <string>
#include <vector>

#include "chunkhit/pack_info.h"
#include "manifest/part_record.h"

namespace chunkhit {

/// Names of all packs that the run of a pack wrote: of a `split` ("train=0.9,val=0.1"), of `split_folders`
/// ("train,val") or of `split_by`; empty without a split, and by users-by-id, where the users decide it.
[[nodiscard]] std::vector<std::string> split_pack_names(const RecordedSpec& spec);

// Reasons in RatingStats::left_out, behind the name of a pack: ratings of its split that it lacks.
inline constexpr const char* kLostOfUsers = "ratings of users without both given and held-out ratings";
inline constexpr const char* kLostOfItems = "ratings of items without ratings for training";

/// Says that a pack lacks more than a tenth of its ratings, of which it has `kept`: "test lacks 95 % of its
/// ratings, 21 of 22"; empty for fewer.
[[nodiscard]] std::string lost_ratings_text(const std::string& pack, const RatingStats& stats,
                                            std::uint64_t kept);

}  // namespace chunkhit
