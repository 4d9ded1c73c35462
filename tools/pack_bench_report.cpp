#include "pack_bench_report.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <variant>

#include "base/words.h"
#include "cli.h"
#include "types/enum_names.h"
#include "types/image.h"

namespace chunkhit {
namespace {

std::string rate_text(double per_second) { return count_text(static_cast<std::uint64_t>(per_second)); }

/// What a loop waited, where it has steps: an empty one only waits.
std::string waited_text(const BenchSpec& spec, double wait_fraction) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "  waited %5.1f %%", 100 * wait_fraction);
  return spec.step_seconds > 0 ? text.data() : "";
}

void print_epoch(const BenchSpec& spec, std::size_t index, const EpochTimes& epoch) {
  std::printf("epoch %-4zu %12s samples/s  %6.2f GB/s  batch %8.3f ms  first %8.3f ms%s\n", index,
              rate_text(samples_per_second(epoch)).c_str(), bytes_per_second(epoch) / 1e9,
              batch_seconds_median(epoch) * 1e3, epoch.first_batch_seconds * 1e3,
              waited_text(spec, wait_fraction(epoch)).c_str());
}

bool is_of_pairs(const BenchSpec& spec) {
  const auto* const loader = std::get_if<SparseLoaderOptions>(&spec.loader);
  return loader != nullptr && loader->format == SparseFormat::pairs;
}

void print_rates(const BenchSpec& spec, const BenchReport& report) {
  const EpochTimes all = sum_of(report.epochs);
  for (std::size_t index = 0; index < report.epochs.size(); ++index)
    print_epoch(spec, index, report.epochs[index]);
  std::printf("all        %12s samples/s  %6.2f GB/s  batch %8.3f ms (median)%s\n",
              rate_text(samples_per_second(all)).c_str(), bytes_per_second(all) / 1e9,
              batch_seconds_median(all) * 1e3, waited_text(spec, report.stats.wait_fraction()).c_str());
  if (spec.is_of_matrices())
    std::printf("ratings    %12s a second; a sample is a %s\n", rate_text(ratings_per_second(all)).c_str(),
                is_of_pairs(spec) ? "rating" : "row");
  if (spec.step_seconds > 0)
    std::printf("steps      of %.3f ms: utilization %.1f %%\n", spec.step_seconds * 1e3,
                100 * utilization(all));
}

}  // namespace

void add_warnings(const BenchSpec& spec, const BenchLoop& loop, BenchReport& report) {
  std::vector<std::string>& warnings = report.warnings;
  if (stop_requested) warnings.emplace_back("stopped by a signal: the last epoch is not whole");
  const LoaderStats stats = loop.stats();
  const std::uint64_t ahead = std::max(stats.prefetch, stats.threads);
  report.has_rates = loop.batch_count() > ahead || spec.cold;
  if (!report.has_rates)
    warnings.push_back("an epoch has " + count_text(loop.batch_count()) +
                       (loop.batch_count() == 1 ? " batch" : " batches") + ", and up to " +
                       count_text(ahead) +
                       " are prepared before its time starts, so that rates say nothing; use a "
                       "smaller --batch-size or a larger pack");
  if (loop.cached_bytes() > 0)
    warnings.push_back(bytes_text(static_cast<double>(loop.cached_bytes())) +
                       " of the files stayed in the page cache: another process maps them, they are in a "
                       "tmpfs, or they are being written");
}

/// Returns the loader's verdict. Without simulated steps there is none: an empty loop waits all the time.
std::string verdict_text(const BenchSpec& spec, const LoaderStats& stats) {
  if (spec.step_seconds > 0) return stats.verdict();
  return "no verdict: an empty loop only waits; --step-ms N simulates a training step";
}

std::string stats_text(const BenchSpec& spec, const BenchReport& report) {
  std::ostringstream stream;
  stream << report.stats;
  std::string text = stream.str();
  const std::string verdict = report.stats.verdict();
  text.replace(text.find(verdict), verdict.size(), verdict_text(spec, report.stats));
  if (!report.has_rates) text.erase(text.find(" ("), text.find(')') + 1 - text.find(" ("));
  return text;
}

void print_bench(const BenchSpec& spec, const BenchReport& report) {
  if (report.has_rates) print_rates(spec, report);
  std::printf("peak rss   %s\n", bytes_text(static_cast<double>(report.peak_rss_bytes)).c_str());
  std::fflush(stdout);
  std::printf("%s", stats_text(spec, report).c_str());
  for (const std::string& warning : report.warnings)
    std::printf("note: %s\n", printable_text(warning).c_str());
}

namespace {

/// Spells text as a literal, the same in C++ and Python.
std::string literal(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    std::array<char, 8> octal{};
    std::snprintf(octal.data(), octal.size(), "\\%03o", static_cast<unsigned char>(c));
    quoted += static_cast<unsigned char>(c) < ' ' ? octal.data() : std::string(1, c);
  }
  return quoted + '"';
}

/// One option of a loader, as each language spells its value.
struct Option {
  std::string name;
  std::string cpp;
  std::string python;
};

/// The options that do not have their defaults, in the order of their declaration, as C++ wants it.
class Options {
 public:
  void add(bool is_set, const char* name, const std::string& cpp, const std::string& python) {
    if (is_set) options_.push_back({name, cpp, python});
  }
  /// A value that both languages spell alike.
  void add(bool is_set, const char* name, const std::string& value) { add(is_set, name, value, value); }
  [[nodiscard]] auto begin() const { return options_.begin(); }
  [[nodiscard]] auto end() const { return options_.end(); }

 private:
  std::vector<Option> options_;
};

constexpr const char* kScope = "chunkhit::";

/// Adds an enumerator: `Type::name` in C++, `"name"` in Python.
template <class Enum>
void add_enumerator(bool is_set, const char* name, const char* type, Enum value, Options& options) {
  const std::string word = name_of(value);
  options.add(is_set, name, std::string(kScope) + type + "::" + word, literal(word));
}

/// Options of the same kind inside of an option: `{.a = 1, .b = 2}` in C++, `dict(a=1, b=2)` in Python.
void add_nested(const char* name, const Options& nested, Options& options) {
  std::string cpp, python;
  for (const Option& each : nested) {
    cpp += (cpp.empty() ? "." : ", .") + each.name + " = " + each.cpp;
    python += (python.empty() ? "" : ", ") + each.name + "=" + each.python;
  }
  options.add(!cpp.empty(), name, "{" + cpp + "}", "dict(" + python + ")");
}

void add_augment(const AugmentSpec& augment, Options& options) {
  const ResizedCropSpec& resized_crop = augment.resized_crop;
  Options fields, crop;
  fields.add(augment.crop_height != 0, "crop_height", std::to_string(augment.crop_height));
  fields.add(augment.crop_width != 0, "crop_width", std::to_string(augment.crop_width));
  crop.add(resized_crop.height != 0, "height", std::to_string(resized_crop.height));
  crop.add(resized_crop.width != 0, "width", std::to_string(resized_crop.width));
  add_nested("resized_crop", crop, fields);
  add_nested("augment", fields, options);
}

void add_form(const ImageLoaderOptions& loader, Options& options) {
  add_augment(loader.augment, options);
  add_enumerator(loader.dtype != Dtype::uint8, "dtype", "Dtype", loader.dtype, options);
  if (loader.layout) add_enumerator(true, "layout", "Layout", *loader.layout, options);
}

void add_form(const SparseLoaderOptions& loader, Options& options) {
  add_enumerator(loader.format != SparseFormat::dense_f32, "format", "SparseFormat", loader.format, options);
  const SparseLoaderOptions plain;
  options.add(loader.length != plain.length, "length", std::to_string(loader.length));
  options.add(loader.negatives != plain.negatives, "negatives", std::to_string(loader.negatives));
}

void add_datasets(const ImageLoaderOptions& loader, Options& options) {
  options.add(loader.images != ImageLoaderOptions().images, "images", literal(loader.images));
  options.add(loader.labels.has_value(), "labels", literal(loader.labels.value_or("")));
}

void add_datasets(const SparseLoaderOptions&, Options&) {}

template <class LoaderOptions>
Options options_of(const LoaderOptions& loader) {
  Options options;
  options.add(true, "batch_size", std::to_string(loader.batch_size));
  add_enumerator(true, "shuffle", "Shuffle", loader.shuffle, options);
  options.add(loader.shuffle == Shuffle::window, "window_chunks", std::to_string(loader.window_chunks));
  add_form(loader, options);
  add_enumerator(true, "cache", "Cache", loader.cache, options);
  options.add(loader.cache_bytes != 0, "cache_bytes", std::to_string(loader.cache_bytes));
  options.add(!loader.cache_dir.empty(), "cache_dir", literal(loader.cache_dir));
  options.add(true, "threads", std::to_string(loader.threads));
  options.add(true, "prefetch", std::to_string(loader.prefetch));
  add_datasets(loader, options);
  return options;
}

/// The code that makes a loader.
struct LoaderSnippet {
  std::string cpp;
  std::string python;
};

/// Writes the code of a loader; options that have their defaults are left out.
LoaderSnippet loader_snippet(const BenchSpec& spec, const TuneReport& report) {
  const std::string type = spec.is_of_matrices() ? "SparseLoader" : "ImageLoader";
  const std::string list = joined(spec.paths, ", ", literal);
  const bool is_one = spec.paths.size() == 1;
  LoaderSnippet snippet;
  for (const Option& option :
       std::visit([](const auto& loader) { return options_of(loader); }, report.loader)) {
    snippet.cpp += (snippet.cpp.empty() ? "." : ",\n     .") + option.name + " = " + option.cpp;
    snippet.python += ",\n    " + option.name + "=" + option.python;
  }
  snippet.cpp = kScope + type + " loader(\n    " +
                (is_one ? list : "std::vector<std::string>{" + list + "}") + ",\n    {" + snippet.cpp +
                "});\n";
  snippet.python =
      "loader = chunkhit." + type + "(\n    " + (is_one ? list : "[" + list + "]") + snippet.python + ")\n";
  return snippet;
}

}  // namespace

void print_tuned(const BenchSpec& spec, const TuneReport& report) {
  for (const std::string& text : report.tuning) std::printf("%s\n", text.c_str());
  if (!report.has_settled) std::printf("note: stopped by a signal before the loader settled\n");
  std::visit(
      [&](const auto& loader) {
        if (report.samples_per_second > 0)
          std::printf("threads %u, prefetch %u, cache %s: %s samples/s\n", loader.threads, loader.prefetch,
                      name_of(loader.cache).c_str(), rate_text(report.samples_per_second).c_str());
        if (loader.shuffle == Shuffle::window)
          std::printf("mixing: %s a window, %.2f %% of neighbours from one chunk\n",
                      count_text(report.mixing.chunks_in_window, "chunk").c_str(),
                      100 * report.mixing.same_chunk_neighbors);
      },
      report.loader);
  const LoaderSnippet snippet = loader_snippet(spec, report);
  std::printf("\n%s\n%s", snippet.cpp.c_str(), snippet.python.c_str());
}

namespace {

using Json = nlohmann::ordered_json;

/// As flags spell it; null where there is none.
Json size_json(std::uint32_t width, std::uint32_t height) {
  if (width == 0) return nullptr;
  return std::to_string(width) + "x" + std::to_string(height);
}

void add_form(const ImageLoaderOptions& loader, Json& settings) {
  const AugmentSpec& augment = loader.augment;
  settings["resized_crop"] = size_json(augment.resized_crop.width, augment.resized_crop.height);
  settings["crop"] = size_json(augment.crop_width, augment.crop_height);
  settings["dtype"] = name_of(loader.dtype);
  settings["layout"] = loader.layout ? Json(name_of(*loader.layout)) : Json(nullptr);
  settings["images"] = loader.images;
  settings["labels"] = loader.labels ? Json(*loader.labels) : Json(nullptr);
}

void add_form(const SparseLoaderOptions& loader, Json& settings) {
  settings["format"] = name_of(loader.format);
  if (loader.format == SparseFormat::sequences) settings["length"] = loader.length;
  if (loader.format == SparseFormat::pairs) settings["negatives"] = loader.negatives;
}

Json number_or_auto(std::uint32_t value) { return value == kAutomatic ? Json("auto") : Json(value); }

Json settings_json(const BenchSpec& spec) {
  Json settings{{"paths", spec.paths}};
  std::visit(
      [&settings](const auto& loader) {
        settings["batch_size"] = loader.batch_size;
        settings["shuffle"] = name_of(loader.shuffle);
        settings["window_chunks"] = loader.window_chunks;
        add_form(loader, settings);
        settings["cache"] = name_of(loader.cache);
        settings["cache_bytes"] = loader.cache_bytes;
        settings["cache_dir"] = loader.cache_dir;
        settings["threads"] = number_or_auto(loader.threads);
        settings["prefetch"] = number_or_auto(loader.prefetch);
      },
      spec.loader);
  settings["epochs"] = spec.epochs;
  settings["step_ms"] = spec.step_seconds * 1000;
  settings["cold"] = spec.cold;
  return settings;
}

/// The rates of an epoch, or of all epochs together.
Json rates_json(const BenchSpec& spec, const EpochTimes& times) {
  Json rates;
  rates["samples_per_second"] = samples_per_second(times);
  if (spec.is_of_matrices()) rates["ratings_per_second"] = ratings_per_second(times);
  rates["bytes_per_second"] = bytes_per_second(times);
  rates["batch_seconds_median"] = batch_seconds_median(times);
  rates["first_batch_seconds"] = times.first_batch_seconds;
  rates["wait_fraction"] = wait_fraction(times);
  rates["utilization"] = utilization(times);
  return rates;
}

Json epoch_json(const BenchSpec& spec, const EpochTimes& epoch) {
  Json object{{"samples", epoch.samples}, {"batches", epoch.batch_seconds.size()}};
  if (spec.is_of_matrices()) object["ratings"] = epoch.ratings;
  object["seconds"] = epoch.seconds;
  object.update(rates_json(spec, epoch));
  return object;
}

Json stats_json(const LoaderStats& stats) {
  return {{"seconds", stats.seconds},
          {"wait_seconds", stats.wait_seconds},
          {"step_seconds", stats.step_seconds},
          {"fetch_seconds", stats.fetch_seconds},
          {"decode_seconds", stats.decode_seconds},
          {"assemble_seconds", stats.assemble_seconds},
          {"idle_seconds", stats.idle_seconds},
          {"batches", stats.batches},
          {"samples", stats.samples},
          {"batch_bytes", stats.batch_bytes},
          {"stored_bytes", stats.stored_bytes},
          {"corrupt_chunks", stats.corrupt_chunks},
          {"corrupt_samples", stats.corrupt_samples},
          {"cache", name_of(stats.cache)},
          {"threads", stats.threads},
          {"prefetch", stats.prefetch},
          {"tuning", stats.tuning}};
}

/// Serializes JSON; replaces bytes of paths that are not UTF-8.
std::string dump(const Json& object) {
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string bench_json(const BenchSpec& spec, const BenchReport& report) {
  Json epochs = Json::array();
  for (const EpochTimes& epoch : report.epochs) epochs.push_back(epoch_json(spec, epoch));
  Json object = rates_json(spec, sum_of(report.epochs));
  object["wait_fraction"] = report.stats.wait_fraction();
  object["chunk_hits"] = report.stats.chunk_hits;
  object["chunk_misses"] = report.stats.chunk_misses;
  object["chunk_fetches"] = report.stats.chunk_fetches;
  object["shared_chunks"] = report.stats.shared_chunks;
  object["remote_bytes"] = report.stats.remote_bytes;
  object["disk_chunks"] = report.stats.disk_chunks;
  object["peak_rss_bytes"] = report.peak_rss_bytes;
  object["verdict"] = verdict_text(spec, report.stats);
  object["warnings"] = report.warnings;
  object["settings"] = settings_json(spec);
  object["epochs"] = epochs;
  object["stats"] = stats_json(report.stats);
  return dump(object);
}

std::string tune_json(const BenchSpec& spec, const TuneReport& report) {
  const LoaderSnippet snippet = loader_snippet(spec, report);
  Json object;
  std::visit(
      [&object](const auto& loader) {
        object = {
            {"threads", loader.threads}, {"prefetch", loader.prefetch}, {"cache", name_of(loader.cache)}};
      },
      report.loader);
  object.update({{"samples_per_second", report.samples_per_second},
                 {"has_settled", report.has_settled},
                 {"tuning", report.tuning},
                 {"chunks_in_window", report.mixing.chunks_in_window},
                 {"same_chunk_neighbors", report.mixing.same_chunk_neighbors},
                 {"snippet", {{"cpp", snippet.cpp}, {"python", snippet.python}}},
                 {"settings", settings_json(spec)}});
  return dump(object);
}

}  // namespace chunkhit
