// The flags of pack-bench, and what they mean.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "pack_bench_loop.h"
#include "types/sample_shape.h"

namespace chunkhit {

// In the order of the enumerators, spelled as they are.
inline constexpr std::array<std::string_view, 3> kShuffleNames{"none", "window", "global"};
inline constexpr std::array<std::string_view, 4> kResidencyNames{"automatic", "decoded", "compressed",
                                                                 "stream"};
inline constexpr std::array<std::string_view, 2> kPixelTypeNames{"u8", "f32"};

/// Spells an enumerator.
template <class Enum, std::size_t kCount>
std::string name_of(const std::array<std::string_view, kCount>& names, Enum value) {
  return std::string(names.at(static_cast<std::size_t>(value)));
}

/// What the command line says: text where a flag needs a second look, else the value itself.
struct PackBenchFlags {
  BenchSpec spec;  ///< flags that need no second look are already in it
  std::string shuffle = "none";
  std::string residency = "automatic";
  std::string memory;
  std::string as = "u8";
  std::string layout;  ///< empty: as stored
  double step_ms = 0;
  bool json = false;
  bool tune = false;
};

/// Adds every flag; `flags` must live until the command line is parsed.
void add_pack_bench_flags(CLI::App& app, PackBenchFlags& flags);

/// Gives what is to be timed; throws usage naming the flag.
[[nodiscard]] BenchSpec bench_spec(const PackBenchFlags& flags);

}  // namespace chunkhit
