#include "pack_bench_flags.h"

#include <algorithm>
#include <cstdint>

#include "cli.h"

namespace chunkhit {
namespace {

template <std::size_t kCount>
CLI::IsMember one_of(const std::array<std::string_view, kCount>& names) {
  return CLI::IsMember(std::vector<std::string>(names.begin(), names.end()));
}

/// CLI::Range takes "nan" for a number in it.
CLI::Validator between(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return std::string();
        return "expected a number from " + CLI::detail::to_string(least) + " to " +
               CLI::detail::to_string(most) + ", found " + text;
      },
      "");
}

/// Reads an enumerator whose name was checked when the command line was parsed.
template <class Enum, std::size_t kCount>
Enum value_of(const std::array<std::string_view, kCount>& names, const std::string& name) {
  return static_cast<Enum>(std::find(names.begin(), names.end(), name) - names.begin());
}

void add_batch_flags(CLI::App& app, PackBenchFlags& flags) {
  ImageLoaderOptions& loader = flags.spec.loader;
  const auto add = [&app](const char* flag, const char* shape, auto& value, const char* words) {
    return app.add_option(flag, value, words)->option_text(shape)->group("Batches");
  };
  add("--batch", "N", loader.batch_size, "Samples a batch (256)")->check(CLI::Range(1, INT32_MAX));
  add("--shuffle", "WORD", flags.shuffle, "none, window, global (none)")->check(one_of(kShuffleNames));
  add("--window", "N", loader.window_chunks, "Chunks a window of --shuffle window (64)")
      ->check(CLI::Range(1, INT32_MAX));
  add("--seed", "N", loader.seed, "Of order and augmentation (0)")->check(CLI::NonNegativeNumber);
  add("--echo", "N", loader.echo, "How often each fetched block is used (1)")->check(CLI::Range(1, 1024));
  add("--flip", "SHARE", loader.augment.flip_horizontal, "Of the pictures that are mirrored, 0..1 (0)")
      ->check(between(0, 1));
  add("--as", "TYPE", flags.as, "u8; f32: normalised (u8)")->check(one_of(kPixelTypeNames));
  add("--layout", "NAME", flags.layout, "nhwc, nchw (as stored)")->check(one_of(kLayoutNames));
}

void add_loader_flags(CLI::App& app, PackBenchFlags& flags) {
  ImageLoaderOptions& loader = flags.spec.loader;
  const auto add = [&app](const char* flag, const char* shape, auto& value, const char* words) {
    return app.add_option(flag, value, words)->option_text(shape)->group("Loader");
  };
  add("--residency", "WORD", flags.residency,
      "Samples wait decoded, compressed, or in the files: stream (automatic)")
      ->check(one_of(kResidencyNames));
  add("--memory", "SIZE", flags.memory, "For chunks (half of what is free)");
  add("--threads", "N", loader.threads, "At work (all allowed CPUs)")->check(CLI::Range(1, 4096));
  add("--prefetch", "N", loader.prefetch, "Batches made ahead (4)")->check(CLI::Range(1, 4096));
}

void add_run_flags(CLI::App& app, PackBenchFlags& flags) {
  const char* group = "Run";
  CLI::Option* epochs = app.add_option("--epochs", flags.spec.epochs, "The first checks hashes (2)")
                            ->check(CLI::Range(1, 1000000))
                            ->option_text("N")
                            ->group(group);
  app.add_option("--step-ms", flags.step_ms, "A training step for each batch: sleep so long (0)")
      ->check(between(0, 1e6))
      ->option_text("X")
      ->group(group);
  app.add_flag("--cold", flags.spec.cold, "Each epoch with a new loader, its files not in the page cache")
      ->group(group);
  app.add_flag("--tune", flags.tune, "Search threads, prefetch, window and residency; print them as C++")
      ->excludes(epochs)
      ->option_text(" ")
      ->group(group);
  app.add_flag("--json", flags.json, "Everything as one JSON object")->group(group);
}

}  // namespace

void add_pack_bench_flags(CLI::App& app, PackBenchFlags& flags) {
  app.add_option("PATH", flags.spec.paths, "Pack, part, or HDF5 file with a uint8 array; several: as one")
      ->required()
      ->option_text(" ");
  add_batch_flags(app, flags);
  add_loader_flags(app, flags);
  add_run_flags(app, flags);
}

BenchSpec bench_spec(const PackBenchFlags& flags) {
  BenchSpec spec = flags.spec;
  spec.loader.shuffle = value_of<Shuffle>(kShuffleNames, flags.shuffle);
  spec.loader.residency = value_of<Residency>(kResidencyNames, flags.residency);
  spec.loader.as = value_of<PixelType>(kPixelTypeNames, flags.as);
  if (!flags.layout.empty()) spec.loader.layout = value_of<Layout>(kLayoutNames, flags.layout);
  if (!flags.memory.empty()) spec.loader.memory_bytes = parse_bytes("--memory", flags.memory);
  spec.step_seconds = flags.step_ms / 1000;
  return spec;
}

}  // namespace chunkhit
