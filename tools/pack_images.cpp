// pack-images: a folder of images → a pack. Flags → spec → pack_images → report.
#include <malloc.h>

#include "chunkhit/error.h"
#include "chunkhit/pack.h"
#include "cli.h"
#include "field_flags.h"
#include "pack/images/image_fields.h"
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

void add_flags(Command& command) {
  command.add_argument("ROOT", "Folder of the images (that of --labels), or tars; - reads stdin", false,
                       Flag::Takes::list);
  visit_fields<FlagAdder>(command, PackImagesSpec());
  visit_fields<FlagAdder>(command, PackImagesOptions());
  command.group("Run");
  command.add_progress_flag();
  command.add({"--plan", "TASKS", "Instead of packing, write a plan for pack-run, of at most TASKS tasks"})
      .in_recipes = false;
  command.add_switch("--dry-run", "Report what would be packed, write nothing").in_recipes = false;
  command.add({"--sheet", "FILE.png", "With --dry-run: draw 16 images before and after into this PNG"})
      .in_recipes = false;
  command.add_config_flags();
}

/// Gives what is wanted; throws usage naming the flag.
PackImagesSpec spec_of(Command& command) {
  PackImagesSpec spec;
  visit_fields<FlagReader>(command, spec);
  if (!command["--container"].is_given()) spec.container = default_container(spec.sizes);
  visit_fields<DefaultSetter>(command, spec);
  return spec;
}

int run_pack_images(Command& command, const std::string& command_line) {
  const PackImagesSpec spec = spec_of(command);
  PackImagesOptions options;
  visit_fields<FlagReader>(command, options);
  options.inputs = command["ROOT"].list();
  options.sheet = command["--sheet"].text();
  options.command_line = command_line;
  command.save_recipe();
  const Flag& plan = command["--plan"];
  if (plan.is_given() && command["--dry-run"].is_on())
    throw Error(ErrorCode::usage, "--plan and --dry-run exclude each other");
  const auto show = [&](const PackProgress& progress) { return shown(progress, spec.labels == "-"); };
  const ProgressStyle style = progress_style(command["--progress"].text());
  if (plan.is_given()) {
    const PlanReport report = with_progress(style, options, show, [&](const PackImagesOptions& how) {
      return plan_images(spec, how, parse_count("--plan", plan.text(), 1, UINT32_MAX));
    });
    print_report(report);
    return exit_code(report.interrupted);
  }
  if (command["--dry-run"].is_on()) {
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
  Command command("pack-images", kDescription, kExamples);
  add_flags(command);
  return command.run(argc, argv, [&] { return run_pack_images(command, command_line(argc, argv)); });
}
