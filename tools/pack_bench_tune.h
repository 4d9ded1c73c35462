// The search of pack-bench for the settings that give the most samples per second.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pack_bench_loop.h"

namespace chunkhit {

/// How a try ended.
enum class TuneEnd {
  measured,  ///< to its end
  gave_up,   ///< behind the best setting: its samples_per_second are those up to there
  refused,   ///< the loader did not take the setting: too little memory, say
};

struct TuneTry {
  LoaderSetting setting;
  double samples_per_second = 0;
  TuneEnd end = TuneEnd::measured;
  std::string reason;     ///< why it was refused
  bool is_again = false;  ///< measured a second time, to see whether a gain was one
};

struct TuneReport {
  std::vector<TuneTry> tries;  ///< as they came, beginning with the setting that was given
  TuneTry best;
  MixingInfo mixing;  ///< of the best setting's order
};

/// Called after each try, with the pace of the best setting before it; 0 for the first.
using OnTry = std::function<void(const TuneTry& tried, double best_samples_per_second)>;

/// Climbs greedily: one knob after the other (threads, prefetch, window, residency), in each direction while
/// a try is better by 5 %, until no knob gains as much. No setting is tried twice, but an apparent gain is
/// believed only when it is still there once both settings were measured again. Throws what the first setting
/// throws.
TuneReport tune(const BenchSpec& spec, const OnTry& on_try);

}  // namespace chunkhit
