#include "read/state_check.h"

#include <algorithm>
#include <string>

#include "base/words.h"
#include "chunkhit/error.h"

namespace chunkhit {
namespace {

[[noreturn]] void refuse_state(const std::string& what) {
  throw Error(ErrorCode::usage, "loader state: " + what);
}

/// Refuses a state of other samples or of another order.
void check_same_order(const LoaderState& state, const LoaderState& own) {
  if (state.source != own.source) refuse_state("belongs to another source");
  if (state.shuffle != own.shuffle) refuse_state("shuffle: " + state.shuffle + ", expected " + own.shuffle);
  if (state.seed != own.seed)
    refuse_state("seed: " + std::to_string(state.seed) + ", expected " + std::to_string(own.seed));
  if (state.window_chunks != own.window_chunks && own.shuffle == "window")
    refuse_state("window_chunks: " + std::to_string(state.window_chunks) + ", expected " +
                 std::to_string(own.window_chunks));
}

/// Refuses a state whose samples were changed in another way.
void check_same_augment(const LoaderState& state, const LoaderState& own) {
  const auto text = [](const LoaderState& of, const std::string& name) {
    for (const auto& [key, value] : of.augment)
      if (key == name) return number_text(value);
    return std::string("nothing");
  };
  for (const LoaderState* const each : {&state, &own})
    for (const auto& [name, value] : each->augment)
      if (text(state, name) != text(own, name))
        refuse_state("augment." + name + ": " + text(state, name) + ", expected " + text(own, name));
}

/// What makes batches differ, "batch_size: 8, expected 16"; empty where nothing does.
std::string difference_of_batches(const LoaderState& state, const LoaderState& own) {
  const auto text = [](const char* name, const std::string& found, const std::string& expected) {
    return found == expected ? "" : std::string(name) + ": " + found + ", expected " + expected;
  };
  const auto count = [&](const char* name, std::uint64_t found, std::uint64_t expected) {
    return text(name, std::to_string(found), std::to_string(expected));
  };
  for (const std::string& each :
       {count("batch_size", state.batch_size, own.batch_size),
        count("world_size", state.world_size, own.world_size), count("echo", state.echo, own.echo),
        text("rank_remainder", state.rank_remainder, own.rank_remainder),
        text("drop_last", state.drop_last ? "true" : "false", own.drop_last ? "true" : "false")})
    if (!each.empty()) return each;
  return "";
}

/// The batches that a state counts.
EpochBatches batches_of(const LoaderState& state, std::uint64_t sample_count) {
  const auto rank_remainder =
      std::find(kRankRemainderNames.begin(), kRankRemainderNames.end(), state.rank_remainder);
  if (rank_remainder == kRankRemainderNames.end())
    refuse_state("rank_remainder: found \"" + state.rank_remainder + "\", expected pad or drop");
  const BatchSpec spec{
      .batch_size = state.batch_size,
      .world_size = static_cast<std::uint32_t>(state.world_size),
      .rank_remainder = static_cast<RankRemainder>(rank_remainder - kRankRemainderNames.begin()),
      .drop_last = state.drop_last,
      .echo = static_cast<std::uint32_t>(state.echo)};
  return {sample_count, spec, state.seed, state.epoch, state.first_place};
}

/// Refuses numbers that no loader writes.
void check_position(const LoaderState& state, std::uint64_t sample_count) {
  const auto refuse = [](const char* name, std::uint64_t found, const std::string& expected) {
    refuse_state(std::string(name) + ": " + std::to_string(found) + ", expected " + expected);
  };
  if (state.first_place > sample_count)
    refuse("first_place", state.first_place, "at most " + std::to_string(sample_count));
  const EpochBatches batches = batches_of(state, sample_count);
  if (state.batches > batches.batch_count())
    refuse("batches", state.batches, "at most " + std::to_string(batches.batch_count()));
  const std::optional<std::uint64_t> expected = places_done(batches, state);
  if (state.places == expected) return;
  if (!state.places) refuse_state("places: is missing, expected " + std::to_string(*expected));
  refuse("places", *state.places, expected ? std::to_string(*expected) : "nothing");
}

}  // namespace

std::optional<std::uint64_t> places_done(const EpochBatches& batches, const LoaderState& state) {
  if (state.batches == 0) return state.first_place;
  const EpochBatches::Batch last = batches.batch(state.batches - 1);
  return last.ends_block ? std::optional(last.places_done) : std::nullopt;
}

EpochStart start_of(const LoaderState& state, const LoaderState& own, std::uint64_t sample_count) {
  check_same_order(state, own);
  check_same_augment(state, own);
  check_position(state, sample_count);
  const std::string difference = difference_of_batches(state, own);
  if (difference.empty()) return {state.epoch, state.first_place, state.batches};
  if (!state.places) refuse_state(difference + " in the midst of a block of echoed batches");
  return {state.epoch, std::min(*state.places, sample_count), 0};
}

}  // namespace chunkhit
