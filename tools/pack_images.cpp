// pack-images: a folder of pictures → a pack. Flags → spec → pack_images → report.
#include "pack/pack_images.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <map>

#include "chunk/cache_advice.h"
#include "chunkhit/error.h"
#include "chunkhit/version.h"
#include "cli.h"
#include "progress.h"

namespace chunkhit {
namespace {

/// Flags that need a second look before they are a spec.
struct Flags {
  std::string resize;
  std::uint32_t resize_long = 0;
  std::string fit;
  std::string pad_color = "black";
  std::string filter = "bilinear";
  std::string crop;
  std::string channels = "rgb";
  std::string exif = "apply";
  std::string decode = "exact";
  std::string layout = "nhwc";
  std::string order = "shuffle";
  std::string on_error = "skip";
  std::string max_errors = "1%";
  std::string chunk_bytes;
  std::string part_bytes = "1G";
  std::string memory = "2G";
  std::string max_input_bytes = "256M";
  std::string max_pixels = "256M";
  std::string split;
  std::string delimiter;
  std::string progress = "auto";
  std::string save_config;
  bool dry_run = false;
};

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::usage, message); }

std::uint32_t parse_side(const std::string& flag, const std::string& text) {
  std::uint32_t side = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), side);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || side < 1 || side > 65535)
    refuse(flag + ": expected sides of 1 to 65535 pixels, found " + text);
  return side;
}

/// "WxH"
std::pair<std::uint32_t, std::uint32_t> parse_size(const std::string& flag, const std::string& text) {
  const std::size_t cross = text.find('x');
  if (cross == std::string::npos) refuse(flag + ": expected WIDTHxHEIGHT, found " + text);
  return {parse_side(flag, text.substr(0, cross)), parse_side(flag, text.substr(cross + 1))};
}

/// "black", "white", "#rrggbb" or "r,g,b"
std::array<std::uint8_t, 3> parse_color(const std::string& text) {
  if (text == "black") return {0, 0, 0};
  if (text == "white") return {255, 255, 255};
  unsigned red = 0;
  unsigned green = 0;
  unsigned blue = 0;
  int used = 0;
  const bool hex =
      text.size() == 7 && std::sscanf(text.c_str(), "#%2x%2x%2x%n", &red, &green, &blue, &used) == 3;
  const bool decimal = !hex && std::sscanf(text.c_str(), "%u,%u,%u%n", &red, &green, &blue, &used) == 3;
  if ((!hex && !decimal) || used != static_cast<int>(text.size()) || std::max({red, green, blue}) > 255)
    refuse("pad-color: expected black, white, #rrggbb or r,g,b, found " + text);
  return {static_cast<std::uint8_t>(red), static_cast<std::uint8_t>(green), static_cast<std::uint8_t>(blue)};
}

/// "256M": in picture sizes M is a million.
std::uint64_t parse_pixels(const std::string& text) {
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end.ptr, text.data() + text.size());
  const double factor = unit.empty()                  ? 1
                        : unit == "M" || unit == "MP" ? 1e6
                        : unit == "G" || unit == "GP" ? 1e9
                                                      : -1;
  if (end.ec != std::errc() || factor < 0 || value * factor < 1 || value * factor > 1e18)
    refuse("max-pixels: expected a count like 256M, found " + text);
  return static_cast<std::uint64_t>(value * factor);
}

/// "train=0.9,val=0.1"
std::vector<SplitShare> parse_split(const std::string& text) {
  std::vector<SplitShare> shares;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string entry = text.substr(at, comma - at);
    const std::size_t equals = entry.find('=');
    SplitShare share{entry.substr(0, equals), 0};
    const std::string number = equals == std::string::npos ? "" : entry.substr(equals + 1);
    const auto end = std::from_chars(number.data(), number.data() + number.size(), share.share);
    if (end.ec != std::errc() || end.ptr != number.data() + number.size())
      refuse("split: expected NAME=SHARE, found '" + entry + "'");
    shares.push_back(share);
    at = comma + 1;
  }
  return shares;
}

template <class Enum, std::size_t kCount>
Enum parse_choice(const std::array<std::string_view, kCount>& names, const std::string& text) {
  return static_cast<Enum>(std::find(names.begin(), names.end(), text) - names.begin());  // CLI11 checked it
}

template <std::size_t kCount>
CLI::IsMember one_of(const std::array<std::string_view, kCount>& names) {
  return CLI::IsMember(std::vector<std::string>(names.begin(), names.end()));
}

void set_resize(const Flags& flags, TransformSpec& transform) {
  if (!flags.resize.empty() + (flags.resize_long > 0) + !flags.fit.empty() > 1)
    refuse("resize, resize-long and fit exclude each other");
  if (!flags.fit.empty()) {
    transform.resize = Resize::fit;
    std::tie(transform.resize_width, transform.resize_height) = parse_size("fit", flags.fit);
  } else if (flags.resize_long > 0) {
    transform.resize = Resize::long_side;
    transform.resize_width = flags.resize_long;
  } else if (flags.resize.find('x') != std::string::npos) {
    transform.resize = Resize::exact;
    std::tie(transform.resize_width, transform.resize_height) = parse_size("resize", flags.resize);
  } else if (!flags.resize.empty()) {
    transform.resize = Resize::short_side;
    transform.resize_width = parse_side("resize", flags.resize);
  }
}

void set_transform(const Flags& flags, TransformSpec& transform) {
  set_resize(flags, transform);
  if (!flags.crop.empty())
    std::tie(transform.crop_width, transform.crop_height) = parse_size("crop", flags.crop);
  transform.pad_color = parse_color(flags.pad_color);
  transform.filter = parse_choice<Filter>(kFilterNames, flags.filter);
  transform.channels = parse_choice<Channels>(kChannelsNames, flags.channels);
  transform.layout = parse_choice<Layout>(kLayoutNames, flags.layout);
  transform.fast_decode = flags.decode == "fast";
}

void set_spec(const Flags& flags, PackImagesSpec& spec) {
  set_transform(flags, spec.transform);
  spec.exif = parse_choice<Exif>(kExifNames, flags.exif);
  spec.order = parse_choice<Order>(kOrderNames, flags.order);
  spec.split = parse_split(flags.split);
  spec.max_pixels = parse_pixels(flags.max_pixels);
  spec.max_input_bytes = parse_bytes("max-input-bytes", flags.max_input_bytes);
  spec.part_bytes = parse_bytes("part-bytes", flags.part_bytes);
  if (!flags.chunk_bytes.empty() && flags.chunk_bytes != "auto")
    spec.chunk_bytes = parse_bytes("chunk-bytes", flags.chunk_bytes);
  if (flags.delimiter == "\\t" || flags.delimiter == "tab")
    spec.columns.delimiter = '\t';
  else if (flags.delimiter.size() == 1)
    spec.columns.delimiter = flags.delimiter[0];
  else if (!flags.delimiter.empty())
    refuse("delimiter: expected one character or \\t, found " + flags.delimiter);
}

/// "1%", "0.5%" or a count.
void set_max_errors(const std::string& text, PackImagesOptions& options) {
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end.ptr, text.data() + text.size());
  if (end.ec != std::errc() || value < 0 || (unit != "%" && !unit.empty()) || (unit == "%" && value > 100))
    refuse("max-errors: expected a count or a share like 1%, found " + text);
  options.max_error_share = unit == "%" ? value / 100 : 0;
  options.max_error_count = unit == "%" ? 0 : static_cast<std::uint64_t>(value);
}

void set_options(const Flags& flags, PackImagesOptions& options) {
  options.memory_bytes = parse_bytes("memory", flags.memory);
  options.fail_on_error = flags.on_error == "fail";
  set_max_errors(flags.max_errors, options);
  while (options.output.size() > 1 && options.output.ends_with('/')) options.output.pop_back();
  options.tool = "pack-images " + version();
  options.stop = &stop_requested;
}

void add_input_flags(CLI::App& app, Flags& flags, PackImagesSpec& spec, PackImagesOptions& options) {
  app.add_option("ROOT", options.root, "Folder of the pictures (default: the folder of --labels)");
  const char* group = "Input";
  app.add_option("--labels", spec.labels,
                 "CSV of files and labels, - for stdin; without it a class is a sub-folder")
      ->group(group);
  app.add_option("--file-column", spec.columns.file_column, "Column of the files, relative to ROOT (file)")
      ->group(group);
  app.add_option("--label-column", spec.columns.label_columns,
                 "Column of the labels (label); several become floats")
      ->group(group);
  app.add_option("--delimiter", flags.delimiter,
                 "Between the CSV's fields (comma or tab, as its header has it)")
      ->group(group);
  app.add_option("--exif", flags.exif, "apply: upright pictures; ignore")
      ->check(one_of(kExifNames))
      ->group(group);
  app.add_option("--decode", flags.decode, "exact: as Pillow does; fast: shrunk while decoding")
      ->check(CLI::IsMember({"exact", "fast"}))
      ->group(group);
  app.add_flag("--accept-warnings", spec.accept_warnings, "Pack pictures whose data is truncated or odd")
      ->group(group);
  app.add_option("--max-pixels", flags.max_pixels, "Reject larger pictures (256M)")->group(group);
  app.add_option("--max-input-bytes", flags.max_input_bytes, "Reject larger files (256M)")->group(group);
}

void add_sample_flags(CLI::App& app, Flags& flags) {
  const char* group = "Samples";
  app.add_option("--resize", flags.resize, "WxH: exactly; N: the short side, aspect kept")->group(group);
  app.add_option("--resize-long", flags.resize_long, "N: the long side, aspect kept")
      ->check(CLI::Range(1, 65535))
      ->group(group);
  app.add_option("--fit", flags.fit, "WxH: fit inside, pad with --pad-color")->group(group);
  app.add_option("--pad-color", flags.pad_color, "black, white, #rrggbb or r,g,b (black)")->group(group);
  app.add_option("--filter", flags.filter, "bilinear, bicubic, lanczos, box, hamming, nearest")
      ->check(one_of(kFilterNames))
      ->group(group);
  app.add_option("--crop", flags.crop, "WxH: from the centre")->group(group);
  app.add_option("--channels", flags.channels, "rgb, gray, rgba, keep")
      ->check(one_of(kChannelsNames))
      ->group(group);
}

void add_output_flags(CLI::App& app, Flags& flags, PackImagesSpec& spec, PackImagesOptions& options) {
  const char* group = "Output";
  app.add_option("-o,--output", options.output, "Folder of the pack")->group(group);
  app.add_option("--container", spec.container, "hdf5, shard")
      ->check(CLI::IsMember({"hdf5", "shard"}))
      ->group(group);
  app.add_option("--layout", flags.layout, "nhwc, nchw")->check(one_of(kLayoutNames))->group(group);
  app.add_option("--compress", spec.compress,
                 "hdf5: none, deflate, zstd; shard: photo, zstd, none; :LEVEL may follow")
      ->group(group);
  app.add_option("--chunk-samples", spec.chunk_samples, "Samples a chunk (computed)")->group(group);
  app.add_option("--chunk-bytes", flags.chunk_bytes, "Raw bytes a chunk, at most (computed)")->group(group);
  app.add_option("--part-bytes", flags.part_bytes, "Raw bytes a part, at most (1G)")->group(group);
  app.add_option("--order", flags.order, "shuffle: by --seed; input: as listed")
      ->check(one_of(kOrderNames))
      ->group(group);
  app.add_option("--seed", spec.seed, "Of the order and the split (0)")->group(group);
  app.add_option("--split", flags.split, "train=0.9,val=0.1: a pack each, every class divided")->group(group);
}

void add_run_flags(CLI::App& app, Flags& flags, PackImagesOptions& options) {
  const char* group = "Run";
  app.add_option("--on-error", flags.on_error, "skip: to rejects.csv; fail: stop")
      ->check(CLI::IsMember({"skip", "fail"}))
      ->group(group);
  app.add_option("--max-errors", flags.max_errors, "Stop above this share or count of rejects (1%)")
      ->group(group);
  app.add_option("--threads", options.threads, "All allowed CPUs by default")
      ->check(CLI::Range(1, 4096))
      ->group(group);
  app.add_option("--memory", flags.memory, "What the process may hold (2G)")->group(group);
  app.add_option("--progress", flags.progress, "auto, json, none")
      ->check(CLI::IsMember({"auto", "json", "none"}))
      ->group(group);
  app.add_flag("--dry-run", flags.dry_run, "Say what would be packed, write nothing")->group(group);
  app.add_flag("--force", options.force, "Remove what is in --output and start afresh")->group(group);
  app.set_config("--config", "", "Recipe: the same names in TOML")->group(group)->configurable(false);
  app.add_option("--save-config", flags.save_config, "Write the effective recipe to this file")
      ->group(group)
      ->configurable(false);
  app.allow_config_extras(CLI::config_extras_mode::error);
}

void print_cache(const char* name, const HitRates& rates, const CacheAdvice& cache) {
  std::printf("  %-15s rdcc_nbytes=%llu, rdcc_nslots=%llu: ", name,
              static_cast<unsigned long long>(cache.rdcc_nbytes),
              static_cast<unsigned long long>(cache.rdcc_nslots));
  if (rates.bypass)
    std::printf("samples are read exactly, past the cache\n");
  else
    std::printf("hits %.1f %% in sequence, %.1f %% in a window, %.1f %% at random\n", rates.sequential * 100,
                rates.windowed * 100, rates.random * 100);
}

void print_plan(const std::string& path, std::uint64_t rows, const PackImagesPreview& preview,
                const ChunkPlan& plan) {
  std::printf("%s: %s samples of %ux%ux%u uint8 = %s, filter %s\n", path.c_str(), count_text(rows).c_str(),
              preview.sample.width, preview.sample.height, preview.sample.channels,
              bytes_text(static_cast<double>(rows * preview.sample.byte_count())).c_str(),
              preview.filter.c_str());
  std::printf("  %s parts, %s chunks of %s samples (%s; %s)\n", count_text(plan.part_count).c_str(),
              count_text(plan.chunk_count).c_str(), count_text(plan.chunk_samples).c_str(),
              bytes_text(static_cast<double>(plan.chunk_bytes)).c_str(), plan.reason.c_str());
}

int print_preview(const PackImagesSpec& spec, const PackImagesOptions& options) {
  const PackImagesPreview preview = preview_images(spec, options);
  const SampleList& list = preview.list;
  std::printf("%s rows, %s of them rejected while listing\n", count_text(list.row_count).c_str(),
              count_text(list.rejects.size()).c_str());
  for (const std::string& notice : list.notices) std::printf("note: %s\n", notice.c_str());
  if (list.label_kind == LabelKind::numbers)
    std::printf("labels: %zu float32 column(s)\n", list.label_columns.size());
  else
    std::printf("labels: class ids, %zu named classes\n", list.classes.size());
  for (std::size_t index = 0; index < preview.packs.size(); ++index) {
    const ChunkPlan& plan = preview.plans[index];
    print_plan(preview.packs[index].first, preview.packs[index].second, preview, plan);
    if (spec.container != "hdf5") continue;
    const std::uint64_t chunks = std::min(plan.chunk_count, plan.part_samples / plan.chunk_samples);
    const CacheAdvice advice = advise_cache(plan, chunks);
    print_cache("h5py untuned:", predict_hit_rates(plan, chunks, kDefaultCache.rdcc_nbytes), kDefaultCache);
    print_cache("h5py advised:", predict_hit_rates(plan, chunks, advice.rdcc_nbytes), advice);
  }
  std::printf("%s are free for %s\n", bytes_text(static_cast<double>(preview.free_bytes)).c_str(),
              options.output.c_str());
  return 0;
}

void print_pack(const PackReport& pack) {
  if (pack.already_finished) {
    std::printf("%s: already packed, nothing to do (%s samples in %s parts)\n", pack.path.c_str(),
                count_text(pack.samples).c_str(), count_text(pack.parts).c_str());
    return;
  }
  std::printf("%s: %s of %s rows packed, %s rejected; %s parts, %s", pack.path.c_str(),
              count_text(pack.samples).c_str(), count_text(pack.rows).c_str(),
              count_text(pack.rejected).c_str(), count_text(pack.parts).c_str(),
              bytes_text(static_cast<double>(pack.bytes)).c_str());
  if (pack.bytes < pack.raw_bytes)
    std::printf(" (%.2f times smaller than raw)",
                static_cast<double>(pack.raw_bytes) / static_cast<double>(pack.bytes));
  if (pack.parts_kept > 0) std::printf("; %s parts were there", count_text(pack.parts_kept).c_str());
  std::printf("\n");
  std::multimap<std::uint64_t, std::string, std::greater<>> most;
  for (const auto& [reason, count] : pack.reasons) most.emplace(count, reason);
  int shown = 0;
  for (const auto& [count, reason] : most)
    if (shown++ < 3) std::printf("  %s times: %s\n", count_text(count).c_str(), reason.c_str());
  if (pack.rejected > 0) std::printf("  see %s/rejects.csv\n", pack.path.c_str());
}

int print_report(const PackImagesReport& report) {
  for (const std::string& notice : report.notices) std::printf("note: %s\n", notice.c_str());
  for (const PackReport& pack : report.packs) print_pack(pack);
  if (report.interrupted) {
    std::printf("stopped; finished parts are kept, the same command goes on\n");
    return signal_exit_code() != 0 ? signal_exit_code() : static_cast<int>(ErrorCode::try_again);
  }
  if (report.samples_packed_now > 0)
    std::printf("%s images in %.2f s (%s img/s)\n", count_text(report.samples_packed_now).c_str(),
                report.seconds,
                count_text(static_cast<std::uint64_t>(static_cast<double>(report.samples_packed_now) /
                                                      report.seconds))
                    .c_str());
  std::printf("next: pack-info %s; pack-verify %s\n", report.packs[0].path.c_str(),
              report.packs[0].path.c_str());
  return 0;
}

void save_config(const CLI::App& app, const std::string& path) {
  std::ofstream file(path);
  file << app.config_to_str(false, false);
  if (!file.flush()) throw Error(ErrorCode::cannot_write, "save-config: cannot write " + path);
}

void set_root(const PackImagesSpec& spec, PackImagesOptions& options) {
  if (options.output.empty()) refuse("--output is required");
  if (!options.root.empty()) return;
  if (spec.labels.empty()) refuse("ROOT is required: the folder of the pictures");
  const std::size_t slash = spec.labels.rfind('/');
  options.root = spec.labels == "-" || slash == std::string::npos ? "." : spec.labels.substr(0, slash + 1);
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {
  using namespace chunkhit;  // NOLINT: a command's main
  CLI::App app("Packs a folder of pictures, once, into chunked uint8 HDF5 or compressed shards.",
               "pack-images");
  Flags flags;
  PackImagesSpec spec;
  PackImagesOptions options;
  add_common_flags(app);
  add_input_flags(app, flags, spec, options);
  add_sample_flags(app, flags);
  add_output_flags(app, flags, spec, options);
  add_run_flags(app, flags, options);
  app.footer(
      "Examples:\n"
      "  pack-images photos/ --labels photos/labels.csv --resize 96x128 --crop 64x64 -o train\n"
      "  pack-images photos/ --resize 256 --crop 224x224 --container shard -o train   # class = sub-folder");
  return run_command(app, argc, argv, [&] {
    set_spec(flags, spec);
    set_root(spec, options);
    set_options(flags, options);
    options.command_line = command_line(argc, argv);
    if (!flags.save_config.empty()) save_config(app, flags.save_config);
    if (flags.dry_run) return print_preview(spec, options);
    handle_signals();
    ProgressDisplay display(progress_style(flags.progress));
    options.on_progress = [&](const PackProgress& progress) { display.show(progress); };
    try {
      const PackImagesReport report = pack_images(spec, options);
      display.end();
      return print_report(report);
    } catch (...) {
      display.end();
      throw;
    }
  });
}
