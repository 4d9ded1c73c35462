#include "pack/disk_space.h"

#include "base/words.h"
#include "store/hdf5/image_part.h"

namespace chunkhit {
namespace {

/// No filter here makes photographs or ratings smaller than this share.
constexpr double kMinStoredShare = 0.1;

/// Rejected rows make a pack smaller than planned; this many of all rows may be.
constexpr double kExpectedRejectShare = 0.01;

std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; }

}  // namespace

SpaceNeed needed_space(const ChunkPlan& plan, const SampleShape& sample, const Container& container,
                       std::uint64_t sample_count) {
  if (plan.chunk_samples == 0) return {0, true};
  const std::uint64_t samples = sample_count * sample.byte_count();
  const std::uint64_t chunks = divide_up(sample_count, plan.chunk_samples) * plan.chunk_bytes;
  const std::uint64_t metadata =
      container.is_read_by_library
          ? divide_up(sample_count, plan.part_samples) * hdf5_metadata_block_bytes(plan.chunk_bytes)
          : 0;
  if (plan.compressed)
    return {static_cast<std::uint64_t>(static_cast<double>(samples) * kMinStoredShare) + metadata, true};
  return {(container.pads_last_chunk ? chunks : samples) + metadata, false};
}

SpaceNeed needed_space(std::uint64_t raw_bytes, bool compressed) {
  if (!compressed) return {raw_bytes, false};
  return {static_cast<std::uint64_t>(static_cast<double>(raw_bytes) * kMinStoredShare), true};
}

double photograph_share(std::string_view codec) {
  constexpr double kPhoto = 0.5, kWithoutPrediction = 0.9;
  return codec == "none" ? 1 : codec == "photo" ? kPhoto : kWithoutPrediction;
}

std::string space_error(const SpaceNeed& need, std::uint64_t free_bytes) {
  const double least = static_cast<double>(need.bytes) * (need.is_minimum ? 1 : 1 - kExpectedRejectShare);
  if (static_cast<double>(free_bytes) >= least) return {};
  return "needs " + space_text(need) + ", " + bytes_text(static_cast<double>(free_bytes)) + " are free";
}

std::string space_text(const SpaceNeed& need) {
  return (need.is_minimum ? "at least " : "about ") + bytes_text(static_cast<double>(need.bytes));
}

}  // namespace chunkhit
