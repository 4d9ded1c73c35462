#include "pack_bench_flags.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "chunkhit/error.h"
#include "chunkhit/pack.h"
#include "cli.h"
#include "flag_group.h"
#include "flag_values.h"
#include "types/sample_shape.h"

namespace chunkhit {
namespace {

/// The words of both kinds of packs: which of them fit is known once the pack was looked at.
CLI::IsMember any_form() {
  std::vector<std::string> names(kPixelTypeNames.begin(), kPixelTypeNames.end());
  names.insert(names.end(), kSparseAsNames.begin(), kSparseAsNames.end());
  return CLI::IsMember(names);
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

void add_batch_flags(CLI::App& app, PackBenchFlags& flags) {
  LoaderSetting& loader = flags.spec.loader;
  const auto add = [&app](const char* flag, const char* shape, auto& value, const char* words) {
    return app.add_option(flag, value, words)->option_text(shape)->group("Batches");
  };
  add("--batch", "N", loader.batch_size, "Samples a batch (256), or rows of matrices (500)")
      ->check(CLI::Range(1, INT32_MAX));
  add("--shuffle", "WORD", flags.shuffle, "none, window, global (none)")->check(one_of(kShuffleNames));
  add("--window", "N", loader.window_chunks, "Chunks a window of --shuffle window (64)")
      ->check(CLI::Range(1, INT32_MAX));
  add("--seed", "N", loader.seed, "Of order and augmentation (0)")->check(CLI::NonNegativeNumber);
  add("--echo", "N", loader.echo, "How often each fetched block is used (1)")->check(CLI::Range(1, 1024));
  add("--as", "TYPE", flags.as,
      "u8; f32: normalised (u8). Matrices: dense-f32, dense-f16, dense-u8, csr (dense-f32)")
      ->check(any_form());
}

void add_form_flags(CLI::App& app, PackBenchFlags& flags) {
  app.add_option("--flip", flags.image.flip_horizontal, "Of the pictures that are mirrored, 0..1 (0)")
      ->check(between(0, 1))
      ->option_text("SHARE")
      ->group("Pictures");
  app.add_option("--layout", flags.layout, "nhwc, nchw (as stored)")
      ->check(one_of(kLayoutNames))
      ->option_text("NAME")
      ->group("Pictures");
  add_dataset_flags(app, flags.image.images, flags.image.labels, "Pictures");
  app.add_flag("--binarize", flags.matrix.binarize, "Every rating is 1")->group("Matrices");
  app.add_option("--normalize", flags.normalize, "Divide each row by its norm: none, l1, l2 (none)")
      ->check(one_of(kRowNormNames))
      ->option_text("WORD")
      ->group("Matrices");
}

void add_loader_flags(CLI::App& app, PackBenchFlags& flags) {
  LoaderSetting& loader = flags.spec.loader;
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
      ->check(between(0, 1e4))
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

/// Throws usage for a flag that the pack has no use for.
void refuse(bool is_given, const std::string& flag, const BenchSpec& spec) {
  if (!is_given) return;
  const auto [fits, holds] =
      spec.is_of_matrices() ? std::pair("images", "matrices") : std::pair("matrices", "images");
  throw Error(ErrorCode::usage, flag + ": is for " + fits + ", " + spec.paths.front() + " holds " + holds);
}

/// Reads a word of --as; throws usage when it is one of the other kind of pack.
template <class Enum, std::size_t kCount>
Enum read_as(const std::array<std::string_view, kCount>& names, const std::string& as, Enum by_default,
             const BenchSpec& spec) {
  if (as.empty()) return by_default;
  const auto found = std::find(names.begin(), names.end(), as);
  refuse(found == names.end(), "--as " + as, spec);
  return static_cast<Enum>(found - names.begin());
}

/// Whether the file is said to hold pictures, under names that only the loader is told.
bool names_datasets(const ImageForm& form) {
  const ImageForm defaults;
  return form.images != defaults.images || form.labels != defaults.labels;
}

void set_image_form(const PackBenchFlags& flags, BenchSpec& spec) {
  auto& form = spec.form.emplace<ImageForm>(flags.image);
  refuse(flags.matrix.binarize, "--binarize", spec);
  refuse(flags.normalize != "none", "--normalize", spec);
  form.as = read_as(kPixelTypeNames, flags.as, form.as, spec);
  if (!flags.layout.empty()) form.layout = parse_choice<Layout>(kLayoutNames, flags.layout);
  if (spec.loader.batch_size == 0) spec.loader.batch_size = ImageLoaderOptions().batch_size;
}

void set_matrix_form(const PackBenchFlags& flags, BenchSpec& spec) {
  auto& form = spec.form.emplace<MatrixForm>(flags.matrix);
  refuse(!flags.layout.empty(), "--layout", spec);
  refuse(flags.image.flip_horizontal != 0, "--flip", spec);
  form.as = read_as(kSparseAsNames, flags.as, form.as, spec);
  form.normalize = parse_choice<RowNorm>(kRowNormNames, flags.normalize);
  if (spec.loader.batch_size == 0) spec.loader.batch_size = SparseLoaderOptions().batch_size;
}

}  // namespace

void add_pack_bench_flags(CLI::App& app, PackBenchFlags& flags) {
  app.add_option("PATH", flags.spec.paths,
                 "Pack, part, HDF5 file with a uint8 array, or .h5ad; several: as one")
      ->required()
      ->option_text(" ");
  add_batch_flags(app, flags);
  add_form_flags(app, flags);
  add_loader_flags(app, flags);
  add_run_flags(app, flags);
}

BenchSpec bench_spec(const PackBenchFlags& flags) {
  BenchSpec spec = flags.spec;
  spec.loader.shuffle = parse_choice<Shuffle>(kShuffleNames, flags.shuffle);
  spec.loader.residency = parse_choice<Residency>(kResidencyNames, flags.residency);
  if (!flags.memory.empty()) spec.loader.memory_bytes = parse_bytes("--memory", flags.memory);
  spec.step_seconds = flags.step_ms / 1000;
  if (!names_datasets(flags.image) && read_pack_info(spec.paths.front()).matrix)
    set_matrix_form(flags, spec);
  else
    set_image_form(flags, spec);
  return spec;
}

}  // namespace chunkhit
