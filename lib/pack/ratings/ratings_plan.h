// Plans of ratings: each input is counted, the columns are made of all counts, each input is packed, and the
// packs are merged. Any number of processes may do any of it at once. Layout: schemas/plan.md.
#pragma once

#include <optional>
#include <string>

#include "chunkhit/pack.h"
#include "manifest/ratings_plan.h"

namespace chunkhit {

/// Reads the plan of ratings in a folder; nothing where there is none, or one of images. Throws bad_data for
/// a damaged one, try_again when the machine cannot read it.
[[nodiscard]] std::optional<RatingsPlan> read_ratings_plan(const std::string& folder);

/// The folder for what stages leave for each other; a replaced plan has another.
[[nodiscard]] std::string stage_folder(const std::string& folder, const RatingsPlan& plan);

/// As run_plan.
[[nodiscard]] RunPlanReport run_ratings_plan(const RunPlanOptions& options, const RatingsPlan& plan);

/// As read_plan_status.
[[nodiscard]] PlanStatus ratings_plan_status(const std::string& folder, const RatingsPlan& plan);

}  // namespace chunkhit
