// pack-bench: how fast a loader gives batches, and which settings it chooses. Flags → spec → loop →
// report.
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "base/remote/url.h"
#include "base/text.h"
#include "chunkhit/error.h"
#include "chunkhit/pack_info.h"
#include "chunkhit/remote.h"
#include "cli.h"
#include "field_flags.h"
#include "kernel_memory.h"
#include "pack_bench_loop.h"
#include "pack_bench_report.h"
#include "read/loader_fields.h"

namespace chunkhit {
namespace {

constexpr const char* kDescription = "Times an empty loop over the batches of a pack, epoch by epoch.";
constexpr const char* kExamples =
    "Examples, the second with a training step of 20 ms:\n"
    "  pack-bench train --batch-size 100 --shuffle window --resized-crop 224 --dtype float32 --tune\n"
    "  pack-bench ml20m/train --shuffle global --format csr --step-ms 20";

void add_flags(Command& command) {
  const std::set<std::string_view> named{"batch_size", "shuffle",     "window_chunks", "dtype",   "layout",
                                         "cache",      "cache_bytes", "cache_dir",     "threads", "prefetch",
                                         "format",     "length",      "negatives"};
  command.add_argument("PATH", "Pack, part, HDF5 file (uint8 array) or .h5ad; several are concatenated", true,
                       Flag::Takes::list);
  FlagAdder adder(command, named);
  const ImageLoaderOptions images;
  show(images, adder);
  const SparseLoaderOptions matrices;
  show(matrices, adder);
  command["--batch-size"].help = "Images (256) or matrix rows (500) per batch";
  command["--layout"].help += ": nhwc, nchw (as stored)";
  command.group("Images");
  command.add_dataset_flags();
  command.add({"--resized-crop", "WxH", "Random resized crop: a random box, resized to WxH (N: NxN)"});
  command.add({"--crop", "WxH", "Center crop (N: NxN)"}).excludes = {"--resized-crop"};
  command.group("Run");
  command.add({"--epochs", "N", "Epochs to time; the first one also checks hashes (2)"});
  command.add({"--step-ms", "X", "Simulate a training step: sleep X ms after each batch (0)"});
  command.add_switch("--cold", "New loader each epoch, after dropping its files from the page cache");
  command.add_switch("--tune", "Loop until the loader has chosen threads and prefetch; print them as code")
      .excludes = {"--epochs", "--cold"};
  command.add_switch("--json", "Print everything as one JSON object");
}

/// Throws usage for given flags that the pack has no use for.
void refuse(Command& command, std::initializer_list<const char*> flags, const char* fits, const char* holds) {
  for (const char* const flag : flags)
    if (command[flag].is_given())
      throw Error(ErrorCode::usage,
                  std::string(flag) + ": is for " + fits + ", " + command["PATH"].text() + " holds " + holds);
}

double step_seconds(const Flag& flag) {
  constexpr double kMaxMs = 1e4;
  if (!flag.is_given()) return 0;
  const std::string& text = flag.text();
  double ms = -1;
  if (!parse_all(text, ms) || !(ms >= 0 && ms <= kMaxMs))
    refuse_text(flag.name, "a number from 0 to 10000", text);
  return ms / 1000;
}

/// Gives what is to be timed, having looked what the first path holds; throws usage naming the flag, bad_data
/// for a path that is no pack.
BenchSpec bench_spec(Command& command) {
  BenchSpec spec;
  spec.paths = command["PATH"].given;
  if (const Flag& epochs = command["--epochs"]; epochs.is_given())
    spec.epochs = static_cast<std::uint32_t>(parse_count(epochs.name, epochs.text(), 1, 1'000'000));
  spec.step_seconds = step_seconds(command["--step-ms"]);
  spec.cold = command["--cold"].is_on();
  for (const std::string& path : spec.paths)
    if (spec.cold && is_url(path))
      throw Error(ErrorCode::usage, "--cold: " + path + ": is on a server, expected local files");
  auto& images = spec.loader.emplace<ImageLoaderOptions>();
  visit_fields<FlagReader>(command, images);
  AugmentSpec& augment = images.augment;
  if (const Flag& crop = command["--crop"]; crop.is_given())
    std::tie(augment.crop_width, augment.crop_height) = parse_square(crop.name, crop.text());
  if (const Flag& crop = command["--resized-crop"]; crop.is_given())
    std::tie(augment.resized_crop.width, augment.resized_crop.height) = parse_square(crop.name, crop.text());
  const bool names_datasets = command["--images"].is_given() || command["--labels"].is_given();
  const PackInfo info = names_datasets ? PackInfo() : read_pack_info(spec.paths.front());
  if (!info.is_matrix()) {
    refuse(command, {"--format", "--length", "--negatives"}, "matrices", "images");
    if (info.images().own_sizes && augment.resized_crop.height == 0)
      throw Error(ErrorCode::usage, "--resized-crop: is needed: " + info.path +
                                        " holds images of their own sizes, and all of a batch have one");
    return spec;
  }
  refuse(command, {"--layout", "--dtype", "--resized-crop", "--crop"}, "images", "matrices");
  visit_fields<FlagReader>(command, spec.loader.emplace<SparseLoaderOptions>());
  return spec;
}

void run_bench(const BenchSpec& spec, bool json) {
  BenchLoop loop(spec);
  BenchReport report;
  do {
    report.epochs.push_back(loop.run_epoch([](std::uint64_t, double) { return !stop_requested; }));
  } while (report.epochs.size() < spec.epochs && !stop_requested);
  report.stats = loop.stats();
  report.peak_rss_bytes = peak_rss_bytes();
  add_warnings(spec, loop, report);
  if (json)
    std::fputs(bench_json(spec, report).c_str(), stdout);
  else
    print_bench(spec, report);
}

constexpr double kMinRateSeconds = 1;  // epochs are repeated until the settled loader ran as long
constexpr double kMaxRateSeconds = 5;

/// The pace of the loader as it is now.
double samples_per_second_now(BenchLoop& loop) {
  std::vector<EpochTimes> epochs;
  double seconds = 0;
  while (seconds < kMinRateSeconds && !stop_requested) {
    epochs.push_back(loop.run_epoch([&](std::uint64_t, double in_epoch) {
      return !stop_requested && seconds + in_epoch < kMaxRateSeconds;
    }));
    seconds += epochs.back().seconds;
  }
  return samples_per_second(sum_of(epochs));
}

/// Lets the loader choose threads and prefetch, unless they are given, until it has settled.
void run_tune(BenchSpec spec, Command& command) {
  const bool has_threads = command["--threads"].is_given(), has_prefetch = command["--prefetch"].is_given();
  std::visit(
      [&](auto& loader) {
        if (!has_threads) loader.threads = kAutomatic;
        if (!has_prefetch) loader.prefetch = kAutomatic;
        if (loader.threads != kAutomatic && loader.prefetch != kAutomatic)
          throw Error(ErrorCode::usage, "--tune: chooses --threads and --prefetch; give one of them at most");
      },
      spec.loader);
  BenchLoop loop(spec);
  TuneReport report;
  while (!stop_requested && !report.has_settled) {
    loop.run_epoch([&](std::uint64_t, double) { return !stop_requested && !loop.stats().has_settled; });
    report.has_settled = loop.stats().has_settled;
  }
  if (report.has_settled) report.samples_per_second = samples_per_second_now(loop);
  const LoaderStats stats = loop.stats();
  report.tuning = stats.tuning;
  report.mixing = loop.mixing();
  report.loader = spec.loader;
  std::visit(
      [&](auto& loader) {
        loader.threads = stats.threads;
        loader.prefetch = stats.prefetch;
        loader.cache = stats.cache;
      },
      report.loader);
  if (command["--json"].is_on())
    std::fputs(tune_json(spec, report).c_str(), stdout);
  else
    print_tuned(spec, report);
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): only without memory for the flags
  using namespace chunkhit;
  Command command("pack-bench", kDescription, kExamples);
  add_flags(command);
  return command.run(argc, argv, [&] {
    handle_signals();
    const StopScope scope(&stop_requested);  // a server may never answer
    try {
      const BenchSpec spec = bench_spec(command);
      if (command["--tune"].is_on())
        run_tune(spec, command);
      else
        run_bench(spec, command["--json"].is_on());
    } catch (const Error& error) {
      if (!stop_requested || error.code() != ErrorCode::try_again) throw;
    }
    return signal_exit_code();
  });
}
