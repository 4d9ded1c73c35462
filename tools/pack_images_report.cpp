#include "pack_images_report.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli.h"
#include "pack/disk_space.h"

namespace chunkhit {
namespace {

constexpr std::size_t kShownReasons = 3;
constexpr std::size_t kShownClasses = 10;

void print_notices(const std::vector<std::string>& notices) {
  for (const std::string& notice : notices)
    std::printf("note: %s\n", printable_text(flag_text(notice)).c_str());
}

/// A class's name, in quotes where a list of names would be misread.
std::string class_text(const std::string& name) {
  const std::string text = printable_text(name);
  return text.empty() || text.find_first_of(", =\"") != std::string::npos ? '"' + text + '"' : text;
}

void print_labels(const LabelSummary& labels) {
  if (labels.kind == LabelKind::numbers) {
    std::printf("labels: numbers, %s of float32%s", count_text(labels.columns.size(), "column").c_str(),
                labels.is_detected ? " (detected)" : "");
    const std::size_t named = labels.columns.size() > 1 ? std::min(labels.columns.size(), kShownClasses) : 0;
    for (std::size_t at = 0; at < named; ++at)
      std::printf("%s %s", at == 0 ? ":" : ",", class_text(labels.columns[at]).c_str());
    std::printf("%s\n", labels.columns.size() > kShownClasses ? ", …" : "");
    return;
  }
  if (labels.classes.empty() && labels.class_count == 0) {
    std::printf("labels: none\n");
    return;
  }
  if (labels.classes.empty()) {
    std::printf("labels: %s %s, whose ids are the whole numbers that labels are%s\n",
                count_text(labels.class_count).c_str(), labels.class_count == 1 ? "class" : "classes",
                labels.is_detected ? " (detected; --label-type numbers packs them as float32)" : "");
    return;
  }
  const std::size_t count = labels.classes.size();
  std::printf("labels: %s %s:", count_text(count).c_str(), count == 1 ? "class" : "classes");
  for (std::size_t id = 0; id < std::min(count, kShownClasses); ++id)
    std::printf("%s %zu = %s", id == 0 ? "" : ",", id, class_text(labels.classes[id]).c_str());
  std::printf("%s\n", count > kShownClasses ? ", …" : "");
}

/// The folder of the job scripts beside this program: in the sources, or where Debian's package has it.
std::string job_scripts() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* const place : {"../../../samples/jobs", "../share/doc/chunkhit/examples/jobs"}) {
    const fs::path folder = (program / place).lexically_normal();
    if (!fs::exists(folder / "slurm.sh", error)) continue;
    const fs::path from_here = folder.lexically_proximate(fs::current_path(error));
    return from_here.begin()->string() == ".." ? folder.string() : from_here.string();
  }
  return "the sources' samples/jobs";
}

/// What photographs take on disk.
std::uint64_t photograph_bytes(const PackImagesPlan& plan, const std::string& codec) {
  if (!plan.is_compressed) return plan.needed_bytes;
  return static_cast<std::uint64_t>(static_cast<double>(plan.raw_bytes) * photograph_share(codec));
}

void print_plan(const PackImagesPlan& plan, const std::string& codec) {
  if (plan.chunk_samples == 0) {
    std::printf("%s: %s in %s, chunks of up to %s, %s on disk\n", printable_text(plan.path).c_str(),
                count_text(plan.rows, "sample").c_str(), count_text(plan.parts, "part").c_str(),
                bytes_text(static_cast<double>(plan.chunk_bytes)).c_str(),
                space_text({plan.needed_bytes, plan.is_compressed}).c_str());
    return;
  }
  const std::string of_photographs =
      plan.is_compressed ? ", photographs " + space_text({photograph_bytes(plan, codec), false}) : "";
  std::printf("%s: %s = %s raw, codec %s, %s%s on disk\n", printable_text(plan.path).c_str(),
              count_text(plan.rows, "sample").c_str(),
              bytes_text(static_cast<double>(plan.raw_bytes)).c_str(), codec.c_str(),
              space_text({plan.needed_bytes, plan.is_compressed}).c_str(), of_photographs.c_str());
  // A pack of one chunk has no more samples than there are.
  const std::uint64_t samples = std::min<std::uint64_t>(plan.chunk_samples, plan.rows);
  const std::uint64_t bytes = plan.rows == 0 ? 0 : plan.raw_bytes / plan.rows * samples;
  std::printf("  %s, %s of %s (%s; %s)\n", count_text(plan.parts, "part").c_str(),
              count_text(plan.chunks, "chunk").c_str(), count_text(samples, "sample").c_str(),
              bytes_text(static_cast<double>(bytes)).c_str(), flag_text(plan.chunk_reason).c_str());
}

void print_top_reasons(const std::map<std::string, RejectCount>& reasons) {
  std::multimap<std::uint64_t, const RejectCount*, std::greater<>> most;
  for (const auto& [kind, like] : reasons) most.emplace(like.count, &like);
  std::size_t shown = 0;
  for (const auto& [count, like] : most)
    if (shown++ < kShownReasons)
      std::printf("  %s%s: %s\n", count_text(count, "time").c_str(), like->are_same ? "" : ", the first",
                  printable_text(flag_text(like->first)).c_str());
  if (most.size() > kShownReasons)
    std::printf("  … and %s\n", count_text(most.size() - kShownReasons, "more reason").c_str());
}

void print_pack(const PackReport& pack, bool is_whole) {
  print_notices(pack.notices);
  if (pack.already_finished) {
    std::printf("%s: already packed, nothing to do (%s in %s)\n", printable_text(pack.path).c_str(),
                count_text(pack.samples, "sample").c_str(), count_text(pack.parts, "part").c_str());
    return;
  }
  std::printf("%s: %s of %s packed, %s rejected; %s, %s", printable_text(pack.path).c_str(),
              count_text(pack.samples).c_str(), count_text(pack.rows, "row").c_str(),
              count_text(pack.rejected).c_str(), count_text(pack.parts, "part").c_str(),
              bytes_text(static_cast<double>(pack.bytes)).c_str());
  if (pack.bytes < pack.raw_bytes)
    std::printf(" (%.2f times smaller than raw)",
                static_cast<double>(pack.raw_bytes) / static_cast<double>(pack.bytes));
  if (pack.parts_kept > 0)
    std::printf("; %s kept from earlier runs", count_text(pack.parts_kept, "part").c_str());
  if (pack.repaired) std::printf("; it was finished, but not whole: what was missing is written again");
  std::printf("\n");
  if (pack.samples == 0 && is_whole) std::printf("  warning: no sample was packed: every row was rejected\n");
  print_top_reasons(pack.reasons);
  const std::string path = printable_text(pack.path);
  if (!is_whole) return;  // the run that finishes writes the tables
  if (pack.rejected > 0) std::printf("  see %s/rejects.csv\n", path.c_str());
  if (pack.warned > 0)
    std::printf("  %s packed with warnings, see %s/warnings.csv\n", count_text(pack.warned).c_str(),
                path.c_str());
}

std::uint64_t parts_of(const std::vector<PackReport>& packs) {
  std::uint64_t parts = 0;
  for (const PackReport& pack : packs) parts += pack.parts;
  return parts;
}

void print_rate(std::uint64_t samples, double seconds) {
  if (samples == 0) return;
  const double per_second = static_cast<double>(samples) / seconds;
  std::printf("%s in %.2f s (%s img/s)\n", count_text(samples, "image").c_str(), seconds,
              count_text(static_cast<std::uint64_t>(per_second)).c_str());
}

void print_next(const std::string& folder) {
  const std::string path = printable_text(folder);
  std::printf("next: pack-info %s; pack-verify %s\n", path.c_str(), path.c_str());
}

void print_space(const std::string& output, const PackImagesPreview& preview) {
  SpaceNeed all, of_photographs;
  for (const PackImagesPlan& plan : preview.packs) {
    all.bytes += plan.needed_bytes;
    all.is_minimum = all.is_minimum || plan.is_compressed;
    of_photographs.bytes += photograph_bytes(plan, preview.codec);
  }
  const bool is_estimate = !preview.packs.empty() && preview.packs[0].chunk_samples == 0;
  const std::string error = is_estimate ? "" : space_error(all, preview.free_bytes);
  const std::string likely = space_error(of_photographs, preview.free_bytes);
  if (error.empty() && !likely.empty())
    std::printf("warning: %s: %s if these are photographs\n", printable_text(output).c_str(), likely.c_str());
  else if (error.empty())
    std::printf("%s are free for %s\n", bytes_text(static_cast<double>(preview.free_bytes)).c_str(),
                printable_text(output).c_str());
  else
    std::printf("warning: %s: %s: packing would be refused\n", printable_text(output).c_str(), error.c_str());
}

/// Names the images of a sheet as they are numbered there.
void print_sheet(const std::string& path, const std::vector<SheetImage>& images) {
  std::printf("%s: left the file, right the sample\n", printable_text(path).c_str());
  for (std::size_t index = 0; index < images.size(); ++index) {
    const SheetImage& image = images[index];
    std::printf("  %2zu  %s: ", index + 1, printable_text(image.file).c_str());
    if (!image.reject.empty()) {
      std::printf("would be rejected: %s\n", printable_text(flag_text(image.reject)).c_str());
      continue;
    }
    std::printf("%ux%u", image.width, image.height);
    if (image.orientation != 1) std::printf(" (EXIF orientation %d)", image.orientation);
    std::printf(" -> %ux%u\n", image.sample_width, image.sample_height);
  }
}

}  // namespace

void print_preview(const PackImagesSpec& spec, const PackImagesOptions& options,
                   const PackImagesPreview& preview) {
  std::printf("%s, %s of them rejected while listing\n", count_text(preview.rows, "row").c_str(),
              count_text(preview.rejected).c_str());
  for (const std::string& finding : preview.findings)
    std::printf("found: %s\n", printable_text(flag_text(finding)).c_str());
  print_notices(preview.notices);
  print_labels(preview.labels);
  if (spec.sizes == Sizes::own)
    std::printf("samples: each image its own size, %u channels, uint8 (images are not opened yet)\n",
                preview.channels);
  else
    std::printf(
        "samples: %u wide x %u high x %u channels, uint8, as %s gives them (most others are not opened "
        "yet)\n",
        preview.width, preview.height, preview.channels, printable_text(preview.first_file).c_str());
  for (const PackImagesPlan& plan : preview.packs) print_plan(plan, preview.codec);
  print_space(options.output, preview);
  if (!options.sheet.empty()) print_sheet(options.sheet, preview.sheet);
}

void print_report(const PackImagesReport& report) {
  print_notices(report.notices);
  if (!report.packs.empty()) print_labels(report.labels);
  for (const PackReport& pack : report.packs) print_pack(pack, !report.interrupted);
  if (report.interrupted) {
    print_interrupted(parts_of(report.packs));
    return;
  }
  print_rate(report.samples_packed_now, report.seconds);
  const std::string& first = report.packs[0].path;
  print_next(report.packs.size() > 1 ? std::filesystem::path(first).parent_path().string() : first);
}

void print_report(const PlanReport& report) {
  if (report.interrupted) {
    std::printf("interrupted; nothing was planned, rerun the same command\n");
    return;
  }
  print_notices(report.notices);
  print_labels(report.labels);
  if (report.already_finished) {
    std::printf("%s: already packed, nothing to plan\n", printable_text(report.path).c_str());
    return;
  }
  std::printf("%s: plan of %s (%s rejected while listing) in %s and %s, %s\n",
              printable_text(report.path).c_str(), count_text(report.rows, "row").c_str(),
              count_text(report.rejected).c_str(), count_text(report.parts, "part").c_str(),
              count_text(report.tasks, "task").c_str(),
              bytes_text(static_cast<double>(report.bytes)).c_str());
  const std::string folder = printable_text(shell_word(report.path));
  const auto last = static_cast<unsigned long long>(report.tasks - 1);
  std::printf("run the tasks, in any order and on any machine, then finish:\n");
  const std::string scripts = job_scripts();
  std::printf("  Slurm        sbatch --array=0-%llu slurm.sh %s\n", last, folder.c_str());
  std::printf("  Kubernetes   completions: %llu; pack-run %s --task $JOB_COMPLETION_INDEX\n", last + 1,
              folder.c_str());
  std::printf("  GNU parallel parallel -q --retries 3 pack-run %s --task {} ::: $(seq 0 %llu)\n",
              folder.c_str(), last);
  std::printf("  Dask         python3 dask_run.py %s %llu\n", folder.c_str(), last + 1);
  std::printf("finish: pack-run %s; progress: pack-info %s; the scripts are in %s\n", folder.c_str(),
              folder.c_str(), printable_text(scripts).c_str());
}

void print_report(const RunPlanOptions& options, const RunPlanReport& report) {
  const std::string folder = printable_text(options.folder);
  if (report.finished && report.packs.empty()) {
    std::printf("%s: finished, nothing to do\n", folder.c_str());
    return;
  }
  print_notices(report.notices);
  for (const PackReport& pack : report.packs) print_pack(pack, report.finished);
  print_rate(report.samples_packed_now, report.seconds);
  if (report.interrupted)
    print_interrupted(parts_of(report.packs));
  else if (report.finished)
    print_next(options.folder);
  else
    std::printf("next, once all tasks have ended: pack-run %s\n", folder.c_str());
}

ShownProgress shown(const PackProgress& progress, bool is_from_stdin) {
  ShownProgress shown;
  switch (progress.phase) {
    case PackProgress::Phase::listing:
      shown.phase = "listing", shown.is_first = true;
      shown.words = is_from_stdin ? "listing the input, from standard input …" : "listing the input …";
      break;
    case PackProgress::Phase::packing:
      shown.phase = "packing", shown.things = "rows", shown.rate = "img/s";
      break;
    case PackProgress::Phase::finishing:
      shown.phase = "finishing", shown.words = "flushing the last part to disk …";
      break;
  }
  shown.subject = progress.pack;
  shown.done = progress.rows_done;
  shown.total = progress.rows_total;
  shown.skipped = progress.rows_skipped;
  shown.problems = progress.rejected;
  shown.problem_name = "rejected";
  return shown;
}

}  // namespace chunkhit
