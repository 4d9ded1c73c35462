#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>

#include "pack_bench_report.h"
#include "types/sample_shape.h"

namespace chunkhit {
namespace {

using Json = nlohmann::ordered_json;

void add_form(const ImageForm& form, Json& settings) {
  settings["flip_horizontal"] = form.flip_horizontal;
  settings["dtype"] = name_of(kDtypeNames, form.dtype);
  settings["layout"] = form.layout ? Json(name_of(kLayoutNames, *form.layout)) : Json(nullptr);
  settings["images"] = form.images;
  settings["labels"] = form.labels ? Json(*form.labels) : Json(nullptr);
}

void add_form(const MatrixForm& form, Json& settings) {
  settings["format"] = name_of(kSparseFormatNames, form.format);
  settings["binarize"] = form.binarize;
  settings["normalize"] = name_of(kRowNormNames, form.normalize);
}

Json settings_json(const BenchSpec& spec) {
  const LoaderSetting& loader = spec.loader;
  Json settings{{"paths", spec.paths},
                {"batch_size", loader.batch_size},
                {"shuffle", name_of(kShuffleNames, loader.shuffle)},
                {"seed", loader.seed},
                {"window_chunks", loader.window_chunks},
                {"echo", loader.echo}};
  std::visit([&settings](const auto& form) { add_form(form, settings); }, spec.form);
  settings["cache"] = name_of(kCacheNames, loader.cache);
  settings["cache_bytes"] = loader.cache_bytes;
  settings["threads"] = loader.threads;
  settings["prefetch"] = loader.prefetch;
  settings["epochs"] = spec.epochs;
  settings["step_ms"] = spec.step_seconds * 1000;
  settings["cold"] = spec.cold;
  return settings;
}

/// The rates that epochs and all of them together have.
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
          {"cache", name_of(kCacheNames, stats.cache)},
          {"threads", stats.threads}};
}

/// A path need not be UTF-8.
std::string dump(const Json& object) {
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json try_json(const TuneTry& tried) {
  static constexpr std::array<std::string_view, 4> kEndNames{"measured", "gave_up", "refused", "stopped"};
  Json object{{"threads", tried.setting.threads},
              {"prefetch", tried.setting.prefetch},
              {"window_chunks", tried.setting.window_chunks},
              {"cache", name_of(kCacheNames, tried.setting.cache)},
              {"samples_per_second", tried.samples_per_second},
              {"end", name_of(kEndNames, tried.end)},
              {"again", tried.is_again}};
  if (!tried.reason.empty()) object["reason"] = tried.reason;
  return object;
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
  object["peak_rss_bytes"] = report.peak_rss_bytes;
  object["verdict"] = report.stats.verdict();
  object["warnings"] = report.warnings;
  object["settings"] = settings_json(spec);
  object["epochs"] = epochs;
  object["stats"] = stats_json(report.stats);
  return dump(object);
}

std::string tune_json(const BenchSpec& spec, const TuneReport& report) {
  Json tries = Json::array();
  for (const TuneTry& tried : report.tries) tries.push_back(try_json(tried));
  const LoaderSnippet snippet = loader_snippet(spec, report.best.setting);
  const Json object{{"best", try_json(report.best)},
                    {"same_chunk_neighbors", report.best.mixing.same_chunk_neighbors},
                    {"snippet", {{"cpp", snippet.cpp}, {"python", snippet.python}}},
                    {"settings", settings_json(spec)},
                    {"tries", tries}};
  return dump(object);
}

}  // namespace chunkhit
