// pack-images: a folder of images → a pack. Flags → spec → pack_images → report.
#include <malloc.h>

#include "chunkhit/error.h"
#include "chunkhit/pack.h"
#include "cli.h"
#include "pack_images_flags.h"
#include "pack_images_report.h"
#include "progress.h"

namespace chunkhit {
namespace {

constexpr int kMappedBlockBytes = 1 << 20;

constexpr const char* kDescription =
    "Packs images, of a folder or of tars, once, into chunked uint8 HDF5 or compressed shards.\nDefaults are "
    "in "
    "(parentheses).";
constexpr const char* kExamples =
    "Examples, the second with class = first folder level under ROOT:\n"
    "  pack-images photos --labels photos.csv --resize 64 --crop 64x64 -o train\n"
    "  pack-images photos --resize 256 --crop 224x224 --container shard -o train\n"
    "  pack-images shards/*.tar --resize 256 --crop 224 -o train\n"
    "  pack-images imagenet --split-folders train,val --resize 256 --crop 224 -o packs";

int run_pack_images(const CLI::App& app, PackImagesFlags& flags, const std::string& command_line) {
  const PackImagesSpec spec = pack_images_spec(flags);
  PackImagesOptions options = pack_images_options(flags);
  options.command_line = command_line;
  if (!flags.save_config.empty()) save_config(app, flags.save_config);
  if (app.count("--plan") > 0 && flags.dry_run)
    throw Error(ErrorCode::usage, "--plan and --dry-run exclude each other");
  const auto show = [&](const PackProgress& progress) { return shown(progress, spec.labels == "-"); };
  const ProgressStyle style = progress_style(flags.progress);
  if (app.count("--plan") > 0) {
    const PlanReport plan = with_progress(style, options, show, [&](const PackImagesOptions& how) {
      return plan_images(spec, how, parse_count("--plan", flags.plan, 1, UINT32_MAX));
    });
    print_report(plan);
    return exit_code(plan.interrupted);
  }
  if (flags.dry_run) {
    print_preview(spec, options, preview_images(spec, options));
    return 0;
  }
  const PackImagesReport report = with_progress(
      style, options, show, [&](const PackImagesOptions& how) { return pack_images(spec, how); });
  print_report(report);
  return exit_code(report.interrupted);
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): only without memory for the flags
  using namespace chunkhit;
  // Freed buffers of images go back to the system at once, whatever was freed before: --memory-bytes counts
  // on it.
  mallopt(M_MMAP_THRESHOLD, kMappedBlockBytes);
  CLI::App app(kDescription, "pack-images");
  PackImagesFlags flags(app);
  add_pack_images_flags(app, flags);
  add_common_flags(app, "Run");
  app.footer(kExamples);
  return run_command(app, argc, argv, [&] { return run_pack_images(app, flags, command_line(argc, argv)); });
}
