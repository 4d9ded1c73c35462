// Whether a state fits a loader, and where it stands.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "batch/epoch_batches.h"
#include "manifest/loader_state.h"
#include "read/batch_pipeline.h"

namespace chunkhit {

/// How states spell RankRemainder.
inline constexpr std::array<std::string_view, 2> kRankRemainderNames{"pad", "drop"};

/// The places that all ranks have used once `state.batches` of the batches are; nothing in the midst of a
/// block.
[[nodiscard]] std::optional<std::uint64_t> places_done(const EpochBatches& batches, const LoaderState& state);

/// Where a loader goes on whose own state is `own`; throws usage, naming the field, for a state of other
/// samples, of another order or augment, or with numbers that no loader of so many samples writes.
[[nodiscard]] EpochStart start_of(const LoaderState& state, const LoaderState& own,
                                  std::uint64_t sample_count);

}  // namespace chunkhit
