#include "pack_bench_flags.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/remote/url.h"
#include "chunkhit/error.h"
#include "chunkhit/pack_info.h"
#include "cli.h"
#include "types/image.h"

namespace chunkhit {
namespace {

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
  add("--batch-size", "N", loader.batch_size, "Images (256) or matrix rows (500) per batch")
      ->check(CLI::Range(1, INT32_MAX));
  add("--shuffle", "WORD", flags.shuffle, "none, window, global (none)")->check(one_of<Shuffle>());
  add("--window-chunks", "N", loader.window_chunks, "Chunks per window of --shuffle window (64)")
      ->check(CLI::Range(1, INT32_MAX));
}

void add_augment_flags(CLI::App& app, PackBenchFlags& flags) {
  const auto add = [&app](const char* flag, const char* shape, auto& value, const char* words) {
    return app.add_option(flag, value, words)->option_text(shape)->group("Images");
  };
  CLI::Option* resized = add("--resized-crop", "WxH", flags.resized_crop,
                             "Random resized crop: a random box, resized to WxH (N: NxN)");
  add("--crop", "WxH", flags.crop, "Center crop (N: NxN)")->excludes(resized);
}

void add_form_flags(CLI::App& app, PackBenchFlags& flags) {
  app.add_option("--dtype", flags.dtype, "uint8; float32: normalized (uint8)")
      ->check(one_of<Dtype>())
      ->option_text("NAME")
      ->group("Images");
  add_augment_flags(app, flags);
  app.add_option("--layout", flags.layout, "nhwc, nchw (as stored)")
      ->check(one_of<Layout>())
      ->option_text("NAME")
      ->group("Images");
  add_dataset_flags(app, flags.image.images, flags.image.labels, "Images");
  app.add_option("--format", flags.format, "dense_f32, dense_f16, dense_u8, csr (dense_f32)")
      ->check(one_of<SparseFormat>())
      ->option_text("NAME")
      ->group("Matrices");
}

/// Reads a number from 1, or auto; empty: as it was.
void set_automatic(const std::string& flag, const std::string& text, std::uint32_t& value) {
  if (text.empty()) return;
  constexpr std::uint64_t kMax = 4096;
  value = text == "auto" ? kAutomatic : static_cast<std::uint32_t>(parse_count(flag, text, 1, kMax));
}

void add_loader_flags(CLI::App& app, PackBenchFlags& flags) {
  const auto add = [&app](const char* flag, const char* shape, auto& value, const char* words) {
    return app.add_option(flag, value, words)->option_text(shape)->group("Loader");
  };
  add("--cache", "WORD", flags.cache, "Chunks in memory: decoded, compressed, none (automatic)")
      ->check(one_of<Cache>());
  add("--cache-bytes", "SIZE", flags.cache_bytes, "Memory for chunks (half of the free memory)");
  add("--cache-dir", "FOLDER", flags.spec.loader.cache_dir, "Folder for chunks of packs on a server (none)");
  add("--threads", "N", flags.threads, "Worker threads, or auto: chosen while it runs (all available CPUs)");
  add("--prefetch", "N", flags.prefetch, "Batches made ahead, or auto (4)");
}

void add_run_flags(CLI::App& app, PackBenchFlags& flags) {
  const char* group = "Run";
  CLI::Option* epochs =
      app.add_option("--epochs", flags.spec.epochs, "Epochs to time; the first one also checks hashes (2)")
          ->check(CLI::Range(1, 1000000))
          ->option_text("N")
          ->group(group);
  app.add_option("--step-ms", flags.step_ms, "Simulate a training step: sleep X ms after each batch (0)")
      ->check(between(0, 1e4))
      ->option_text("X")
      ->group(group);
  app.add_flag("--cold", flags.spec.cold,
               "New loader each epoch, after dropping its files from the page cache")
      ->group(group);
  app.add_flag("--tune", flags.tune,
               "Loop until the loader has chosen threads and prefetch; print them as code")
      ->excludes(epochs)
      ->option_text(" ")
      ->group(group);
  app.add_flag("--json", flags.json, "Print everything as one JSON object")->group(group);
}

/// Throws usage for a flag that the pack has no use for.
void refuse(bool is_given, const std::string& flag, const BenchSpec& spec) {
  if (!is_given) return;
  const auto [fits, holds] =
      spec.is_of_matrices() ? std::pair("images", "matrices") : std::pair("matrices", "images");
  throw Error(ErrorCode::usage, flag + ": is for " + fits + ", " + spec.paths.front() + " holds " + holds);
}

/// Whether the flags name datasets of images.
bool names_datasets(const ImageForm& form) {
  const ImageForm defaults;
  return form.images != defaults.images || form.labels != defaults.labels;
}

void set_image_form(const PackBenchFlags& flags, BenchSpec& spec) {
  auto& form = spec.form.emplace<ImageForm>(flags.image);
  refuse(!flags.format.empty(), "--format", spec);
  if (!flags.dtype.empty()) form.dtype = parse_choice<Dtype>(flags.dtype);
  if (!flags.layout.empty()) form.layout = parse_choice<Layout>(flags.layout);
  AugmentSpec& augment = form.augment;
  if (!flags.crop.empty())
    std::tie(augment.crop_width, augment.crop_height) = parse_square("--crop", flags.crop);
  if (!flags.resized_crop.empty())
    std::tie(augment.resized_crop.width, augment.resized_crop.height) =
        parse_square("--resized-crop", flags.resized_crop);
  if (spec.loader.batch_size == 0) spec.loader.batch_size = ImageLoaderOptions().batch_size;
}

void set_matrix_form(const PackBenchFlags& flags, BenchSpec& spec) {
  auto& form = spec.form.emplace<MatrixForm>(flags.matrix);
  refuse(!flags.layout.empty(), "--layout", spec);
  refuse(!flags.dtype.empty(), "--dtype", spec);
  refuse(!flags.resized_crop.empty(), "--resized-crop", spec);
  refuse(!flags.crop.empty(), "--crop", spec);
  if (!flags.format.empty()) form.format = parse_choice<SparseFormat>(flags.format);
  if (spec.loader.batch_size == 0) spec.loader.batch_size = SparseLoaderOptions().batch_size;
}

}  // namespace

void add_pack_bench_flags(CLI::App& app, PackBenchFlags& flags) {
  app.add_option("PATH", flags.spec.paths,
                 "Pack, part, HDF5 file (uint8 array) or .h5ad; several are concatenated")
      ->required()
      ->option_text(" ");
  add_batch_flags(app, flags);
  add_form_flags(app, flags);
  add_loader_flags(app, flags);
  add_run_flags(app, flags);
}

BenchSpec bench_spec(const PackBenchFlags& flags) {
  BenchSpec spec = flags.spec;
  spec.loader.shuffle = parse_choice<Shuffle>(flags.shuffle);
  spec.loader.cache = parse_choice<Cache>(flags.cache);
  if (!flags.cache_bytes.empty()) spec.loader.cache_bytes = parse_bytes("--cache-bytes", flags.cache_bytes);
  set_automatic("--threads", flags.threads, spec.loader.threads);
  set_automatic("--prefetch", flags.prefetch, spec.loader.prefetch);
  spec.step_seconds = flags.step_ms / 1000;
  for (const std::string& path : spec.paths)
    if (spec.cold && is_url(path))
      throw Error(ErrorCode::usage, "--cold: " + path + ": is on a server, expected local files");
  if (!names_datasets(flags.image) && read_pack_info(spec.paths.front()).is_matrix())
    set_matrix_form(flags, spec);
  else
    set_image_form(flags, spec);
  return spec;
}

}  // namespace chunkhit
