// The flags of pack-bench, and what they mean.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "pack_bench_spec.h"

namespace chunkhit {

/// What the command line says: text where a flag needs a second look, else the value itself.
struct PackBenchFlags {
  BenchSpec spec;  ///< flags that need no second look are already in it; a batch_size of 0: the loader's own
  std::string shuffle = "none";
  std::string cache = "automatic";
  std::string cache_bytes;
  std::string threads;   ///< empty: the loader's default
  std::string prefetch;  ///< empty: the loader's default
  std::string dtype;     ///< empty: the loader's default
  std::string format;    ///< empty: the loader's default
  ImageForm image;
  std::string resized_crop;  ///< empty: none
  std::string crop;          ///< empty: none
  std::string layout;        ///< empty: as stored
  MatrixForm matrix;
  double step_ms = 0;
  bool json = false;
  bool tune = false;
};

/// Adds every flag; `flags` must live until the command line is parsed.
void add_pack_bench_flags(CLI::App& app, PackBenchFlags& flags);

/// Gives what is to be timed, having looked what the first path holds; throws usage naming the flag, bad_data
/// for a path that is no pack.
[[nodiscard]] BenchSpec bench_spec(const PackBenchFlags& flags);

}  // namespace chunkhit
