#include "pack_images_flags.h"

#include "cli.h"
#include "pack/images/image_fields.h"

namespace chunkhit {

void add_pack_images_flags(CLI::App& app, PackImagesFlags& flags) {
  app.add_option("ROOT", flags.inputs, "Folder of the images (that of --labels), or tars; - reads stdin")
      ->option_text("...");
  flags.fields.add(PackImagesSpec());
  flags.fields.add(PackImagesOptions());
  FlagGroup group(app, "Run");
  add_progress_flag(group, flags.progress);
  group
      .add("--plan", "TASKS", flags.plan,
           "Instead of packing, write a plan for pack-run, of at most TASKS tasks")
      ->configurable(false);
  group.add_switch("--dry-run", flags.dry_run, "Report what would be packed, write nothing")
      ->configurable(false);
  group
      .add("--sheet", "FILE.png", flags.sheet,
           "With --dry-run: draw 16 images before and after into this PNG")
      ->default_str("")
      ->configurable(false);
  add_config_flags(app, group, flags.save_config);
}

PackImagesSpec pack_images_spec(PackImagesFlags& flags) {
  PackImagesSpec spec;
  flags.fields.read(spec);
  if (spec.sizes == Sizes::own && !flags.fields.is_given("container")) spec.container = "shard";
  flags.fields.set_defaults(spec);
  return spec;
}

PackImagesOptions pack_images_options(const PackImagesFlags& flags) {
  PackImagesOptions options;
  flags.fields.read(options);
  options.inputs = flags.inputs;
  std::erase(options.inputs, "");  // of a recipe without inputs
  options.sheet = flags.sheet;
  return options;
}

}  // namespace chunkhit
