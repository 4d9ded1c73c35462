// The search of pack-bench for the settings that give the most samples per second.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pack_bench_loop.h"
#include "types/enum_names.h"

namespace chunkhit {

/// How a try ended.
enum class TuneEnd {
  measured,  ///< to its end
  gave_up,   ///< behind the best setting: its samples_per_second are those up to there
  refused,   ///< the loader did not take the setting: too little memory, say
  stopped,   ///< by a signal, before a result
};
template <>
[[gnu::visibility("hidden")]] inline constexpr Words<4> kEnumWords<TuneEnd>{"measured", "gave_up", "refused",
                                                                            "stopped"};

struct TuneTry {
  LoaderSetting setting;
  double samples_per_second = 0;
  TuneEnd end = TuneEnd::measured;
  std::string reason{};   ///< why it was refused
  bool is_again = false;  ///< measured again, in turns with others that are nearly as fast
  MixingInfo mixing{};    ///< of the setting's order
};

struct TuneReport {
  std::vector<TuneTry> tries;  ///< as they came, beginning with the setting that was given
  TuneTry best;
};

/// Called after each try, with the pace of the best setting before it; 0 for the first.
using OnTry = std::function<void(const TuneTry& tried, double best_samples_per_second)>;

/// Chooses the fastest of one or more tries; one with more threads than allowed CPUs only where it is at
/// least 15 % faster than the best of the others.
[[nodiscard]] const TuneTry& best_of(std::span<const TuneTry> tries);

/// Climbs greedily: one knob after the other (threads, prefetch, window, cache), in both directions in
/// steps of four times, until a round over all of them gains less than 5 %; then the best few are measured
/// again in turns, and the best median wins, one with more threads than CPUs only by 15 %. No setting is
/// tried twice before that. Takes six minutes at most, and ends after the try in hand once `stop_requested`
/// is set. Throws what the first setting throws.
TuneReport tune(const BenchSpec& spec, const OnTry& on_try);

}  // namespace chunkhit
