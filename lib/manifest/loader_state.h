// Where a loader stands, as one line of JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace chunkhit {

/// What a loader needs to go on. What is equal in two loaders makes their batches equal.
struct LoaderState {
  std::uint64_t source = 0;  ///< ChunkSet::id
  std::string shuffle;       ///< as the enumerator is spelled
  std::uint64_t seed = 0;
  std::uint64_t window_chunks = 1;
  std::uint64_t streams = 1;      ///< that the epoch is divided into
  std::uint64_t stream_unit = 1;  ///< positions of a stream before the next one's turn; 1 for one stream
  std::optional<std::uint64_t> sampler;  ///< LoaderOrder::sampler_id
  std::uint64_t epoch = 0;
  std::uint64_t batch_size = 1;
  std::uint64_t world_size = 1;
  std::uint64_t echo = 1;
  std::string rank_remainder;  ///< as the enumerator is spelled
  bool drop_last = false;
  std::vector<std::pair<std::string, double>> augment;  ///< options by name; empty where there are none
  std::uint64_t first_position = 0;                     ///< where the batches are counted from
  std::uint64_t batches = 0;                            ///< that were used, from there
  std::optional<std::uint64_t>
      positions;  ///< that all ranks have used; nothing in the midst of an echoed block
  bool operator==(const LoaderState&) const = default;
};

[[nodiscard]] std::string loader_state_text(const LoaderState& state);

/// Throws usage when the text is no state, or holds anything else; numbers are in the ranges of the options.
[[nodiscard]] LoaderState parse_loader_state(const std::string& text);

}  // namespace chunkhit
