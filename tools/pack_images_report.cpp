#include "pack_images_report.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>

#include "chunk/cache_advice.h"
#include "cli.h"

namespace chunkhit {
namespace {

constexpr int kShownReasons = 3;

void print_notices(const std::vector<std::string>& notices) {
  for (const std::string& notice : notices) std::printf("note: %s\n", notice.c_str());
}

void print_labels(const SampleList& list) {
  if (list.label_kind == LabelKind::numbers)
    std::printf("labels: %s float32 column(s)\n", count_text(list.label_columns.size()).c_str());
  else
    std::printf("labels: class ids, %s named classes\n", count_text(list.classes.size()).c_str());
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

void print_caches(const ChunkPlan& plan) {
  const std::uint64_t chunks = std::min(plan.chunk_count, plan.part_samples / plan.chunk_samples);
  const CacheAdvice advice = advise_cache(plan, chunks);
  print_cache("h5py untuned:", predict_hit_rates(plan, chunks, kDefaultCache.rdcc_nbytes), kDefaultCache);
  print_cache("h5py advised:", predict_hit_rates(plan, chunks, advice.rdcc_nbytes), advice);
}

void print_top_reasons(const std::map<std::string, std::uint64_t>& reasons) {
  std::multimap<std::uint64_t, std::string, std::greater<>> most;
  for (const auto& [reason, count] : reasons) most.emplace(count, reason);
  int shown = 0;
  for (const auto& [count, reason] : most)
    if (shown++ < kShownReasons) std::printf("  %s times: %s\n", count_text(count).c_str(), reason.c_str());
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
  print_top_reasons(pack.reasons);
  if (pack.rejected > 0) std::printf("  see %s/rejects.csv\n", pack.path.c_str());
}

}  // namespace

void print_preview(const PackImagesSpec& spec, const PackImagesOptions& options,
                   const PackImagesPreview& preview) {
  const SampleList& list = preview.list;
  std::printf("%s rows, %s of them rejected while listing\n", count_text(list.row_count).c_str(),
              count_text(list.rejects.size()).c_str());
  print_notices(list.notices);
  print_labels(list);
  for (std::size_t index = 0; index < preview.packs.size(); ++index) {
    const auto& [path, rows] = preview.packs[index];
    print_plan(path, rows, preview, preview.plans[index]);
    if (spec.container == "hdf5") print_caches(preview.plans[index]);
  }
  std::printf("%s are free for %s\n", bytes_text(static_cast<double>(preview.free_bytes)).c_str(),
              options.output.c_str());
}

void print_report(const PackImagesReport& report) {
  print_notices(report.notices);
  for (const PackReport& pack : report.packs) print_pack(pack);
  if (report.interrupted) {
    std::printf("stopped; finished parts are kept, the same command goes on\n");
    return;
  }
  if (report.samples_packed_now > 0) {
    const double per_second = static_cast<double>(report.samples_packed_now) / report.seconds;
    std::printf("%s images in %.2f s (%s img/s)\n", count_text(report.samples_packed_now).c_str(),
                report.seconds, count_text(static_cast<std::uint64_t>(per_second)).c_str());
  }
  const std::string& path = report.packs[0].path;
  std::printf("next: pack-info %s; pack-verify %s\n", path.c_str(), path.c_str());
}

}  // namespace chunkhit
