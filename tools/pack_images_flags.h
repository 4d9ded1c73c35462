// The flags of pack-images, and the spec and the options that they mean.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "chunkhit/pack.h"
#include "field_flags.h"

namespace chunkhit {

/// What the command line and the recipe say.
struct PackImagesFlags {
  explicit PackImagesFlags(CLI::App& app) : fields(app) {}
  FieldFlags fields;  ///< those of the spec and the options
  std::vector<std::string> inputs;
  std::string sheet;
  std::string progress = "auto";
  std::string save_config;  ///< file for the effective recipe; empty: none
  std::string plan;         ///< number of tasks
  bool dry_run = false;
};

/// Adds every flag, in the groups of the help; `flags` must live until the command line is parsed.
void add_pack_images_flags(CLI::App& app, PackImagesFlags& flags);

/// Gives what is wanted; throws usage naming the flag.
[[nodiscard]] PackImagesSpec pack_images_spec(PackImagesFlags& flags);

/// Gives how to run, without the callbacks; throws usage naming the flag.
[[nodiscard]] PackImagesOptions pack_images_options(const PackImagesFlags& flags);

}  // namespace chunkhit
